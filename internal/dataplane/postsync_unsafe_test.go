package dataplane

import (
	"bytes"
	"testing"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/stats"
)

// TestPostSync posts messages that go with their payload and complete with their ACK, in a slot and in a bounce buffer,
// before and after their receive: all is done without the runtime.
func TestPostSync(t *testing.T) {
	kinds := map[string]struct {
		kind       uint32
		level      uint64
		unexpected bool
		early      bool // acknowledged before its receive
	}{
		"delivered":            {level: fi.DeliveryComplete},
		"matched":              {level: fi.MatchComplete},
		"tagged":               {kind: hot.PostTagged, level: fi.MatchComplete},
		"data":                 {kind: hot.PostData, level: fi.DeliveryComplete},
		"tagged data":          {kind: hot.PostTagged | hot.PostData, level: fi.DeliveryComplete},
		"unexpected":           {level: fi.DeliveryComplete, unexpected: true, early: true},
		"unexpected, matched":  {level: fi.MatchComplete, unexpected: true},
		"unexpected with data": {kind: hot.PostData, level: fi.MatchComplete, unexpected: true},
	}
	for name, c := range kinds {
		for _, n := range []int{0, 8, hot.SlotBody - 24, hot.SlotBody - 23, bounceBytes} {
			l := newLong(t)
			l.ep.EagerMax = bounceBytes
			payload, buf, tagged := l.bytes(n), l.bytes(n), uint64(0)
			for i := range payload {
				payload[i] = byte(i * 7)
			}
			if c.kind&hot.PostTagged != 0 {
				tagged = hot.RecvTagged
			}
			post := func() {
				l.post(hot.RecvEntry{
					Flags: tagged, Buf: uint64(at(buf)), Len: uint64(n),
					Src: uint64(fi.AddrUnspec), Tag: 4, Context: 9,
				})
			}
			if !c.unexpected {
				post()
			}
			p := l.message(payload, c.kind, 4, 3)
			p.Flags, p.Data = c.level, 77
			if code := send(&p); code != hot.PostDone || l.inUse() != 1 {
				t.Fatalf("%s of %d bytes: code %d, %d requests", name, n, code, l.inUse())
			}
			if _, ok := l.completed(); ok {
				t.Errorf("%s of %d bytes: complete before its ACK", name, n)
			}
			l.settle(t, l.delivery())
			if c.unexpected {
				if _, ok := l.completed(); ok != c.early {
					t.Errorf("%s of %d bytes: complete before its receive: %v", name, n, ok)
				}
				post()
				l.settle(t, l.delivery())
				l.settle(t, l.delivery())
			}
			got, ok := l.pop()
			if !ok || got.Context != 9 || got.Len != uint64(n) || !bytes.Equal(buf, payload) {
				t.Errorf("%s of %d bytes: received %+v, %v", name, n, got, ok)
			}
			if data := c.kind&hot.PostData != 0; data != (got.Flags&fi.RemoteCQData != 0) || data && got.Data != 77 {
				t.Errorf("%s of %d bytes: data %d, flags %#x", name, n, got.Data, got.Flags)
			}
			if e, ok := l.completed(); ok == c.early || ok && e.Context != 3 {
				t.Errorf("%s of %d bytes: completed with %+v, %v", name, n, e, ok)
			}
			if l.thread(stats.ThreadSync) != 1 || l.thread(stats.ThreadSyncBytes) != uint64(n) {
				t.Errorf("%s of %d bytes: %d counted", name, n, l.thread(stats.ThreadSync))
			}
			l.idle(t, name)
		}
	}
}

// TestPostSyncNeedsRoom: one that is refused for want of something leaves no trace, and one that has found no bounce
// buffer for a while is the runtime's.
func TestPostSyncNeedsRoom(t *testing.T) {
	const now = 1000
	for name, c := range map[string]struct {
		take func(l *long)
		now  []uint32
		want []uintptr
	}{
		"ring":   {func(l *long) { l.fill(l.bytes(8), hot.PostInject) }, []uint32{0}, []uintptr{hot.PostAgain}},
		"stripe": {func(l *long) { l.stripe.Lease = 1 }, []uint32{0}, []uintptr{hot.PostAgain}},
		"request": {func(l *long) {
			for range requests {
				l.table.Alloc(0)
			}
		}, []uint32{0}, []uintptr{hot.PostAgain}},
		"bounce buffer": {
			func(l *long) {
				for range bounceCount {
					p := l.message(l.bytes(bounceBytes), 0, 0, 0)
					send(&p)
				}
			},
			[]uint32{0, now, now + hot.StarvedMillis - 1, now + hot.StarvedMillis},
			[]uintptr{hot.PostTime, hot.PostAgain, hot.PostAgain, hot.PostGo},
		},
	} {
		l := newLong(t)
		l.ep.EagerMax = bounceBytes
		c.take(l)
		was := l.inUse()
		p := l.message(l.bytes(bounceBytes), 0, 0, 0)
		p.Flags = fi.DeliveryComplete
		for i, now := range c.now {
			p.Now = now
			if code := send(&p); code != c.want[i] || l.inUse() != was || l.link.InFlight.Load() != 0 {
				t.Errorf("%s at %d: code %d, %d requests", name, now, code, l.inUse())
			}
		}
	}
}
