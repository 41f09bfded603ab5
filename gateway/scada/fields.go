package scada

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/apollo-11/apollo11/gateway/engine"
	"github.com/apollo-11/apollo11/wire"
)

// targets reads node, nodes or target_selector: exactly one of them.
func (d *decoder) targets(root *value) {
	const hint = `write "node": "pump-1", "nodes": ["pump-1", "pump-2"] or "target_selector": {"type": "label", "key": "role", "value": "worker"}`
	var chosen *value
	for i := range root.kids {
		m := &root.kids[i]
		switch m.key {
		case "node", "nodes", "target_selector":
		default:
			continue
		}
		if chosen != nil {
			d.refuse(m.keyAt, CodeContradicts, m.key, "is given as well as "+chosen.key, "keep one of them")
			return
		}
		chosen = m
	}
	if chosen == nil {
		d.refuse(root.at, CodeMissing, "node", "is missing: the task has no target", hint)
		return
	}
	switch chosen.key {
	case "node":
		if node, ok := d.node(chosen, "node"); ok {
			d.spec.Nodes = []string{node}
		}
	case "nodes":
		d.nodes(chosen, "nodes")
	case "target_selector":
		d.selector(chosen)
	}
}

func (d *decoder) node(m *value, field string) (string, bool) {
	node, ok := d.text(m, field, `write for example "pump-1"`)
	if !ok {
		return "", false
	}
	if err := wire.CheckNode(node); err != nil {
		d.refuse(m.at, CodeBadValue, field, "is not usable: "+err.Error(), "name one node; several are chosen with nodes or target_selector")
		return "", false
	}
	return node, true
}

func (d *decoder) nodes(m *value, field string) {
	if m.kind != kindList {
		d.refuse(m.at, CodeWrongType, field, "is "+m.describe()+", not a list", `write for example ["pump-1", "pump-2"], or "node": "pump-1" for one`)
		return
	}
	if len(m.kids) == 0 {
		d.refuse(m.at, CodeBadValue, field, "is an empty list", "name at least one node")
		return
	}
	if len(m.kids) > MaxNodes {
		d.refuse(m.at, CodeTooLarge, field, fmt.Sprintf("names %d nodes, the limit is %d", len(m.kids), MaxNodes), "choose them by label")
		return
	}
	seen := make(map[string]struct{}, len(m.kids))
	list := make([]string, 0, len(m.kids))
	for i := range m.kids {
		at := fmt.Sprintf("%s[%d]", field, i)
		node, ok := d.node(&m.kids[i], at)
		if !ok {
			continue
		}
		if _, again := seen[node]; again {
			d.refuse(m.kids[i].at, CodeDuplicate, at, "names "+node+" a second time", "name every node once")
			continue
		}
		seen[node] = struct{}{}
		list = append(list, node)
	}
	slices.Sort(list)
	d.spec.Nodes = list
}

func (d *decoder) selector(m *value) {
	const hint = `write {"type": "label", "key": "role", "value": "worker"} or {"type": "nodes", "nodes": ["pump-1"]}`
	if !d.object(m, "target_selector", hint) {
		return
	}
	kind := m.member("type")
	if kind == nil {
		d.refuse(m.at, CodeMissing, "target_selector.type", "is missing", hint)
		return
	}
	name, ok := d.text(kind, "target_selector.type", hint)
	if !ok {
		return
	}
	switch name {
	case "label":
		d.label(m, hint)
	case "node", "nodes":
		d.only(m, "target_selector.", "type", "nodes")
		list := m.member("nodes")
		if list == nil {
			d.refuse(m.at, CodeMissing, "target_selector.nodes", "is missing", hint)
			return
		}
		d.nodes(list, "target_selector.nodes")
	case "group":
		d.refuse(kind.at, CodeUnsupported, "target_selector.type", "group is not supported by this version yet", "choose by label or name the nodes; nothing was submitted")
	default:
		d.refuse(kind.at, CodeBadValue, "target_selector.type", "is "+kind.describe(), hint)
	}
}

func (d *decoder) label(m *value, hint string) {
	d.only(m, "target_selector.", "type", "key", "value")
	key, val := m.member("key"), m.member("value")
	if key == nil {
		d.refuse(m.at, CodeMissing, "target_selector.key", "is missing", hint)
	}
	if val == nil {
		d.refuse(m.at, CodeMissing, "target_selector.value", "is missing", hint)
	}
	if key == nil || val == nil {
		return
	}
	k, ok1 := d.text(key, "target_selector.key", hint)
	v, ok2 := d.text(val, "target_selector.value", hint+"; a number is put in quotes")
	if !ok1 || !ok2 {
		return
	}
	if err := wire.CheckLabel(k, v); err != nil {
		d.refuse(key.at, CodeBadValue, "target_selector.key", "is not usable: "+err.Error(), hint)
		return
	}
	d.spec.Label = engine.Selector{Key: k, Value: v}
}

// only refuses members that are not known.
func (d *decoder) only(m *value, within string, known ...string) {
	for i := range m.kids {
		if !slices.Contains(known, m.kids[i].key) {
			d.unknown(&m.kids[i], within, known)
		}
	}
}

// expiry reads ttl, or not_after under either of its names: at most one.
func (d *decoder) expiry(root *value) {
	var chosen *value
	for i := range root.kids {
		m := &root.kids[i]
		switch m.key {
		case "ttl", "not_after", "expires_at":
		default:
			continue
		}
		if chosen != nil {
			d.refuse(m.keyAt, CodeContradicts, m.key, "is given as well as "+chosen.key, "keep one of them")
			return
		}
		chosen = m
	}
	if chosen == nil {
		return
	}
	if chosen.key == "ttl" {
		ms, fault := chosen.millis("ttl", span{1, MaxTTLMs, `30 or "30s"`})
		d.add(fault)
		d.spec.TTLMs = ms
		return
	}
	ms, fault := chosen.instant(chosen.key)
	d.add(fault)
	d.spec.NotAfter = ms
	if fault == nil && ms <= d.options.Now {
		d.warn(chosen.at, WarnPast, chosen.key, "has already passed: the task will not be executed")
	}
}

// retry reads a retry policy. What it leaves open has the documented defaults;
// an empty one is as good as none.
func (d *decoder) retry(m *value) {
	const hint = `write for example {"max_retries": 3, "initial_interval": 5, "max_interval": 60, "backoff": "exponential"}`
	if !d.object(m, "retry_policy", hint) || len(m.kids) == 0 {
		return
	}
	d.only(m, "retry_policy.", "max_retries", "initial_interval", "max_interval", "backoff")
	var r engine.Retry
	if v := m.member("backoff"); v != nil {
		r.Backoff = d.backoff(v)
	}
	r.Max, r.InitialMs, r.MaxMs = DefaultRetries, DefaultInitialIntervalMs, DefaultMaxIntervalMs
	if r.Backoff == engine.BackoffTiered {
		r.Max = TieredRetries
	}
	if v := m.member("max_retries"); v != nil {
		r.Max = d.count(v, "retry_policy.max_retries", MaxRetries)
	}
	d.intervals(m, &r)
	d.spec.Retry = &r
}

// intervals fills in the waits between attempts. Those that the kind of backoff
// does not use get one canonical value.
func (d *decoder) intervals(m *value, r *engine.Retry) {
	const initialField, maxField = "retry_policy.initial_interval", "retry_policy.max_interval"
	wait := span{1, MaxTimeoutMs, `5 or "5s"`}
	first, last := m.member("initial_interval"), m.member("max_interval")
	good := true
	read := func(v *value, field string, into *uint32) {
		if v == nil {
			return
		}
		ms, fault := v.millis(field, wait)
		d.add(fault)
		good = good && fault == nil
		*into = uint32(ms)
	}
	unused := func(v *value, field, kind string, given, fixed uint32) {
		if v != nil && given != fixed {
			d.warn(v.at, WarnUnused, field, "has no effect with backoff "+kind)
		}
	}
	read(first, initialField, &r.InitialMs)
	read(last, maxField, &r.MaxMs)
	switch {
	case !good:
	case r.Backoff == engine.BackoffTiered:
		unused(first, initialField, "tiered", r.InitialMs, TierFastMs)
		unused(last, maxField, "tiered", r.MaxMs, TierSlowMs)
		r.InitialMs, r.MaxMs = TierFastMs, TierSlowMs
	case last == nil:
		r.MaxMs = max(r.MaxMs, r.InitialMs)
	case r.MaxMs < r.InitialMs:
		d.refuse(last.at, CodeContradicts, maxField, "is shorter than initial_interval", "make it at least as long")
	}
	if r.Backoff == engine.BackoffFixed {
		unused(last, maxField, "fixed", r.MaxMs, r.InitialMs)
		r.MaxMs = r.InitialMs
	}
}

func (d *decoder) backoff(v *value) engine.Backoff {
	const hint = "write exponential, fixed or tiered"
	s, ok := d.text(v, "retry_policy.backoff", hint)
	switch {
	case !ok, s == "exponential":
	case s == "fixed":
		return engine.BackoffFixed
	case s == "tiered":
		return engine.BackoffTiered
	default:
		d.refuse(v.at, CodeBadValue, "retry_policy.backoff", "is "+v.describe(), hint)
	}
	return engine.BackoffExponential
}

// count reads a whole number from 0 to most.
func (d *decoder) count(v *value, field string, most uint8) uint8 {
	hint := fmt.Sprintf("write a whole number from 0 to %d", most)
	if v.kind != kindNumber {
		d.refuse(v.at, CodeWrongType, field, "is "+v.describe()+", not a number", hint)
		return 0
	}
	n, fault := v.number(field)
	if fault != nil {
		d.add(fault)
		return 0
	}
	i, ok := n.(int64)
	if !ok || i < 0 || i > int64(most) {
		d.refuse(v.at, CodeOutOfRange, field, "is "+v.describe(), hint)
		return 0
	}
	return uint8(i)
}

func (d *decoder) metadata(m *value) {
	const hint = `write for example {"operator": "ops-team"}`
	if !d.object(m, "metadata", hint) || len(m.kids) == 0 {
		return
	}
	if len(m.kids) > MaxMetadata {
		d.refuse(m.at, CodeTooLarge, "metadata", fmt.Sprintf("has %d entries, the limit is %d", len(m.kids), MaxMetadata), "keep what people need")
		return
	}
	d.spec.Metadata = make(map[string]string, len(m.kids))
	for i := range m.kids {
		e := &m.kids[i]
		field := "metadata." + clip(e.key)
		switch {
		case e.key == "" || len(e.key) > MaxMetadataKey || hasControl(e.key):
			d.refuse(e.keyAt, CodeBadValue, field, "has an unusable name", fmt.Sprintf("names have 1 to %d bytes and no control characters", MaxMetadataKey))
		case e.kind == kindNull || e.kind == kindList || e.kind == kindObject:
			d.refuse(e.at, CodeWrongType, field, "is "+e.describe()+", not text", "metadata is flat: text, numbers, true and false")
		case len(e.text) > MaxMetadataValue:
			d.refuse(e.at, CodeTooLarge, field, fmt.Sprintf("has %d bytes, the limit is %d", len(e.text), MaxMetadataValue), "keep it short")
		case hasControl(e.text):
			d.refuse(e.at, CodeBadValue, field, "has a control character", "write it as one line of text")
		default:
			if e.kind != kindText {
				d.warn(e.at, WarnCoerced, field, "is "+e.describe()+" and was taken as text")
			}
			d.spec.Metadata[strings.Clone(e.key)] = strings.Clone(e.text)
		}
	}
}

func hasControl(s string) bool { return strings.ContainsFunc(s, unicode.IsControl) }
