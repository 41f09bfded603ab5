package storage

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// The sidecar remembers, outside the engine, what the engine must still have
// after the next start: a head that was durable, and the part of the manifest
// (the engine's list of its tables) that was durable. A log whose tail was cut
// off or a manifest that lost its tail reads like an older, perfectly healthy
// store; only something outside can tell.
//
//	offset  bytes  field (big-endian)
//	     0      8  "A11HEAD1"
//	     8      8  head: this batch, and all before it, were on disk
//	    16      8  manifest number, 0 = not recorded
//	    24      8  manifest length in bytes that was on disk
//	    32      4  CRC-32C of that part of the manifest
//	    36      4  CRC-32C of bytes 0..35
const (
	headFile  = "HEAD"
	headMagic = "A11HEAD1"
	headBytes = 40
)

// errHeadUnreadable says that the sidecar is there but damaged.
var errHeadUnreadable = errors.New("sidecar is damaged")

// sidecar is the content of the HEAD file.
type sidecar struct {
	head     uint64
	manifest manifestMark
}

// manifestMark says that the first size bytes of manifest num have this CRC.
type manifestMark struct {
	num  uint64
	size uint64
	crc  uint32
}

func (s sidecar) encode() []byte {
	b := make([]byte, 0, headBytes)
	b = append(b, headMagic...)
	b = binary.BigEndian.AppendUint64(b, s.head)
	b = binary.BigEndian.AppendUint64(b, s.manifest.num)
	b = binary.BigEndian.AppendUint64(b, s.manifest.size)
	b = binary.BigEndian.AppendUint32(b, s.manifest.crc)
	return binary.BigEndian.AppendUint32(b, checksum(0, b))
}

func decodeSidecar(b []byte) (sidecar, error) {
	if len(b) != headBytes || string(b[:8]) != headMagic {
		return sidecar{}, fmt.Errorf("%w: %d bytes, no %q at the start", errHeadUnreadable, len(b), headMagic)
	}
	if checksum(0, b[:36]) != binary.BigEndian.Uint32(b[36:]) {
		return sidecar{}, fmt.Errorf("%w: checksum does not match", errHeadUnreadable)
	}
	return sidecar{
		head: binary.BigEndian.Uint64(b[8:]),
		manifest: manifestMark{
			num:  binary.BigEndian.Uint64(b[16:]),
			size: binary.BigEndian.Uint64(b[24:]),
			crc:  binary.BigEndian.Uint32(b[32:]),
		},
	}, nil
}

// checksum continues a CRC-32C.
func checksum(crc uint32, b []byte) uint32 {
	return crc32.Update(crc, crc32.MakeTable(crc32.Castagnoli), b)
}

// readSidecar returns ok = false when there is no sidecar, errHeadUnreadable
// when it is damaged, and other errors when it can't be read.
func readSidecar(fsys vfs.FS, path string) (s sidecar, ok bool, err error) {
	f, err := fsys.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return sidecar{}, false, nil
	}
	if err != nil {
		return sidecar{}, false, fmt.Errorf("open %s: %w", path, err)
	}
	b, err := io.ReadAll(io.LimitReader(f, headBytes+1))
	if err := errors.Join(err, f.Close()); err != nil {
		return sidecar{}, false, fmt.Errorf("read %s: %w", path, err)
	}
	s, err = decodeSidecar(b)
	return s, err == nil, err
}

// manifestNow makes the current manifest durable and describes it. The order
// matters: what is measured before the sync is on disk after it. It is safe
// beside a running engine, which only appends to a manifest; when it meets the
// moment of a change it returns an error and the older mark stays true.
func manifestNow(fsys vfs.FS, dir string, last manifestMark) (manifestMark, error) {
	num, path, err := currentManifest(fsys, dir)
	if err != nil || num == 0 {
		return last, err
	}
	f, err := fsys.Open(path)
	if err != nil {
		return last, fmt.Errorf("open manifest: %w", err)
	}
	mark, err := extendMark(f, num, last)
	if err == nil {
		err = f.Sync()
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return last, fmt.Errorf("describe manifest %s: %w", path, err)
	}
	// The marker that makes this manifest the current one must be on disk too.
	if err := syncDir(fsys, dir); err != nil {
		return last, err
	}
	return mark, nil
}

// extendMark reads what was appended since last, so that a long manifest is read
// only once.
func extendMark(f vfs.File, num uint64, last manifestMark) (manifestMark, error) {
	info, err := f.Stat()
	if err != nil {
		return last, err
	}
	mark := manifestMark{num: num}
	if last.num == num {
		mark = last
	}
	size := uint64(max(info.Size(), 0))
	if size < mark.size {
		return last, fmt.Errorf("shrank from %d to %d bytes", mark.size, size)
	}
	crc, err := checksumAt(f, mark.crc, mark.size, size)
	if err != nil {
		return last, err
	}
	mark.size, mark.crc = size, crc
	return mark, nil
}

// checkManifest compares the manifest on disk with the mark of the last run.
func checkManifest(fsys vfs.FS, dir string, want manifestMark) error {
	if want.num == 0 {
		return nil
	}
	num, path, err := currentManifest(fsys, dir)
	if err != nil {
		return err
	}
	switch {
	case num > want.num:
		return nil // rewritten since; the mark says nothing about this one
	case num < want.num:
		return fmt.Errorf("manifest went back from %06d to %06d", want.num, num)
	}
	f, err := fsys.Open(path)
	if err != nil {
		return fmt.Errorf("open manifest: %w", err)
	}
	crc, err := checksumAt(f, 0, 0, want.size)
	if err := errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("manifest %s: %w", path, err)
	}
	if crc != want.crc {
		return fmt.Errorf("manifest %s: checksum of the first %d bytes does not match", path, want.size)
	}
	return nil
}

// checksumAt continues crc over the bytes from..to of f.
func checksumAt(f vfs.File, crc uint32, from, to uint64) (uint32, error) {
	buf := make([]byte, 32<<10)
	for from < to {
		n, err := f.ReadAt(buf[:min(uint64(len(buf)), to-from)], int64(from))
		crc = checksum(crc, buf[:n])
		from += uint64(n)
		if err != nil && from < to {
			if errors.Is(err, io.EOF) {
				return 0, fmt.Errorf("ends at byte %d instead of %d", from, to)
			}
			return 0, fmt.Errorf("read at byte %d: %w", from, err)
		}
	}
	return crc, nil
}

// currentManifest finds the manifest that the engine's marker names; num is 0
// when there is no store yet.
func currentManifest(fsys vfs.FS, dir string) (num uint64, path string, err error) {
	desc, err := pebble.Peek(dir, fsys)
	if err != nil {
		return 0, "", fmt.Errorf("find manifest: %w", err)
	}
	if !desc.Exists {
		return 0, "", nil
	}
	name := fsys.PathBase(desc.ManifestFilename)
	if _, err := fmt.Sscanf(name, "MANIFEST-%d", &num); err != nil {
		return 0, "", fmt.Errorf("manifest name %q: %w", name, err)
	}
	return num, desc.ManifestFilename, nil
}
