package fieldagent

import "io/fs"

// SetRoot makes the agent look for proc somewhere else.
func (c *Config) SetRoot(root fs.FS) { c.root = root }
