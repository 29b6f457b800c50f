package verbs

import (
	"bytes"
	"slices"
	"sync"
	"testing"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/hw/internal/doorbell"
	"github.com/weft-fabric/weft/hw/internal/drive"
	"github.com/weft-fabric/weft/hw/verbs/internal/ibv"
	"github.com/weft-fabric/weft/hw/verbs/internal/ibv/null"
	"github.com/weft-fabric/weft/hw/verbs/internal/transport"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/mem"
)

// bench is an interface without a device: the tests say what has arrived.
type bench struct {
	*Iface
	e    *Endpoint // the peer with index 0, whose queue pair has number 1
	next uint32    // buffer of the next arrival
	got  []uint64  // headers that reached a handler
}

func newBench(t testing.TB) *bench {
	const buffers, bytes = 64, 512
	e := nullEndpoint(64)
	i := e.i
	i.d = &MemoryDomain{}
	i.peers.Store(&[]*Endpoint{e})
	i.cfg.RxBuffers, i.stride = buffers, bytes
	i.memory = make([]byte, buffers*bytes)
	i.first = mem.Address(i.memory)
	i.mr, i.srq, i.recvCQ = &ibv.MR{}, null.SRQ(), null.CQ(0)
	i.sendCQs = []*sendCQ{{null.CQ(1), e.msg.cq.SendCQ}}
	var err error
	if i.bell, err = doorbell.New(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = i.bell.Close() })
	b := &bench{Iface: i, e: e}
	i.rx.init(i)
	if err := i.rx.openTransport(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := i.rx.transport.Close(); err != nil {
			t.Error(err)
		}
	})
	e.c = i.rx.transport.NewPeer(e.msg.SendQueue)
	e.c.Blocked.Store(0)
	e.c.QPNums[0] = 1
	i.rx.transport.SetPeer(0, e.c)
	i.SetHandler(1, func(_ hw.Source, header uint64, _, _ []byte) { b.got = append(b.got, header) })
	return b
}

// arrive has a message arrive over the queue pair with a number.
func (b *bench) arrive(qp uint32, message []byte) {
	copy(b.rxBuffer(b.next), message)
	null.Complete(0, ibv.Done{ID: uint64(b.next), Opcode: ibv.DoneRecv, Bytes: uint32(len(message)), QP: qp})
	b.next = (b.next + 1) % uint32(b.cfg.RxBuffers)
}

// plain is a message that C delivers.
func plain(seq uint32, header uint64) []byte {
	m := transport.Header{ID: 1, Head: 2, Seq: seq, Length: 3, Value: header}
	b := make([]byte, transport.HeaderBytes, transport.HeaderBytes+5)
	m.Put(b)
	return append(b, "heabc"...)
}

// TestTransportDelivers: C finds messages one after the other, and Go what C leaves.
func TestTransportDelivers(t *testing.T) { onEachRoute(t, testTransportDelivers) }

func testTransportDelivers(t *testing.T) {
	b := newBench(t)
	transport := b.HotTransport()
	if _, found := drive.Next(transport); found != hot.TransportEmpty {
		t.Fatalf("an empty transport says %d", found)
	}
	for n := range uint32(10) {
		b.arrive(1, plain(n+1, uint64(n)))
	}
	for n := range uint64(6) {
		for range 2 {
			m, found := drive.Next(transport)
			if found != hot.TransportArrival || m.ID != 1 || m.Source != 0 || m.Header != n || string(m.Head) != "he" ||
				string(m.Payload) != "abc" {
				t.Fatalf("poll %d finds %d, %+v", n, found, m)
			}
		}
		if !drive.Take(transport) {
			t.Errorf("nothing at hand behind message %d", n)
		}
	}
	if b.Progress(64) != 4 || len(b.got) != 4 || b.got[0] != 6 || b.e.c.LastSeq != 10 {
		t.Errorf("Go got %v, the last position is %d", b.got, b.e.c.LastSeq)
	}
	if s := b.Stats(); s.Delivered != 10 {
		t.Errorf("%d messages are counted", s.Delivered)
	}
	if _, found := drive.Next(transport); found != hot.TransportEmpty {
		t.Errorf("an empty transport says %d", found)
	}
}

// TestTransportRefills: buffers go back in batches, all of them in the end.
func TestTransportRefills(t *testing.T) {
	b := newBench(t)
	transport := b.HotTransport()
	first := null.Buffers()
	for n := range uint32(1000) {
		b.arrive(1, plain(n+1, 0))
		if _, found := drive.Next(transport); found != hot.TransportArrival {
			t.Fatalf("message %d: %d", n, found)
		}
		if drive.Take(transport) {
			t.Fatalf("something at hand behind message %d", n)
		}
	}
	if back := null.Buffers() - first; first != 64 || back > 1000 || back < 1000-64/8 {
		t.Errorf("%d buffers given at first, then %d", first, back)
	}
}

// TestTransportToGo: what is not the next plain message of a peer C leaves untouched.
func TestTransportToGo(t *testing.T) {
	change := func(at int, v byte) []byte {
		b := plain(1, 9)
		b[at] = v
		return b
	}
	for name, c := range map[string]struct {
		qp      uint32
		message []byte
		set     func(b *bench)
	}{
		"another queue pair": {2, plain(1, 9), nil},
		"magic":              {1, change(3, 0), nil},
		"id":                 {1, change(0, uint8(hw.MaxAM)), nil},
		"kind":               {1, change(2, 2), nil},
		"length":             {1, change(12, 4), nil},
		"head":               {1, change(1, 3), nil},
		"index":              {1, change(4, 1), nil},
		"index out of range": {1, change(6, 0x0f), nil},
		"position":           {1, plain(0, 9), nil},
		"too short":          {1, plain(1, 9)[:transport.HeaderBytes-1], nil},
		"called":             {1, plain(1, 9), func(b *bench) { b.wantSignals() }},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			if c.set != nil {
				c.set(b)
			}
			b.arrive(c.qp, c.message)
			for range 2 {
				if m, found := drive.Next(b.HotTransport()); found != hot.TransportGo {
					t.Fatalf("C finds %d: %+v", found, m)
				}
			}
			b.Progress(8)
			if want := c.set != nil; (len(b.got) == 1) != want || b.Stats().Delivered != uint64(len(b.got)) {
				t.Errorf("Go delivers %v", b.got)
			}
			if _, found := drive.Next(b.HotTransport()); found != hot.TransportEmpty {
				t.Errorf("then C finds %d", found)
			}
		})
	}
	b := newBench(t)
	null.Complete(0, ibv.Done{ID: 0, Status: ibv.StatusFlush, Opcode: ibv.DoneRecv})
	if _, found := drive.Next(b.HotTransport()); found != hot.TransportGo {
		t.Errorf("a flushed buffer: %d", found)
	}
	b = newBench(t)
	null.Complete(0, ibv.Done{ID: 64, Opcode: ibv.DoneRecv, Bytes: 29, QP: 1})
	if _, found := drive.Next(b.HotTransport()); found != hot.TransportGo {
		t.Errorf("a buffer that there is not: %d", found)
	}
}

// TestTransportEnds: C ends plain operations when their completions come, and leaves
// the others, and what they stand before, to Go.
func TestTransportEnds(t *testing.T) {
	b := newBench(t)
	q := &b.e.msg
	for range 5 {
		if drive.Send(b.e.HotPath(), 1, 0, nil, []byte("x")) != hot.PathSent {
			t.Fatal("not sent")
		}
	}
	end := func(pos uint64, gen uint8) {
		null.Complete(1, ibv.Done{ID: queueID(classMessage, 0) | uint64(gen)<<32 | pos})
	}
	next := func() (found int) { // nothing has asked for what is completed, so not each poll goes there
		for n := 0; n < 8 && found == hot.TransportEmpty; n++ {
			_, found = drive.Next(b.HotTransport())
		}
		return found
	}
	end(2, 0)
	if found := next(); found != hot.TransportEmpty || q.Head.Load() != 3 || q.cq.Used.Load() != 2 || b.e.c.Heard != 1 {
		t.Fatalf("%d, %d ended, %d in use", found, q.Head.Load(), q.cq.Used.Load())
	}
	end(4, 1) // of another queue pair: Go ignores it
	if found := next(); found != hot.TransportGo || q.Head.Load() != 3 {
		t.Fatalf("%d, %d ended", found, q.Head.Load())
	}
	b.Progress(8)
	if _, ok := q.postNothing(0, true); !ok {
		t.Fatal("no place")
	}
	end(5, 0)
	if found := next(); found != hot.TransportGo || q.Head.Load() != 3 {
		t.Fatalf("%d, %d ended", found, q.Head.Load())
	}
	b.Progress(8)
	if !q.quiet() || q.cq.Used.Load() != 0 {
		t.Errorf("%s, %d in use", q.state(), q.cq.Used.Load())
	}
}

// TestTransportPasses: C reads completions at once when one was asked for, and else
// seldom, since only failures come.
func TestTransportPasses(t *testing.T) {
	b := newBench(t)
	polls := func(n int) uint64 {
		before := null.Polls(1)
		for range n {
			drive.Next(b.HotTransport())
		}
		return null.Polls(1) - before
	}
	if n := polls(800); n != 100 {
		t.Errorf("%d of 800 polls while nothing is to be notified", n)
	}
	pos, ok := b.e.msg.postNothing(0, true)
	if !ok {
		t.Fatal("no place")
	}
	if n := polls(80); n != 80 {
		t.Errorf("%d of 80 polls while a completion is to be notified", n)
	}
	null.Complete(1, ibv.Done{ID: queueID(classMessage, 0) | pos})
	if _, found := drive.Next(b.HotTransport()); found != hot.TransportGo {
		t.Errorf("the next poll finds %d", found)
	}
	b.Progress(8)
	if n := polls(800); n != 100 {
		t.Errorf("%d of 800 polls after it was notified", n)
	}
}

// TestPathSends: C and Go write the same bytes, and C sends only while Go would.
func TestPathSends(t *testing.T) { onEachRoute(t, testPathSends) }

func testPathSends(t *testing.T) {
	b := newBench(t)
	e, q := b.e, &b.e.msg
	e.c.Index.Store(5)
	if e.AMShort(7, 3, []byte("head"), []byte("payload")) != nil || drive.Send(e.HotPath(), 7, 3, []byte("head"),
		[]byte("payload")) != hot.PathSent {
		t.Fatal("not sent")
	}
	n := transport.HeaderBytes + len("headpayload")
	inGo, inC := bytes.Clone(q.slot(0)[:n]), bytes.Clone(q.slot(1)[:n])
	inGo[8]++ // the position
	if !bytes.Equal(inGo, inC) || q.place(0).Plain != 1 || q.place(1).Plain != 1 ||
		q.op(0).SGE[0].Len != q.op(1).SGE[0].Len || q.op(0).Flags != q.op(1).Flags {
		t.Errorf("Go writes %x, C %x", inGo, inC)
	}
	if m, rest, ok := parseMessage(inC); !ok || rest != nil || m.Index != 5 || m.Seq != 2 || m.ID != 7 {
		t.Errorf("C writes %+v", m)
	}
	for name, set := range map[string]func(on bool){
		"window": func(on bool) { e.c.Window.Store(map[bool]uint32{true: 1}[on]) },
		"fence": func(on bool) {
			if on {
				e.c.Blocked.Or(transport.PeerFenced)
				return
			}
			if err := e.usable(); err != nil {
				t.Error(err)
			}
		},
	} {
		set(true)
		if got := drive.Send(e.HotPath(), 7, 3, nil, nil); got != hot.PathGo {
			t.Errorf("%s: %d", name, got)
		}
		set(false)
		if got := drive.Send(e.HotPath(), 7, 3, nil, nil); got != hot.PathSent {
			t.Errorf("without %s: %d", name, got)
		}
	}
	for e.AMShort(1, 0, nil, nil) == nil {
	}
	if got := drive.Send(e.HotPath(), 7, 3, nil, nil); got != hot.PathFull {
		t.Errorf("a full queue that will notify: %d", got)
	}
	e.end(hw.ErrPeerDead)
	if got := drive.Send(e.HotPath(), 7, 3, nil, nil); got != hot.PathGo {
		t.Errorf("a peer that is gone: %d", got)
	}
}

// TestPostsWait: what finds no room in the completion queue is posted when there is some, whatever
// posted it, and takes no more room meanwhile.
func TestPostsWait(t *testing.T) {
	for name, send := range map[string]func(b *bench) bool{
		"C":  func(b *bench) bool { return drive.Send(b.e.HotPath(), 1, 0, nil, nil) == hot.PathSent },
		"Go": func(b *bench) bool { return b.e.AMShort(1, 0, nil, nil) == nil },
		"corked": func(b *bench) bool {
			return drive.SendHold(b.e.HotPath(), 1, 0, nil, nil, hot.HoldMore) == hot.PathCorked
		},
	} {
		b := newBench(t)
		q := &b.e.msg
		q.cq.Size = 4
		for range q.cq.Size {
			drive.Send(b.e.HotPath(), 1, 0, nil, nil)
		}
		q.JoinBytes = joinBytes
		for range 3 {
			if !send(b) {
				t.Fatalf("%s: not sent", name)
			}
		}
		for range 20 {
			if _, found := drive.Next(b.HotTransport()); found == hot.TransportGo {
				b.Progress(1)
			}
		}
		if q.Posted != 4 || q.Tail.Load() != 7 || !b.Pending() {
			t.Fatalf("%s: %s without room, and pending is %v", name, q.state(), b.Pending())
		}
		null.Complete(1, ibv.Done{ID: queueID(classMessage, 0) | 3})
		for range 8 {
			if _, found := drive.Next(b.HotTransport()); found == hot.TransportGo {
				b.Progress(1)
			}
		}
		if q.Posted < 7 || q.Posted != q.Tail.Load() || q.Head.Load() != 4 || b.Pending() {
			t.Errorf("%s: %s when there is room, and pending is %v", name, q.state(), b.Pending())
		}
	}
}

// TestCrowded: where many queues share a completion queue it does not fill with operations of which
// nothing is notified.
func TestCrowded(t *testing.T) {
	b := newBench(t)
	b.e.msg.cq.Size = 16
	for n := range uint64(16) {
		e := nullEndpoint(64) // with its first message
		e.i = b.Iface
		e.msg.reports(b.e.msg.cq)
		if e.AMShort(1, 0, nil, nil) != nil || e.msg.Posted != 1 {
			t.Fatalf("message %d is not posted", n)
		}
		if notified := e.msg.LastSignal.Load() != 0; notified != (n >= 8) {
			t.Errorf("message %d is notified: %v", n, notified)
		}
	}
}

// TestStoppedNotNotified: as long as a queue is stopped nothing is posted to be notified of its end, however
// often that is asked for; when it goes on, one such operation is.
func TestStoppedNotNotified(t *testing.T) {
	b := newBench(t)
	q := &b.e.msg
	q.stop()
	if b.e.AMShort(1, 0, nil, nil) != nil {
		t.Fatal("not claimed")
	}
	ask := func() {
		for range 5 {
			b.wantSignals()
			b.Progress(8)
		}
	}
	if ask(); q.Tail.Load() != 1 {
		t.Errorf("stopped: %s", q.state())
	}
	q.start()
	if ask(); q.Tail.Load() != 2 || !q.signaled() {
		t.Errorf("running: %s", q.state())
	}
}

// TestPostTogether: threads that post at once are not notified that there is no room while there is.
func TestPostTogether(t *testing.T) {
	q := &nullEndpoint(16).msg
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 50_000 {
				if !q.Post() {
					t.Error("no room in an empty queue")
					return
				}
			}
		})
	}
	wg.Wait()
}

// TestPathThreads sends from C and Go at once: every place is posted once.
func TestPathThreads(t *testing.T) { onEachRoute(t, testPathThreads) }

func testPathThreads(t *testing.T) {
	postTogether(t, func(e *Endpoint, thread int, n uint64) (bool, error) {
		if thread%2 == 0 {
			return drive.Send(e.HotPath(), 1, n, nil, nil) == hot.PathSent, nil
		}
		return e.AMShort(1, n, nil, nil) == nil, nil
	})
}

// FuzzTransportMessage: what C takes for a message Go does too, and reads the same.
func FuzzTransportMessage(f *testing.F) {
	f.Add(plain(1, 2))
	f.Add(plain(1, 2)[:transport.HeaderBytes+1])
	f.Add(together(plain(1, 2), plain(2, 3), plain(4, 9)))
	f.Add(together(plain(2, 2), plain(1, 3)))
	b := newBench(f)
	f.Fuzz(func(t *testing.T, message []byte) {
		if len(message) > b.stride {
			return
		}
		b.e.c.LastSeq = 0
		b.arrive(1, message)
		for rest := message; rest != nil; {
			got, found := drive.Next(b.HotTransport())
			m, behind, ok := parseMessage(rest)
			plain := ok && m.Index&transport.IndexMask == 0 && int32(m.Seq-b.e.c.LastSeq) > 0
			if (found == hot.TransportArrival) != plain {
				t.Fatalf("C finds %d, Go %v %+v in %x", found, ok, m, rest)
			}
			if !plain {
				break
			}
			if got.ID != hw.AMID(m.ID) || got.Header != m.Value || len(got.Head) != int(m.Head) ||
				len(got.Payload) != int(m.Length) {
				t.Fatalf("C reads %+v, Go %+v", got, m)
			}
			drive.Take(b.HotTransport())
			rest = behind
		}
		b.rx.poll()
		b.rx.drop()
	})
}

// BenchmarkTransportEmpty polls a transport at which there is nothing.
func BenchmarkTransportEmpty(b *testing.B) {
	x := newBench(b)
	for n := 0; n < b.N; n += 100 {
		drive.Polls(x.HotTransport(), 100)
	}
}

// BenchmarkPathSend sends messages as C does, in batches.
func BenchmarkPathSend(b *testing.B) {
	const batch = 32
	x := newBench(b)
	payload := make([]byte, 8)
	for n := 0; n < b.N; n += batch {
		drive.Sends(x.e.HotPath(), 1, payload, batch)
		x.e.msg.retireAll()
	}
}

// TestTransportPostpones: a message that its handler postpones stays where it is in its buffer, for Go or C, with those
// behind it, and ends of what was posted are taken in meanwhile.
func TestTransportPostpones(t *testing.T) {
	for name, next := range map[string]func(t *testing.T, b *bench) (header uint64, found bool){
		"Go": func(t *testing.T, b *bench) (uint64, bool) { return 0, false },
		"C": func(t *testing.T, b *bench) (uint64, bool) {
			m, found := drive.Next(b.HotTransport())
			if found != hot.TransportArrival {
				t.Fatalf("C finds %d", found)
			}
			drive.Take(b.HotTransport())
			return m.Header, true
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			stuck := uint64(1)
			b.SetHandler(1, func(_ hw.Source, header uint64, _, _ []byte) {
				if header == stuck {
					b.Postpone()
					return
				}
				b.got = append(b.got, header)
			})
			b.arrive(1, together(plain(1, 0), plain(2, 1), plain(3, 2)))
			b.arrive(1, plain(4, 3))
			first := null.Buffers()
			for n := range 3 {
				if got := b.Progress(64); got != max(0, 1-n) || len(b.got) != 1 || b.e.c.LastSeq != 1 {
					t.Fatalf("%d delivered, %v in all, the last position is %d", got, b.got, b.e.c.LastSeq)
				}
			}
			stuck = 99
			for {
				header, found := next(t, b)
				if !found || header == 2 {
					break
				}
				b.got = append(b.got, header)
			}
			if name == "C" {
				b.got = append(b.got, 2)
			}
			b.Progress(64)
			if !slices.Equal(b.got, []uint64{0, 1, 2, 3}) || b.e.c.LastSeq != 4 {
				t.Errorf("got %v, the last position is %d", b.got, b.e.c.LastSeq)
			}
			b.Progress(64)
			if s := b.Stats(); s.Delivered != 4 || s.Malformed != 0 {
				t.Errorf("%d messages are counted, %d malformed", s.Delivered, s.Malformed)
			}
			for n := range uint32(1000) { // every buffer is in use again, once
				b.arrive(1, plain(n+5, 0))
				b.Progress(64)
			}
			if back := null.Buffers() - first; back > 1002 || back < 1002-64/8 {
				t.Errorf("%d buffers given back", back)
			}
		})
	}
}
