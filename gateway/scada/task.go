package scada

import (
	"fmt"
	"strings"

	"github.com/apollo-11/apollo11/gateway/engine"
	"github.com/apollo-11/apollo11/wire"
)

// Limits of a task document.
const (
	// MaxTaskBytes is the default of Options.MaxBytes: a thousand nodes with names
	// of full length fit.
	MaxTaskBytes = 64 << 10
	// MaxNodes bounds an explicit node list: more are chosen by label. It stays
	// under wire.MaxArrayElements, because the list is stored in one record.
	MaxNodes = 1000
	// MaxMetadata bounds the entries of metadata, MaxMetadataKey and
	// MaxMetadataValue their bytes: notes for people, not a data store.
	MaxMetadata      = 32
	MaxMetadataKey   = 64
	MaxMetadataValue = 256
	// MaxRetries bounds retry_policy.max_retries. Attempts are numbered up to
	// wire.MaxAttempt, which leaves room for a second budget by an operator.
	MaxRetries = 100
	// MaxTimeoutMs bounds one execution: a day, the time for which an agent
	// remembers what it has done.
	MaxTimeoutMs = 24 * 3600 * 1000
	// MaxTTLMs bounds ttl: a year and a day.
	MaxTTLMs = 366 * 24 * 3600 * 1000
)

// What retry_policy leaves open (C3).
const (
	DefaultRetries           = 3
	DefaultInitialIntervalMs = 1000
	DefaultMaxIntervalMs     = 60_000
)

// The waits of backoff tiered, which the engine keeps to whatever the document
// says: three quick retries for a hiccup, then slow ones for an outage of
// minutes, then the operator queue (C3).
const (
	TierFastMs = 5_000
	TierSlowMs = 60_000
	// TieredRetries is the default of max_retries with backoff tiered: three fast
	// and five slow ones.
	TieredRetries = 8
)

// Options are the circumstances of ParseTask.
type Options struct {
	Site string // for hints that name topics
	// Now is the gateway's Unix time in ms, against which not_after is compared
	// for a warning; 0 means unknown. A time that has passed is not refused: the
	// document may be the second copy of a task that ran in time.
	Now int64
	// MaxBytes bounds the document; 0 means MaxTaskBytes.
	MaxBytes int
}

// ParseTask reads one task. Every error is an *Error. Warnings concern a task
// that is fine to submit.
func ParseTask(doc []byte, f Format, o Options) (engine.Spec, []Warning, error) {
	limit := o.MaxBytes
	if limit == 0 {
		limit = MaxTaskBytes
	}
	body, fault := checkText(doc, limit)
	if fault != nil {
		return engine.Spec{}, nil, fault
	}
	if f == Auto {
		f = sniff(body)
	}
	var root value
	switch f {
	case JSON:
		root, fault = parseJSON(body)
	case YAML:
		root, fault = parseYAML(body)
	default:
		return engine.Spec{}, nil, &Error{Code: CodeInternal, Problem: fmt.Sprintf("unknown format %d", f), Hint: "use JSON, YAML or Auto"}
	}
	if fault != nil {
		return engine.Spec{}, nil, fault
	}
	d := decoder{options: o}
	d.task(&root)
	if fault := firstOf(d.faults); fault != nil {
		fault.TaskID = d.spec.TaskID
		return engine.Spec{}, nil, fault
	}
	return d.spec, d.warnings, nil
}

// decoder reads the tree of a task into a Spec. It goes on after a fault, so
// that one answer names them all.
type decoder struct {
	options  Options
	spec     engine.Spec
	faults   []*Error
	warnings []Warning
}

func (d *decoder) add(e *Error) {
	if e != nil {
		d.faults = append(d.faults, e)
	}
}

func (d *decoder) refuse(at pos, code Code, field, problem, hint string) {
	d.faults = append(d.faults, faultAt(at, code, field, problem, hint))
}

func (d *decoder) warn(at pos, code WarningCode, field, problem string) {
	d.warnings = append(d.warnings, Warning{code, field, int(at.line), int(at.col), problem})
}

// fieldsOf lists the fields of a task, for suggestions.
func fieldsOf() []string {
	return []string{
		"task_id", "intent", "args", "node", "nodes", "target_selector", "timeout", "retry_policy",
		"priority", "ttl", "not_after", "expires_at", "metadata", "trace_id",
	}
}

func (d *decoder) task(root *value) {
	if root.kind != kindObject {
		d.refuse(root.at, CodeWrongType, "", "is "+root.describe()+", not a task",
			`a task is an object, for example {"intent":"gpio.write","node":"pump-1","args":{"pin":"GPIO17","level":1}}`)
		return
	}
	if d.ownDocument(root) {
		return
	}
	for i := range root.kids {
		d.field(&root.kids[i])
	}
	d.targets(root)
	d.expiry(root)
	d.arguments(root)
	if root.member("intent") == nil {
		d.refuse(root.at, CodeMissing, "intent", "is missing", `say what is to be done, for example "intent": "gpio.write"`)
	}
	if root.member("task_id") == nil {
		d.warn(root.at, WarnNoTaskID, "task_id", "is absent: sending this document again makes another task")
	}
}

// field reads what does not depend on other fields; the rest has its turn when
// all are known to be there.
func (d *decoder) field(m *value) {
	switch m.key {
	case "task_id":
		d.taskID(m)
	case "intent":
		d.intent(m)
	case "timeout":
		ms, fault := m.millis("timeout", span{1, MaxTimeoutMs, `120 or "2m"`})
		d.add(fault)
		d.spec.TimeoutMs = uint32(ms)
	case "retry_policy":
		d.retry(m)
	case "priority":
		d.priority(m)
	case "metadata":
		d.metadata(m)
	case "trace_id":
		d.trace(m)
	case "args", "node", "nodes", "target_selector", "ttl", "not_after", "expires_at":
	case "depends_on", "callback_url", "on_failure", "pick", "supersede":
		d.refuse(m.keyAt, CodeUnsupported, m.key, "is not supported by this version yet", "remove it, or wait for a version that keeps its promise; nothing was submitted")
	default:
		d.unknown(m, "", fieldsOf())
	}
}

// unknown refuses a member that nobody knows.
func (d *decoder) unknown(m *value, within string, known []string) {
	hint := "the fields are " + strings.Join(known, ", ")
	guess := suggest(m.key, known)
	if guess == "" && within == "" {
		guess = meaning(m.key)
	}
	if guess != "" {
		hint = "did you mean " + guess + "?"
	}
	d.refuse(m.keyAt, CodeUnknownField, within+clip(m.key), "is not a known field", hint)
}

// text reads a text that must not be empty.
func (d *decoder) text(m *value, field, hint string) (string, bool) {
	switch {
	case m.kind != kindText:
		d.refuse(m.at, CodeWrongType, field, "is "+m.describe()+", not text", hint)
	case m.text == "":
		d.refuse(m.at, CodeBadValue, field, "is an empty string", hint)
	default:
		return strings.Clone(m.text), true
	}
	return "", false
}

// object checks that a member is an object.
func (d *decoder) object(m *value, field, hint string) bool {
	if m.kind != kindObject {
		d.refuse(m.at, CodeWrongType, field, "is "+m.describe()+", not an object", hint)
		return false
	}
	return true
}

// ownDocument recognises the documents that this gateway publishes itself, when
// a tool feeds one back as a command.
func (d *decoder) ownDocument(root *value) bool {
	state := root.member("state")
	if state == nil || root.member("updated") == nil {
		return false
	}
	site := d.options.Site
	if site == "" {
		site = "<site>"
	}
	d.refuse(state.keyAt, CodeNotATask, "state", "belongs to a status document, not to a task",
		fmt.Sprintf("read status on %[1]s/%[2]s/task/+/status, send tasks to %[1]s/%[2]s/task", wire.Root, site))
	return true
}

func (d *decoder) taskID(m *value) {
	const hint = `leave it out or write for example "task_id": "fill-tank-3"`
	id := m.text
	switch m.kind {
	case kindNumber:
		if digits(m.text) != len(m.text) {
			d.refuse(m.at, CodeWrongType, "task_id", "is "+m.describe()+", not text", "put it in quotes")
			return
		}
		d.warn(m.at, WarnCoerced, "task_id", "is a number and was taken as the text "+clip(id))
	case kindText:
	default:
		d.refuse(m.at, CodeWrongType, "task_id", "is "+m.describe()+", not text", hint)
		return
	}
	if err := wire.CheckTaskID(id); err != nil {
		d.refuse(m.at, CodeBadValue, "task_id", "is not usable: "+err.Error(), hint)
		return
	}
	d.spec.TaskID = strings.Clone(id)
}

func (d *decoder) intent(m *value) {
	name, ok := d.text(m, "intent", `write for example "intent": "gpio.write"`)
	if !ok {
		return
	}
	if err := wire.CheckIntent(name); err != nil {
		hint := `write for example "intent": "gpio.write"`
		if guess := suggestIntent(name); guess != "" {
			hint = "did you mean " + guess + "?"
		}
		d.refuse(m.at, CodeBadValue, "intent", "is not usable: "+err.Error(), hint)
		return
	}
	if !wire.BuiltIn(name) {
		if guess := suggestIntent(name); guess != "" {
			d.warn(m.at, WarnIntent, "intent", clip(name)+" is not built in and only works where an agent has it: did you mean "+guess+"?")
		}
	}
	d.spec.Intent = name
}

func suggestIntent(name string) string {
	var known []string
	for _, d := range wire.Declarations() {
		known = append(known, d.Name)
	}
	return suggest(name, known)
}

func (d *decoder) priority(m *value) {
	const hint = "write high, normal or low"
	s, ok := d.text(m, "priority", hint)
	if !ok {
		return
	}
	p, err := wire.ParsePriority(s)
	if err != nil {
		d.refuse(m.at, CodeBadValue, "priority", "is "+m.describe(), hint)
		return
	}
	if p != wire.PriorityNormal { // the absent value is the canonical one
		d.spec.Priority = p
	}
}

func (d *decoder) trace(m *value) {
	const hint = "write a UUID, or leave it out for a fresh one"
	s, ok := d.text(m, "trace_id", hint)
	if !ok {
		return
	}
	t, err := wire.ParseTrace(s)
	if err != nil || t.IsZero() {
		d.refuse(m.at, CodeBadValue, "trace_id", "is "+m.describe()+", not a usable UUID", hint)
		return
	}
	d.spec.Trace = t
}
