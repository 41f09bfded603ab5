package lab

import (
	"path/filepath"
	"testing"

	"github.com/apollo-11/apollo11/firmware-sim/lab/disk"
)

// newDisk makes a formatted disk, whose cuts lose what the seed says.
func newDisk(t *testing.T, mib int, seed uint64) (d *disk.Disk, socket string) {
	t.Helper()
	dir := t.TempDir()
	image, socket := filepath.Join(dir, "image"), filepath.Join(dir, "nbd")
	if err := disk.Format(t.Context(), image, mib); err != nil {
		t.Fatal(err)
	}
	d, err := disk.New(image, socket, seed)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Errorf("disk: %v", err)
		}
		t.Logf("disk: %+v", d.Counts())
	})
	return d, socket
}
