// Command relay joins its standard input and output to a TCP address. The emulator
// starts one for each connection that the board opens through a guest forward.
package main

import (
	"fmt"
	"io"
	"net"
	"os"
	"time"
)

const dialLimit = 5 * time.Second

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "relay: give the address to connect to")
		os.Exit(2)
	}
	if err := relay(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "relay:", err)
		os.Exit(1)
	}
}

// relay ends when the address has closed, or when the board has and the address has
// nothing more to say.
func relay(addr string) error {
	conn, err := net.DialTimeout("tcp", addr, dialLimit)
	if err != nil {
		return err
	}
	tcp, ok := conn.(*net.TCPConn)
	if !ok {
		return fmt.Errorf("%s is not TCP", addr)
	}
	go func() {
		_, _ = io.Copy(tcp, os.Stdin) // how it ended is the other side's to say
		_ = tcp.CloseWrite()
	}()
	_, err = io.Copy(os.Stdout, tcp)
	return err
}
