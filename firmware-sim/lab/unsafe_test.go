package lab

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// unsynced is a program that was built with its syncs left out, as a control: the
// lab must find that. The compiler is given another text for one source file
// (go build -overlay), so that nothing in the programs themselves can leave a sync
// out.
func (k *kit) unsynced(t *testing.T, program, source string, changes ...[2]string) string {
	t.Helper()
	text, err := os.ReadFile(source)
	if err != nil {
		t.Fatal(err)
	}
	changed := string(text)
	for _, c := range changes {
		if strings.Count(changed, c[0]) != 1 {
			t.Fatalf("%s does not say %q once any more: look for where it syncs now", source, c[0])
		}
		changed = strings.Replace(changed, c[0], c[1], 1)
	}
	dir := t.TempDir()
	other, overlay, out := filepath.Join(dir, "other.go"), filepath.Join(dir, "overlay.json"), filepath.Join(dir, filepath.Base(program))
	abs, err := filepath.Abs(source)
	if err != nil {
		t.Fatal(err)
	}
	table, err := json.Marshal(map[string]any{"Replace": map[string]string{abs: other}})
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{other: []byte(changed), overlay: table} {
		if err := os.WriteFile(name, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	err = command(t.Context(), moduleRoot, []string{"CGO_ENABLED=0", "GOOS=linux", "GOARCH=arm64"},
		"go", "build", "-overlay", overlay, "-trimpath", "-ldflags", "-s -w", "-o", out, program)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// unsyncedAgent does not wait for its journal to be on disk.
func (k *kit) unsyncedAgent(t *testing.T) string {
	t.Helper()
	return k.unsynced(t, "./fieldagent/cmd/apollo-agent", filepath.Join(moduleRoot, "fieldagent/journal/datasync_linux.go"),
		[2]string{"err := syscall.Fdatasync(int(f.Fd()))", "err := error(nil)\n\t\t_ = f.Fd()"})
}

// unsyncedGateway does not wait for its log to be on disk.
func (k *kit) unsyncedGateway(t *testing.T) string {
	t.Helper()
	return k.unsynced(t, "./gateway/cmd/apollo-gateway", filepath.Join(moduleRoot, "storage/open.go"),
		[2]string{"vfs.WithDiskHealthChecks(vfs.Default, ", "vfs.WithDiskHealthChecks(unsyncedFS{vfs.Default}, "},
		[2]string{"\nconst (\n", unsyncedFS + "\nconst (\n"})
}

// unsyncedFS is a file system whose files say that they are synced.
const unsyncedFS = `
type unsyncedFS struct{ vfs.FS }

type unsyncedFile struct{ vfs.File }

func (unsyncedFile) Sync() error                { return nil }
func (unsyncedFile) SyncData() error            { return nil }
func (unsyncedFile) SyncTo(int64) (bool, error) { return false, nil }

func unsyncedOf(f vfs.File, err error) (vfs.File, error) {
	if err != nil {
		return nil, err
	}
	return unsyncedFile{f}, nil
}

func (u unsyncedFS) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	return unsyncedOf(u.FS.Create(name, c))
}

func (u unsyncedFS) OpenReadWrite(name string, c vfs.DiskWriteCategory, o ...vfs.OpenOption) (vfs.File, error) {
	return unsyncedOf(u.FS.OpenReadWrite(name, c, o...))
}

func (u unsyncedFS) ReuseForWrite(from, to string, c vfs.DiskWriteCategory) (vfs.File, error) {
	return unsyncedOf(u.FS.ReuseForWrite(from, to, c))
}

func (u unsyncedFS) OpenDir(name string) (vfs.File, error) { return unsyncedOf(u.FS.OpenDir(name)) }

func (u unsyncedFS) Unwrap() vfs.FS { return u.FS }
`
