package hwtest

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/hot"
)

func testReceiverCloses(t *testing.T, open Factory) {
	a, b := newNode(t, open), newNode(t, open)
	other := newNode(t, open)
	ep, ok := a.connect(b), a.connect(other)
	bcopy := a.Attr().Caps&hw.CapAMBcopy != 0
	if bcopy {
		fill(t, ep, true, 0) // these are not fetched
	}
	b.Close()
	until(t, "peer event", func() bool { a.CheckPeers(); return len(a.gone) > 0 })
	if e := a.gone[0]; e.Endpoint != ep || e.HasSource || !errors.Is(e.Err, hw.ErrPeerDead) || len(a.gone) != 1 {
		t.Errorf("events %+v", a.gone)
	}
	if !errors.Is(ep.Err(), hw.ErrPeerDead) || ep.EagerOpen() {
		t.Errorf("endpoint: error %v, open %v", ep.Err(), ep.EagerOpen())
	}
	if err := ep.AMShort(1, 0, nil, nil); !errors.Is(err, hw.ErrPeerDead) {
		t.Errorf("send: %v", err)
	}
	ep.Wake()
	if ok.Err() != nil {
		t.Errorf("the other endpoint: %v", ok.Err())
	}
	if bcopy {
		if n := fill(t, ok, true, 0); n == 0 {
			t.Error("the dead peer keeps the bounce buffers")
		}
	}
	if _, err := a.Connect(b.Address()); !errors.Is(err, hw.ErrUnreachable) {
		t.Errorf("connect: %v", err)
	}
}

func testSenderCloses(t *testing.T, open Factory) {
	b := newNode(t, open)
	var last hw.Source
	for n := range uint64(100) {
		a := newNode(t, open)
		ep := a.connect(b)
		if err := ep.AMShort(1, n, nil, []byte("last words")); err != nil {
			t.Fatal(err)
		}
		a.Close()
		b.CheckPeers()
		if len(b.gone) != 0 {
			t.Fatal("the sender is reported as gone before its last message")
		}
		m := b.receive(1)[0]
		m.check(t, 1, n, nil, []byte("last words"))
		if string(b.SourceAddress(m.src)) != string(a.Address()) {
			t.Fatal("the source of the last words is unknown")
		}
		until(t, "peer event", func() bool { b.CheckPeers(); return len(b.gone) > 0 })
		if e := b.gone[0]; !e.HasSource || e.Source != m.src || e.Endpoint != nil || len(b.gone) != 1 {
			t.Fatalf("events %+v", b.gone)
		}
		b.gone, last = nil, max(last, m.src)
	}
	if last > 2 {
		t.Errorf("source numbers are not reused: %d", last)
	}
}

// testAnswerThenClose has a peer that is sent to as well close after its last message: also that
// there is no peer to send to any more is reported after it, for it may be an answer.
func testAnswerThenClose(t *testing.T, open Factory) {
	b := newNode(t, open)
	for n := range uint64(20) {
		a := newNode(t, open)
		ep, to := a.connect(b), b.connect(a)
		retry(t, a, func() error { return to.AMShort(1, n, nil, nil) })
		a.receive(1)
		retry(t, b, func() error { return ep.AMShort(1, n, nil, []byte("answer")) })
		a.Close()
		for range 3 {
			b.CheckPeers()
		}
		if len(b.gone) != 0 {
			t.Fatalf("events %+v before the answer was delivered", b.gone)
		}
		b.receive(1)[0].check(t, 1, n, nil, []byte("answer"))
		until(t, "peer events", func() bool { b.CheckPeers(); return len(b.gone) == 2 })
		b.gone = nil
	}
}

// testSenderClosesBcopy has the sender close while the receiver fetches: Close
// waits for that, for a while.
func testSenderClosesBcopy(t *testing.T, open Factory) {
	b := newNode(t, open)
	for range 10 {
		a := newNode(t, open)
		n := fill(t, a.connect(b), true, 0)
		closed := make(chan error)
		go func() { closed <- a.Close() }()
		for k, m := range b.receive(int(n)) {
			m.check(t, 1, uint64(k), nil, []byte{byte(k)})
		}
		if err := <-closed; err != nil {
			t.Fatal(err)
		}
		until(t, "peer event", func() bool { b.CheckPeers(); return len(b.gone) > 0 })
		b.gone = nil
	}
}

// testReopen closes and opens interfaces of which others still hold endpoints.
func testReopen(t *testing.T, open Factory) {
	hub := newNode(t, open)
	for n := range 50 {
		a := newNode(t, open)
		ep, back := a.connect(hub), hub.connect(a)
		retry(t, hub, func() error { return ep.AMShort(1, 0, nil, nil) })
		retry(t, a, func() error { return back.AMShort(1, 0, nil, nil) })
		hub.receive(1)
		a.receive(1)
		a.Close()
		until(t, "peer events", func() bool { hub.CheckPeers(); return len(hub.gone) == 2 })
		hub.gone = nil
		if want := uint64(2 * (n + 1)); hub.Stats().PeersLost != want {
			t.Fatalf("%d peers lost, want %d", hub.Stats().PeersLost, want)
		}
	}
}

// cut splits n bytes into at most k pieces.
func cut(r *rand.Rand, n, k int) []int {
	var pieces []int
	for range 1 + r.IntN(k) {
		p := r.IntN(n + 1)
		pieces = append(pieces, p)
		n -= p
	}
	pieces[len(pieces)-1] += n
	return pieces
}

func testGet(t *testing.T, open Factory) {
	a, b := newNode(t, open), newNode(t, open)
	ep, attr := a.connect(b), a.Attr()
	r := rand.New(rand.NewPCG(1, 2))
	for _, size := range []int{0, 1, 7, 4096, 65536, 65537, 1 << 20, 5<<20 + 3} {
		src, dst := patterned(size, uint64(size)), make([]byte, size+16)
		for range 20 {
			var local []hw.Segment
			var remote []hw.RemoteSegment
			at := 0
			for _, n := range cut(r, size, attr.MaxPeerIOV) {
				local = append(local, hw.Segment{Addr: unsafe.Pointer(unsafe.SliceData(dst[at:])), Len: n})
				at += n
			}
			at = 0
			for _, n := range cut(r, size, attr.MaxPeerIOV) {
				addr := uint64(uintptr(unsafe.Pointer(unsafe.SliceData(src))) + uintptr(at))
				remote = append(remote, hw.RemoteSegment{Addr: addr, Len: uint64(n)})
				at += n
			}
			clear(dst)
			n, err := ep.(hw.PeerMemory).ReadPeer(local, remote)
			if err != nil || n != size || !bytes.Equal(dst[:size], src) || !bytes.Equal(dst[size:], make([]byte, 16)) {
				t.Fatalf("get of %d bytes, %d to %d pieces: %d, %v", size, len(remote), len(local), n, err)
			}
		}
	}
}

func testGetErrors(t *testing.T, open Factory) {
	a, b := newNode(t, open), newNode(t, open)
	ep, attr := a.connect(b), a.Attr()
	buf := make([]byte, 64)
	here := hw.Segment{Addr: unsafe.Pointer(&buf[0]), Len: len(buf)}
	there := hw.RemoteSegment{Addr: uint64(uintptr(here.Addr)), Len: 64}
	for name, c := range map[string]struct {
		local  []hw.Segment
		remote []hw.RemoteSegment
	}{
		"longer":        {[]hw.Segment{{Addr: here.Addr, Len: 63}}, []hw.RemoteSegment{there}},
		"nothing local": {nil, []hw.RemoteSegment{there}},
		"negative":      {[]hw.Segment{{Addr: here.Addr, Len: -1}}, []hw.RemoteSegment{there}},
		"address wraps": {[]hw.Segment{here}, []hw.RemoteSegment{{Addr: ^uint64(0) - 8, Len: 64}}},
		"sum wraps":     {[]hw.Segment{here}, []hw.RemoteSegment{{Addr: 0, Len: 1 << 63}, {Addr: 0, Len: 1 << 63}}},
		"many local":    {make([]hw.Segment, attr.MaxPeerIOV+1), nil},
		"many remote":   {nil, make([]hw.RemoteSegment, attr.MaxPeerIOV+1)},
	} {
		if n, err := ep.(hw.PeerMemory).ReadPeer(c.local, c.remote); n != 0 || !errors.Is(err, hw.ErrInvalid) {
			t.Errorf("%s: %d, %v", name, n, err)
		}
	}
	if n, err := ep.(hw.PeerMemory).ReadPeer(nil, nil); n != 0 || err != nil {
		t.Errorf("nothing: %d, %v", n, err)
	}
	b.Close()
	if n, err := ep.(hw.PeerMemory).ReadPeer([]hw.Segment{here}, []hw.RemoteSegment{there}); n != 0 ||
		!errors.Is(err, hw.ErrPeerDead) {
		t.Errorf("dead peer: %d, %v", n, err)
	}
}

// readable polls fd.
func readable(t *testing.T, fd int, timeout time.Duration) bool {
	t.Helper()
	for end := time.Now().Add(timeout); ; {
		left := max(0, time.Until(end).Milliseconds())
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(left))
		if err != unix.EINTR {
			return n == 1 && err == nil
		}
	}
}

func testWakeup(t *testing.T, open Factory) {
	a, b := newNode(t, open), newNode(t, open)
	w, ok := b.Iface.(hw.Waiter)
	if !ok {
		t.Fatal("the interface promises hw.Waiter and does not implement it")
	}
	if w.DoorbellFD() != -1 {
		t.Error("a doorbell before EnableWait")
	}
	for range 2 {
		if err := w.EnableWait(); err != nil {
			t.Fatal(err)
		}
	}
	ep := a.connect(b)
	fd := w.DoorbellFD()
	post := func() {
		t.Helper()
		err := ep.AMShort(1, 0, nil, nil)
		if a.networked() && errors.Is(err, hw.ErrNoResource) {
			until(t, "room", func() bool { a.Progress(1); err = ep.AMShort(1, 0, nil, nil); return err == nil })
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	post()
	if b.networked() {
		until(t, "arrival", w.Pending)
	}
	if readable(t, fd, 0) || !w.Pending() {
		t.Error("the bell rings without a sleeper, or the message is not seen")
	}
	b.receive(1)
	for range 3 {
		w.Arm()
		if w.Pending() || readable(t, fd, 0) {
			t.Fatal("there is nothing to wake for")
		}
		post()
		sent := 1
		for sent < 50 && ep.AMShort(1, 0, nil, nil) == nil { // more than the bell can hold
			sent++
		}
		if !readable(t, fd, Deadline) || !w.Pending() {
			t.Fatal("the sleeper is not woken")
		}
		if b.networked() { // all of it
			b.receive(sent)
			sent = 0
		}
		w.Disarm()
		if readable(t, fd, 0) {
			t.Fatal("the bell rings on")
		}
		b.receive(sent)
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() {
		for range 200 {
			for ep.AMShort(1, 0, nil, nil) != nil {
				a.Progress(1)
				time.Sleep(time.Microsecond)
			}
			time.Sleep(time.Duration(rand.IntN(50)) * time.Microsecond)
		}
	})
	for got := 0; got < 200; got += b.Progress(64) {
		w.Arm()
		if !w.Pending() && !readable(t, fd, Deadline) {
			t.Fatalf("a wake-up was lost after %d messages", got)
		}
		w.Disarm()
	}
}

func testDirect(t *testing.T, open Factory) {
	a, b := newNode(t, open), newNode(t, open)
	d, ok := a.Iface.(hw.Direct)
	if !ok {
		t.Fatal("the interface promises hw.Direct and does not implement it")
	}
	ep := a.connect(b)
	var line hot.Peer
	if err := d.FillPeer(ep, &line); err != nil || line.Slots == 0 || line.Tail == 0 || line.RxState == 0 ||
		line.Owner == 0 {
		t.Fatalf("line %+v, %v", line, err)
	}
	if err := d.FillPeer(b.connect(a), &line); !errors.Is(err, hw.ErrInvalid) {
		t.Errorf("endpoint of another interface: %v", err)
	}
	d.WakePeer(line.Peer)
	d.WakePeer(1 << 31)
	var hotEP hot.EP
	b.Iface.(hw.Direct).FillEP(&hotEP)
	if in := hotEP.Inbound[0].Ring; in.Slots == 0 || in.SlotBytes != hot.SlotBytes || hotEP.RxState == 0 ||
		hotEP.RxRings == 0 {
		t.Errorf("endpoint %+v", hotEP)
	}
	for n := range uint64(10) {
		if err := ep.AMShort(1, 0, nil, nil); err != nil {
			t.Fatal(err)
		}
		if !d.SendPending(ep) {
			t.Fatalf("message %d is not pending", n)
		}
		b.receive(1)
		if d.SendPending(ep) {
			t.Fatalf("message %d is pending when it has been received", n)
		}
		if hotEP.Inbound[0].Head != n+1 {
			t.Fatalf("head word is %d after %d messages", hotEP.Inbound[0].Head, n+1)
		}
	}
	var s hot.Stripe
	if err := d.FillStripe(0, &s); err != nil || s.Bounce == 0 || s.BounceCount == 0 {
		t.Fatalf("stripe %+v, %v", s, err)
	}
	if err := d.FillStripe(-1, &s); !errors.Is(err, hw.ErrInvalid) {
		t.Errorf("stripe -1: %v", err)
	}
	if err := ep.AMBcopy(1, 0, nil, 1, func([]byte) {}, 0); err != nil || s.BounceNext != 1%s.BounceCount {
		t.Errorf("the stripe is not shared: next %d, %v", s.BounceNext, err)
	}
	b.receive(1)
}
