package rig

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"
)

// The addresses belong to the range for measurements (RFC 2544): nobody on any
// network has them, and they exist only inside the two namespaces, which have no
// other interface and no route anywhere.
const (
	gatewayIP = "198.18.47.1"
	agentIP   = "198.18.47.2"
	netBits   = "/30"
	gatewayIf = "apollo-g"
	agentIf   = "apollo-a"
)

// Network is two network namespaces joined by a virtual cable: the gateway lives
// at one end, agents at the other.
type Network struct{ gateway, agents string }

// Missing says why networks cannot be made here; nil when they can. It tries it: a
// container may forbid it to root as well.
func Missing(ctx context.Context) error {
	if err := missing(); err != nil {
		return err
	}
	n, err := NewNetwork(ctx)
	if err != nil {
		return fmt.Errorf("network namespaces cannot be made here: %w", err)
	}
	return errors.Join(n.Lose(ctx, 1), n.Close())
}

func missing() error {
	var what []string
	if os.Geteuid() != 0 {
		what = append(what, "root")
	}
	for _, tool := range []struct{ program, pkg string }{{"ip", "iproute2"}, {"nft", "nftables"}} {
		if _, err := exec.LookPath(tool.program); err != nil {
			what = append(what, tool.program+" (install "+tool.pkg+")")
		}
	}
	if len(what) > 0 {
		return fmt.Errorf("network namespaces with packet loss need %s", strings.Join(what, " and "))
	}
	return nil
}

// NewNetwork makes the namespaces. They must be Closed.
func NewNetwork(ctx context.Context) (*Network, error) {
	if err := missing(); err != nil {
		return nil, err
	}
	name := fmt.Sprintf("apollo-%d-%04x-", os.Getpid(), rand.Uint32N(1<<16))
	n := &Network{name + "g", name + "a"}
	for _, args := range [][]string{
		{"netns", "add", n.gateway}, {"netns", "add", n.agents},
		{"link", "add", gatewayIf, "netns", n.gateway, "type", "veth", "peer", "name", agentIf, "netns", n.agents},
		{"-n", n.gateway, "addr", "add", gatewayIP + netBits, "dev", gatewayIf},
		{"-n", n.agents, "addr", "add", agentIP + netBits, "dev", agentIf},
		{"-n", n.gateway, "link", "set", "lo", "up"}, {"-n", n.agents, "link", "set", "lo", "up"},
		{"-n", n.gateway, "link", "set", gatewayIf, "up"}, {"-n", n.agents, "link", "set", agentIf, "up"},
	} {
		if err := ip(ctx, args...); err != nil {
			return nil, errors.Join(err, n.Close())
		}
	}
	return n, nil
}

// Close removes the namespaces, and with them the cable. Processes in them must
// have ended.
func (n *Network) Close() error {
	ctx := context.Background() // it must happen, and ip does not wait for anything
	var errs []error
	for _, ns := range []string{n.gateway, n.agents} {
		if _, err := os.Stat(nsFile(ns)); err == nil {
			errs = append(errs, ip(ctx, "netns", "del", ns))
		}
	}
	return errors.Join(errs...)
}

// GatewayIP is the gateway's address on the cable.
func (n *Network) GatewayIP() string { return gatewayIP }

// Lose drops a share of the packets that arrive at either end, 0 to 99 percent.
// Traffic inside a namespace is left alone.
func (n *Network) Lose(ctx context.Context, percent int) error {
	for _, end := range []struct{ ns, dev string }{{n.gateway, gatewayIf}, {n.agents, agentIf}} {
		rules := "table inet apollo {}\ndelete table inet apollo\n"
		if percent > 0 {
			rules += fmt.Sprintf("table inet apollo { chain in { type filter hook input priority 0; iifname %q numgen random mod 100 < %d counter drop; }; }\n",
				end.dev, percent)
		}
		cmd := exec.CommandContext(ctx, "ip", "netns", "exec", end.ns, "nft", "-f", "-")
		cmd.Stdin = strings.NewReader(rules)
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("set %d %% packet loss: %w: %s", percent, err, out)
		}
	}
	return nil
}

// Cut pulls the cable; Mend plugs it in again.
func (n *Network) Cut(ctx context.Context) error {
	return ip(ctx, "-n", n.agents, "link", "set", agentIf, "down")
}

// Mend ends what Cut began.
func (n *Network) Mend(ctx context.Context) error {
	return ip(ctx, "-n", n.agents, "link", "set", agentIf, "up")
}

func ip(ctx context.Context, args ...string) error {
	if out, err := exec.CommandContext(ctx, "ip", args...).CombinedOutput(); err != nil {
		return fmt.Errorf("ip %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return nil
}

// onGateway and onAgents run a command in a namespace. ip replaces itself by the
// command, so that signals reach it.
func (n *Network) onGateway(cmd *exec.Cmd) *exec.Cmd { return in(n.gateway, cmd) }
func (n *Network) onAgents(cmd *exec.Cmd) *exec.Cmd  { return in(n.agents, cmd) }

func in(ns string, cmd *exec.Cmd) *exec.Cmd {
	return exec.Command("ip", append([]string{"netns", "exec", ns}, cmd.Args...)...)
}

func nsFile(ns string) string { return "/run/netns/" + ns }

// DialGateway opens a connection from inside the gateway's namespace: a socket
// stays in the namespace in which it was made.
func (n *Network) DialGateway(ctx context.Context, addr string) (net.Conn, error) {
	type dialed struct {
		conn net.Conn
		err  error
	}
	done := make(chan dialed, 1)
	go func() {
		// The thread is not given back: it ends with this goroutine, and with it the
		// namespace that it is in.
		runtime.LockOSThread()
		f, err := os.Open(nsFile(n.gateway))
		if err == nil {
			err = unix.Setns(int(f.Fd()), unix.CLONE_NEWNET)
			_ = f.Close() // only read from
		}
		if err != nil {
			done <- dialed{nil, fmt.Errorf("enter namespace %s: %w", n.gateway, err)}
			return
		}
		conn, err := Loopback(ctx, addr)
		done <- dialed{conn, err}
	}()
	d := <-done
	return d.conn, d.err
}
