// Command apollo-gateway is the edge gateway. See apollo-gateway --help.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/apollo-11/apollo11/gateway"
)

// version is set by the build (-ldflags -X main.version=...).
var version = "dev"

func main() {
	// A reader that goes away is no reason to die. Not Ignore, which programs that
	// this one starts would inherit.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(gateway.Main(ctx, version, os.Args[1:], os.Stdout, os.Stderr))
}
