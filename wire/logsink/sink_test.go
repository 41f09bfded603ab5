package logsink_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/apollo-11/apollo11/wire/logsink"
)

// reader is the other end of a log. While it is stopped a write waits, while it is
// gone a write fails.
type reader struct {
	pace time.Duration // for one write

	mu      sync.Mutex
	got     bytes.Buffer
	largest int
	writes  int
	err     error
	some    int           // bytes that come through in spite of err
	stopped chan struct{} // nil for none
}

func (r *reader) Write(p []byte) (int, error) {
	r.mu.Lock()
	stopped := r.stopped
	r.mu.Unlock()
	if stopped != nil {
		<-stopped
	}
	if r.pace > 0 {
		time.Sleep(r.pace)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.writes++
	r.largest = max(r.largest, len(p))
	if r.err != nil {
		n := min(r.some, len(p))
		r.got.Write(p[:n])
		return n, r.err
	}
	return r.got.Write(p)
}

func (r *reader) stop() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stopped = make(chan struct{})
}

func (r *reader) goOn() {
	r.mu.Lock()
	defer r.mu.Unlock()
	close(r.stopped)
	r.stopped = nil
}

func (r *reader) fail(err error, some int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.err, r.some = err, some
}

func (r *reader) text() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.got.String()
}

func line(s *logsink.Sink, format string, args ...any) {
	_, _ = fmt.Fprintf(s, format+"\n", args...) // it never fails
}

// notes are the lines that tell of lost ones, and the number that each tells.
func notes(t *testing.T, text string) (counts []int) {
	t.Helper()
	for l := range strings.Lines(text) {
		if _, rest, ok := strings.Cut(l, "log lines were lost"); ok {
			var n int
			_, after, _ := strings.Cut(rest, "lines=")
			if _, err := fmt.Sscanf(after, "%d", &n); err != nil {
				t.Errorf("no number in %q", l)
			}
			counts = append(counts, n)
		}
	}
	return counts
}

func TestLinesComeWholeAndInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &reader{}
		s := logsink.New(r)
		var want strings.Builder
		for k := range 1000 {
			line(s, "line %d", k)
			fmt.Fprintf(&want, "line %d\n", k)
		}
		if !s.Close(time.Second) || s.Lost() != 0 {
			t.Errorf("%d lost", s.Lost())
		}
		if r.text() != want.String() {
			t.Errorf("got\n%s", r.text())
		}
		if r.largest > 4096 {
			t.Errorf("a write of %d bytes: lines of other programs could stand between", r.largest)
		}
	})
}

func TestReaderThatStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &reader{}
		s := logsink.New(r)
		line(s, "before")
		synctest.Wait()
		r.stop()
		began, wrote := time.Now(), 0
		const each = 100
		for range 3 * logsink.Limit / each {
			line(s, "%0*d", each-1, wrote)
			wrote++
		}
		synctest.Wait()
		if took := time.Since(began); took != 0 {
			t.Errorf("writing took %v", took)
		}
		lost := int(s.Lost())
		if kept := (wrote - lost) * each; kept > logsink.Limit || kept < logsink.Limit*9/10 {
			t.Errorf("%d bytes kept, the bound is %d", kept, logsink.Limit)
		}
		// Also what comes later, and would have room, is missing: one hole.
		r.goOn()
		synctest.Wait()
		line(s, "after")
		synctest.Wait()
		text := r.text()
		if got := notes(t, text); len(got) != 1 || got[0] != lost {
			t.Errorf("notes %v, want one of %d", got, lost)
		}
		all := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
		if all[0] != "before" || all[len(all)-1] != "after" || !strings.Contains(all[len(all)-2], "level=WARN") {
			t.Errorf("the order is %q ... %q", all[0], all[len(all)-2:])
		}
		for k, l := range all[1 : len(all)-2] {
			if l != fmt.Sprintf("%0*d", each-1, k) {
				t.Fatalf("line %d is %q", k, l)
			}
		}
		if len(all) != 1+wrote-lost+2 {
			t.Errorf("%d lines came of %d, %d lost", len(all), wrote, lost)
		}
		if !s.Close(time.Second) {
			t.Error("not closed")
		}
	})
}

// The hole has its note although nothing is said after it.
func TestHoleAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &reader{}
		s := logsink.New(r)
		r.stop()
		line(s, "first")
		synctest.Wait()
		line(s, "%s", strings.Repeat("x", logsink.Limit))
		r.goOn()
		synctest.Wait()
		if got := notes(t, r.text()); len(got) != 1 || got[0] != 1 || !strings.HasPrefix(r.text(), "first\n") {
			t.Errorf("notes %v", got)
		}
		s.Close(time.Second)
	})
}

func TestReaderThatGoesAndComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &reader{}
		s := logsink.New(r)
		line(s, "before")
		synctest.Wait()
		r.fail(syscall.EPIPE, 0)
		for k := range 50 {
			line(s, "unheard %d", k)
			synctest.Wait()
		}
		if s.Lost() != 50 || r.text() != "before\n" {
			t.Errorf("%d lost, got %q", s.Lost(), r.text())
		}
		if r.writes > 2*50+1 {
			t.Errorf("%d writes for 51 lines", r.writes)
		}
		r.fail(nil, 0)
		line(s, "after")
		s.Close(time.Second)
		if got := notes(t, r.text()); len(got) != 1 || got[0] != 50 || !strings.HasSuffix(r.text(), "\nafter\n") {
			t.Errorf("notes %v, got\n%s", got, r.text())
		}
	})
}

// A full disk takes part of a line; the note does not stick to it.
func TestTornLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &reader{}
		s := logsink.New(r)
		r.fail(errors.New("no space left on device"), 4)
		line(s, "torn line")
		line(s, "not at all")
		synctest.Wait()
		r.fail(nil, 0)
		line(s, "after")
		s.Close(time.Second)
		if got := notes(t, r.text()); s.Lost() != 2 || len(got) != 1 || got[0] != 2 ||
			!strings.HasPrefix(r.text(), "torn\n") || !strings.Contains(r.text(), "\ntime=") || !strings.HasSuffix(r.text(), "\nafter\n") {
			t.Errorf("%d lost, got\n%s", s.Lost(), r.text())
		}
	})
}

func TestCloseHasADeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &reader{}
		s := logsink.New(r)
		r.stop()
		line(s, "last words")
		began := time.Now()
		if s.Close(2 * time.Second) {
			t.Error("nobody has read and all is written")
		}
		if took := time.Since(began); took != 2*time.Second {
			t.Errorf("it took %v", took)
		}
		line(s, "too late")
		if s.Lost() != 1 {
			t.Errorf("%d lost", s.Lost())
		}
		r.goOn()
	})
}

// A slow reader gets everything.
func TestCloseWaitsForTheLastWords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &reader{pace: 100 * time.Millisecond}
		s := logsink.New(r)
		for k := range 300 {
			line(s, "%0100d", k)
		}
		line(s, "last words")
		if !s.Close(2*time.Second) || s.Lost() != 0 || !strings.HasSuffix(r.text(), "\nlast words\n") {
			t.Errorf("%d lost, it ends with %q", s.Lost(), r.text()[len(r.text())-50:])
		}
		if !s.Close(time.Second) {
			t.Error("closed twice")
		}
	})
}

func TestNoteInTheFormatOfTheLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &reader{}
		s := logsink.New(r)
		log := s.Logger(slog.LevelError, true)
		r.fail(syscall.EPIPE, 0)
		log.Error("unheard")
		log.Info("not logged")
		synctest.Wait()
		r.fail(nil, 0)
		log.Error("heard")
		s.Close(time.Second)
		var got []string
		for l := range strings.Lines(r.text()) {
			var v struct {
				Level, Msg string
				Lines      int
			}
			if err := json.Unmarshal([]byte(l), &v); err != nil {
				t.Fatalf("%q: %v", l, err)
			}
			got = append(got, fmt.Sprint(v.Level, " ", v.Lines))
		}
		if fmt.Sprint(got) != "[WARN 1 ERROR 0]" {
			t.Errorf("got %v", got)
		}
	})
}

// Many write at once: every line is there, whole, or counted.
func TestNothingIsMiscounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &reader{pace: time.Millisecond}
		s := logsink.New(r)
		const writers, each = 20, 1500
		var group sync.WaitGroup
		for w := range writers {
			group.Go(func() {
				for k := range each {
					line(s, "%03d %07d %s", w, k, strings.Repeat("x", 60))
					if k%100 == 0 {
						time.Sleep(5 * time.Millisecond)
					}
				}
			})
		}
		group.Wait()
		s.Close(time.Hour)
		told, came := 0, 0
		for _, n := range notes(t, r.text()) {
			told += n
		}
		for l := range strings.Lines(r.text()) {
			if strings.Contains(l, "log lines were lost") {
				continue
			}
			if len(l) != 3+1+7+1+60+1 {
				t.Fatalf("line %q", l)
			}
			came++
		}
		if told != int(s.Lost()) || came+told != writers*each || told == 0 {
			t.Errorf("%d came, %d told as lost, %d counted, %d written", came, told, s.Lost(), writers*each)
		}
	})
}

func BenchmarkWrite(b *testing.B) {
	s := logsink.New(&reader{})
	defer s.Close(time.Minute)
	p := []byte(strings.Repeat("x", 200) + "\n")
	for b.Loop() {
		_, _ = s.Write(p)
	}
}
