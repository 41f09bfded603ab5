package scada

import (
	"errors"
	"fmt"
	"strings"

	"github.com/apollo-11/apollo11/wire"
)

// maxArgsDepth bounds nesting inside args, which itself is the first level. The
// gateway keeps them inside two more levels of CBOR, and the decoders of both
// sides stop at wire.MaxNestedLevels; what is accepted here must pass there.
const maxArgsDepth = 8

// arguments reads args once the intent is known: those of a built-in intent are
// checked and made canonical, others are passed on.
func (d *decoder) arguments(root *value) {
	intent := d.spec.Intent
	where := root.member("intent")
	args := root.member("args")
	var m map[string]any
	if args != nil {
		if !d.object(args, "args", `write for example {"pin": "GPIO17", "level": 1}`) {
			return
		}
		v, fault := plain(args, "args", 1)
		if fault != nil {
			d.add(fault)
			return
		}
		m = v.(map[string]any)
		where = args
	}
	if intent == "" {
		return // its fault is already known
	}
	if wire.BuiltIn(intent) {
		checked, err := wire.ParseArgs(intent, m)
		if err != nil {
			d.argFault(args, where, err)
			return
		}
		m = checked.Map()
		d.coerced(args, m)
		act := wire.ActOf(intent, checked)
		d.spec.Means(act)
		d.fit(root, act)
	}
	encoded, err := wire.EncodeMap(m, wire.MaxArgsBytes)
	if err != nil {
		d.refuse(where.at, CodeTooLarge, "args", "cannot be sent: "+err.Error(), "make them smaller")
		return
	}
	d.spec.Args = encoded
}

// fit sees to it that the execution may take as long as the work does by itself
// (A20). A task without timeout is stored as it came, because a copy of it that comes
// after an update of the gateway must mean the same: the engine gives it its limit.
// Only a watch has always been stored with one.
func (d *decoder) fit(root *value, a wire.Act) {
	ms := uint32(a.Lasts.Milliseconds())
	switch timeout := root.member("timeout"); {
	case timeout == nil && a.Watch:
		d.spec.TimeoutMs = ms
	case timeout != nil && d.spec.TimeoutMs != 0 && d.spec.TimeoutMs < ms:
		what := "pulse"
		if a.Watch {
			what = "watch"
		}
		d.refuse(timeout.at, CodeBadValue, "timeout", fmt.Sprintf("is shorter than the %s, which lasts %v", what, a.Lasts), "leave it out, or make it as long")
	}
}

// coerced warns of numbers in quotes that were taken as numbers, which wire does
// for the arguments of built-in intents (A3).
func (d *decoder) coerced(args *value, canonical map[string]any) {
	if args == nil {
		return
	}
	for i := range args.kids {
		m := &args.kids[i]
		if m.kind != kindText || !jsonNumber(m.text) {
			continue
		}
		if _, stays := canonical[m.key].(string); !stays {
			d.warn(m.at, WarnCoerced, "args."+m.key, "is "+m.describe()+" and was taken as a number")
		}
	}
}

// argFault gives an argument's fault the place of that argument, or of the
// object in which it is missing.
func (d *decoder) argFault(args, where *value, err error) {
	var arg *wire.ArgError
	if !errors.As(err, &arg) {
		d.refuse(where.at, CodeBadValue, "args", "is not usable: "+err.Error(), "see the documentation of the intent")
		return
	}
	at, code := where.at, CodeMissing
	if args != nil {
		if m := args.member(arg.Field); m != nil {
			at, code = m.at, CodeBadValue
		}
		if name := unknownArg(args, arg); name != nil {
			at, code = name.keyAt, CodeUnknownField
		}
	}
	d.refuse(at, code, "args."+clip(arg.Field), arg.Problem, arg.Hint)
}

// unknownArg finds the argument that wire has refused by its name alone, nil if
// it refused something else. Its name may have been shortened in the error.
func unknownArg(args *value, arg *wire.ArgError) *value {
	if arg.Problem != "unknown argument" {
		return nil
	}
	if m := args.member(arg.Field); m != nil {
		return m
	}
	start := strings.TrimSuffix(arg.Field, "...")
	for i := range args.kids {
		if strings.HasPrefix(args.kids[i].key, start) {
			return &args.kids[i]
		}
	}
	return nil
}

// plain turns a value into what wire.EncodeMap takes. path is its name.
func plain(v *value, path string, depth int) (any, *Error) {
	if depth > maxArgsDepth && (v.kind == kindList || v.kind == kindObject) {
		return nil, faultAt(v.at, CodeTooDeep, path, fmt.Sprintf("is more than %d levels deep in args", maxArgsDepth), "flatten the arguments")
	}
	switch v.kind {
	case kindNull:
		return nil, nil
	case kindBool:
		return v.text == "true", nil
	case kindNumber:
		return v.number(path)
	case kindText:
		return v.text, nil
	case kindList:
		if len(v.kids) > wire.MaxArrayElements {
			return nil, faultAt(v.at, CodeTooLarge, path, fmt.Sprintf("has %d entries, the limit is %d", len(v.kids), wire.MaxArrayElements), "send less at a time")
		}
		list := make([]any, len(v.kids))
		for i := range v.kids {
			var fault *Error
			if list[i], fault = plain(&v.kids[i], "", depth+1); fault != nil {
				fault.Field = fmt.Sprintf("%s[%d]%s", path, i, fault.Field)
				return nil, fault
			}
		}
		return list, nil
	case kindObject:
		if len(v.kids) > wire.MaxMapPairs {
			return nil, faultAt(v.at, CodeTooLarge, path, fmt.Sprintf("has %d entries, the limit is %d", len(v.kids), wire.MaxMapPairs), "send less at a time")
		}
		m := make(map[string]any, len(v.kids))
		for i := range v.kids {
			k := &v.kids[i]
			x, fault := plain(k, "", depth+1)
			if fault != nil {
				fault.Field = path + "." + clip(k.key) + fault.Field
				return nil, fault
			}
			m[k.key] = x
		}
		return m, nil
	}
	panic(fmt.Sprintf("bug: value of kind %d", v.kind))
}
