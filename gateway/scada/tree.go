package scada

import (
	"fmt"
	"strconv"
)

// pos is a place in a document, counted from 1; columns are characters. The
// zero pos is unknown.
type pos struct{ line, col int32 }

type kind uint8

const (
	kindNull kind = iota
	kindBool
	kindNumber
	kindText
	kindList
	kindObject
)

// value is one value of a document, whatever its format.
type value struct {
	kind kind
	at   pos
	// key and keyAt are set on members of an object.
	key   string
	keyAt pos
	// text is the content of a text, the literal of a number in JSON's grammar,
	// or true or false. It may share memory with the whole document: what is kept
	// must be cloned.
	text string
	kids []value // of a list or an object, in document order
}

// maxDepth bounds nesting in a document. A task has three levels; the rest is
// for arguments, which have a bound of their own.
const maxDepth = 16

// member finds a member of an object, nil for none.
func (v *value) member(key string) *value {
	for i := range v.kids {
		if v.kids[i].key == key {
			return &v.kids[i]
		}
	}
	return nil
}

// describe names a value for a message, without repeating long text.
func (v *value) describe() string {
	switch v.kind {
	case kindNull:
		return "null"
	case kindBool:
		return v.text
	case kindNumber:
		return "the number " + clip(v.text)
	case kindText:
		if v.text == "" {
			return "an empty string"
		}
		return "the string " + strconv.Quote(clip(v.text))
	case kindList:
		return "a list"
	case kindObject:
		return "an object"
	}
	panic(fmt.Sprintf("bug: value of kind %d", v.kind))
}

// indexFrom is the number of members from which duplicates are found with a map
// instead of by comparing each with each.
const indexFrom = 16

// duplicateKey finds the first member whose key an earlier one has, nil for none.
func duplicateKey(members []value) *value {
	if len(members) < indexFrom {
		for i := range members {
			for j := range i {
				if members[i].key == members[j].key {
					return &members[i]
				}
			}
		}
		return nil
	}
	seen := make(map[string]struct{}, len(members))
	for i := range members {
		if _, ok := seen[members[i].key]; ok {
			return &members[i]
		}
		seen[members[i].key] = struct{}{}
	}
	return nil
}

// checkObject refuses duplicate keys.
func checkObject(v *value) *Error {
	if m := duplicateKey(v.kids); m != nil {
		return faultAt(m.keyAt, CodeDuplicate, clip(m.key), "is given twice in one object", "remove one of the two")
	}
	return nil
}

func tooDeep(at pos) *Error {
	return faultAt(at, CodeTooDeep, "", fmt.Sprintf("is nested more than %d levels deep", maxDepth), "flatten the document")
}
