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
	// That the reader of the output has gone is for cli.Main to notice.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(cli.Main(ctx, version, os.Args[1:], os.Stdin, os.Stdout, os.Stderr, os.Getenv))
}
