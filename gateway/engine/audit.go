package engine

import (
	"crypto/sha256"
	"fmt"

	"github.com/apollo-11/apollo11/wire"
	"github.com/apollo-11/apollo11/wire/mutant"
)

// Audit is one entry of the audit trail (B11). Each carries the hash of the one
// before, so that none can be changed or taken out without being noticed by
// whoever knows a later one.
type Audit struct {
	Number  uint64   `cbor:"1,keyasint"` // from 1, without gaps
	At      int64    `cbor:"2,keyasint"` // Unix ms
	Actor   string   `cbor:"3,keyasint"`
	Path    Path     `cbor:"4,keyasint,omitempty"`
	Action  Action   `cbor:"5,keyasint"`
	Subject string   `cbor:"6,keyasint,omitempty"` // what was acted on
	Note    string   `cbor:"7,keyasint,omitempty"`
	Prev    [32]byte `cbor:"8,keyasint"` // Hash of the entry before, zero for the first
	Hash    [32]byte `cbor:"9,keyasint"` // see Seal
}

// Seal is the hash of an entry: SHA-256 over its encoding with a zero Hash.
func (a Audit) Seal() ([32]byte, error) {
	a.Hash = [32]byte{}
	b, err := wire.EncodeRecord(&a)
	if err != nil {
		return [32]byte{}, fmt.Errorf("seal audit entry %d: %w", a.Number, err)
	}
	return sha256.Sum256(b), nil
}

// Trail checks the chain of an audit trail, entry by entry. The zero value begins
// at the first entry.
type Trail struct {
	next uint64
	prev [32]byte
}

// Check takes the next entry. The error names the entry that was changed, or
// after which one is missing.
func (t *Trail) Check(a Audit) error {
	if t.next == 0 {
		t.next = 1
	}
	if a.Number != t.next {
		return fmt.Errorf("audit entry %d follows entry %d: entries are missing", a.Number, t.next-1)
	}
	if a.Prev != t.prev {
		return fmt.Errorf("audit entry %d does not continue entry %d: one of them was changed or replaced", a.Number, a.Number-1)
	}
	sum, err := a.Seal()
	if err != nil {
		return err
	}
	if sum != a.Hash {
		return fmt.Errorf("audit entry %d was changed: its hash does not match its content", a.Number)
	}
	t.next, t.prev = a.Number+1, a.Hash
	return nil
}

// RestoreAudit takes in the latest audit entry from the log.
func (e *Engine) RestoreAudit(a Audit) { e.auditNo, e.auditHead = a.Number, a.Hash }

// audit appends to the trail.
func (e *Engine) audit(now Now, a Audit) {
	a.Number, a.At, a.Prev = e.auditNo+1, now.Wall, e.auditHead
	if mutant.On(mutant.AuditUnlinked) {
		a.Prev = [32]byte{}
	}
	a.Actor, a.Note, a.Subject = wire.FitText(a.Actor), wire.FitText(a.Note), wire.FitText(a.Subject)
	sum, err := a.Seal()
	if err != nil {
		panic(fmt.Sprintf("bug: %v", err)) // its texts were made fit
	}
	a.Hash = sum
	e.auditNo, e.auditHead = a.Number, a.Hash
	e.newAudit = append(e.newAudit, a)
}
