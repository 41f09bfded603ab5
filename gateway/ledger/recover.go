package ledger

import (
	"fmt"
	"math/rand/v2"

	"github.com/apollo-11/apollo11/gateway/engine"
	"github.com/apollo-11/apollo11/storage"
	"github.com/apollo-11/apollo11/wire"
)

// Recover builds an engine from the log: counters, nodes, and unfinished tasks.
// The time it takes grows with those, not with history (C5). A fresh log gets
// an epoch, which is written before Recover returns.
func (l *Ledger) Recover(now engine.Now, cfg engine.Config, rnd *rand.Rand) (*engine.Engine, error) {
	c, ok, err := l.Counters()
	if err != nil {
		return nil, fmt.Errorf("recover counters: %w", err)
	}
	if !ok {
		// A shard is a log: until several gateways share a site it is always 1.
		c = engine.Counters{Epoch: rnd.Uint64() | 1, Shard: 1, NextSeq: 1, NextToken: 1, NextDead: 1}
		p, err := l.Apply(&engine.Records{Counters: &c})
		if err != nil {
			return nil, fmt.Errorf("write first counters: %w", err)
		}
		if err := p.Wait(); err != nil {
			return nil, fmt.Errorf("write first counters: %w", err)
		}
	}
	e := engine.New(cfg, c, rnd)
	if err := l.byOperators(now, e); err != nil {
		return nil, fmt.Errorf("recover operators' actions: %w", err)
	}
	if err := l.nodes(e); err != nil {
		return nil, fmt.Errorf("recover nodes: %w", err)
	}
	if err := l.holds(now, e); err != nil {
		return nil, fmt.Errorf("recover holds: %w", err)
	}
	if err := l.open(now, e); err != nil {
		return nil, fmt.Errorf("recover unfinished tasks: %w", err)
	}
	return e, nil
}

// byOperators restores the quiet period, what an older copy of the log has lost,
// and the end of the audit trail.
func (l *Ledger) byOperators(now engine.Now, e *engine.Engine) error {
	var q engine.Quiet
	if ok, err := l.get([]byte{tabQuiet}, &q); err != nil {
		return err
	} else if ok {
		e.RestoreQuiet(now, q)
	}
	var lost engine.Lost
	if ok, err := l.get([]byte{tabLost}, &lost); err != nil {
		return err
	} else if ok {
		e.RestoreLost(lost)
	}
	var moved engine.Moved
	if ok, err := l.get([]byte{tabMoved}, &moved); err != nil {
		return err
	} else if ok {
		e.RestoreMoved(moved)
	}
	var reserved engine.Reserved
	if ok, err := l.get([]byte{tabReserved}, &reserved); err != nil {
		return err
	} else if ok {
		e.RestoreReserved(reserved)
	}
	lo := []byte{tabAudit}
	return l.store.Scan(lo, storage.PrefixEnd(lo), true, func(k, v []byte) (bool, error) {
		a, err := auditEntry(k, v)
		if err != nil {
			return false, err
		}
		e.RestoreAudit(a)
		return false, nil
	})
}

func (l *Ledger) nodes(e *engine.Engine) error {
	lo := []byte{tabNode}
	return l.store.Scan(lo, storage.PrefixEnd(lo), false, func(k, v []byte) (bool, error) {
		var n engine.Node
		if err := wire.DecodeRecord(v, &n); err != nil {
			return false, fmt.Errorf("record %x, a node, cannot be read: %w", k, err)
		}
		var c engine.Cursor
		if _, err := l.get(textKey(nil, tabCursor, n.ID), &c); err != nil {
			return false, err
		}
		e.Restore(n, c)
		var g engine.Given
		if ok, err := l.get(textKey(nil, tabGiven, n.ID), &g); err != nil {
			return false, err
		} else if ok {
			e.RestoreGiven(n.ID, g)
		}
		return true, nil
	})
}

func (l *Ledger) holds(now engine.Now, e *engine.Engine) error {
	lo := []byte{tabHold}
	return l.store.Scan(lo, storage.PrefixEnd(lo), false, func(k, v []byte) (bool, error) {
		var h engine.Hold
		if err := wire.DecodeRecord(v, &h); err != nil {
			return false, fmt.Errorf("record %x, a hold, cannot be read: %w", k, err)
		}
		e.RestoreHold(now, h)
		return true, nil
	})
}

func (l *Ledger) open(now engine.Now, e *engine.Engine) error {
	lo := []byte{tabOpen}
	return l.store.Scan(lo, storage.PrefixEnd(lo), false, func(k, _ []byte) (bool, error) {
		first, err := number(k)
		if err != nil {
			return false, err
		}
		s, ok, err := l.Load(first)
		if err != nil {
			return false, err
		}
		if !ok {
			return false, fmt.Errorf("the log calls task %d unfinished but does not have it: it is damaged", first)
		}
		e.Adopt(now, s.Task, s.Instructions, true)
		return true, nil
	})
}
