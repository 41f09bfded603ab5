package journal

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
)

// maxDamagedFiles is how many damaged journals are kept side by side. A board
// that has produced this many needs a new card, not more room for evidence.
const maxDamagedFiles = 9

// Quarantined says what Quarantine did.
type Quarantined struct {
	File    string // where the damaged file was copied to
	Records int    // records that were readable and are kept
	Lost    int64  // bytes that belonged to no readable record
}

// Quarantine repairs a journal that Open refused with ErrDamaged: it keeps a
// copy of the damaged file and replaces the journal by the records that are
// readable. Records may be missing afterwards, so the agent must tell the
// gateway, which settles what is in doubt. A journal without damage is left
// alone and the result is zero.
//
// A crash in the middle leaves the damaged journal in place.
func Quarantine(fsys FS, dir string, o Options) (Quarantined, error) {
	return quarantine(fsys, dir, o, true)
}

// SetAside is Quarantine with an empty journal in place of the damaged one. The
// agent that opens it has forgotten everything and must say so; Records counts
// what could be read in the copy.
func SetAside(fsys FS, dir string, o Options) (Quarantined, error) {
	return quarantine(fsys, dir, o, false)
}

func quarantine(fsys FS, dir string, o Options, keep bool) (q Quarantined, err error) {
	o, err = o.withDefaults()
	if err != nil {
		return q, err
	}
	j := &Journal{fsys: fsys, dir: dir, path: filepath.Join(dir, fileName), opts: o}
	if j.lock, err = fsys.Lock(dir, lockName); err != nil {
		return q, fmt.Errorf("quarantine journal in %s: %w", dir, err)
	}
	defer func() { err = errors.Join(err, j.release()) }()

	data, err := fsys.ReadFile(j.path, maxMaxBytes)
	if err != nil {
		return q, fmt.Errorf("read journal: %w", err)
	}
	if _, err := scan(j.path, data); !errors.Is(err, ErrDamaged) {
		return q, err
	}
	records, lost := salvage(j.path, data)
	if q.File, err = j.copyAside(data); err != nil {
		return q, explain("keep a copy of the damaged journal "+j.path, err)
	}
	q.Records, q.Lost = len(records), lost
	if !keep {
		records = nil
	}
	if _, err := j.install(records); err != nil {
		return q, explain("replace the damaged journal "+j.path, err)
	}
	return q, nil
}

// copyAside writes data under the first free name for a damaged file.
func (j *Journal) copyAside(data []byte) (string, error) {
	for n := 1; n <= maxDamagedFiles; n++ {
		name := fmt.Sprintf("%s.damaged-%d", j.path, n)
		_, err := j.fsys.ReadFile(name, maxMaxBytes)
		if err == nil {
			continue
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
		f, err := j.fsys.OpenFile(name, true)
		if err != nil {
			return "", err
		}
		_, werr := f.WriteAt(data, 0)
		if werr == nil {
			werr = f.Sync()
		}
		return name, errors.Join(werr, f.Close())
	}
	return "", fmt.Errorf("there are already %d damaged files: move them away", maxDamagedFiles)
}
