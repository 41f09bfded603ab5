package trial_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/apollo-11/apollo11/firmware-sim/explore/memstore"
	"github.com/apollo-11/apollo11/firmware-sim/torture/trial"
	"github.com/apollo-11/apollo11/gateway/engine"
	"github.com/apollo-11/apollo11/gateway/ledger"
)

// TestC5_RestartOfALongLog: the time to the first dispatch is printed, and has
// slack here.
func TestC5_RestartOfALongLog(t *testing.T) {
	t.Parallel()
	r, err := trial.Restart(t.Context(), setup(t, 6), trial.LogSize{Finished: 2000, Unfinished: 500}, 2)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%+v", r)
	if r.Dispatch.Most > 10*trial.DispatchLimit {
		t.Errorf("the first dispatch came %v after the start", r.Dispatch.Most)
	}
}

// counting is a store that counts what is read.
type counting struct {
	ledger.Store
	reads int
}

func (c *counting) Get(key []byte) ([]byte, bool, error) {
	c.reads++
	return c.Store.Get(key)
}

func (c *counting) Scan(lo, hi []byte, reverse bool, fn func(k, v []byte) (bool, error)) error {
	return c.Store.Scan(lo, hi, reverse, func(k, v []byte) (bool, error) {
		c.reads++
		return fn(k, v)
	})
}

// reads is how many records a recovery from a log of that size reads.
func reads(t *testing.T, size trial.LogSize) int {
	t.Helper()
	m := memstore.New()
	m.SetAuto(true)
	if _, err := trial.FillLog(t.Context(), m, size); err != nil {
		t.Fatal(err)
	}
	c := &counting{Store: m}
	e, err := ledger.Over(c).Recover(engine.Now{Mono: time.Second, Wall: time.Now().UnixMilli()}, engine.Config{}, rand.New(rand.NewPCG(1, 1)))
	if err != nil {
		t.Fatal(err)
	}
	if e.Open() != size.Unfinished {
		t.Errorf("%+v: %d unfinished instructions were recovered", size, e.Open())
	}
	return c.reads
}

// TestC5_RecoveryReadsWhatIsUnfinished and no history: the same number of records
// whatever has ended, and for each unfinished instruction the same few.
func TestC5_RecoveryReadsWhatIsUnfinished(t *testing.T) {
	t.Parallel()
	base := reads(t, trial.LogSize{Finished: 100, Unfinished: 100})
	if got := reads(t, trial.LogSize{Finished: 5000, Unfinished: 100}); got != base {
		t.Errorf("with 5000 finished instructions %d records are read, with 100 it is %d", got, base)
	}
	none := reads(t, trial.LogSize{Finished: 100})
	twice := reads(t, trial.LogSize{Finished: 100, Unfinished: 200})
	if each := base - none; twice-none != 2*each || each > 100*3 {
		t.Errorf("%d records are read for none unfinished, %d for 100, %d for 200: want up to three for each", none, base, twice)
	}
}
