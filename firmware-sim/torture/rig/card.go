package rig

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"

	"golang.org/x/sys/unix"
)

// Card is a small file system of its own, like a memory card, that can be made to
// hang: what is written to it waits until it thaws, and so does every sync.
type Card struct {
	dir    string
	mu     sync.Mutex // guards frozen
	frozen bool
}

// cardBytes is the size of a card: an ext4 with its journal, and room. It is a file with
// holes.
const cardBytes = 128 << 20

// ioctls of linux/fs.h: FIFREEZE is _IOWR('X', 119, int), FITHAW _IOWR('X', 120, int).
const (
	fiFreeze = 0xC0045877
	fiThaw   = 0xC0045878
)

// NewCard makes a card and mounts it below dir. It must be closed. The error says what
// is missing where none can be made.
func NewCard(ctx context.Context, dir string) (*Card, error) {
	if os.Geteuid() != 0 {
		return nil, errors.New("a card that hangs needs root, to mount it")
	}
	image, c := filepath.Join(dir, "card.img"), &Card{dir: filepath.Join(dir, "card")}
	if err := os.WriteFile(image, nil, 0o600); err != nil {
		return nil, err
	}
	if err := os.Truncate(image, cardBytes); err != nil {
		return nil, err
	}
	if err := os.Mkdir(c.dir, 0o700); err != nil {
		return nil, err
	}
	for _, args := range [][]string{{"mke2fs", "-q", "-F", "-t", "ext4", image}, {"mount", "-o", "loop", image, c.dir}} {
		cmd := exec.CommandContext(ctx, args[0], args[1:]...)
		// A user's path often lacks the directories of the system's own programs.
		cmd.Env = append(os.Environ(), "PATH="+os.Getenv("PATH")+":/usr/sbin:/sbin")
		if cmd.Err != nil {
			cmd.Path, cmd.Err = filepath.Join("/usr/sbin", args[0]), nil
		}
		if out, err := cmd.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("a card that hangs can't be made here: %s: %w: %s", args[0], err, out)
		}
	}
	return c, nil
}

// Dir is where the card is mounted.
func (c *Card) Dir() string { return c.dir }

func (c *Card) ioctl(what uint) error {
	d, err := os.Open(c.dir)
	if err != nil {
		return err
	}
	err = unix.IoctlSetInt(int(d.Fd()), what, 0)
	return errors.Join(err, d.Close())
}

// Freeze makes the card hang.
func (c *Card) Freeze() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	err := c.ioctl(fiFreeze)
	c.frozen = err == nil
	return err
}

// Thaw lets it go on.
func (c *Card) Thaw() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.frozen {
		return nil
	}
	c.frozen = false
	return c.ioctl(fiThaw)
}

// Close thaws and unmounts it. Nobody may use it any more.
func (c *Card) Close() error {
	return errors.Join(c.Thaw(), unix.Unmount(c.dir, unix.MNT_DETACH))
}
