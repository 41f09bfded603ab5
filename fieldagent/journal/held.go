package journal

import (
	"errors"
	"io/fs"
	"os"
)

// Held returns an ErrLocked that names the holder if an agent uses the journal in
// dir now, and nil if none does or there is no such directory. It creates nothing.
func Held(dir string) error {
	if _, err := os.Stat(dir); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}
	lock, err := OS().Lock(dir, lockName)
	if err != nil {
		return err
	}
	return lock.Close()
}
