package journal

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"syscall"
)

// Names of the files in the data directory.
const (
	fileName = "agent.journal"     // the journal
	tempName = "agent.journal.new" // the next one while it is being written; a crash may leave it, the next Rewrite empties it
	lockName = "agent.lock"        // carries the flock and the holder's process number
)

// Limits of Options.MaxBytes.
const (
	// DefaultMaxBytes is about a day of one instruction a second with its
	// result, and still read in well under a second by a small board.
	DefaultMaxBytes = 64 << 20
	// maxMaxBytes keeps a journal, which is read whole, inside the memory of the
	// smallest boards (512 MiB).
	maxMaxBytes = 256 << 20
	// keepBuffer is the largest encoding buffer kept between appends, in bytes.
	keepBuffer = 64 << 10
)

// Options of a journal. The zero value is good.
type Options struct {
	// MaxBytes is the size at which Append answers ErrFull: up to 256 MiB, by
	// default DefaultMaxBytes.
	MaxBytes int64
	// OnTorn is told about a tail that Open cuts off. It may be nil.
	OnTorn func(Torn)
	// Salt gives a number that differs from file to file, by default a random
	// one. Simulations pass a seeded source.
	Salt func() uint64
}

func (o Options) withDefaults() (Options, error) {
	if o.MaxBytes == 0 {
		o.MaxBytes = DefaultMaxBytes
	}
	if o.MaxBytes < headerSize || o.MaxBytes > maxMaxBytes {
		return o, fmt.Errorf("journal size limit of %d bytes: it must be between %d and %d", o.MaxBytes, headerSize, maxMaxBytes)
	}
	if o.OnTorn == nil {
		o.OnTorn = func(Torn) {}
	}
	if o.Salt == nil {
		o.Salt = randomSalt
	}
	return o, nil
}

// randomSalt never errs: the library ends the program if the system has no
// randomness.
func randomSalt() uint64 {
	var b [8]byte
	_, _ = rand.Read(b[:])
	return binary.LittleEndian.Uint64(b[:])
}

// Journal is an open journal. It belongs to one goroutine.
type Journal struct {
	fsys FS
	dir  string
	path string
	opts Options

	lock io.Closer
	file File
	salt uint64
	size int64
	buf  []byte
	dead error // sticky; wraps ErrDead and the cause
}

// Open opens the journal in dir, creates it if there is none, and returns all
// its records in the order they were appended. They are durable, and they are
// the caller's to keep.
//
// The remains of one unfinished append are cut off and reported to
// Options.OnTorn. Errors to branch on: ErrLocked, ErrDamaged (see SetAside),
// ErrVersion.
func Open(fsys FS, dir string, o Options) (*Journal, [][]byte, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, nil, err
	}
	j := &Journal{fsys: fsys, dir: dir, path: filepath.Join(dir, fileName), opts: o}
	if j.lock, err = fsys.Lock(dir, lockName); err != nil {
		return nil, nil, fmt.Errorf("open journal in %s: %w", dir, err)
	}
	records, err := j.load()
	if err != nil {
		return nil, nil, errors.Join(err, j.release())
	}
	return j, records, nil
}

// load reads the file, or creates it, and leaves the journal ready to append.
func (j *Journal) load() ([][]byte, error) {
	data, err := j.fsys.ReadFile(j.path, maxMaxBytes)
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := j.install(nil); err != nil {
			return nil, explain("create journal "+j.path, err)
		}
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read journal: %w", err)
	}
	s, err := scan(j.path, data)
	if err != nil {
		return nil, err
	}
	if s.torn != "" {
		j.opts.OnTorn(Torn{File: j.path, Offset: s.end, Bytes: int64(len(data)) - s.end, Reason: s.torn})
	}
	if j.file, err = j.fsys.OpenFile(j.path, false); err != nil {
		return nil, fmt.Errorf("open journal for writing: %w", err)
	}
	if err := j.settle(data, s); err != nil {
		return nil, explain("make journal "+j.path+" durable", err)
	}
	j.salt, j.size = s.salt, s.end
	return s.records, nil
}

// settle makes what was read durable: it cuts the torn tail, writes the last
// frame again (the package comment says why) and syncs file and directory.
func (j *Journal) settle(data []byte, s scanned) error {
	if s.end < int64(len(data)) {
		if err := j.file.Truncate(s.end); err != nil {
			return err
		}
	}
	if _, err := j.file.WriteAt(data[s.last:s.end], s.last); err != nil {
		return err
	}
	if err := j.file.Sync(); err != nil {
		return err
	}
	return j.fsys.SyncDir(j.dir)
}

// Append writes all records as one batch with one sync and returns when they
// are durable: after a crash either all of them are there or none is. It does
// not keep the slices.
//
// ErrFull and ErrTooLarge write nothing and leave the journal in use. After any
// other error it is dead and every further call returns an ErrDead.
func (j *Journal) Append(records ...[]byte) error {
	if j.dead != nil {
		return j.dead
	}
	if len(records) == 0 {
		return nil
	}
	payload, err := payloadSize(records)
	if err != nil {
		return err
	}
	if payload > MaxBatch {
		return fmt.Errorf("append to journal %s: batch of %d bytes, at most %d: %w", j.path, payload, MaxBatch, ErrTooLarge)
	}
	if j.size+frameHead+payload > j.opts.MaxBytes {
		return fmt.Errorf("append to journal %s: %w of %d bytes: rewrite it with what is still needed", j.path, ErrFull, j.opts.MaxBytes)
	}
	frame := appendFrame(j.buf[:0], j.salt, j.size, records)
	if cap(frame) <= keepBuffer {
		j.buf = frame
	}
	if _, err := j.file.WriteAt(frame, j.size); err != nil {
		return j.die("append to journal", err)
	}
	if err := j.file.Sync(); err != nil {
		return j.die("append to journal", err)
	}
	j.size += int64(len(frame))
	return nil
}

// payloadSize checks the size of every record and adds them up.
func payloadSize(records [][]byte) (int64, error) {
	var n int64
	for _, r := range records {
		if len(r) > MaxRecord {
			return 0, fmt.Errorf("record of %d bytes, at most %d: %w", len(r), MaxRecord, ErrTooLarge)
		}
		n += recordHead + int64(len(r))
	}
	return n, nil
}

// Size returns the size of the file in bytes. A caller decides by it when to
// Rewrite.
func (j *Journal) Size() int64 { return j.size }

// Rewrite replaces the content by records, durably and atomically: after a
// crash either the old records are there or the new ones. Until the rename the
// old file is valid, so both need room for a while.
//
// If the new file can't be written (no space), the journal goes on with the old
// one. If a sync or the rename is refused the journal is dead (ErrDead).
func (j *Journal) Rewrite(records [][]byte) error {
	if j.dead != nil {
		return j.dead
	}
	if _, err := payloadSize(records); err != nil {
		return fmt.Errorf("rewrite journal %s: %w", j.path, err)
	}
	harmless, err := j.install(records)
	if err != nil && harmless {
		return explain("rewrite journal "+j.path+" (the old file stays in use)", err)
	}
	if err != nil {
		return j.die("rewrite journal", err)
	}
	return nil
}

// install writes a new file beside the old one and puts it in its place. It is
// the only way a file is replaced: write, sync, rename, sync the directory.
// harmless means that an error came before any of that could matter.
func (j *Journal) install(records [][]byte) (harmless bool, err error) {
	image, salt := j.image(records)
	if int64(len(image)) > j.opts.MaxBytes {
		return true, fmt.Errorf("%d bytes are needed: %w of %d bytes", len(image), ErrFull, j.opts.MaxBytes)
	}
	temp := filepath.Join(j.dir, tempName)
	f, err := j.fsys.OpenFile(temp, true)
	if err != nil {
		return true, err
	}
	if _, err := f.WriteAt(image, 0); err != nil {
		// Give the room back; that this may fail too changes nothing.
		_ = f.Truncate(0)
		return true, errors.Join(err, f.Close())
	}
	if err := f.Sync(); err != nil {
		return false, errors.Join(err, f.Close())
	}
	if err := j.fsys.Rename(temp, j.path); err != nil {
		return false, errors.Join(err, f.Close())
	}
	if err := j.fsys.SyncDir(j.dir); err != nil {
		return false, errors.Join(err, f.Close())
	}
	old := j.file
	j.file, j.salt, j.size = f, salt, int64(len(image))
	if old != nil {
		return false, old.Close()
	}
	return false, nil
}

// image builds a whole file: the header and the records in as few frames as
// MaxBatch allows.
func (j *Journal) image(records [][]byte) (image []byte, salt uint64) {
	salt = j.opts.Salt()
	image = encodeHeader(salt)
	for len(records) > 0 {
		n, payload := 0, int64(0)
		for n < len(records) && payload+recordHead+int64(len(records[n])) <= MaxBatch {
			payload += recordHead + int64(len(records[n]))
			n++
		}
		image = appendFrame(image, salt, int64(len(image)), records[:n])
		records = records[n:]
	}
	return image, salt
}

// Close releases the file and the lock. It writes nothing: what was appended is
// durable already.
func (j *Journal) Close() error {
	if j.dead == nil {
		j.dead = fmt.Errorf("journal %s is closed: %w", j.path, ErrDead)
	}
	return j.release()
}

// release closes what is open, the lock last.
func (j *Journal) release() error {
	var errs []error
	if j.file != nil {
		errs = append(errs, j.file.Close())
		j.file = nil
	}
	if j.lock != nil {
		errs = append(errs, j.lock.Close())
		j.lock = nil
	}
	return errors.Join(errs...)
}

// die makes an error final.
func (j *Journal) die(doing string, cause error) error {
	j.dead = fmt.Errorf("%w (%w)", explain(doing+" "+j.path, cause), ErrDead)
	return j.dead
}

// explain adds what was being done and, for the faults that people can mend,
// what to do.
func explain(doing string, err error) error {
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return fmt.Errorf("%s: no room on the volume: free some space or inodes: %w", doing, err)
	case errors.Is(err, syscall.EROFS):
		return fmt.Errorf("%s: the volume is read-only: check the card and the kernel log: %w", doing, err)
	case errors.Is(err, syscall.EIO):
		return fmt.Errorf("%s: the disk reports an error: check the card and the kernel log: %w", doing, err)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%s: no permission: the directory must belong to the agent's user: %w", doing, err)
	}
	return fmt.Errorf("%s: %w", doing, err)
}
