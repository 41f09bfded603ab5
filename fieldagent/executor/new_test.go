package executor_test

import (
	"strings"
	"testing"

	"github.com/apollo-11/apollo11/fieldagent/executor"
	"github.com/apollo-11/apollo11/wire"
)

// lived returns a journal with one of everything in it.
func lived(t *testing.T) [][]byte {
	t.Helper()
	w := &world{t: t, deadline: executor.NoDeadline}
	for _, line := range []string{"start workers=1", "connect", "welcome", "deliver 1", "finish 1", "ack 1", "deliver 2", "deliver 3",
		"wait 300ms", "compact-cancel 9", "narrowband up", "finish 2"} {
		w.command(line)
	}
	return w.journal
}

func newFrom(records [][]byte) error {
	_, _, err := executor.New(config(1), records, executor.Now{Wall: wallAtStart})
	return err
}

func TestEveryPrefixOfAJournalIsAJournal(t *testing.T) {
	records := lived(t)
	for n := range len(records) + 1 {
		if err := newFrom(records[:n]); err != nil {
			t.Errorf("the first %d of %d records: %v", n, len(records), err)
		}
	}
}

func TestJournalThatMakesNoSenseIsRefused(t *testing.T) {
	records := lived(t)
	rec := func(m map[uint64]any) []byte {
		b, err := wire.EncodeRecord(m)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	cases := map[string]struct {
		records [][]byte
		want    string
	}{
		"garbage":         {append(records[:len(records):len(records)], []byte{0xff, 0x00}), "journal record"},
		"no head":         {records[1:], "wrong place"},
		"two heads":       {append(records[:1:1], records[0]), "wrong place"},
		"newer record":    {append(records[:1:1], rec(map[uint64]any{0: 99})), "newer agent"},
		"newer version":   {[][]byte{rec(map[uint64]any{0: 1, 1: 2, 2: 7, 3: 1})}, "version 2"},
		"impossible head": {[][]byte{rec(map[uint64]any{0: 1, 1: 1, 2: 7, 3: 9, 4: 2})}, "impossible head"},
		"missing event":   {without(t, records), "is due"},
		"doubled start":   {append(records[:2:2], records[1]), "recorded twice"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if err := newFrom(c.records); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

// A power cut may leave a waiting instruction in the journal without its received
// event. Its number is then used for that, not for another event.
func TestReceivedEventThatWasCutOffIsToldAfterAll(t *testing.T) {
	w := &world{t: t, deadline: executor.NoDeadline}
	for _, line := range []string{"start workers=1", "connect", "welcome", "deliver 1", "deliver 2", "wait 300ms"} {
		w.command(line)
	}
	for i, r := range w.journal {
		if kindOf(t, r) == 2 {
			w.journal = w.journal[:i+1]
			break
		}
	}
	w.out.Reset()
	for _, line := range []string{"restart", "connect", "welcome"} {
		w.command(line)
	}
	for _, want := range []string{"event 1: 2/1 received", "event 2: 1/1 processed interrupted"} {
		if !strings.Contains(w.out.String(), want) {
			t.Errorf("no %s in\n%s", want, w.out.String())
		}
	}
}

func kindOf(t *testing.T, record []byte) uint8 {
	t.Helper()
	var head struct {
		Kind uint8 `cbor:"0,keyasint"`
	}
	if err := wire.DecodeRecord(record, &head); err != nil {
		t.Fatal(err)
	}
	return head.Kind
}

// without drops the first event record (kind 4).
func without(t *testing.T, records [][]byte) [][]byte {
	t.Helper()
	for i, r := range records {
		if kindOf(t, r) == 4 {
			return append(records[:i:i], records[i+1:]...)
		}
	}
	t.Fatal("no event in the journal")
	return nil
}

func TestConfigFaultsAreReportedTogether(t *testing.T) {
	_, _, err := executor.New(executor.Config{Workers: -1, MaxQueue: 5, MaxKnown: 2}, nil, executor.Now{})
	if err == nil {
		t.Fatal("accepted")
	}
	for _, want := range []string{"no incarnation", "no check", "-1 workers", "queue 5, known 2"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not say %q", err, want)
		}
	}
}

// A journal of 64 MiB must hold a full table, whatever the sentences were.
func TestRecordOfAnEndIsSmall(t *testing.T) {
	w := &world{t: t, deadline: executor.NoDeadline}
	w.command("start")
	w.cfg.Check = func(string, wire.RawMap) executor.Verdict {
		return executor.Verdict{Code: wire.CodeNotPermitted, Detail: strings.Repeat("ä", 400)}
	}
	w.boot()
	w.command("connect")
	w.command("welcome")
	w.command("deliver 1 intent=" + strings.Repeat("a", wire.MaxIntentLen))
	if s := w.core.Snapshot(); len(s) != 3 {
		t.Fatalf("%d records", len(s))
	}
	w.command("ack 1")
	s := w.core.Snapshot()
	if len(s) != 2 || len(s[1]) > 400 {
		t.Errorf("%d records, the last of %d bytes", len(s), len(s[len(s)-1]))
	}
}

// The core is asked for what it does not know, and by a broken gateway.
func FuzzMessagesNeverPanic(f *testing.F) {
	f.Add(uint64(1), uint64(1), uint8(1), uint64(1), uint8(0))
	f.Fuzz(func(t *testing.T, seq, token uint64, attempt uint8, through uint64, kind uint8) {
		if seq == 0 || attempt == 0 {
			return
		}
		w := &world{t: t, deadline: executor.NoDeadline}
		w.command("start")
		w.command("connect")
		w.command("welcome")
		w.command("narrowband up")
		tok := wire.Token{Shard: 1, Seq: token, Rand: 9}
		in := &wire.Instruction{Seq: seq, Key: wire.Key{Site: "s", Millis: 1, Seq: seq}.String(), Token: tok, Attempt: attempt, Intent: "do", Through: through}
		messages := []executor.Input{
			executor.Received{Message: in},
			executor.Received{Message: &wire.Cancel{Seq: seq, Token: tok, Through: through}},
			executor.Received{Message: &wire.Query{Refs: []wire.Ref{{Seq: seq, Token: tok}}, Through: through}},
			executor.Received{Message: &wire.EventAck{Through: through, Gap: kind&1 == 1}},
			executor.Finished{Token: tok, Result: executor.Result{Code: wire.Code(kind), Payload: wire.RawMap{kind}}},
			executor.Progressed{Token: tok, Percent: kind},
			executor.Disconnected{},
		}
		if seq <= wire.MaxCompactSeq {
			messages = append(messages, executor.ReceivedCompact{Frame: wire.CompactQuery{Seq: seq, Attempt: attempt}},
				executor.ReceivedCompact{Frame: wire.CompactCancel{Seq: seq, Attempt: attempt}})
		}
		for range 3 {
			for i := range messages {
				w.step(messages[(i+int(kind))%len(messages)])
			}
		}
		w.command("restart")
	})
}
