package cli

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
)

func versionCommand() *command {
	return &command{
		name:     "version",
		short:    "show the version of this tool",
		usage:    "version",
		examples: []string{"apollo version", "apollo version -o json"},
		flags: func(*flag.FlagSet) run {
			return func(_ context.Context, a *app, _ []string) error {
				if a.output == "json" {
					text, err := json.Marshal(map[string]string{"version": a.version})
					if err != nil {
						return fmt.Errorf("version as JSON: %w", err)
					}
					return printJSON(a.out, text)
				}
				a.print("apollo %s\n", visible(a.version))
				return nil
			}
		},
	}
}
