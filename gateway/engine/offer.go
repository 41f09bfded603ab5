package engine

import (
	"time"

	"github.com/apollo-11/apollo11/wire"
)

// What waits in an agent begins only when it was offered in the session that stands: as a
// copy that is handed out, or named in a question. That it is there is told by other ways
// as well: over narrowband, while the copy is lost on the primary path, and by an event of
// before, which comes once more. Then the gateway would stop handing it out, and the agent
// go on waiting. So a question goes after it until the primary path has shown that an
// offer of this session has come.

// offerSoon is how long a word that may be followed by the next one is waited after.
const offerSoon = 300 * time.Millisecond

// offers is what is known of the offers of one attempt.
type offers struct {
	sentIn uint64        // the session in which it was handed out or asked after last
	seenIn uint64        // the session in which such an offer is known to have come
	asked  int           // questions for want of that
	at     time.Duration // when the next one goes; 0 for not
}

// offered notes that an attempt has been handed out or asked after.
func (i *inst) offered() { i.offers.sentIn = i.node.session }

// offerSeen notes that an offer of this session has come.
func (i *inst) offerSeen() { i.offers.seenIn, i.offers.at = i.node.session, 0 }

// unseen reports whether something waits in an agent that may have had no offer of it in
// this session.
func (i *inst) unseen() bool {
	n := i.node
	return n.online && n.Rules >= wire.RulesOrder && i.offers.seenIn != n.session &&
		i.ReceivedAt != 0 && i.StartedAt == 0 && !i.State.Settled() && !i.waiting() &&
		i.By == 0 && i.CancelBy == "" && !i.safe && i.task.act.Moves()
}

// watchOffer sets when an attempt that its agent has is asked after for that.
func (e *Engine) watchOffer(now Now, i *inst) {
	switch i.offers.asked, i.offers.at = 0, 0; {
	case !i.unseen():
	case i.offers.sentIn != i.node.session:
		i.offers.at = now.in(e.jitter(offerSoon))
	default:
		i.offers.at = now.in(e.confirmWait(0))
	}
}

// offerAgain asks after what may have had no offer, at intervals that grow as those
// between resends do.
func (e *Engine) offerAgain(now Now, i *inst) {
	if !i.unseen() {
		return
	}
	i.offers.at = now.in(e.confirmWait(i.offers.asked))
	if i.node.twins.on { // what waits is not offered to one of two
		return
	}
	i.offers.asked++
	e.query(i.node, []wire.Ref{{Seq: i.Seq, Token: i.Token}})
	e.log(now, i, Entry{What: WhatQueried, Path: PathPrimary})
}
