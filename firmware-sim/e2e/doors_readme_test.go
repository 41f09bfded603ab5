package e2e

import (
	"net"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"
)

// The tour of the README works as it stands, but for its ports: all of its blocks
// are run in one shell.
func TestReadmeTour(t *testing.T) {
	tool(t, "mosquitto_pub", "mosquitto-clients")
	tool(t, "bash", "bash")
	b, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(b), "## A tour")
	text, _, _ = strings.Cut(text, "\n## ")
	blocks := regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(text, -1)
	if len(blocks) < 10 {
		t.Fatalf("only %d blocks in the tour", len(blocks))
	}
	mqtt, narrow, ws, web := freeAddr(t), freeAddr(t), freeAddr(t), freeAddr(t)
	host, port, err := net.SplitHostPort(mqtt)
	if err != nil {
		t.Fatal(err)
	}
	ours := strings.NewReplacer(
		"make build\n", "", "$PWD/bin", binDir,
		"apollo-gateway ", "apollo-gateway --mqtt "+mqtt+" --narrowband "+narrow+" --ws "+ws+" --http "+web+" ",
		"mosquitto_pub ", "mosquitto_pub -h "+host+" -p "+port+" ",
		"127.0.0.1:8083", ws, "127.0.0.1:1884", narrow)
	script := "set -euo pipefail\n"
	for _, block := range blocks {
		script += ours.Replace(block[1])
	}
	cmd := exec.Command("bash", "-c", script)
	cmd.Dir = "../.."
	cmd.Env = append(os.Environ(), "APOLLO_GATEWAY=http://"+web, "TMPDIR="+t.TempDir())
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	p := startCmd(t, "the tour", cmd)
	t.Cleanup(func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }) // what a failed tour left behind
	code, out := p.wait(), p.output()
	if code != 0 {
		t.Errorf("the tour ends with exit code %d", code)
	}
	for _, want := range []string{
		"PENDING", `"pin":"GPIO17","level":1`, "-> PENDING", "RUNNING -> SUCCEEDED", "Payload format invalid", "did you mean intent?",
		"task collect-metrics-1712345678-b7e2 SUCCEEDED", "narrowband  default-", "joined", "expired", "exit code 1", `{"level":0,"pin":"GPIO27"}`,
	} {
		if !strings.Contains(out, want) {
			t.Errorf("the tour does not show %q", want)
		}
	}
}
