package explore

import (
	"math/rand/v2"
	"time"

	"github.com/apollo-11/apollo11/wire"
)

const (
	// orderTales is how many tales of one output a node gets in 45 s.
	orderTales = 1.5
	// tightSites and reloadSites are the shares of the sites with a small capacity, and
	// with reloads of pin maps.
	tightSites, reloadSites = 0.15, 0.3
)

// drawOrder draws tales of single outputs: commands for one line that follow each other
// closely, with offs, pulses, holds and cancels between them, mostly around something
// that goes wrong there. others are the steps that the site has besides.
func drawOrder(w *world, span time.Duration, others []step) []step {
	d := &drawing{w: w, r: w.stream("plan of order"), number: 1}
	faults := []step{}
	for k := range others {
		d.number = max(d.number, others[k].number+1)
		if s := &others[k]; s.kind >= agentCut && s.kind < faultKinds || s.kind == handLocal || s.kind == handAway {
			faults = append(faults, *s)
		}
	}
	r := d.r
	w.reloads = w.profile.total > 0 && chance(r, reloadSites)
	for range max(1, int(orderTales*float64(len(w.agents))*span.Seconds()/45)) {
		at, node := when(r, span), r.IntN(len(w.agents))
		if len(faults) > 0 && r.IntN(3) > 0 {
			s := faults[r.IntN(len(faults))]
			at, node = max(0, s.at-between(r, 0, 3_000)), s.who
		}
		d.tale(at, node)
	}
	return d.list
}

// tale draws what one output of a node goes through.
func (d *drawing) tale(at time.Duration, node int) {
	r := d.r
	pins := guarded
	if r.IntN(5) == 0 {
		pins = plain
	}
	pin := pins[r.IntN(len(pins))]
	on, gap := awayFrom(pin), []int{20, 300, 2_000}[r.IntN(3)]
	held := false
	for range 2 + r.IntN(7) {
		switch r.IntN(12) {
		case 0:
			d.pulse(at, node, pin, uint64(r.IntN(2)), drawWidth(r, pin))
		case 1:
			d.write(at, node, pin, on, drawHold(r, pin)*b2u(pins[0] != "P0"))
		case 2:
			d.safe(at, node, pin, wire.IntentSafe)
			held = true
		case 3:
			d.list = append(d.list, step{at: at + between(r, 0, 500), kind: opCancel1, who: r.IntN(len(d.w.clients)), ref: r.IntN(1 << 20)})
		case 4, 5, 6, 7:
			d.write(at, node, pin, 1-on, 0)
		default:
			d.write(at, node, pin, on, 0)
		}
		if r.IntN(6) == 0 && d.w.reloads {
			d.list = append(d.list, step{at: at + between(r, 0, 1_000), kind: agentReload, who: node, p: r.Float64()})
		}
		at += between(r, 0, gap)
	}
	if held {
		d.safe(at+between(r, 0, 5_000), node, pin, wire.IntentRelease)
	}
	if r.IntN(3) > 0 {
		d.write(at, node, pin, 1-on, 0)
	}
}

func b2u(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

// safe draws a gpio.safe or a gpio.release: of one output, or of all.
func (d *drawing) safe(at time.Duration, node int, pin, intent string) {
	args := map[string]any{}
	if d.r.IntN(3) > 0 || intent == wire.IntentSafe && pin[0] == 'P' {
		args["pin"] = pin
	}
	d.submit(at, node, intent, args, 5*time.Second).spec.TTLMs = 0
}

// exchanges are pairs of names that a reload exchanges.
var exchanges = [][2]string{{"L0", "L2"}, {"L1", "L2"}, {"L2", "L3"}, {"P0", "P1"}, {"L2", "P0"}, {"L0", "L1"}}

func drawExchange(p float64) [2]string {
	r := rand.New(rand.NewPCG(uint64(p*(1<<52)), 5))
	return exchanges[r.IntN(len(exchanges))]
}
