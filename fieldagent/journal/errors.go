package journal

import (
	"errors"
	"fmt"
)

// Errors a caller branches on.
var (
	// ErrDead means that an earlier append or sync was not carried out, so that
	// nobody knows what is on disk. Stop the process and open the journal again.
	ErrDead = errors.New("the journal is dead: stop, and recover by opening it again")
	// ErrDamaged means that acknowledged records are unreadable. DamageError
	// carries the place.
	ErrDamaged = errors.New("journal damaged")
	// ErrLocked means that another process has the journal open.
	ErrLocked = errors.New("journal in use")
	// ErrVersion means that the file was written by a newer program.
	ErrVersion = errors.New("journal version not known")
	// ErrFull means that the file has reached Options.MaxBytes. Nothing was
	// written and the journal goes on: Rewrite it with what is still needed.
	ErrFull = errors.New("journal has reached its size limit")
	// ErrTooLarge means that a record or batch is over MaxRecord or MaxBatch.
	// Nothing was written and the journal goes on.
	ErrTooLarge = errors.New("too large for the journal")
)

// DamageError says where a journal is damaged. It is an ErrDamaged.
type DamageError struct {
	File   string
	Offset int64  // first byte that can't be trusted
	Next   int64  // offset of the next intact frame, -1 if there is none
	Reason string // what is wrong there
}

func (e *DamageError) Error() string {
	after := "nothing readable after it"
	if e.Next >= 0 {
		after = fmt.Sprintf("intact records again from offset %d", e.Next)
	}
	return fmt.Sprintf("journal %s: damaged at offset %d: %s; %s: acknowledged records may be lost, "+
		"so check the disk; the agent sets the file aside and begins anew, and the gateway settles what was open",
		e.File, e.Offset, e.Reason, after)
}

// Is makes errors.Is(err, ErrDamaged) true.
func (e *DamageError) Is(target error) bool { return target == ErrDamaged }

// Torn describes a tail that Open cut off: the traces of one append that was
// never acknowledged.
type Torn struct {
	File   string
	Offset int64  // the new end of the file
	Bytes  int64  // how many bytes were cut
	Reason string // what was wrong with them
}

func (t Torn) String() string {
	return fmt.Sprintf("journal %s: cut %d bytes of an unfinished append at offset %d: %s", t.File, t.Bytes, t.Offset, t.Reason)
}
