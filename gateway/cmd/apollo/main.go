// Command apollo is the operator's tool. See apollo help.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/apollo-11/apollo11/gateway/cli"
)

// version is set by the build (-ldflags -X main.version=...).
var version = "dev"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(cli.Main(ctx, version, os.Args[1:], os.Stdin, os.Stdout, os.Stderr, os.Getenv))
}
