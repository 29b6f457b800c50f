package provider

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
)

func TestRTSRoundTrip(t *testing.T) {
	var b [rtsBytes]byte
	for count := range uint32(iovLimit + 1) {
		want := rts{request: 1<<40 | 7, data: ^uint64(0), flags: wireTagged | wireData, count: count}
		for i := range count {
			want.iov[i] = hw.RemoteSegment{Addr: 0x1000 * uint64(i+1), Len: uint64(i) * 100}
			want.length += want.iov[i].Len
		}
		var got rts
		if !got.parse(want.put(b[:])) {
			t.Fatalf("%d elements: does not parse", count)
		}
		if d := cmp.Diff(want, got, cmp.AllowUnexported(rts{})); d != "" {
			t.Errorf("%d elements: %s", count, d)
		}
	}
	want := sharedRTS()
	var got rts
	if !got.parse(want.put(b[:])) || got != want {
		t.Errorf("with a token: %+v", got)
	}
}

// sharedRTS announces a message in memory that the receiver may map.
func sharedRTS() rts {
	return rts{request: 1, length: 8, flags: wireNoGet | wireShared, count: 1, iov: [iovLimit]hw.RemoteSegment{{Addr: 4096, Len: 8}},
		token: 1<<63 | 5, pid: 77}
}

func TestSharedRTSRefused(t *testing.T) {
	good := sharedRTS()
	for name, spoil := range map[string]func([]byte) []byte{
		"no fragments offered": func(b []byte) []byte { b[24] &^= byte(wireNoGet); return b },
		"two parts":            func(b []byte) []byte { b[28] = 2; return append(b, make([]byte, 16)...) },
		"no process":           func(b []byte) []byte { b[56] = 0; return b },
		"negative process":     func(b []byte) []byte { b[59] = 0x80; return b },
		"no token":             func(b []byte) []byte { return b[:len(b)-16] },
	} {
		var b [2 * rtsBytes]byte
		var got rts
		if got.parse(spoil(good.put(b[:]))) {
			t.Errorf("%s: parses", name)
		}
	}
}

func TestRTSRefusesWhatDoesNotAddUp(t *testing.T) {
	good := rts{request: 1, length: 8, count: 1, iov: [iovLimit]hw.RemoteSegment{{Addr: 4096, Len: 8}}}
	for name, spoil := range map[string]func(*rts, []byte) []byte{
		"short":            func(_ *rts, b []byte) []byte { return b[:len(b)-1] },
		"long":             func(_ *rts, b []byte) []byte { return append(b, 0) },
		"empty":            func(_ *rts, _ []byte) []byte { return nil },
		"unknown flag":     func(_ *rts, b []byte) []byte { b[24] |= 0x80; return b },
		"too many":         func(_ *rts, b []byte) []byte { b[28] = iovLimit + 1; return b },
		"other length":     func(_ *rts, b []byte) []byte { b[8]++; return b },
		"wraps":            func(_ *rts, b []byte) []byte { copy(b[32:], bytes.Repeat([]byte{0xff}, 8)); return b },
		"element too long": func(_ *rts, b []byte) []byte { b[47] = 0xff; return b },
	} {
		var b [rtsBytes + 1]byte
		var got rts
		if got.parse(spoil(&good, good.put(b[:]))) {
			t.Errorf("%s: parses", name)
		}
	}
}

func TestSmallHeads(t *testing.T) {
	var b [rtsBytes]byte
	s, gotSync := syncMsg{request: 3, data: 4, flags: wireData}, syncMsg{}
	if !gotSync.parse(s.put(b[:])) || gotSync != s {
		t.Errorf("sync head: %+v", gotSync)
	}
	c, gotCTS := cts{operation: 9, length: 10}, cts{}
	if !gotCTS.parse(c.put(b[:])) || gotCTS != c {
		t.Errorf("cts head: %+v", gotCTS)
	}
	if e, ok := parseAck(putAck(b[:], fi.ETRUNC)); !ok || e != fi.ETRUNC {
		t.Errorf("ack head: %v %v", e, ok)
	}
	if _, ok := parseAck(bytes.Repeat([]byte{1}, ackHead)); ok {
		t.Error("ack with a number that is no errno parses")
	}
	if o, ok := parseWord(putWord(b[:], 77)); !ok || o != 77 {
		t.Errorf("fragment head: %v %v", o, ok)
	}
	l, gotLanding := landing{operation: 5, addr: 1 << 40, want: 1 << 20}, landing{}
	if !gotLanding.parse(l.put(b[:])) || gotLanding != l {
		t.Errorf("landing: %+v", gotLanding)
	}
	for name, bad := range map[string]landing{"of nothing": {addr: 1}, "that wraps": {addr: ^uint64(0), want: 2}, "too long": {want: maxMessage + 1}} {
		if gotLanding.parse(bad.put(b[:])) {
			t.Errorf("a landing %s parses", name)
		}
	}
	for _, c := range []struct {
		from, n, want uint64
		ok            bool
	}{{0, 1, 1, true}, {5, 5, 10, true}, {5, 6, 10, false}, {11, 1, 10, false}, {0, 0, 10, false}, {^uint64(0), 2, 10, false}, {2, ^uint64(0), 10, false}} {
		if from, n, ok := parseSpan(putSpan(b[:], c.from, c.n), c.want); ok != c.ok || ok && (from != c.from || n != c.n) {
			t.Errorf("%d bytes from %d on, of %d: %v", c.n, c.from, c.want, ok)
		}
	}
}

// FuzzHeads feeds every parser of peers' bytes: none may fault, and what they
// accept must be within the bounds that the code relies on.
func FuzzHeads(f *testing.F) {
	var b [rtsBytes]byte
	good := rts{request: 1, length: 8, count: 1, iov: [iovLimit]hw.RemoteSegment{{Addr: 4096, Len: 8}}}
	f.Add(bytes.Clone(good.put(b[:])))
	shared := sharedRTS()
	f.Add(bytes.Clone(shared.put(b[:])))
	f.Add(bytes.Clone((&syncMsg{request: 1}).put(b[:])))
	f.Add(bytes.Clone((&cts{operation: 1}).put(b[:])))
	f.Add(bytes.Clone((&landing{operation: 1, addr: 4096, want: 1 << 20}).put(b[:])))
	f.Add(bytes.Clone(putSpan(b[:], 4096, 4096)))
	f.Add(bytes.Clone((&offer{round: 1, addr: 4096, want: 1 << 20, chunk: 1 << 17}).put(b[:])))
	f.Fuzz(func(t *testing.T, in []byte) {
		var r rts
		if r.parse(in) {
			sum := uint64(0)
			for _, s := range r.iov[:r.count] {
				sum += s.Len
			}
			if sum != r.length || r.length > maxMessage || r.flags&^wireFlags != 0 {
				t.Errorf("accepted %+v", r)
			}
			if !bytes.Equal(r.put(b[:]), in) {
				t.Error("does not encode to what it was")
			}
		}
		var s syncMsg
		if s.parse(in) && !bytes.Equal(s.put(b[:]), in) {
			t.Error("sync head does not encode to what it was")
		}
		var c cts
		if c.parse(in) && !bytes.Equal(c.put(b[:]), in) {
			t.Error("cts head does not encode to what it was")
		}
		if e, ok := parseAck(in); ok && !bytes.Equal(putAck(b[:], e), in) {
			t.Error("ack head does not encode to what it was")
		}
		parseWord(in)
		var l landing
		if l.parse(in) && (!bytes.Equal(l.put(b[:]), in) || l.want == 0 || l.want > maxMessage || l.addr+l.want < l.addr) {
			t.Errorf("accepted %+v", l)
		}
		if from, n, ok := parseSpan(in, 1<<20); ok && (n == 0 || from+n > 1<<20 || from+n < from) {
			t.Errorf("accepted %d bytes from %d on", n, from)
		}
		var o offer
		if o.parse(in) && !bytes.Equal(o.put(b[:]), in) {
			t.Error("offer does not encode to what it was")
		}
	})
}
