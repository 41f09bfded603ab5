// Command apollo-agent runs on a board and executes instructions of the gateway.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// version is set by the build (-ldflags -X main.version=...).
var version string

func main() {
	// A reader that goes away is no reason to die. Not Ignore, which programs that
	// this one starts would inherit.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := Run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}
