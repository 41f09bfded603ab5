package lab

import (
	"strings"
	"testing"

	"github.com/apollo-11/apollo11/firmware-sim/lab/board"
)

// TestBoardReboots: an instruction that boots the board is confirmed by the board
// that comes back, and boots it once, although nobody had heard of it before the
// board was gone (D6, D7).
func TestBoardReboots(t *testing.T) {
	const node, id = "arm64", "boot-again"
	k := lab(t)
	s := newSite(t, k)
	_, socket := newDisk(t, 64, 1)
	files := []board.File{{Path: "/init", Mode: 0o755, Source: k.guest}, {Path: "/bin/reboot", Mode: 0o755, Source: k.guest},
		{Path: agentPath(node), Mode: 0o755, Source: k.agentFile(node)}}
	on := func() *board.Board {
		b := s.switchOn(board.Options{Files: files, Disk: socket})
		s.must(b.Run(node, "", agentArgs(node, "--reboot-command", "/bin/reboot now")...))
		s.online(node)
		return b
	}
	first := on()
	s.publish(doc(id, "reboot", node, "{}"))
	s.must(first.AwaitOff(t.Context(), patience))
	if n := strings.Count(first.Console(), "reboot was asked for"); n > 1 {
		t.Errorf("asked for %d reboots in one boot", n)
	}
	first.Close()
	second := on()
	s.done(t, id)
	// Whoever would boot it again has had time for it by now: this one runs after.
	s.publish(doc(id+"-after", "collect_metrics", node, "{}"))
	s.done(t, id+"-after")
	if strings.Contains(second.Console(), "reboot was asked for") {
		t.Error("the board was booted twice")
	}
}
