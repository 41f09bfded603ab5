package journal

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
)

// maxDamagedFiles is how many damaged journals are kept side by side, each of up to
// Options.MaxBytes. A board that has produced this many needs a new card, not more
// evidence: the last one takes the place of the one before.
const maxDamagedFiles = 4

// Aside says what SetAside did.
type Aside struct {
	File    string // the new name of the file
	Records int    // records in it that are readable
	Lost    int64  // bytes that belong to no readable record
}

// SetAside gives a journal that Open refused with ErrDamaged another name and puts an
// empty one in its place: the agent that opens it has forgotten everything and must
// say so. What is readable is for people: with a record missing in between it may
// look as if something had not run that did. A journal without damage is left alone
// and the result is zero.
//
// It takes no room: the file is renamed, and a full disk keeps nobody from it. A
// crash in the middle leaves the damaged journal, or none.
func SetAside(fsys FS, dir string, o Options) (Aside, error) {
	return setAside(fsys, dir, o, false)
}

// Discard is SetAside for a journal that is intact and whose records make no sense to
// who wrote them. It must not be open.
func Discard(fsys FS, dir string, o Options) (Aside, error) {
	return setAside(fsys, dir, o, true)
}

func setAside(fsys FS, dir string, o Options, intact bool) (q Aside, err error) {
	o, err = o.withDefaults()
	if err != nil {
		return q, err
	}
	j := &Journal{fsys: fsys, dir: dir, path: filepath.Join(dir, fileName), opts: o}
	if j.lock, err = fsys.Lock(dir, lockName); err != nil {
		return q, fmt.Errorf("set aside journal in %s: %w", dir, err)
	}
	defer func() { err = errors.Join(err, j.release()) }()

	data, err := fsys.ReadFile(j.path, maxMaxBytes)
	if err != nil {
		return q, fmt.Errorf("read journal: %w", err)
	}
	_, err = scan(j.path, data)
	if damaged := errors.Is(err, ErrDamaged); !damaged && (err != nil || !intact) {
		return q, err
	}
	records, lost := salvage(j.path, data)
	q = Aside{Records: len(records), Lost: lost}
	if q.File, err = j.freeName(); err != nil {
		return q, explain("find a name for the damaged journal "+j.path, err)
	}
	if err := fsys.Rename(j.path, q.File); err != nil {
		return q, explain("set aside the damaged journal "+j.path, err)
	}
	if _, err := j.install(nil); err != nil { // it syncs the directory
		return q, explain("begin a journal in place of the damaged "+j.path, err)
	}
	return q, nil
}

// freeName is the first free name for a damaged file; the last one if all are taken.
func (j *Journal) freeName() (string, error) {
	for n := 1; ; n++ {
		name := fmt.Sprintf("%s.damaged-%d", j.path, n)
		if n == maxDamagedFiles {
			return name, nil
		}
		if _, err := j.fsys.ReadFile(name, maxMaxBytes); errors.Is(err, fs.ErrNotExist) {
			return name, nil
		} else if err != nil {
			return "", err
		}
	}
}
