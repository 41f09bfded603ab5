package trial

import (
	"context"
	"errors"
	"time"

	"github.com/apollo-11/apollo11/firmware-sim/torture/rig"
)

// LinkResult is what the trial with a bad link found.
type LinkResult struct {
	Tally
	LossPercent int `json:"loss_percent"`
	// CutFor is how long the link was dead, over all cuts.
	CutFor time.Duration `json:"cut_for_ns"`
}

// LossyLink runs gateway and agents in two network namespaces whose cable loses
// packets in both directions, and pulls the cable again and again: mostly shorter
// than the silence that makes a node offline, now and then longer (L). Both paths
// share the cable. When the last cut is over, the loss ends, and everything must
// settle. rig.Missing says whether this machine can do it.
func LossyLink(ctx context.Context, u Setup, cuts, lossPercent int) (r LinkResult, err error) {
	r.Name, r.Rounds, r.LossPercent = "link cut", cuts, lossPercent
	began := time.Now()
	rnd := u.rnd()
	n, err := rig.NewNetwork(ctx)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, n.Close()) }()
	s, err := rig.NewSite(ctx, u.Bin, u.Dir, rig.Options{Network: n})
	if err != nil {
		return r, err
	}
	defer s.Close()
	nodes := nodeNames(4)
	if _, err := startAgents(ctx, s, nodes); err != nil {
		return r, err
	}
	if err := n.Lose(ctx, lossPercent); err != nil {
		return r, err
	}
	b := newBook()
	l := startLoad(ctx, s, b, nodes, 2, 400*time.Millisecond, rnd)
	defer l.end()
	for k := range cuts {
		if err := rig.Pause(ctx, time.Duration(500+rnd.IntN(3000))*time.Millisecond); err != nil {
			return r, err
		}
		cut := time.Duration(200+rnd.IntN(5000)) * time.Millisecond
		if k%5 == 4 {
			cut = 20 * time.Second // longer than offline_after
		}
		if err := errors.Join(n.Cut(ctx), rig.Pause(ctx, cut), n.Mend(ctx)); err != nil {
			return r, err
		}
		r.CutFor += cut
		u.Progress("link cut %d of %d times, %d %% packet loss, %d commands", k+1, cuts, lossPercent, b.count())
	}
	l.end()
	if err := n.Lose(ctx, 0); err != nil {
		return r, err
	}
	err = r.settle(ctx, s, b, nodes)
	r.Took = time.Since(began)
	return r, err
}
