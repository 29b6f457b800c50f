package dataplane

import (
	"bytes"
	"math"
	"testing"
	"unsafe"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/stats"
	"github.com/weft-fabric/weft/mpsc"
	"github.com/weft-fabric/weft/stripe"
)

const (
	longBytes = 3 * bounceBytes
	requests  = 4
)

// long is a loop whose messages may be rendezvous.
type long struct {
	*loop
	table *Requests
	link  *Link
	sent  *hot.Cntr
}

func newLong(t testing.TB) *long {
	l := &long{loop: newLoop(t)}
	var err error
	if l.table, err = stripe.NewTable[Request](1, requests); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.table.Close() })
	l.link = (*Link)(l.memory(int(unsafe.Sizeof(Link{}))))
	l.sent = (*hot.Cntr)(l.memory(int(unsafe.Sizeof(hot.Cntr{}))))
	l.ep.Requests, l.ep.Links, l.ep.LinkLimit = uintptr(unsafe.Pointer(l.table)), uintptr(unsafe.Pointer(l.link)), 1
	l.ep.RTSMax, l.ep.RTSBytesMax = 1<<40, math.MaxUint64
	l.ep.TxCntr = uintptr(unsafe.Pointer(l.sent))
	l.peer.Link, l.peer.PID = 1, 1
	l.grow()
	return l
}

// inUse is how many requests there are.
func (l *long) inUse() (n int) {
	l.table.Range(func(uint64, *Request) { n++ })
	return n
}

// idle checks that nothing is under way.
func (l *long) idle(t *testing.T, what string) {
	t.Helper()
	if n, f := l.inUse(), l.link.InFlight.Load(); n != 0 || f != 0 || l.stripe.Lease != 0 {
		t.Errorf("%s: %d requests, %d in flight, lease %d", what, n, f, l.stripe.Lease)
	}
}

// settle takes in what is there, reads as the shim does, and returns the codes.
func (l *long) settle(t *testing.T, d *hot.Delivery) (codes []uintptr) {
	t.Helper()
	for range 100 {
		code := deliver(d)
		codes = append(codes, code)
		switch code {
		case hot.DeliveryDone, hot.DeliveryGo, hot.DeliveryAckReceived:
			return codes
		case hot.DeliveryRead:
			here := unsafe.Slice((*fi.IOVec)(pointer(d.Copy.Here)), d.Copy.Pieces)
			there := unsafe.Slice((*fi.IOVec)(pointer(d.Copy.There)), d.Copy.Pieces)
			for i := range here {
				if here[i].Len != there[i].Len {
					t.Fatalf("%d bytes are read to %d", there[i].Len, here[i].Len)
				}
				move(here[i].Base, there[i].Base, uintptr(here[i].Len))
			}
			d.Copy.Error = 0
		}
	}
	t.Fatal("a delivery does not end")
	return nil
}

func (l *long) delivery() *hot.Delivery { return &hot.Delivery{EP: uintptr(unsafe.Pointer(l.ep))} }

// postBy is send or SendHere in turn: what a thread of C posts by, and a goroutine, which has a line.
func (l *long) postBy(t *testing.T, n uint64) func(*hot.Post) uintptr {
	if n%2 == 0 {
		return send
	}
	thread := new(hot.Thread)
	if !EnrollGo(thread) {
		t.Fatal("no line is left")
	}
	t.Cleanup(func() { DischargeGo(thread) })
	return func(p *hot.Post) uintptr {
		p.Self = address(thread)
		return SendHere(l.ep, p)
	}
}

// TestLongArrives posts long messages of every kind, of C's threads and of goroutines: each is read, acknowledged and
// complete, and nothing is left.
func TestLongArrives(t *testing.T) {
	kinds := map[string]struct {
		kind     uint32
		flags    uint64
		want     uint64 // of the transmit's completion, 0: none
		selected bool
	}{
		"tagged":           {kind: hot.PostTagged, want: fi.Send | fi.Tagged},
		"untagged":         {want: fi.Send | fi.Msg},
		"data":             {kind: hot.PostTagged | hot.PostData, want: fi.Send | fi.Tagged},
		"delivered":        {flags: fi.DeliveryComplete, want: fi.Send | fi.Msg},
		"matched":          {flags: fi.MatchComplete | fi.Completion, want: fi.Send | fi.Msg},
		"selected":         {flags: fi.Completion, want: fi.Send | fi.Msg, selected: true},
		"without a signal": {selected: true},
	}
	for name, c := range kinds {
		t.Run(name, func(t *testing.T) {
			l := newLong(t)
			if c.selected {
				l.ep.Flags &^= hot.EPTxAlways
			}
			payload, buf := l.bytes(longBytes), l.bytes(longBytes)
			for n := range uint64(3 * requests) {
				for i := range payload {
					payload[i] = byte(uint64(i) * (n + 3))
				}
				tagged := uint64(0)
				if c.kind&hot.PostTagged != 0 {
					tagged = hot.RecvTagged
				}
				l.post(hot.RecvEntry{
					Flags: tagged, Buf: uint64(at(buf)), Len: longBytes,
					Src: uint64(fi.AddrUnspec), Tag: n, Context: 100 + n,
				})
				p := l.message(payload, c.kind, n, n+1)
				p.Flags, p.Data = c.flags, 77
				if code := l.postBy(t, n)(&p); code != hot.PostDone || l.link.InFlight.Load() != 1 {
					t.Fatalf("code %d, %d in flight", code, l.link.InFlight.Load())
				}
				l.settle(t, l.delivery())
				got, ok := l.pop()
				if !ok || got.Context != 100+n || got.Len != longBytes || !bytes.Equal(buf, payload) {
					t.Fatalf("received %+v, %v", got, ok)
				}
				data := c.kind&hot.PostData != 0
				if data != (got.Flags&fi.RemoteCQData != 0) || data && got.Data != 77 {
					t.Fatalf("data %d, flags %#x", got.Data, got.Flags)
				}
				if e, ok := l.completed(); ok != (c.want != 0) || ok && (e.Context != n+1 || e.Flags != c.want) {
					t.Fatalf("transmit completed with %+v, %v", e, ok)
				}
				l.idle(t, "message")
				if l.sent.Value != n+1 || l.thread(stats.ThreadRendezvous) != n+1 {
					t.Fatalf("%d counted, %d by the data plane", l.sent.Value, l.thread(stats.ThreadRendezvous))
				}
			}
		})
	}
}

// TestLongNeedsRoom: a post that is refused for want of something leaves no trace.
func TestLongNeedsRoom(t *testing.T) {
	payload := make([]byte, longBytes)
	cases := map[string]struct {
		take    func(l *long)
		counted int
	}{
		"ring": {func(l *long) { l.fill(payload[:8], hot.PostInject) }, stats.ThreadNoRing},
		"shared ring": {func(l *long) {
			l.fill(payload[:8], hot.PostInject)
			l.peer.Exclusive = 0
		}, stats.ThreadNoRing},
		"stripe": {func(l *long) { l.stripe.Lease = 1 }, stats.ThreadNoStripe},
		"request": {func(l *long) {
			for range requests {
				l.table.Alloc(0)
			}
		}, stats.ThreadNoRequest},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			l := newLong(t)
			c.take(l)
			was, before := l.inUse(), l.thread(c.counted)
			p := l.message(payload, 0, 0, 0)
			code := send(&p)
			if code != hot.PostAgain || l.inUse() != was || l.link.InFlight.Load() != 0 ||
				l.thread(c.counted) != before+1 {
				t.Errorf("code %d, %d requests, %d in flight", code, l.inUse(), l.link.InFlight.Load())
			}
		})
	}
}

// TestLongIsTheRuntimes lists what the data plane does not post.
func TestLongIsTheRuntimes(t *testing.T) {
	cases := map[string]func(l *long, p *hot.Post){
		"nothing":          func(_ *long, _ *hot.Post) {}, // the case that is posted
		"a fence":          func(_ *long, p *hot.Post) { p.Flags |= fi.Fence },
		"deferred":         func(_ *long, p *hot.Post) { p.Flags |= fi.Trigger },
		"injected":         func(l *long, p *hot.Post) { l.ep.InjectMax = 1 << 20; p.Kind |= hot.PostInject },
		"injected by flag": func(l *long, p *hot.Post) { l.ep.InjectMax = 1 << 20; p.Flags |= fi.Inject },
		"too long":         func(l *long, p *hot.Post) { l.ep.RTSMax = p.Len - 1 },
		"no buffer":        func(_ *long, p *hot.Post) { p.Buf = 0 },
		"no address":       func(_ *long, p *hot.Post) { p.Buf |= 1 << 63 },
		"no length":        func(l *long, p *hot.Post) { l.state[0] = 0; p.Len = 0 },
		"no pieces":        func(l *long, p *hot.Post) { l.parts(p) },
		"many pieces":      func(l *long, p *hot.Post) { l.parts(p, 1, 1, 1, 1, longBytes) },
		"short pieces":     func(l *long, p *hot.Post) { l.parts(p, 4, bounceBytes-4) },
		"an empty piece":   func(l *long, p *hot.Post) { l.parts(p, longBytes, 0) },
		"a piece too long": func(l *long, p *hot.Post) { l.parts(p, 8, longBytes); l.ep.RTSMax = longBytes - 1 },
		"pieces too long":  func(l *long, p *hot.Post) { l.parts(p, longBytes, 8); l.ep.RTSMax = longBytes },
		"no piece":         func(l *long, p *hot.Post) { l.parts(p, longBytes, 8)[1].Base = 0 },
		"pieces nowhere":   func(l *long, p *hot.Post) { l.parts(p, longBytes, 8)[1].Base = 1 << 63 },
		"device pieces":    func(l *long, p *hot.Post) { l.parts(p, longBytes, 8); p.Kind |= hot.PostDevice },
		"injected pieces":  func(l *long, p *hot.Post) { l.parts(p, longBytes, 8); p.Kind |= hot.PostInject },
		"device":           func(_ *long, p *hot.Post) { p.Kind |= hot.PostDevice },
		"no link":          func(l *long, _ *hot.Post) { l.peer.Link = 0 },
		"link beyond":      func(l *long, _ *hot.Post) { l.peer.Link = 2 },
		"gone":             func(l *long, _ *hot.Post) { l.state[0] |= hot.RxGone },
		"another host":     func(l *long, _ *hot.Post) { l.peer.Slots = 0 },
		"not enabled":      func(l *long, _ *hot.Post) { l.ep.Flags &^= hot.EPFast },
		"short, injected, awaited": func(l *long, p *hot.Post) {
			p.Len, l.ep.InjectMax = 8, 1<<20
			p.Kind |= hot.PostInject
			p.Flags |= fi.DeliveryComplete
		},
		"short, no buffer, awaited": func(_ *long, p *hot.Post) {
			p.Len, p.Buf = 8, 0
			p.Flags |= fi.DeliveryComplete
		},
		"to be counted": func(l *long, p *hot.Post) {
			p.Len, l.ep.RTSBytes, l.ep.RTSBytesMax = hot.AccessMin, 5, 5
		},
	}
	for name, change := range cases {
		l := newLong(t)
		p := l.message(l.bytes(hot.AccessMin), 0, 0, 0)
		p.Len = longBytes
		change(l, &p)
		want, buf, n := uintptr(hot.PostGo), p.Buf, p.Len
		if name == "nothing" {
			want = hot.PostDone
		}
		code := send(&p)
		if code != want || p.Buf != buf || p.Len != n {
			t.Errorf("%s: code %d, %d at %#x", name, code, p.Len, p.Buf)
		}
		if code == hot.PostGo {
			l.idle(t, name)
		}
	}
}

// parts makes a post one of pieces of some lengths.
func (l *long) parts(p *hot.Post, lengths ...uint64) []fi.IOVec {
	const most = 8
	v := (*[most]fi.IOVec)(l.memory(most * int(unsafe.Sizeof(fi.IOVec{}))))[:len(lengths)]
	for i, n := range lengths {
		v[i] = fi.IOVec{Base: at(l.bytes(int(n))), Len: n}
	}
	p.Kind |= hot.PostVector
	p.Buf, p.Len = uintptr(unsafe.Pointer(unsafe.SliceData(v))), uint64(len(v))
	return v
}

// TestLongParts posts messages of several pieces: the RTS names all of them, as does the request that waits for the
// ACK.
func TestLongParts(t *testing.T) {
	for _, lengths := range [][]uint64{{longBytes, 3}, {1, 2, longBytes}, {bounceBytes, 1, 7, 9}} {
		l := newLong(t)
		p := l.message(nil, hot.PostTagged, 6, 5)
		v, total := l.parts(&p, lengths...), uint64(0)
		for _, n := range lengths {
			total += n
		}
		was := p.Buf
		if code := send(&p); code != hot.PostDone || p.Buf != was || p.Len != uint64(len(v)) {
			t.Fatalf("%v: code %d", lengths, code)
		}
		slot := (*hot.Slot)(pointer(l.ep.Inbound[0].Ring.Slots))
		h := (*hot.RTSHead)(unsafe.Pointer(&slot.Body))
		if slot.AMID != hot.AMRTS || slot.Header != 6 || slot.Length != 0 || int(slot.Head) != RTSFixed+16*len(v) ||
			h.Length != total || h.Count != uint32(len(v)) || h.Flags != hot.RTSTagged {
			t.Errorf("%v: slot %+v, head %+v", lengths, slot, h)
		}
		req, ok := l.table.Lookup(h.Request)
		if !ok || req.Length != total || req.Count != h.Count || req.Flags&RequestRTS == 0 || req.Context != 5 {
			t.Fatalf("%v: request %+v, %v", lengths, req, ok)
		}
		named := (*[VectorMax]fi.IOVec)(unsafe.Pointer(&h.Addr))
		for i := range v {
			if named[i] != v[i] || req.IOV[i] != v[i] {
				t.Errorf("%v: piece %d is %+v, in the request %+v", lengths, i, named[i], req.IOV[i])
			}
		}
		if l.thread(stats.ThreadRendezvousBytes) != total || l.link.InFlight.Load() != 1 {
			t.Errorf("%v: %d bytes are counted, %d in flight", lengths, l.thread(stats.ThreadRendezvousBytes),
				l.link.InFlight.Load())
		}
		l.receiveParts(t, v, total, len(lengths) == 2)
	}
}

// receiveParts has a message of pieces received, before or after its receive is posted.
func (l *long) receiveParts(t *testing.T, v []fi.IOVec, total uint64, before bool) {
	t.Helper()
	var want []byte
	for i, p := range v {
		b := unsafe.Slice((*byte)(pointer(p.Base)), p.Len)
		for j := range b {
			b[j] = byte(j*7 + i*31 + 1)
		}
		want = append(want, b...)
	}
	if before {
		if codes := l.settle(t, l.delivery()); codes[0] != hot.DeliveryDone || l.recv.UnexpectedMessages() != 1 {
			t.Fatalf("codes %v", codes)
		}
		clear(l.recv.elements.there[:]) // those of another message
	}
	buf := l.bytes(int(total))
	l.post(hot.RecvEntry{
		Flags: hot.RecvTagged, Buf: uint64(at(buf)), Len: total, Src: uint64(fi.AddrUnspec), Tag: 6, Context: 8,
	})
	l.settle(t, l.delivery())
	l.settle(t, l.delivery())
	got, ok := l.pop()
	if !ok || got.Context != 8 || got.Len != total || got.Buf != uint64(at(buf)) || !bytes.Equal(buf, want) {
		t.Errorf("received %+v, %v", got, ok)
	}
	if e, ok := l.completed(); !ok || e.Context != 5 {
		t.Errorf("transmit completed with %+v, %v", e, ok)
	}
	l.idle(t, "pieces")
}

// TestForgedParts: an RTS whose elements are not what it says is the runtime's.
func TestForgedParts(t *testing.T) {
	for name, forge := range map[string]func(slot *hot.Slot, h *hot.RTSHead, v *[VectorMax]fi.IOVec){
		"no elements":  func(_ *hot.Slot, h *hot.RTSHead, _ *[VectorMax]fi.IOVec) { h.Count = 0 },
		"too many":     func(_ *hot.Slot, h *hot.RTSHead, _ *[VectorMax]fi.IOVec) { h.Count = VectorMax + 1 },
		"a short head": func(s *hot.Slot, _ *hot.RTSHead, _ *[VectorMax]fi.IOVec) { s.Head -= 16 },
		"too short":    func(_ *hot.Slot, _ *hot.RTSHead, v *[VectorMax]fi.IOVec) { v[1].Len-- },
		"too long":     func(_ *hot.Slot, _ *hot.RTSHead, v *[VectorMax]fi.IOVec) { v[1].Len++ },
		"an empty one": func(_ *hot.Slot, h *hot.RTSHead, v *[VectorMax]fi.IOVec) {
			h.Length -= v[1].Len
			v[1].Len = 0
		},
		"over the end of memory": func(_ *hot.Slot, _ *hot.RTSHead, v *[VectorMax]fi.IOVec) {
			v[1].Base = ^uintptr(0) - 1
		},
		"more than there is": func(_ *hot.Slot, h *hot.RTSHead, v *[VectorMax]fi.IOVec) {
			v[0].Len, v[1].Len = 1<<63+longBytes, 1<<63
			h.Length = longBytes
		},
	} {
		l := newLong(t)
		p := l.message(nil, 0, 0, 5)
		l.parts(&p, longBytes, 3)
		buf := l.bytes(2 * longBytes)
		l.post(hot.RecvEntry{Buf: uint64(at(buf)), Len: 2 * longBytes, Src: uint64(fi.AddrUnspec)})
		if code := send(&p); code != hot.PostDone {
			t.Fatalf("%s: code %d", name, code)
		}
		slot := (*hot.Slot)(pointer(l.ep.Inbound[0].Ring.Slots))
		forge(slot, (*hot.RTSHead)(unsafe.Pointer(&slot.Body)), elementsAt(bodyOf(slot)))
		if code := deliver(l.delivery()); code != hot.DeliveryGo {
			t.Errorf("%s: code %d", name, code)
		}
	}
}

// TestClosedWindow: a receiver that takes no payload now has a short message go as a rendezvous.
func TestClosedWindow(t *testing.T) {
	l := newLong(t)
	l.state[0] = 0
	payload, buf := l.bytes(8), l.bytes(8)
	copy(payload, "a window")
	l.post(hot.RecvEntry{Buf: uint64(at(buf)), Len: 8, Src: uint64(fi.AddrUnspec)})
	p := l.message(payload, 0, 0, 5)
	if code := send(&p); code != hot.PostDone {
		t.Fatalf("code %d", code)
	}
	l.settle(t, l.delivery())
	if e, ok := l.completed(); !ok || e.Context != 5 || !bytes.Equal(buf, payload) {
		t.Errorf("completed with %+v, %v; received %q", e, ok, buf)
	}
}

// TestAckIsChecked: acknowledgements that the data plane does not take change nothing, and go to the runtime.
func TestAckIsChecked(t *testing.T) {
	cases := map[string]func(l *long, ack *ack){
		"stale generation": func(_ *long, a *ack) { a.id += 1 << 32 },
		"beyond the table": func(_ *long, a *ack) { a.id |= 1<<20 - 1 },
		"another stripe":   func(_ *long, a *ack) { a.id |= 5 << 20 },
		"a failure":        func(_ *long, a *ack) { a.status = 5 },
		"another's":        func(l *long, _ *ack) { l.peer.Link = 9 },
		"not live":         func(_ *long, a *ack) { a.req.Live.Store(0) },
		"in fragments":     func(_ *long, a *ack) { a.req.Fragments.Limit = 1 },
		"deferred work":    func(_ *long, a *ack) { a.req.Work = 1 },
		"provider's":       func(_ *long, a *ack) { a.req.Flags |= RequestMore },
		"full queue": func(l *long, a *ack) {
			for completeTo(l.tx, &hot.CQE{}) {
			}
		},
	}
	for name, change := range cases {
		l := newLong(t)
		p := l.message(l.bytes(longBytes), 0, 0, 3)
		if code := send(&p); code != hot.PostDone {
			t.Fatalf("code %d", code)
		}
		a := &ack{}
		l.table.Range(func(id uint64, req *Request) { a.id, a.req = id, req })
		l.skip() // the RTS
		change(l, a)
		live := a.req.Live.Load()
		l.send(a.slot())
		d := l.delivery()
		codes := l.settle(t, d)
		if codes[0] != hot.DeliveryAckReceived || d.Request != a.id || d.Data != a.status || d.Source != 0 {
			t.Errorf("%s: codes %d, request %#x, status %d", name, codes, d.Request, d.Data)
		}
		if l.inUse() != 1 || l.link.InFlight.Load() != 1 || a.req.Live.Load() != live || l.sent.Value != 0 {
			t.Errorf("%s: %d requests, %d in flight, live %d", name, l.inUse(), l.link.InFlight.Load(),
				a.req.Live.Load())
		}
	}
}

// ack is an acknowledgement of a request.
type ack struct {
	id, status uint64
	req        *Request
}

func (a *ack) slot() []byte {
	b := eager(hot.AMAck, a.id, 0, nil)
	b = append(b, make([]byte, 8)...)
	b[2] = 8
	b[16] = byte(a.status)
	return b
}

// skip drops what is at the head of the ring.
func (l *long) skip() {
	in := &l.ep.Inbound[0]
	mpsc.View(&in.Ring).Release(in.Head)
	mpsc.SetHead(in, in.Head+1)
}

// TestAckToReader: the completion of an acknowledged transmit goes to a reader of the queue.
func TestAckToReader(t *testing.T) {
	l := newLong(t)
	p := l.message(l.bytes(longBytes), hot.PostTagged, 0, 3)
	if code := send(&p); code != hot.PostDone {
		t.Fatalf("code %d", code)
	}
	a := &ack{}
	l.table.Range(func(id uint64, req *Request) { a.id, a.req = id, req })
	l.skip()
	l.send(a.slot())
	entries := (*[2][6]uint64)(l.memory(96))
	to := hot.Reader{CQ: l.ep.TxCQ, Buf: uintptr(unsafe.Pointer(entries)), Left: 2}
	d := l.delivery()
	d.TxReader = uintptr(unsafe.Pointer(&to))
	l.settle(t, d)
	if to.Left != 1 || entries[0][0] != 3 || entries[0][1] != fi.Send|fi.Tagged {
		t.Errorf("%d left, entry %x", to.Left, entries[0])
	}
	if _, ok := l.completed(); ok {
		t.Error("it is on the queue as well")
	}
	l.idle(t, "message")
}

// TestLongAllocatesNothing: neither side does.
func TestLongAllocatesNothing(t *testing.T) {
	l := newLong(t)
	payload, buf := l.bytes(longBytes), l.bytes(longBytes)
	if n := testing.AllocsPerRun(100, func() {
		l.post(hot.RecvEntry{Buf: uint64(at(buf)), Len: longBytes, Src: uint64(fi.AddrUnspec)})
		p := l.message(payload, 0, 0, 0)
		send(&p)
		d := hot.Delivery{EP: uintptr(unsafe.Pointer(l.ep))}
		for code := deliver(&d); code == hot.DeliveryRead; code = deliver(&d) {
			d.Copy.Error = 0
		}
		l.pop()
		l.completed()
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
	l.idle(t, "messages")
}
