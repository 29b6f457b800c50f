package wire

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
)

func TestRTSRoundTrip(t *testing.T) {
	var b [RTSBytes]byte
	for count := range uint32(IOVLimit + 1) {
		want := RTS{Request: 1<<40 | 7, Data: ^uint64(0), Flags: FlagTagged | FlagData, Count: count}
		for i := range count {
			want.IOV[i] = hw.RemoteSegment{Addr: 0x1000 * uint64(i+1), Len: uint64(i) * 100}
			want.Length += want.IOV[i].Len
		}
		var got RTS
		if !got.Parse(want.Put(b[:])) {
			t.Fatalf("%d elements: does not parse", count)
		}
		if d := cmp.Diff(want, got, cmp.AllowUnexported(RTS{})); d != "" {
			t.Errorf("%d elements: %s", count, d)
		}
	}
	want := SharedRTS()
	var got RTS
	if !got.Parse(want.Put(b[:])) || got != want {
		t.Errorf("with a token: %+v", got)
	}
}

// sharedRTS is the RTS of a message in memory that the receiver may map.
func SharedRTS() RTS {
	return RTS{Request: 1, Length: 8, Flags: FlagNoGet | FlagShared, Count: 1,
		IOV:   [IOVLimit]hw.RemoteSegment{{Addr: 4096, Len: 8}},
		Token: 1<<63 | 5, PID: 77}
}

func TestSharedRTSRefused(t *testing.T) {
	good := SharedRTS()
	for name, spoil := range map[string]func([]byte) []byte{
		"no fragments offered": func(b []byte) []byte { b[24] &^= byte(FlagNoGet); return b },
		"two parts":            func(b []byte) []byte { b[28] = 2; return append(b, make([]byte, 16)...) },
		"no process":           func(b []byte) []byte { b[56] = 0; return b },
		"negative process":     func(b []byte) []byte { b[59] = 0x80; return b },
		"no token":             func(b []byte) []byte { return b[:len(b)-16] },
	} {
		var b [2 * RTSBytes]byte
		var got RTS
		if got.Parse(spoil(good.Put(b[:]))) {
			t.Errorf("%s: parses", name)
		}
	}
}

func TestRTSRefusesWhatDoesNotAddUp(t *testing.T) {
	good := RTS{Request: 1, Length: 8, Count: 1, IOV: [IOVLimit]hw.RemoteSegment{{Addr: 4096, Len: 8}}}
	for name, spoil := range map[string]func(*RTS, []byte) []byte{
		"short":            func(_ *RTS, b []byte) []byte { return b[:len(b)-1] },
		"long":             func(_ *RTS, b []byte) []byte { return append(b, 0) },
		"empty":            func(_ *RTS, _ []byte) []byte { return nil },
		"unknown flag":     func(_ *RTS, b []byte) []byte { b[24] |= 0x80; return b },
		"too many":         func(_ *RTS, b []byte) []byte { b[28] = IOVLimit + 1; return b },
		"other length":     func(_ *RTS, b []byte) []byte { b[8]++; return b },
		"wraps":            func(_ *RTS, b []byte) []byte { copy(b[32:], bytes.Repeat([]byte{0xff}, 8)); return b },
		"element too long": func(_ *RTS, b []byte) []byte { b[47] = 0xff; return b },
	} {
		var b [RTSBytes + 1]byte
		var got RTS
		if got.Parse(spoil(&good, good.Put(b[:]))) {
			t.Errorf("%s: parses", name)
		}
	}
}

func TestSmallHeads(t *testing.T) {
	var b [RTSBytes]byte
	s, gotSync := Sync{Request: 3, Data: 4, Flags: FlagData}, Sync{}
	if !gotSync.Parse(s.Put(b[:])) || gotSync != s {
		t.Errorf("sync head: %+v", gotSync)
	}
	c, gotCTS := CTS{Operation: 9, Length: 10}, CTS{}
	if !gotCTS.Parse(c.Put(b[:])) || gotCTS != c {
		t.Errorf("cts head: %+v", gotCTS)
	}
	if e, ok := ParseAck(PutAck(b[:], fi.ETRUNC)); !ok || e != fi.ETRUNC {
		t.Errorf("ack head: %v %v", e, ok)
	}
	if _, ok := ParseAck(bytes.Repeat([]byte{1}, AckBytes)); ok {
		t.Error("ack with a number that is no errno parses")
	}
	if o, ok := ParseWord(PutWord(b[:], 77)); !ok || o != 77 {
		t.Errorf("fragment head: %v %v", o, ok)
	}
	l, gotLanding := Landing{Operation: 5, Addr: 1 << 40, Want: 1 << 20}, Landing{}
	if !gotLanding.Parse(l.Put(b[:])) || gotLanding != l {
		t.Errorf("landing: %+v", gotLanding)
	}
	for name, bad := range map[string]Landing{"of nothing": {Addr: 1}, "that wraps": {Addr: ^uint64(0),
		Want: 2}, "too long": {Want: MaxMessage + 1}} {
		if gotLanding.Parse(bad.Put(b[:])) {
			t.Errorf("a landing %s parses", name)
		}
	}
	for _, c := range []struct {
		From, N, Want uint64
		Ok            bool
	}{{0, 1, 1, true}, {5, 5, 10, true}, {5, 6, 10, false}, {11, 1, 10, false}, {0, 0, 10, false},
		{^uint64(0), 2, 10, false}, {2, ^uint64(0), 10, false}} {
		if from, n, ok := ParseSpan(PutSpan(b[:], c.From, c.N), c.Want); ok != c.Ok || ok &&
			(from != c.From || n != c.N) {
			t.Errorf("%d bytes from %d on, of %d: %v", c.N, c.From, c.Want, ok)
		}
	}
}

// FuzzHeads feeds every parser of peers' bytes: none may fault, and what they
// accept must be within the bounds that the code relies on.
func FuzzHeads(f *testing.F) {
	var b [RTSBytes]byte
	good := RTS{Request: 1, Length: 8, Count: 1, IOV: [IOVLimit]hw.RemoteSegment{{Addr: 4096, Len: 8}}}
	f.Add(bytes.Clone(good.Put(b[:])))
	shared := SharedRTS()
	f.Add(bytes.Clone(shared.Put(b[:])))
	f.Add(bytes.Clone((&Sync{Request: 1}).Put(b[:])))
	f.Add(bytes.Clone((&CTS{Operation: 1}).Put(b[:])))
	f.Add(bytes.Clone((&Landing{Operation: 1, Addr: 4096, Want: 1 << 20}).Put(b[:])))
	f.Add(bytes.Clone(PutSpan(b[:], 4096, 4096)))
	f.Add(bytes.Clone((&Offer{Round: 1, Addr: 4096, Want: 1 << 20, Chunk: 1 << 17}).Put(b[:])))
	f.Fuzz(func(t *testing.T, in []byte) {
		var r RTS
		if r.Parse(in) {
			sum := uint64(0)
			for _, s := range r.IOV[:r.Count] {
				sum += s.Len
			}
			if sum != r.Length || r.Length > MaxMessage || r.Flags&^Flags != 0 {
				t.Errorf("accepted %+v", r)
			}
			if !bytes.Equal(r.Put(b[:]), in) {
				t.Error("does not encode to what it was")
			}
		}
		var s Sync
		if s.Parse(in) && !bytes.Equal(s.Put(b[:]), in) {
			t.Error("sync head does not encode to what it was")
		}
		var c CTS
		if c.Parse(in) && !bytes.Equal(c.Put(b[:]), in) {
			t.Error("cts head does not encode to what it was")
		}
		if e, ok := ParseAck(in); ok && !bytes.Equal(PutAck(b[:], e), in) {
			t.Error("ack head does not encode to what it was")
		}
		ParseWord(in)
		var l Landing
		if l.Parse(in) && (!bytes.Equal(l.Put(b[:]), in) || l.Want == 0 || l.Want > MaxMessage ||
			l.Addr+l.Want < l.Addr) {
			t.Errorf("accepted %+v", l)
		}
		if from, n, ok := ParseSpan(in, 1<<20); ok && (n == 0 || from+n > 1<<20 || from+n < from) {
			t.Errorf("accepted %d bytes from %d on", n, from)
		}
		var o Offer
		if o.Parse(in) && !bytes.Equal(o.Put(b[:]), in) {
			t.Error("offer does not encode to what it was")
		}
	})
}
