package executor

// newPins takes another pin map.
func (c *Core) newPins(in Pins) {
	c.cfg.Hello.Pins, c.cfg.Hello.Traits, c.levels = in.Names, in.Traits, nil
	if c.session.welcomed {
		c.session.asked = false
		c.hello()
	}
}
