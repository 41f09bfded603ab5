//go:build linux

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Names and numbers of the board's one user beside root, as the shipped unit wants
// them.
const (
	userName  = "apollo"
	userID    = 1000
	groupGPIO = 997
)

// address of the board in the emulator's network.
var address = netip.MustParseAddr("10.0.2.15")

const (
	disk      = "/dev/vda"
	dataDir   = "/data"
	chipDev   = "/dev/gpiochip0"
	portLimit = 10 * time.Second
)

func boot() error {
	for _, m := range []struct{ kind, at string }{{"proc", "/proc"}, {"sysfs", "/sys"}, {"devtmpfs", "/dev"}, {"tmpfs", "/tmp"}, {"tmpfs", "/run"}, {"debugfs", "/sys/kernel/debug"}} {
		if err := os.MkdirAll(m.at, 0o755); err != nil {
			return err
		}
		if err := unix.Mount(m.kind, m.at, m.kind, 0, ""); err != nil && !errors.Is(err, unix.EBUSY) {
			return fmt.Errorf("mount %s on %s: %w", m.kind, m.at, err)
		}
	}
	return errors.Join(users(), mountDisk(), network(), freeLine(), os.Chmod("/tmp", 0o1777))
}

// users makes the user and the groups of the shipped unit, and gives the chip to
// the group as the rules of a distribution do.
func users() error {
	if err := os.MkdirAll("/etc", 0o755); err != nil {
		return err
	}
	passwd := fmt.Sprintf("root:x:0:0::/:/init\n%s:x:%d:%d::/var/lib/apollo:/init\n", userName, userID, userID)
	group := fmt.Sprintf("root:x:0:\n%s:x:%d:\ngpio:x:%d:%s\n", userName, userID, groupGPIO, userName)
	return errors.Join(os.WriteFile("/etc/passwd", []byte(passwd), 0o644), os.WriteFile("/etc/group", []byte(group), 0o644),
		os.Chown(chipDev, 0, groupGPIO), os.Chmod(chipDev, 0o660))
}

// mountDisk mounts the disk, if there is one, on /data, where /var/lib/apollo leads.
func mountDisk() error {
	if err := errors.Join(os.MkdirAll(dataDir, 0o755), os.MkdirAll("/var/lib", 0o755), os.Symlink(dataDir, "/var/lib/apollo")); err != nil {
		return err
	}
	if _, err := os.Stat(disk); errors.Is(err, fs.ErrNotExist) {
		return os.Chown(dataDir, userID, userID)
	}
	if err := unix.Mount(disk, dataDir, "ext4", 0, ""); err != nil {
		// A disk that lied may be beyond repair. The host wants to know it, not to
		// lose the board.
		fmt.Printf("lab: mount %s: %v\n", disk, err)
		return os.WriteFile("/run/no-disk", []byte(err.Error()), 0o644)
	}
	return os.Chown(dataDir, userID, userID)
}

// network gives the card its address and the loopback interface its own.
func network() error {
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(s) }() // nothing was written to it
	for _, c := range []struct {
		name string
		addr netip.Addr
		bits int
	}{{"lo", netip.MustParseAddr("127.0.0.1"), 8}, {"eth0", address, 24}} {
		mask := ^uint32(0) << (32 - c.bits)
		for _, set := range []struct {
			what uint
			addr [4]byte
		}{{unix.SIOCSIFADDR, c.addr.As4()}, {unix.SIOCSIFNETMASK, [4]byte{byte(mask >> 24), byte(mask >> 16), byte(mask >> 8), byte(mask)}}} {
			r, err := unix.NewIfreq(c.name)
			if err == nil {
				err = r.SetInet4Addr(set.addr[:])
			}
			if err == nil {
				err = unix.IoctlIfreq(s, set.what, r)
			}
			if err != nil {
				return fmt.Errorf("address of %s: %w", c.name, err)
			}
		}
		r, err := unix.NewIfreq(c.name)
		if err == nil {
			r.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
			err = unix.IoctlIfreq(s, unix.SIOCSIFFLAGS, r)
		}
		if err != nil {
			return fmt.Errorf("switch %s on: %w", c.name, err)
		}
	}
	return nil
}

// freeLine takes line 3 from the power button: the tests want it.
func freeLine() error {
	drivers, err := filepath.Glob("/sys/bus/platform/drivers/gpio-keys/*")
	if err != nil {
		return err
	}
	for _, d := range drivers {
		name := filepath.Base(d)
		if link, err := os.Readlink(d); err != nil || !strings.Contains(link, "/devices/") {
			continue // bind, unbind, uevent
		}
		if err := os.WriteFile("/sys/bus/platform/drivers/gpio-keys/unbind", []byte(name), 0o200); err != nil {
			return fmt.Errorf("free line 3 from %s: %w", name, err)
		}
	}
	return nil
}

// openPort finds the serial port to the host by its name: its number depends on
// the slot.
func openPort() (*os.File, error) {
	deadline := time.Now().Add(portLimit)
	for {
		names, err := filepath.Glob("/sys/class/virtio-ports/*/name")
		if err != nil {
			return nil, err
		}
		for _, file := range names {
			b, err := os.ReadFile(file)
			if err == nil && strings.TrimSpace(string(b)) == portName {
				return os.OpenFile(filepath.Join("/dev", filepath.Base(filepath.Dir(file))), os.O_RDWR, 0)
			}
		}
		if time.Now().After(deadline) {
			return nil, fmt.Errorf("no serial port is called %s", portName)
		}
		time.Sleep(10 * time.Millisecond)
	}
}
