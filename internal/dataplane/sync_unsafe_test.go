package dataplane

import (
	"encoding/binary"
	"testing"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/hot"
)

// awaited puts a message on the ring whose sender waits for it, with a request, and returns the slot's bytes.
func (l *long) awaited(t *testing.T, tag, flags, context uint64, payload []byte) []byte {
	t.Helper()
	req, id, ok := l.table.Alloc(0)
	if !ok {
		t.Fatal("no request")
	}
	req.Begin(context, uint64(len(payload)), RequestFlags(false, true), 0)
	l.link.InFlight.Add(1)
	req.Live.Store(uint32(id >> 32))
	b := make([]byte, 16+24+len(payload))
	b[0], b[2], b[4] = hot.AMSync, 24, byte(len(payload))
	for i, v := range []uint64{tag, id, 77, flags} {
		binary.LittleEndian.PutUint64(b[8+8*i:], v)
	}
	copy(b[40:], payload)
	return b
}

// TestSync delivers messages whose sender waits, before and after their receive is posted: each is acknowledged when it
// is there, or when it has matched, and the runtime does nothing.
func TestSync(t *testing.T) {
	cases := map[string]struct {
		flags      uint64
		unexpected bool
		early      bool // acknowledged before the receive is posted
	}{
		"posted":              {},
		"matched":             {flags: hot.RTSMatch},
		"data":                {flags: hot.RTSData},
		"unexpected":          {unexpected: true, early: true},
		"unexpected, matched": {flags: hot.RTSMatch, unexpected: true},
	}
	for name, c := range cases {
		for _, tagged := range []bool{false, true} {
			l := newLong(t)
			buf, flags, recv := l.bytes(16), c.flags, uint64(0)
			if tagged {
				flags |= hot.RTSTagged
				recv = hot.RecvTagged
			}
			post := func() {
				l.post(hot.RecvEntry{
					Flags: recv, Buf: uint64(at(buf)), Len: 16,
					Src: uint64(fi.AddrUnspec), Tag: 5, Context: 9,
				})
			}
			if !c.unexpected {
				post()
			}
			l.send(l.awaited(t, 5, flags, 3, []byte("a payload")))
			codes := l.settle(t, l.delivery())
			if c.unexpected {
				if _, ok := l.completed(); ok != c.early {
					t.Errorf("%s: acknowledged before its receive: %v", name, ok)
				}
				post()
				codes = append(codes, l.settle(t, l.delivery())...)
				// The ACK, which waits for the next one.
				codes = append(codes, l.settle(t, l.delivery())...)
			}
			for i, code := range codes {
				if code != hot.DeliveryDone && (i != 2 || code != hot.DeliveryGo) { // the end
					t.Errorf("%s: code %d", name, code)
				}
			}
			got, ok := l.pop()
			if !ok || got.Context != 9 || got.Len != 9 || string(buf[:9]) != "a payload" ||
				(got.Flags&fi.RemoteCQData != 0) != (c.flags == hot.RTSData) ||
				tagged != (got.Flags&fi.Tagged != 0) {
				t.Errorf("%s: received %+v, %v: %q", name, got, ok, buf)
			}
			if e, ok := l.completed(); ok == c.early || ok && e.Context != 3 {
				t.Errorf("%s: completed with %+v, %v", name, e, ok)
			}
			l.idle(t, name)
		}
	}
}

// TestSyncSteps: what the shim does for such a message comes before its ACK and the release of its slot.
func TestSyncSteps(t *testing.T) {
	cases := map[string]struct {
		change func(l *long)
		want   uintptr
		after  int // sends that have completed after all steps
	}{
		"truncated": {func(l *long) {
			l.post(hot.RecvEntry{Len: 4, Buf: 4096, Src: uint64(fi.AddrUnspec)})
		}, hot.DeliverySettle, 0},
		"full queue": {func(l *long) {
			l.post(hot.RecvEntry{Len: 16, Buf: uint64(at(l.bytes(16))), Src: uint64(fi.AddrUnspec)})
			for completeTo(l.cq, &hot.CQE{}) {
			}
		}, hot.DeliveryComplete, 1},
		"another interface":   {func(l *long) { l.source().Context = 1 }, hot.DeliveryGo, 0},
		"no ring for the ACK": {func(l *long) { l.peer.Slots = 0 }, hot.DeliveryGo, 0},
	}
	for name, c := range cases {
		l := newLong(t)
		c.change(l)
		b := l.awaited(t, 0, 0, 3, []byte("a payload"))
		l.send(b)
		d := l.delivery()
		if code := deliver(d); code != c.want {
			t.Errorf("%s: code %d", name, code)
			continue
		}
		if c.want == hot.DeliveryGo {
			if l.ep.Inbound[0].Head != 0 {
				t.Errorf("%s: taken off the ring", name)
			}
			continue
		}
		id := binary.LittleEndian.Uint64(b[16:])
		if _, ok := l.completed(); ok || d.Request != id || l.ep.Inbound[0].Head != 0 {
			t.Errorf("%s: acknowledged %v, request %#x", name, ok, d.Request)
		}
		if c.want == hot.DeliverySettle && d.Flags&MessageSync == 0 {
			t.Errorf("%s: flags %#x", name, d.Flags)
		}
		l.settle(t, d)
		if _, ok := l.completed(); ok != (c.after != 0) || l.ep.Inbound[0].Head != uint64(1+c.after) {
			t.Errorf("%s: completed %v, head %d", name, ok, l.ep.Inbound[0].Head)
		}
	}
}

// TestSyncIsChecked: heads that no sender writes are left on the ring for the runtime.
func TestSyncIsChecked(t *testing.T) {
	for name, change := range map[string]func(b []byte){
		"unknown flag":   func(b []byte) { b[32] |= 1 << 5 },
		"high flag":      func(b []byte) { b[39] = 1 },
		"short head":     func(b []byte) { b[2] = 16 },
		"long head":      func(b []byte) { b[2] = 32 },
		"too long":       func(b []byte) { b[5] = 1 },
		"unknown kind":   func(b []byte) { b[1] = 0x80 },
		"unknown bounce": func(b []byte) { b[1] = hot.SlotBounce; b[43] = 0xff },
	} {
		l := newLong(t)
		b := l.awaited(t, 0, 0, 3, []byte("a payload"))
		change(b)
		l.send(b)
		code := deliver(l.delivery())
		if code != hot.DeliveryGo || l.ep.Inbound[0].Head != 0 || l.recv.UnexpectedMessages() != 0 {
			t.Errorf("%s: code %d, head %d", name, code, l.ep.Inbound[0].Head)
		}
	}
}

// source is the line of the sender.
func (l *long) source() *hot.Source { return (*hot.Source)(pointer(l.ep.Sources)) }
