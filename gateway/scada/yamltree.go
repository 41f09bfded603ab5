package scada

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// parseYAML reads a document that checkText has passed, as another spelling of
// JSON.
func parseYAML(body []byte) (value, *Error) {
	docs, err := decodeYAML(body)
	if err != nil {
		return value{}, yamlFault(err)
	}
	if len(docs) == 0 || docs[0].Kind != yaml.DocumentNode || len(docs[0].Content) != 1 {
		return value{}, &Error{Code: CodeEmpty, Line: 1, Column: 1, Problem: "the document is empty", Hint: "write a task"}
	}
	if len(docs) > 1 {
		return value{}, faultAt(nodePos(&docs[1]), CodeSyntax, "", "is a second document", "send one task at a time")
	}
	return fromNode(docs[0].Content[0], 1)
}

// decodeYAML returns at most two documents. The library has panics of its own
// for states that it believes impossible; a document must not be able to end the
// gateway, so they become errors here, around the library and nothing else.
func decodeYAML(body []byte) (docs []yaml.Node, err error) {
	defer func() {
		if r := recover(); r != nil {
			docs, err = nil, fmt.Errorf("%v", r)
		}
	}()
	dec := yaml.NewDecoder(bytes.NewReader(body))
	for len(docs) < 2 {
		var n yaml.Node
		if err := dec.Decode(&n); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
		docs = append(docs, n)
	}
	return docs, nil
}

func nodePos(n *yaml.Node) pos { return pos{int32(n.Line), int32(n.Column)} }

// yamlFault takes the line out of the library's message, which has no other
// place for it and leaves it out on the first line.
func yamlFault(err error) *Error {
	msg := strings.TrimPrefix(err.Error(), "yaml: ")
	line := 1
	if rest, ok := strings.CutPrefix(msg, "line "); ok {
		if num, text, ok := strings.Cut(rest, ": "); ok {
			if n, err := strconv.Atoi(num); err == nil {
				line, msg = n, text
			}
		}
	}
	return &Error{Code: CodeSyntax, Line: line, Problem: "is not YAML: " + clip(msg), Hint: "check the indentation and the quotes"}
}

func fromNode(n *yaml.Node, depth int) (value, *Error) {
	v := value{at: nodePos(n)}
	if depth > maxDepth {
		return v, tooDeep(v.at)
	}
	if fault := plainOnly(n); fault != nil {
		return v, fault
	}
	switch n.Kind {
	case yaml.ScalarNode:
		fault := scalar(n, &v)
		return v, fault
	case yaml.SequenceNode:
		v.kind = kindList
		v.kids = make([]value, 0, len(n.Content))
		for _, c := range n.Content {
			m, fault := fromNode(c, depth+1)
			if fault != nil {
				return v, fault
			}
			v.kids = append(v.kids, m)
		}
		return v, nil
	case yaml.MappingNode:
		v.kind = kindObject
		v.kids = make([]value, 0, len(n.Content)/2)
		for i := 0; i+1 < len(n.Content); i += 2 {
			key := n.Content[i]
			if fault := keyOnly(key); fault != nil {
				return v, fault
			}
			m, fault := fromNode(n.Content[i+1], depth+1)
			if fault != nil {
				return v, fault
			}
			m.key, m.keyAt = key.Value, nodePos(key)
			v.kids = append(v.kids, m)
		}
		return v, checkObject(&v)
	}
	return v, faultAt(v.at, CodeSyntax, "", fmt.Sprintf("is a YAML node of kind %d", n.Kind), "write plain values, lists and maps")
}

// plainOnly refuses what JSON does not have.
func plainOnly(n *yaml.Node) *Error {
	const hint = "write the value out"
	switch {
	case n.Kind == yaml.AliasNode:
		return faultAt(nodePos(n), CodeUnsupported, "", "is an alias (*"+clip(n.Value)+")", hint)
	case n.Anchor != "":
		return faultAt(nodePos(n), CodeUnsupported, "", "has an anchor (&"+clip(n.Anchor)+")", hint)
	case n.Style&yaml.TaggedStyle != 0:
		return faultAt(nodePos(n), CodeUnsupported, "", "has a tag ("+clip(n.Tag)+")", "write the value without it")
	}
	return nil
}

func keyOnly(n *yaml.Node) *Error {
	if fault := plainOnly(n); fault != nil {
		return fault
	}
	if n.Kind != yaml.ScalarNode {
		return faultAt(nodePos(n), CodeWrongType, "", "a list or a map stands as a name", "names are text")
	}
	switch n.Tag {
	case "!!str", "!!timestamp":
		return nil
	case "!!merge":
		return faultAt(nodePos(n), CodeUnsupported, "", "is a merge key (<<)", "write the fields out")
	}
	return faultAt(nodePos(n), CodeWrongType, clip(n.Value), "is not text, but stands as a name", "put it in quotes")
}

// scalar takes over the scalars that JSON has as well; n.Tag is what the library
// has resolved a plain one to.
func scalar(n *yaml.Node, v *value) *Error {
	at := nodePos(n)
	switch n.Tag {
	case "!!str", "!!timestamp": // a time stays the text that it is
		v.kind, v.text = kindText, n.Value
		if n.Style == 0 && jsonNumber(n.Value) {
			v.kind = kindNumber // 1e999 is out of range, not text
		}
		return nil
	case "!!null":
		v.kind = kindNull
		return nil
	case "!!bool":
		if n.Value != "true" && n.Value != "false" {
			return faultAt(at, CodeSyntax, "", "is "+n.Value, "write true or false in lower case, or quote it as text")
		}
		v.kind, v.text = kindBool, n.Value
		return nil
	case "!!int", "!!float":
		if word := strings.ToLower(n.Value); strings.HasSuffix(word, "inf") || strings.HasSuffix(word, "nan") {
			return faultAt(at, CodeSyntax, "", "is "+n.Value, "NaN and Infinity are no values: leave the field out")
		}
		if !jsonNumber(n.Value) {
			return faultAt(at, CodeSyntax, "", clip(n.Value)+" is not a plain number",
				"write a decimal number without leading zero, sign +, _ or base, or quote it as text")
		}
		v.kind, v.text = kindNumber, n.Value
		return nil
	}
	return faultAt(at, CodeUnsupported, "", "has the type "+clip(n.Tag), "write text, a number, true or false")
}

// jsonNumber reports whether s follows JSON's grammar of numbers.
func jsonNumber(s string) bool {
	s = strings.TrimPrefix(s, "-")
	whole := digits(s)
	if whole == 0 || whole > 1 && s[0] == '0' {
		return false
	}
	s = s[whole:]
	if strings.HasPrefix(s, ".") {
		n := digits(s[1:])
		if n == 0 {
			return false
		}
		s = s[1+n:]
	}
	if s != "" && (s[0] == 'e' || s[0] == 'E') {
		s = s[1:]
		if s != "" && (s[0] == '+' || s[0] == '-') {
			s = s[1:]
		}
		n := digits(s)
		if n == 0 {
			return false
		}
		s = s[n:]
	}
	return s == ""
}

// digits counts the decimal digits at the start of s.
func digits(s string) int {
	n := 0
	for n < len(s) && s[n] >= '0' && s[n] <= '9' {
		n++
	}
	return n
}
