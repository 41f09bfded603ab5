package storage

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

const (
	// minFreeFloor is the least default of Options.MinFreeBytes.
	minFreeFloor = 16 << 20
	// minFreeMemTables is how many memtables, each with its log, the engine may
	// need room for at once: logs, a flush and a compaction.
	minFreeMemTables = 6
	// ballastMemTables is how many memtables the reserve has room for: a flush,
	// its log, and a compaction of the first level.
	ballastMemTables = 3
	// defaultHeadInterval bounds how much of the newest history could be cut off
	// without being noticed, at the price of two fsyncs of a small file.
	defaultHeadInterval = time.Second
)

// Options says where and how to open a store. Only Dir is required.
type Options struct {
	// Dir is the store directory. It and its parents are made, and their names
	// synced, when they are absent.
	Dir string
	// FS is the file system; nil is the real disk, watched for slowness.
	FS vfs.FS
	// Logger gets what an operator should know; nil discards it.
	Logger *slog.Logger
	// OnFatal is called at most once, on the goroutine that met the failure and
	// possibly with locks held, when durability is unknown or the engine gave up.
	// It must end the process and not return. nil logs and exits with code 70.
	OnFatal func(error)
	// MemTableBytes is how much the engine gathers in memory before it writes a
	// table, 256 KiB to 64 MiB; 0 is 4 MiB. More is faster under load, takes up to
	// three times as much memory and four and a half times as much disk.
	MemTableBytes uint64
	// MinFreeBytes is what must be free on the file system to open; 0 is room for
	// six memtables with their logs, at least 16 MiB: 26.4 MiB by default.
	MinFreeBytes uint64
	// BallastBytes is the size of the reserve file; 0 is three memtables, 12 MiB by
	// default; negative is none.
	// A file system that can't say how much is free gets none.
	BallastBytes int64
	// HeadInterval is the shortest time between two writes of the sidecar; 0 is
	// one second.
	HeadInterval time.Duration
}

func (o Options) withDefaults() (Options, error) {
	if o.Dir == "" {
		return o, errors.New("no directory given")
	}
	if o.FS == nil {
		abs, err := filepath.Abs(o.Dir)
		if err != nil {
			return o, fmt.Errorf("make path absolute: %w", err)
		}
		o.Dir = abs
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.OnFatal == nil {
		o.OnFatal = exitProcess(o.Logger)
	}
	if o.MemTableBytes == 0 {
		o.MemTableBytes = defaultMemTableBytes
	}
	if o.MemTableBytes < minMemTableBytes || o.MemTableBytes > maxMemTableBytes {
		return o, fmt.Errorf("memtable of %d bytes, must be %d to %d", o.MemTableBytes, minMemTableBytes, maxMemTableBytes)
	}
	if o.MinFreeBytes == 0 {
		o.MinFreeBytes = max(minFreeFloor, minFreeMemTables*o.MemTableBytes*11/10)
	}
	if o.BallastBytes == 0 {
		o.BallastBytes = ballastMemTables * int64(o.MemTableBytes)
	}
	if o.HeadInterval <= 0 {
		o.HeadInterval = defaultHeadInterval
	}
	return o, nil
}

// Open opens the store in o.Dir, or creates it. Any error is an *OpenError.
//
// The engine can hang while it opens (it retries for ever to write to a full
// disk), and nothing can interrupt it. So when ctx ends, Open returns OpenStuck
// and leaves that goroutine behind; should it come back, it closes what it
// opened. After an error of kind OpenStuck or OpenIO the process should end.
func Open(ctx context.Context, o Options) (*Store, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, &OpenError{Kind: OpenIO, Dir: o.Dir, Cause: err}
	}
	s := newStore(o)
	type result struct{ err error }
	var (
		claimed atomic.Bool
		done    = make(chan result, 1)
	)
	go func() {
		err := s.open(o)
		if claimed.CompareAndSwap(false, true) {
			done <- result{err}
		} else if err == nil {
			if err := s.Close(); err != nil {
				o.Logger.Error("close store that opened too late", "dir", o.Dir, "error", err)
			}
		}
	}()
	var failed error
	select {
	case r := <-done:
		return s.opened(r.err)
	case <-s.death.dead:
		failed = s.death.err()
	case <-ctx.Done():
		failed = &OpenError{Kind: OpenStuck, Dir: o.Dir, Cause: s.whyStuck(ctx)}
	}
	if !claimed.CompareAndSwap(false, true) {
		return s.opened((<-done).err) // it finished at this very moment
	}
	return s.opened(failed)
}

// opened ends an opening: with the store, or with an *OpenError and everything
// released that can be.
func (s *Store) opened(err error) (*Store, error) {
	if err == nil {
		s.death.opening.Store(false)
		err = s.death.err()
	}
	if err == nil {
		return s, nil
	}
	s.events.close()
	if open := (*OpenError)(nil); errors.As(err, &open) {
		return nil, open
	}
	return nil, &OpenError{Kind: kindOf(err), Dir: s.dir, Cause: err}
}

// whyStuck adds the engine's last complaint to the end of the context.
func (s *Store) whyStuck(ctx context.Context) error {
	if last := s.events.lastError.Load(); last != nil {
		return fmt.Errorf("%w; last error of the engine: %s", context.Cause(ctx), *last)
	}
	return context.Cause(ctx)
}

func newStore(o Options) *Store {
	s := &Store{
		dir:        o.Dir,
		log:        o.Logger,
		events:     newEvents(o.Logger),
		minFree:    o.MinFreeBytes,
		stopKeeper: make(chan struct{}),
	}
	s.death = &death{onFatal: o.OnFatal, release: s.durable.fail, dead: make(chan struct{})}
	s.death.opening.Store(true)
	s.fs = o.FS
	if s.fs == nil {
		watched, stop := vfs.WithDiskHealthChecks(vfs.Default, slowDisk, nil, s.events.slow)
		s.fs, s.closers = watched, append(s.closers, stop)
	}
	s.ballast = &ballast{fs: s.fs, path: s.fs.PathJoin(o.Dir, ballastFile), size: max(o.BallastBytes, 0), tell: s.events.tell}
	return s
}

// open does the work of Open. On an error it has released everything.
func (s *Store) open(o Options) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = enginePanic{r}
		}
		if err != nil {
			err = errors.Join(err, s.closeAll())
		}
	}()
	dir := s.fs.PathJoin(s.dir, engineDir)
	if err := makeDirs(s.fs, dir); err != nil {
		kind := kindOf(err)
		if kind == OpenCorrupt {
			kind = OpenIO // nothing has been read yet that could be damaged
		}
		return &OpenError{Kind: kind, Dir: s.dir, Cause: err}
	}
	if err := s.checkSpace(); err != nil {
		return err
	}
	lock, err := pebble.LockDirectory(dir, s.fs)
	if err != nil {
		return &OpenError{Kind: lockKind(err), Dir: s.dir, Cause: err}
	}
	s.closers = append(s.closers, lock)
	exists, err := engineExists(s.fs, dir)
	if err != nil {
		return err
	}
	side, err := s.loadSidecar(exists)
	if err != nil {
		return err
	}
	if !exists && side.head > 0 {
		return s.rolledBack(fmt.Errorf("the engine's files are gone, batch %d was on disk", side.head))
	}
	if err := checkManifest(s.fs, dir, side.manifest); err != nil {
		return err
	}
	fsys := vfs.OnDiskFull(markerFS{s.fs}, s.ballast.drop)
	if s.db, err = pebble.Open(dir, engineOptions(fsys, o.MemTableBytes, lock, s.events, s.death)); err != nil {
		return err
	}
	if err := s.start(side, o.HeadInterval); err != nil {
		return errors.Join(err, s.closeEngine())
	}
	return nil
}

// start checks what the engine recovered and sets the store going.
func (s *Store) start(side sidecar, every time.Duration) error {
	head, err := s.recoverHead(side.head)
	if err != nil {
		return err
	}
	// Recovery ends with a flush: what was read back is on disk.
	s.applied.Store(head)
	s.durable.raise(head)
	if s.ballast.size > 0 {
		if _, err := s.ballast.ensure(s.minFree); err != nil {
			return err
		}
	}
	if err := s.writeSidecar(); err != nil {
		return err
	}
	s.keeper.Go(func() { s.keepSidecar(every) })
	return nil
}

// recoverHead reads version and head and compares them with what must be there.
func (s *Store) recoverHead(atLeast uint64) (head uint64, err error) {
	read := func(key []byte) ([]byte, bool, error) { return get(s.db, key) }
	version, known, err := read(versionKey())
	if err != nil {
		return 0, err
	}
	if known {
		if len(version) != 8 {
			return 0, fmt.Errorf("store version record has %d bytes instead of 8", len(version))
		}
		if v := binary.BigEndian.Uint64(version); v != storeVersion {
			return 0, versionError{"store version", v, storeVersion, storeVersion}
		}
	}
	head, err = readRungs(read)
	if err != nil {
		return 0, err
	}
	if head < atLeast {
		return 0, s.rolledBack(fmt.Errorf("acknowledged records are missing: the newest batch is %d, %d was on disk", head, atLeast))
	}
	if known {
		return head, nil
	}
	if head > 0 {
		return 0, fmt.Errorf("store version record is missing although there are %d batches", head)
	}
	return 0, s.create()
}

// create writes the version record. The first log of a new engine still has the
// old format, which can't tell damage from a torn tail; the flush switches to a
// new log and puts the version record into a table.
func (s *Store) create() error {
	value := binary.BigEndian.AppendUint64(nil, storeVersion)
	if err := s.db.Set(versionKey(), value, pebble.Sync); err != nil {
		return fmt.Errorf("write store version: %w", err)
	}
	if err := s.db.Flush(); err != nil {
		return fmt.Errorf("flush store version: %w", err)
	}
	return nil
}

// checkSpace refuses a file system that is too full, after giving up the reserve.
func (s *Store) checkSpace() error {
	free, known, err := s.free()
	if err != nil {
		return err
	}
	if !known {
		s.ballast.size = 0
		return nil
	}
	if free >= s.minFree {
		return nil
	}
	s.ballast.drop()
	if free, _, err = s.free(); err != nil {
		return err
	}
	if free < s.minFree {
		return &OpenError{Kind: OpenNoSpace, Dir: s.dir, Cause: fmt.Errorf("%d bytes free, %d needed", free, s.minFree)}
	}
	return nil
}

// free asks for the free bytes; known is false where the file system can't say.
func (s *Store) free() (free uint64, known bool, err error) {
	usage, err := s.fs.GetDiskUsage(s.dir)
	if errors.Is(err, vfs.ErrUnsupported) {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, fmt.Errorf("ask for free space: %w", err)
	}
	return usage.AvailBytes, true, nil
}

// loadSidecar reads the sidecar. A damaged one is put aside and reported, and so
// is the absence of one beside an engine: the sidecar only guards the data, and
// the data is most likely fine.
func (s *Store) loadSidecar(exists bool) (sidecar, error) {
	const blind = "records missing at the end of the log would go unnoticed this once"
	path := s.fs.PathJoin(s.dir, headFile)
	side, ok, err := readSidecar(s.fs, path)
	switch {
	case errors.Is(err, errHeadUnreadable):
		s.log.Error("store: sidecar damaged, moved to HEAD.bad", "path", path, "error", err, "effect", blind)
		if err := s.fs.Rename(path, path+".bad"); err != nil {
			return sidecar{}, fmt.Errorf("move damaged sidecar: %w", err)
		}
		return sidecar{}, syncDir(s.fs, s.dir)
	case err != nil:
		return sidecar{}, err
	case !ok && exists:
		s.log.Warn("store: no sidecar", "path", path, "effect", blind)
	}
	s.mark, s.written = side.manifest, side.head
	return side, nil
}

func (s *Store) rolledBack(cause error) error {
	return &OpenError{Kind: OpenRolledBack, Dir: s.dir, Cause: cause}
}

// interface checks: what closeAll releases.
var (
	_ io.Closer = (*pebble.Lock)(nil)
	_ io.Closer = (*Store)(nil)
)
