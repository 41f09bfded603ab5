package board

import (
	"bufio"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
)

// File is a file of the board's first file system, which lives in memory.
type File struct {
	// Path is absolute. The directories above it are made.
	Path string
	Mode fs.FileMode // permissions
	// Data is the content. Source names a file of the host to take it from instead.
	Data   []byte
	Source string
}

// cpio writes an archive in the format that the kernel unpacks at boot ("newc": a
// header of hexadecimal numbers, the name, the content, each padded to four bytes).
type cpio struct {
	w    *bufio.Writer
	n    int64
	ino  uint32
	dirs map[string]bool
	err  error
}

// Types of files in the mode field.
const (
	typeDir    = 0o040000
	typeFile   = 0o100000
	typeDevice = 0o020000
)

// writeInitramfs writes the files, sorted by path, with a console device.
func writeInitramfs(w io.Writer, files []File) error {
	c := &cpio{w: bufio.NewWriterSize(w, 1<<20), dirs: map[string]bool{"/": true}}
	c.entry("/dev", typeDir|0o755, 2, 0, 0, nil)
	c.dirs["/dev"] = true
	c.entry("/dev/console", typeDevice|0o600, 1, 5, 1, nil)
	sorted := slices.SortedFunc(slices.Values(files), func(a, b File) int {
		if a.Path < b.Path {
			return -1
		}
		return 1
	})
	for _, f := range sorted {
		data := f.Data
		if f.Source != "" {
			var err error
			if data, err = os.ReadFile(f.Source); err != nil {
				return err
			}
		}
		if !path.IsAbs(f.Path) || path.Clean(f.Path) != f.Path {
			return fmt.Errorf("initramfs: %q is not an absolute path", f.Path)
		}
		c.parents(path.Dir(f.Path))
		c.entry(f.Path, typeFile|uint32(f.Mode.Perm()), 1, 0, 0, data)
	}
	c.entry("/TRAILER!!!", 0, 1, 0, 0, nil)
	if c.err == nil {
		c.err = c.w.Flush()
	}
	return c.err
}

func (c *cpio) parents(dir string) {
	if c.dirs[dir] {
		return
	}
	c.parents(path.Dir(dir))
	c.entry(dir, typeDir|0o755, 2, 0, 0, nil)
	c.dirs[dir] = true
}

func (c *cpio) entry(name string, mode, links, major, minor uint32, data []byte) {
	name = name[1:] + "\x00"
	c.ino++
	c.write(fmt.Appendf(nil, "070701%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x",
		c.ino, mode, 0, 0, links, 0, len(data), 0, 0, major, minor, len(name), 0))
	c.write([]byte(name))
	c.pad()
	c.write(data)
	c.pad()
}

func (c *cpio) write(b []byte) {
	if c.err != nil {
		return
	}
	n, err := c.w.Write(b)
	c.n += int64(n)
	c.err = err
}

func (c *cpio) pad() { c.write(make([]byte, -c.n&3)) }
