package explore

import "time"

// perform does step k of the plan.
func (w *world) perform(k int) {
	s := &w.plan[k]
	w.mix("step", uint64(k))
	w.log("plan", "%d: %v", k, s)
	if w.watch != nil {
		w.watch(w, k)
	}
	switch {
	case s.kind == opSubmit:
		w.clients[s.who].submit(s)
	case s.kind == agentReload:
		if x := drawExchange(s.p); w.agents[s.who].life != nil {
			w.agents[s.who].reload(x[0], x[1])
		}
	case s.kind >= handLocal:
		w.byHand(w.agents[s.who], s)
	case s.kind > faultKinds:
		w.operate(s)
	case s.kind <= brokerRestart:
		w.hurtGateway(s)
	case s.kind >= gatewayCopy:
		w.hurtMemory(s)
	case s.kind <= agentClock:
		w.hurtAgent(w.agents[s.who], s)
	default:
		w.hurtLink(w.agents[s.who], s)
	}
	if s.kind < faultKinds {
		w.counts.Faults++
	}
}

func (w *world) operate(s *step) {
	c := w.clients[s.who]
	if w.gateway.process == nil {
		return
	}
	switch s.kind {
	case opGarbage:
		c.garbage()
		return
	case opRetry, opResolve, opQuiet, opDead:
		c.operate(s)
		return
	case opCancel1:
		c.cancelOne(s.ref)
		return
	}
	if s.number > 0 {
		if id := w.check.book.numbers[s.number]; id != "" {
			c.cancel(id)
		}
		return
	}
	p := c.pick(s.ref)
	if p == nil {
		return
	}
	switch s.kind {
	case opRepeat, opChange:
		c.repeat(p, s.kind == opChange)
	case opCancel:
		c.cancel(p.taskID)
	}
}

func (w *world) hurtGateway(s *step) {
	g := w.gateway
	if len(g.blind) > 0 && (s.kind <= gatewayFull || s.kind == gatewayHang) {
		return // see gateway.blind
	}
	switch s.kind {
	case gatewayCut:
		if g.process != nil {
			g.die("power cut", s.p)
			g.restart(s.second)
		}
	case gatewayFail:
		g.failNext = true
	case gatewayFull:
		g.fullUntil = w.now + s.long
	case gatewaySlow:
		g.slowUntil = w.now + s.long
	case gatewayHang:
		g.hangUntil = w.now + s.long
	case gatewayClock:
		g.clock.err += jump(s)
	case brokerRestart:
		for _, a := range w.boards() {
			a.link.broken(true)
			a.narrow.lost()
		}
		for _, c := range w.clients {
			c.reconnect()
		}
	}
}

// jump is how far a clock jumps, to either side.
func jump(s *step) time.Duration {
	if s.p < 0.5 {
		return -s.long
	}
	return s.long
}

func (w *world) hurtAgent(a *agent, s *step) {
	switch s.kind {
	case agentCut:
		a.end("power cut", true)
	case agentKill:
		a.killed = a.life != nil
		a.end("is killed", false)
	case agentStop:
		a.stop()
	case agentWipe:
		if w.story == storyGateway || w.story == storyAgents { // see story
			a.end("power cut", true)
			return
		}
		a.wipe()
	case agentFail:
		a.failNext = true
	case agentFull:
		a.fullUntil = w.now + s.long
	case agentSlow:
		a.slowUntil = w.now + s.long
	case agentTight:
		a.tightUntil = w.now + s.long
	case agentHang:
		a.hang = 3 * s.long
	case agentRot:
		a.rot(s.p)
	case agentClock:
		a.clock.err += jump(s)
		a.clock.synced = a.clock.synced && s.p > 0.3 && s.p < 0.7
	}
}

func (w *world) hurtLink(a *agent, s *step) {
	l := a.link
	until := w.now + s.long
	switch s.kind {
	case linkCut:
		switch {
		case s.p < 0.5:
			l.broken(true)
		case s.p < 0.75: // the broker believes in it until its patience ends
			l.lostByAgent(0)
			l.lostByBroker(brokerPatience)
		default:
			l.lostByBroker(0)
			l.lostByAgent(agentPatience)
		}
	case linkHold:
		l.holdUntil = until
		l.lostIfHeld()
	case linkHole:
		l.holeUntil = until
		l.dead(until)
	case linkHalf:
		if s.p < 0.5 {
			l.halfUp = until
		} else {
			l.halfDown = until
		}
		l.dead(until)
	case linkSlow:
		l.slowUntil = until
	case narrowFlip:
		a.narrow.flip()
	}
}

// byHand is what people do at a board.
func (w *world) byHand(a *agent, s *step) {
	switch s.kind {
	case handLocal:
		a.turn(s.long)
		return
	case boardBusy:
		a.busyUntil = w.now + s.long
		return
	case cardClone:
		a.clone()
		return
	}
	a.link.holeUntil = max(a.link.holeUntil, w.now+s.long)
	a.link.broken(true)
	if !a.narrow.off {
		a.narrow.flip()
		w.after(s.long, a.narrow.heal)
	}
}
