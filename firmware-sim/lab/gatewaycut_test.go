package lab

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/apollo-11/apollo11/fieldagent/gpio"
	"github.com/apollo-11/apollo11/firmware-sim/lab/board"
	"github.com/apollo-11/apollo11/firmware-sim/lab/disk"
	"github.com/apollo-11/apollo11/firmware-sim/torture/rig"
	"github.com/apollo-11/apollo11/firmware-sim/torture/trial"
	"github.com/apollo-11/apollo11/gateway/api"
	"github.com/apollo-11/apollo11/gateway/scada"
)

// gatewayTally is what came of power cuts of a board with a gateway.
type gatewayTally struct {
	trial.Tally
	cuts, held, lost int      // sectors that the disk had in its memory, and lost
	refused          []string // why the board, or the gateway, did not come up again
	alarms           []string
}

func (r *gatewayTally) faults() []string {
	return slices.Concat(r.Faults, r.refused, r.alarms)
}

// gatewayCuts is a gateway on a board, and an agent with simulated pins and a
// client on this machine.
type gatewayCuts struct {
	t       *testing.T
	k       *kit
	program string
	d       *disk.Disk
	socket  string
	forward []board.Forward
	doors
	chance *rand.Rand

	all []*trial.Account
}

const simNode = "pump-1"

// gatewayPowerCuts cuts the power of a board with a gateway under load, again and
// again, and tells what came of it.
func gatewayPowerCuts(t *testing.T, k *kit, program string, mode disk.Mode, cuts int) (r gatewayTally) {
	t.Helper()
	n := seed(t)
	g := &gatewayCuts{t: t, k: k, program: program, chance: rand.New(rand.NewPCG(n, 2))}
	g.d, g.socket = newDisk(t, 256, n)
	g.d.Set(mode)
	g.d.Slow(flushTakes)
	addrs := freeAddrs(t, 3)
	for i, port := range []string{":1883", ":1884", ":8080"} {
		g.forward = append(g.forward, board.Forward{Board: port, Host: addrs[i]})
	}
	g.doors = newDoors(addrs[2])
	trace := filepath.Join(t.TempDir(), "pins")
	agent := exec.Command(filepath.Join(k.host.Dir, "apollo-agent"), "--gateway", "tcp://"+addrs[0], "--narrowband", "tcp://"+addrs[1],
		"--node", simNode, "--gpio", "sim", "--gpio-trace", trace, "--data", filepath.Join(t.TempDir(), "agent"))
	var out strings.Builder
	agent.Stdout, agent.Stderr = &out, &out
	if err := agent.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = agent.Process.Kill()
		_ = agent.Wait() // it was killed
		if t.Failed() {
			t.Logf("--- agent\n%s", tail(out.String(), 20_000))
		}
	})
	defer func() { r.held = g.d.Counts().Kept + r.lost }()
	for range cuts {
		b, refused := g.boot()
		if refused != "" {
			r.refused = append(r.refused, refused)
			return r
		}
		r.lost += g.cutUnderLoad(b, r.cuts)
		r.cuts++
	}
	b, refused := g.boot()
	if refused != "" {
		r.refused = append(r.refused, refused)
		return r
	}
	defer b.Close()
	g.node(t, simNode, scada.PresenceOnline)
	g.read()
	moves, err := gpio.ReadTrace(trace)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Weigh(g.all, map[string][]gpio.Actuation{simNode: moves}, nil); err != nil {
		t.Fatal(err)
	}
	r.alarms = g.lossAlarms(t)
	return r
}

// boot switches the board on and starts the gateway. It returns why the gateway
// does not serve: a disk that lied is a reason.
func (g *gatewayCuts) boot() (b *board.Board, refused string) {
	g.t.Helper()
	const path, name = "/usr/local/bin/apollo-gateway", "gateway"
	b, err := board.Start(g.t.Context(), board.Options{Kernel: g.k.kernel, Dir: g.t.TempDir(), In: g.forward, Disk: g.socket,
		Files: []board.File{{Path: "/init", Mode: 0o755, Source: g.k.guest}, {Path: path, Mode: 0o755, Source: g.program}}})
	if err != nil {
		g.t.Fatal(err)
	}
	g.web.CloseIdleConnections() // they led to the board that is no more
	g.k.bootTook = append(g.k.bootTook, b.BootTook)
	g.t.Cleanup(func() {
		b.Close()
		if g.t.Failed() {
			g.t.Logf("--- console of the board\n%s", tail(b.Console(), 20_000))
		}
	})
	if text, err := b.ReadFile("/run/no-disk"); err == nil {
		b.Close()
		return b, "the disk cannot be mounted: " + text
	}
	err = b.Run(name, "apollo", path, "--data", "/data/gateway", "--mqtt", "0.0.0.0:1883", "--narrowband", "0.0.0.0:1884",
		"--ws", "off", "--http", "0.0.0.0:8080", "--allow-anonymous", "--allow-remote")
	if err != nil {
		g.t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		r, err := b.Wait(name, patience)
		if err == nil {
			err = fmt.Errorf("exit code %d", r.Exit)
		}
		ended <- err
	}()
	up := make(chan error, 1)
	go func() { up <- b.AwaitConsole(g.t.Context(), "["+name+"] ready ", patience) }()
	select {
	case err := <-up:
		if err != nil {
			g.t.Fatal(err)
		}
		return b, ""
	case err := <-ended:
		b.Close()
		return b, fmt.Sprintf("the gateway does not start: %v: %s", err, tail(b.Console(), 2000))
	}
}

// cutUnderLoad submits commands as fast as they are taken, until the power fails at
// a random moment. It returns how many sectors the disk has lost.
func (g *gatewayCuts) cutUnderLoad(b *board.Board, n int) (lost int) {
	g.t.Helper()
	const batch = 8
	var client *rig.Client
	err := rig.Await(g.t.Context(), patience, "client connected", func() (bool, error) {
		var err error
		client, err = rig.Connect(g.t.Context(), rig.Loopback, g.forward[0].Host, "scada")
		return err == nil, err
	})
	if err != nil {
		g.t.Fatal(err)
	}
	defer client.Close()
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			var docs []string
			first := len(g.all)
			for range batch {
				id := fmt.Sprintf("set-%d", len(g.all))
				docs = append(docs, doc(id, "gpio.write", simNode, fmt.Sprintf(`{"pin":"GPIO%d","level":%d}`, 2+len(g.all)%20, len(g.all)/20%2)))
				g.all = append(g.all, &trial.Account{ID: id})
			}
			acked, err := client.Submit(rig.TaskTopic, docs...)
			for i := range acked {
				g.all[first+i].Acked = true
			}
			if err != nil {
				return
			}
		}
	}()
	if err := aim(g.t, g.d, g.chance, n); err != nil {
		g.t.Error(err)
	}
	if err := b.Cut(func() { lost = g.d.Cut() }); err != nil {
		g.t.Fatal(err)
	}
	client.Close()
	<-done
	return lost
}

// read waits for the end of every command that the log has and reads it.
func (g *gatewayCuts) read() {
	g.t.Helper()
	for _, a := range g.all {
		var v scada.TaskView
		err := rig.Await(g.t.Context(), patience, "command "+a.ID+" settled", func() (bool, error) {
			v = scada.TaskView{}
			var err error
			a.Found, err = g.get(g.t.Context(), "/v1/tasks/"+a.ID, &v)
			if err == nil && a.Found && len(v.Instructions) != 1 {
				err = errors.New("it has not one instruction")
			}
			return err == nil && (!a.Found || v.Settled), err
		})
		if err != nil {
			g.t.Error(err)
		}
		if !a.Found {
			continue
		}
		a.Settled, a.End = v.Settled, v.Instructions[0]
		var line api.Timeline
		if _, err := g.get(g.t.Context(), fmt.Sprintf("/v1/instructions/%d/timeline", a.End.Seq), &line); err != nil {
			g.t.Fatal(err)
		}
		for _, e := range line.Entries {
			if e.Token != "" && e.What != "refused" && !slices.Contains(a.Tokens, e.Token) {
				a.Tokens = append(a.Tokens, e.Token)
			}
		}
	}
}

// freeAddrs finds loopback addresses that nobody listens on, below the range from
// which the system takes the source ports of connections.
func freeAddrs(t *testing.T, n int) []string {
	t.Helper()
	const first, count = 12_000, 18_000
	var list []string
	at := rand.IntN(count)
	for i := 0; len(list) < n; i++ {
		if i == count {
			t.Fatal("no free ports on the loopback interface")
		}
		addr := fmt.Sprintf("127.0.0.1:%d", first+(at+i)%count)
		if l, err := net.Listen("tcp", addr); err == nil {
			_ = l.Close()
			list = append(list, addr)
		}
	}
	return list
}

// TestGatewayBoardPowerCuts: what a gateway on a board has acknowledged it has
// after a power cut, and every command runs once (A2, A3, C5, E1).
func TestGatewayBoardPowerCuts(t *testing.T) {
	k := lab(t)
	r := gatewayPowerCuts(t, k, k.gateway, disk.Honest, cuts(t))
	t.Logf("%+v", r)
	for _, f := range r.faults() {
		t.Error(f)
	}
	if r.Acknowledged < 5*r.cuts || r.Executed < r.Acknowledged/2 || r.held == 0 {
		t.Errorf("hardly any load: %d acknowledged, %d executed, %d sectors in the disk's memory", r.Acknowledged, r.Executed, r.held)
	}
}
