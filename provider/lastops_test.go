package provider

import (
	"bytes"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/config"
	"github.com/weft-fabric/weft/internal/dataplane"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/provider/atomics"
	"github.com/weft-fabric/weft/provider/internal/wire"
)

// What a peer has performed succeeds, however soon after it the peer ends: nothing is concluded from its end
// before its last message is read.

// between is an endpoint that calls a function after a message has gone out, and skip before it, and before
// the post goes on. The post gets what the function returns.
type between struct {
	hw.Endpoint
	after func() error
	skip  int
}

func (b *between) then(err error) error {
	if b.skip > 0 {
		b.skip--
	} else if f := b.after; err == nil && f != nil {
		b.after = nil
		err = f()
	}
	return err
}

func (b *between) AMShort(id hw.AMID, header uint64, head, payload []byte) error {
	return b.then(b.Endpoint.AMShort(id, header, head, payload))
}

func (b *between) AMBcopy(id hw.AMID, header uint64, head []byte, n int, pack func([]byte), stripe int) error {
	return b.then(b.Endpoint.AMBcopy(id, header, head, n, pack, stripe))
}

// lastOps are operations of x on y, whose region of 8 KiB has key 1.
var lastOps = map[string]func(x, y *side, local []byte) error{
	"write": func(x, y *side, b []byte) error {
		return x.ep.RMA(&RMAArgs{IOV: iovOf(b[:8]), Remote: []fi.RMAIOVec{{Len: 8, Key: 1}}, Dest: x.addr[y],
			Flags: fi.DeliveryComplete})
	},
	"write of 4 KiB": func(x, y *side, b []byte) error {
		return x.ep.RMA(&RMAArgs{IOV: iovOf(b[:4096]), Remote: []fi.RMAIOVec{{Len: 4096, Key: 1}}, Dest: x.addr[y]})
	},
	"write of two pieces": func(x, y *side, b []byte) error {
		return x.ep.RMA(&RMAArgs{IOV: iovOf(b[:16]), Remote: []fi.RMAIOVec{{Len: 8, Key: 1},
			{Addr: 64, Len: 8, Key: 1}}, Dest: x.addr[y]})
	},
	"injected write": func(x, y *side, b []byte) error {
		return x.ep.RMA(&RMAArgs{IOV: iovOf(b[:8]), Remote: []fi.RMAIOVec{{Len: 8, Key: 1}}, Dest: x.addr[y],
			Flags: fi.Inject})
	},
	"read": func(x, y *side, b []byte) error {
		return x.ep.RMA(&RMAArgs{IOV: iovOf(b[:8]), Remote: []fi.RMAIOVec{{Len: 8, Key: 1}}, Dest: x.addr[y],
			Read: true})
	},
	"atomic": func(x, y *side, b []byte) error {
		return x.ep.Atomic(&AtomicArgs{Op: fi.OpSum, Datatype: fi.Uint64, Operand: iovOf(b[:8]),
			Remote: []fi.RMAIOVec{{Len: 8, Key: 1}}, Dest: x.addr[y]})
	},
	"fetch": func(x, y *side, b []byte) error {
		return x.ep.Atomic(&AtomicArgs{Kind: atomics.Fetch, Op: fi.OpSum, Datatype: fi.Uint64, Operand: iovOf(b[:8]),
			Result: iovOf(b[8:16]),
			Remote: []fi.RMAIOVec{{Len: 8, Key: 1}}, Dest: x.addr[y]})
	},
	"message": func(x, y *side, b []byte) error {
		return x.ep.Send(&SendArgs{IOV: iovOf(b[:8]), Dest: x.addr[y], Flags: fi.DeliveryComplete})
	},
	"message of 4 KiB": func(x, y *side, b []byte) error {
		return x.ep.Send(&SendArgs{IOV: iovOf(b[:4096]), Dest: x.addr[y], Flags: fi.DeliveryComplete})
	},
}

// endsAfter runs f for each of lastOps and transport, with a y that has met x, a receive posted and a region. Its
// region belongs to another domain, as that of another process does.
func endsAfter(t *testing.T, f func(t *testing.T, x, y *side, op func() error)) {
	for over, make2 := range map[string]func(t *testing.T) (x, y *side){
		"shared memory": func(t *testing.T) (x, y *side) {
			return newBench(t, func(c *config.Config) { c.UseCMA = config.No }, rmaHints()).pair(t)
		},
		"UDP": func(t *testing.T) (x, y *side) {
			sides := overUDP(t, 2, nil)
			return sides[0], sides[1]
		},
	} {
		for name, op := range lastOps {
			t.Run(over+"/"+name, func(t *testing.T) {
				x, y := make2(t)
				oneMessage(t, x, y, 8)
				local := pattern(8192, 1)
				y.region(make([]byte, 8192), 1, fi.RemoteRead|fi.RemoteWrite)
				y.recv(RecvArgs{IOV: iovOf(make([]byte, 4096)), Src: fi.AddrUnspec, Context: 5})
				f(t, x, y, func() error { return op(x, y, local) })
			})
		}
	}
}

// performs has a side perform and answer what has been posted to it, and end.
func (s *side) performs() {
	for end := time.Now().Add(20 * time.Millisecond); time.Now().Before(end); {
		s.ep.Progress()
	}
	s.close()
}

// TestAnswerDuringPost: the peer performs the operation, answers and closes while the post has not returned yet.
func TestAnswerDuringPost(t *testing.T) {
	endsAfter(t, func(t *testing.T, x, y *side, op func() error) {
		b := &between{after: func() error { y.performs(); return nil }}
		if _, p := x.pathTo(y); strings.HasSuffix(t.Name(), "two_pieces") && p.On.Attr.Caps&hw.CapDirectRing != 0 {
			b.skip = 1 // each piece is a message
		}
		undo := over(t, x, y, func(e hw.Endpoint) hw.Endpoint { b.Endpoint = e; return b })
		if err := op(); err != nil || y.ep != nil {
			t.Fatalf("post: %v, closed %v", err, y.ep == nil)
		}
		undo()
		if _, bad, ok := settle(t, x); !ok {
			t.Errorf("what was performed ends with %v", bad.Err)
		}
	})
}

// TestAnswerBeforeEnd: the answer stands in the ring when the next post finds the peer gone. That post has to be
// tried again until the answer is read, and then it fails.
func TestAnswerBeforeEnd(t *testing.T) {
	endsAfter(t, func(t *testing.T, x, y *side, op func() error) {
		if err := op(); err != nil {
			t.Fatal(err)
		}
		y.performs()
		if err := x.ep.Send(&SendArgs{IOV: iovOf(make([]byte, 8)), Dest: x.addr[y]}); !errors.Is(err, fi.EAGAIN) &&
			err != nil {
			t.Errorf("post to a peer whose last message is not read: %v", err)
		}
		if _, bad, ok := settle(t, x); !ok {
			t.Fatalf("what was performed ends with %v", bad.Err)
		}
		for end := time.Now().Add(time.Minute); ; x.ep.Progress() {
			err := x.ep.Send(&SendArgs{IOV: iovOf(make([]byte, 8)), Dest: x.addr[y]})
			if errors.Is(err, fi.ECONNRESET) {
				break
			}
			if err != nil && !errors.Is(err, fi.EAGAIN) || time.Now().After(end) {
				t.Fatalf("post to a peer that is gone: %v", err)
			}
		}
	})
}

// TestEndDuringPost: the peer ends while a message is posted, and its end is reported before the post finds out. The
// message ends once.
func TestEndDuringPost(t *testing.T) {
	x, y := newBench(t, nil, rmaHints()).pair(t)
	oneMessage(t, x, y, 8)
	l, _ := x.pathTo(y)
	b := &between{after: func() error {
		x.ep.base.rx.acquire()
		leasedOf(x.ep).linkLost(l, fi.ECONNRESET)
		leasedOf(x.ep).rx.give()
		return hw.ErrPeerDead
	}}
	over(t, x, y, func(e hw.Endpoint) hw.Endpoint { b.Endpoint = e; return b })
	pieces := append(iovOf(make([]byte, 8)), iovOf(make([]byte, 8))...) // the data plane posts no short ones
	if err := x.ep.Send(&SendArgs{IOV: pieces, Dest: x.addr[y], Flags: fi.DeliveryComplete, Context: 3}); err != nil {
		t.Errorf("post: %v, and it has ended already", err)
	}
	x.wantError(3, fi.ECONNRESET)
	if _, err := x.cq.ReadErr(); !errors.Is(err, fi.EAGAIN) {
		t.Errorf("the message ended twice: %v", err)
	}
	if n := l.Awaited(); n != 0 {
		t.Errorf("%d operations are in flight", n)
	}
}

// TestFetchEndsWithItsPeer: what C has posted waits for its answer while the peer's end is not reported, though its
// ring is in no line any more.
func TestFetchEndsWithItsPeer(t *testing.T) {
	x, y := newBench(t, nil, rmaHints()).pair(t)
	oneMessage(t, x, y, 8)
	oneMessage(t, y, x, 8)
	l, p := x.pathTo(y)
	result := make([]byte, 8)
	onHeap.Store(&result[0])
	f := x.ep.base.pendings.At(0)
	f.Generation, f.Result, f.Bytes, f.Dest, f.Context = 1, uint64(uintptr(unsafe.Pointer(&result[0]))), 8,
		uint64(x.addr[y]), 4
	f.Ring, f.Completes, f.Flags = p.Slots, 1, fi.Atomic|fi.Read
	atomic.StoreUint32(&f.Busy, 1)
	x.ep.base.links.Forget(l)
	x.ep.PeerLost()
	for range 3 {
		x.ep.Progress()
	}
	if atomic.LoadUint32(&f.Busy) == 0 {
		t.Fatal("it has ended before its peer")
	}
	// the answer of a peer that closes after it, in pieces; what is none of them changes nothing
	_, back := y.pathTo(x)
	for _, piece := range []struct {
		at   uint64
		text string
	}{{0, "answ"}, {0, "wrong"}, {3, "x"}, {4, "too long"}, {1 << 40, "far"}, {4, "ered"}} {
		var head [8]byte
		if err := back.AMShort(wire.AMReadData, hot.PendingID|1<<32, wire.PutWord(head[:], piece.at),
			[]byte(piece.text)); err != nil {
			t.Fatal(err)
		}
	}
	y.close()
	if e, bad, ok := settle(t, x); !ok || e.Context != 4 || !bytes.Equal(result, []byte("answered")) {
		t.Fatalf("%+v %+v, result %q", e, bad, result)
	}
	atomic.StoreUint32(&f.Busy, 1) // another, which has no answer
	x.ep.PeerLost()
	if _, bad, ok := settle(t, x); ok || bad.Err != fi.ECONNRESET {
		t.Errorf("fetch from a peer that is gone: %+v", bad)
	}
}

// TestRendezvousEndsWithItsPeer: a rendezvous of the data plane waits for its ACK while the peer's end is not reported,
// though its ring is in no line any more.
func TestRendezvousEndsWithItsPeer(t *testing.T) {
	x, y := newBench(t, nil, rmaHints()).pair(t)
	oneMessage(t, x, y, 8)
	oneMessage(t, y, x, 8)
	l, p := x.pathTo(y)
	askFor := func(context uint64) uint64 {
		req, id, ok := x.ep.base.sends.Requests().Alloc(0)
		if !ok {
			t.Fatal("no request")
		}
		req.Begin(context, 8, 0, l.Index)
		req.Count = uint32(copy(req.IOV[:], iovOf(make([]byte, 8))))
		req.Flags, req.Ring = dataplane.RequestCompletes, p.Slots
		l.Transmits.Add(1)
		req.Live.Store(uint32(id >> 32))
		return id
	}
	id := askFor(4)
	x.ep.base.links.Forget(l)
	x.ep.PeerLost()
	for range 3 {
		x.ep.Progress()
	}
	if _, ok := x.ep.base.sends.Requests().Lookup(id); !ok {
		t.Fatal("it has ended before its peer")
	}
	// the ACK of a peer that closes after it
	_, back := y.pathTo(x)
	var head [8]byte
	if err := back.AMShort(wire.AMAck, id, wire.PutWord(head[:], 0), nil); err != nil {
		t.Fatal(err)
	}
	y.close()
	if e, bad, ok := settle(t, x); !ok || e.Context != 4 {
		t.Fatalf("%+v %+v", e, bad)
	}
	askFor(5) // another, which has no answer
	x.ep.PeerLost()
	if e, bad, ok := settle(t, x); ok || bad.Err != fi.ECONNRESET || e.Context == 4 {
		t.Errorf("message to a peer that is gone: %+v %+v", e, bad)
	}
	if n := l.Awaited(); n != 0 {
		t.Errorf("%d operations are in flight", n)
	}
}

// TestShareEndsWithItsPeer: the target completes its share and closes, and its end is noticed before its count is.
func TestShareEndsWithItsPeer(t *testing.T) {
	x, y := shareBench(t)
	r, _, _ := fakeHelper(t, x, y, false)
	r.Words().Count(false)
	y.close()
	x.ep.base.rx.acquire()
	leasedOf(x.ep).rx.checkPeers()
	leasedOf(x.ep).rx.give()
	if e, bad, ok := settle(t, x); !ok || e.Context != 9 {
		t.Errorf("%+v %+v", e, bad)
	}
}

// TestCloseOwesResults: a target closes while what was read from it waits for room.
func TestCloseOwesResults(t *testing.T) {
	x, y := newBench(t, func(c *config.Config) { c.UseCMA = config.No }, rmaHints()).pair(t)
	oneMessage(t, x, y, 8)
	remote, local := pattern(4<<20, 5), make([]byte, 4<<20)
	y.region(remote, 1, fi.RemoteRead)
	a := RMAArgs{IOV: iovOf(local), Remote: []fi.RMAIOVec{{Len: uint64(len(local)), Key: 1}}, Dest: x.addr[y],
		Read: true}
	post(t, func() error { return x.ep.RMA(&a) }, x)
	for range 100 {
		y.ep.Progress()
	}
	if !leasedOf(y.ep).target.Replying() {
		t.Fatal("nothing waits for room")
	}
	closed := make(chan bool)
	go func() { y.close(); close(closed) }()
	_, bad, ok := settle(t, x)
	<-closed
	if !ok || !bytes.Equal(local, remote) {
		t.Errorf("read: %v, whole %v", bad.Err, bytes.Equal(local, remote))
	}
}
