//go:build unix && !linux

package journal

import "os"

func datasync(f *os.File) error { return f.Sync() }
