package board

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// entries reads an archive back, strictly.
func entries(t *testing.T, b []byte) (list []string) {
	t.Helper()
	for at := 0; ; {
		if at%4 != 0 || string(b[at:at+6]) != "070701" {
			t.Fatalf("no header at %d", at)
		}
		field := func(n int) int {
			v, err := strconv.ParseUint(string(b[at+6+8*n:at+14+8*n]), 16, 32)
			if err != nil {
				t.Fatal(err)
			}
			return int(v)
		}
		mode, size, name := field(1), field(6), field(11)
		path := string(b[at+110 : at+110+name-1])
		data := (at + 110 + name + 3) &^ 3
		if path == "TRAILER!!!" {
			return list
		}
		list = append(list, fmt.Sprintf("%s %o %d %q", path, mode, size, b[data:data+size]))
		at = (data + size + 3) &^ 3
	}
}

func TestInitramfs(t *testing.T) {
	source := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(source, []byte("from a file"), 0o600); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	err := writeInitramfs(&out, []File{{Path: "/usr/local/bin/x", Mode: 0o755, Source: source}, {Path: "/init", Mode: 0o700, Data: []byte("12345")}})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{`dev 40755 0 ""`, `dev/console 20600 0 ""`, `init 100700 5 "12345"`, `usr 40755 0 ""`, `usr/local 40755 0 ""`, `usr/local/bin 40755 0 ""`,
		`usr/local/bin/x 100755 11 "from a file"`}
	if got := entries(t, out.Bytes()); strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	for _, bad := range []File{{Path: "init"}, {Path: "/a/../b"}, {Path: "/x", Source: "/does/not/exist"}} {
		if err := writeInitramfs(&out, []File{bad}); err == nil {
			t.Errorf("%+v was taken", bad)
		}
	}
}
