package engine

import "fmt"

// watch sets the timer that looks at the node's silence.
func (e *Engine) watch(now Now, n *node) {
	e.timers.put(&n.timer, max(n.heard+e.cfg.OfflineAfter, now.Mono+1))
}

// expect waits for a node of the log: unless it had taken leave it should be there
// when the gateway starts, or soon after.
func (e *Engine) expect(n *node) {
	if !n.Left {
		e.timers.put(&n.timer, 1) // at once: how late it is by then is not known yet
	}
}

// miss raises the alarm for a node that was expected and did not come (C1).
func (e *Engine) miss(now Now, n *node) {
	if !n.missed {
		n.missed, n.heard = true, now.Mono
		e.watch(now, n)
		return
	}
	n.missed = false
	e.condition(now, alarmOffline, n.ID, "not heard of since the gateway has started")
}

func (e *Engine) checkNode(now Now, n *node) {
	if !n.online && !n.met {
		e.miss(now, n)
	}
	if !n.online {
		if n.twins.on && now.Mono-n.heard >= e.cfg.OfflineAfter {
			e.condition(now, alarmOffline, n.ID, "silent")
		}
		return
	}
	if now.Mono-n.heard >= e.cfg.OfflineAfter {
		e.condition(now, alarmOffline, n.ID, fmt.Sprintf("no sign of life for %v", e.cfg.OfflineAfter))
		e.offline(now, n, "silent")
		return
	}
	e.watch(now, n)
}
