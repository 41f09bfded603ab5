package outage_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"testing"
	"time"

	"github.com/apollo-11/apollo11/firmware-sim/torture/outage"
	"github.com/apollo-11/apollo11/wire"
)

// TestA6_OutageEndsWithoutABurst: whatever waits goes out through the bucket, the
// urgent first over all nodes, and runs exactly once. The drawing in the
// documentation is that of this code.
func TestA6_OutageEndsWithoutABurst(t *testing.T) {
	t.Parallel()
	d := outage.Drain(outage.DefaultDrain())
	s := d.Summary
	t.Logf("%+v", s)
	if !s.OK() || s.FirstSecond > 150 || s.MostLater > 51 {
		t.Errorf("not as promised: %+v", s)
	}
	if least := 97 * time.Second; s.Took < least || s.Took > least+10*time.Second {
		t.Errorf("%d commands took %v: neither less nor much more than %v is possible", s.Commands, s.Took, least)
	}
	drawn, err := os.ReadFile("../../../docs/outage-drain.svg")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(drawn, d.SVG()) {
		t.Error("docs/outage-drain.svg is not what this code draws; run: go run ./firmware-sim/torture -plot docs/outage-drain.svg")
	}
}

// TestA6_DrainRespectsTheBucketWhateverTheSite tries other sizes and chances,
// each twice: the same options give the same result.
func TestA6_DrainRespectsTheBucketWhateverTheSite(t *testing.T) {
	t.Parallel()
	for _, o := range []outage.DrainOptions{
		{Seed: 1, Nodes: 1, Commands: 150, Outage: time.Minute},   // its window is less than the burst
		{Seed: 2, Nodes: 7, Commands: 90, Outage: 10 * time.Hour}, // less than the burst
		{Seed: 3, Nodes: 150, Commands: 900, Outage: time.Hour},
	} {
		d, again := outage.Drain(o), outage.Drain(o)
		if s := d.Summary; s.Err != "" || s.Over != 0 || s.Succeeded != o.Commands || s.Twice != 0 {
			t.Errorf("%+v: %+v", o, s)
		}
		if !d.Summary.Ordered {
			t.Errorf("%+v: something went before what was more urgent", o)
		}
		if !bytes.Equal(d.SVG(), again.SVG()) {
			t.Errorf("%+v: two runs differ", o)
		}
		high := 0
		for _, x := range d.Dispatches {
			if x.Priority == wire.PriorityHigh {
				high++
			}
		}
		if high == 0 {
			t.Errorf("%+v: no command was urgent", o)
		}
	}
}

// TestA6_ConfirmedWithinThreeRounds: a third of all messages is lost in both
// directions. The aim has some slack here: chance decides.
func TestA6_ConfirmedWithinThreeRounds(t *testing.T) {
	t.Parallel()
	for _, narrowband := range []bool{true, false} {
		r := outage.Loss(outage.LossOptions{Seed: 7, Nodes: 20, Commands: 2000, Share: 0.3, Narrowband: narrowband})
		t.Log(r)
		least := outage.LeastConfirmed + 0.02
		if narrowband {
			least = outage.AimConfirmed - 0.001
		}
		if !r.OK() || r.Within[3] < least || r.Given != 0 {
			t.Errorf("want %.3f within three rounds, everything settled, nothing twice: %+v", least, r)
		}
	}
}

// TestA11_OnlyTheWaitOfALineGivesUp: at one line, a command a second, without the second
// path. What is given up has held the line for order_wait, and nothing newer has passed
// it before that; with the second path hardly anything is.
func TestA11_OnlyTheWaitOfALineGivesUp(t *testing.T) {
	t.Parallel()
	for _, narrowband := range []bool{true, false} {
		r := outage.Loss(outage.LossOptions{Seed: 11, Nodes: 20, Commands: 4000, Share: 0.3, Narrowband: narrowband, Lines: 1})
		t.Log(r)
		if r.Err != "" || r.Open+r.Twice != 0 || r.Succeeded+r.Given != r.Commands || r.Given != r.Outwaited {
			t.Errorf("want everything settled, nothing twice, and nothing given up for another reason: %+v", r)
		}
		if narrowband && r.Given > r.Commands/500 || !narrowband && r.Given == 0 {
			t.Errorf("narrowband %t: %d given up", narrowband, r.Given)
		}
		if r.Given > 0 && r.LeastHeld < wire.OrderWait {
			t.Errorf("one was given up after %v, want %v at least", r.LeastHeld, wire.OrderWait)
		}
	}
}

// TestDrawingIsXML so that a browser shows it.
func TestDrawingIsXML(t *testing.T) {
	t.Parallel()
	d := xml.NewDecoder(bytes.NewReader(outage.Drain(outage.DrainOptions{Seed: 1, Nodes: 3, Commands: 200, Outage: time.Minute}).SVG()))
	for {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatal(err)
		}
	}
}
