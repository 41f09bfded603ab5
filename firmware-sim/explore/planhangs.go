package explore

import (
	"time"
)

// drawHangs draws disks of the gateway that hang, and around each what may not wait for
// them: offs of outputs that were switched on before, with and without a flood of other
// commands, and power cuts meanwhile.
func drawHangs(w *world, span time.Duration, others []step) []step {
	d := &drawing{w: w, r: w.stream("hangs"), number: 1}
	r := d.r
	if !chance(r, w.profile.Hangs) {
		return nil
	}
	for k := range others {
		d.number = max(d.number, others[k].number+1)
	}
	for range 1 + r.IntN(3) {
		at, long := when(r, span), drawLong(r)
		if r.IntN(4) == 0 {
			long = between(r, 10_000, 180_000)
		}
		if r.IntN(5) == 0 { // the first rounds of a process meet it
			d.list = append(d.list, step{at: at, kind: gatewayCut, second: between(r, 50, 500), p: r.Float64()})
			at += between(r, 100, 2_000)
		}
		d.list = append(d.list, step{at: at, kind: gatewayHang, long: long})
		if r.IntN(3) == 0 {
			cut := at + time.Duration(r.Int64N(int64(long)))
			d.list = append(d.list, step{at: cut, kind: gatewayCut, second: between(r, 50, 6_000), p: r.Float64() * r.Float64()})
		}
		for range 1 + r.IntN(4) {
			d.duringHang(at, long)
		}
		if r.IntN(4) == 0 { // more than the loop holds
			for range 20 + r.IntN(150) {
				d.write(at+between(r, 0, 1_500), r.IntN(len(w.agents)), plain[r.IntN(len(plain))], uint64(r.IntN(2)), 0)
			}
		}
	}
	return d.list
}

// duringHang draws what one output of a node goes through.
func (d *drawing) duringHang(at, long time.Duration) {
	r := d.r
	node, pin := r.IntN(len(d.w.agents)), guarded[r.IntN(len(guarded))]
	on, limit := awayFrom(pin), int(min(long, 10*time.Second).Milliseconds())
	d.write(max(0, at-between(r, 0, 3_000)), node, pin, on, 0)
	t := at + between(r, 0, limit)
	if r.IntN(4) == 0 {
		d.write(t, node, pin, on, 0) // older, and as little written
	}
	if t += between(r, 0, 100); r.IntN(4) == 0 {
		d.safe(t, node, pin, "gpio.safe")
		d.safe(t+between(r, 0, 8_000), node, pin, "gpio.release")
	} else {
		d.write(t, node, pin, 1-on, 0)
	}
	if r.IntN(3) == 0 {
		d.write(t+between(r, 0, 2_000), node, pin, on, 0)
	}
}
