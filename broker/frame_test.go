package broker

import (
	"bytes"
	"errors"
	"io"
	"math/rand"
	"testing"
	"testing/iotest"
)

// packet builds a packet with a body of n bytes that name their position.
func packet(kind byte, n int) []byte {
	out := []byte{kind << 4}
	for v := n; ; {
		b := byte(v & 0x7f)
		if v >>= 7; v > 0 {
			b |= 0x80
		}
		out = append(out, b)
		if v == 0 {
			break
		}
	}
	for i := range n {
		out = append(out, byte(i))
	}
	return out
}

// Whatever the pieces in which bytes come and are asked for, packets within the
// limit pass unchanged and larger PUBLISHes pass cut to it and are known.
func TestFramerCutsOversizePublishesAndNothingElse(t *testing.T) {
	const limit = 300
	rnd := rand.New(rand.NewSource(1))
	for round := range 200 {
		in, want := packet(typeConnect, 20), packet(typeConnect, 20)
		cut := map[uint64]int{}
		for n := uint64(2); n < 20; n++ {
			size := rnd.Intn(2 * limit)
			kind := byte(typePublish)
			if size <= limit && rnd.Intn(3) == 0 {
				kind = 8
			}
			in = append(in, packet(kind, size)...)
			if size > limit {
				cut[n] = size
				want = append(want, packet(kind, limit)...)
			} else {
				want = append(want, packet(kind, size)...)
			}
		}
		var src io.Reader = bytes.NewReader(in)
		if round%2 == 0 {
			src = iotest.OneByteReader(src)
		}
		f := newFramer(src, limit, limit)
		var got []byte
		for {
			p := make([]byte, rnd.Intn(50))
			n, err := f.Read(p)
			got = append(got, p[:n]...)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.Equal(got, want) {
			t.Fatalf("round %d: stream differs", round)
		}
		for n := uint64(1); n < 20; n++ {
			size, ok := f.oversize(n)
			if size != cut[n] || ok != (cut[n] > 0) {
				t.Fatalf("round %d: packet %d oversize %d %t, want %d", round, n, size, ok, cut[n])
			}
			if _, again := f.oversize(n); again {
				t.Fatalf("round %d: packet %d is reported twice", round, n)
			}
		}
	}
}

func TestFramerRefuses(t *testing.T) {
	connect := string(packet(typeConnect, 10))
	cases := []struct {
		name, in string
		want     error
	}{
		{"no CONNECT first", string(packet(typePublish, 1)), errFirstPacket},
		{"large CONNECT", string(packet(typeConnect, maxConnect+1)), errConnectSize},
		{"length of five bytes", connect + "\x30\x80\x80\x80\x80\x01", errVarint},
		{"large SUBSCRIBE", connect + string(packet(8, 101)), errPacketSize},
		{"enormous PUBLISH", connect + "\x30\xff\xff\xff\x7f", errPacketSize},
		{"end inside a header", connect + "\x30\x80", io.EOF},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			_, err := io.Copy(io.Discard, newFramer(bytes.NewReader([]byte(tc.in)), 100, 100))
			if tc.want == io.EOF && err == nil {
				return // io.Copy takes EOF for the end
			}
			if !errors.Is(err, tc.want) {
				t.Errorf("error %v, want %v", err, tc.want)
			}
		})
	}
}

// No input makes the framer panic, pass more than it took, or pass a PUBLISH
// over the limit.
func FuzzFramer(f *testing.F) {
	f.Add(append(packet(typeConnect, 12), packet(typePublish, 200)...))
	f.Add([]byte("\x10\x00\x30\xff\xff\xff\x7f"))
	f.Fuzz(func(t *testing.T, in []byte) {
		const limit = 64
		fr := newFramer(bytes.NewReader(in), limit, limit)
		out, _ := io.ReadAll(fr)
		if len(out) > len(in) {
			t.Fatalf("%d bytes out of %d", len(out), len(in))
		}
		again := newFramer(bytes.NewReader(out), limit, limit)
		if _, err := io.ReadAll(again); err == nil && len(again.cut) > 0 {
			t.Fatal("a PUBLISH over the limit passed")
		}
	})
}
