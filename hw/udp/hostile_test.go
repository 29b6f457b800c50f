package udp

import (
	"bytes"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/hw/udp/internal/wire"
	"github.com/weft-fabric/weft/internal/sock"
)

// tap records what an interface sends.
type tap struct {
	mu   sync.Mutex
	list [][]byte
	sent int // bytes
}

func (p *tap) impair(b []byte, to *sock.Addr, send func([]byte, *sock.Addr)) {
	p.mu.Lock()
	p.list = append(p.list, bytes.Clone(b))
	p.sent += len(b)
	p.mu.Unlock()
	send(b, to)
}

// inject sends a datagram from an interface's own socket.
func inject(i *Iface, to []byte, b []byte) {
	a, _ := sock.Parse(to)
	s := i.stripes[0]
	s.lease.lock()
	copy(s.take(len(b)), b)
	s.answer(&a, len(b))
	s.leave()
}

// stranger is a socket that belongs to nothing.
func stranger(t *testing.T, to []byte) func(b []byte) {
	t.Helper()
	fd := bound(t, false)
	t.Cleanup(func() { unix.Close(fd) })
	a, err := sock.Parse(to)
	if err != nil {
		t.Fatal(err)
	}
	sa := &unix.SockaddrInet4{Port: int(a.Port()), Addr: a.AddrPort().Addr().As4()}
	return func(b []byte) { _ = unix.Sendto(fd, b, 0, sa) }
}

// TestReplay sends everything that was sent once more, from the same address
// and from another.
func TestReplay(t *testing.T) {
	for name, key := range map[string][]byte{"open": nil, "key": []byte("secret")} {
		t.Run(name, func(t *testing.T) {
			var p tap
			a, b := open(t, false, Config{Key: key, Impair: p.impair, MaxPacket: 1472}),
				open(t, false, Config{Key: key})
			got := 0
			b.SetHandler(1, func(hw.Source, uint64, []byte, []byte) { got++ })
			ep := pair(t, a, b)
			for n := range 200 {
				for ep.AMShort(1, uint64(n), nil, nil) != nil {
					a.Progress(1)
					b.Progress(16)
				}
			}
			eventually(t, "messages", func() bool { a.Progress(1); b.Progress(16); return got == 200 })
			p.mu.Lock()
			list := p.list
			p.mu.Unlock()
			from := stranger(t, b.Address())
			for _, packet := range list {
				inject(a, b.Address(), packet)
				from(packet)
				for range 4 {
					b.Progress(16)
					a.Progress(16)
				}
			}
			if got != 200 || ep.Err() != nil {
				t.Errorf("%d messages of 200, endpoint: %v", got, ep.Err())
			}
			if n := b.count.Load(); n > 2 {
				t.Errorf("%d connections", n)
			}
		})
	}
}

// TestForged sends damaged copies of what was sent.
func TestForged(t *testing.T) {
	var p tap
	key := []byte("secret")
	a, b := open(t, false, Config{Key: key, Impair: p.impair, MaxPacket: 1472}), open(t, false, Config{Key: key})
	got := 0
	b.SetHandler(1, func(_ hw.Source, header uint64, _, _ []byte) {
		if header != uint64(got) {
			t.Errorf("message %d came as %d", header, got)
		}
		got++
	})
	ep := pair(t, a, b)
	for n := range 100 {
		if err := ep.AMShort(1, uint64(n), nil, nil); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "messages", func() bool { a.Progress(1); b.Progress(16); return got == 100 })
	r := rand.New(rand.NewPCG(1, 1))
	p.mu.Lock()
	list := p.list
	p.mu.Unlock()
	for range 20000 {
		packet := bytes.Clone(list[r.IntN(len(list))])
		packet[r.IntN(len(packet))] ^= 1 << r.IntN(8)
		inject(a, b.Address(), packet)
		b.Progress(16)
		a.Progress(16)
	}
	if got != 100 || ep.Err() != nil {
		t.Errorf("%d messages of 100, endpoint: %v", got, ep.Err())
	}
	if b.Stats().Malformed == 0 {
		t.Error("nothing was refused")
	}
	if err := ep.AMShort(1, 100, nil, nil); err != nil {
		t.Fatal(err)
	}
	eventually(t, "one more", func() bool { a.Progress(1); b.Progress(16); return got == 101 })
}

// TestFlood asks for connections without end, from one stranger: no state is
// kept for it, and others are served.
func TestFlood(t *testing.T) {
	var p tap
	b := open(t, false, Config{Impair: p.impair})
	from := stranger(t, b.Address())
	r := rand.New(rand.NewPCG(1, 1))
	received := 0
	for range 20000 {
		init := wire.Init{Client: wire.Side{CID: wire.CID(r.Uint64()), Window: 1 << 18, MaxPacket: 1472,
			MaxMessage: 9000}, HasCookie: r.IntN(2) == 0}
		packet := make([]byte, wire.InitSize)
		init.Put(packet)
		from(packet)
		received += len(packet)
		unknown := make([]byte, wire.HeaderSize+r.IntN(100))
		(&wire.Header{CID: wire.NewCID(r.Uint32N(4), r.Uint64()), Number: r.Uint64N(100)}).Put(unknown)
		from(unknown)
		received += len(unknown)
		b.Progress(16)
	}
	if n := b.count.Load(); n != 0 {
		t.Errorf("%d connections are kept", n)
	}
	p.mu.Lock()
	if p.sent > received {
		t.Errorf("%d bytes were sent for %d received", p.sent, received)
	}
	p.mu.Unlock()
	a := open(t, false, Config{})
	ep := pair(t, a, b)
	got := 0
	b.SetHandler(1, func(hw.Source, uint64, []byte, []byte) { got++ })
	if err := ep.AMShort(1, 0, nil, nil); err != nil {
		t.Fatal(err)
	}
	eventually(t, "message", func() bool { a.Progress(1); b.Progress(1); return got == 1 })
}

// TestHalfOpen connects without ever using it: the connections go again.
func TestHalfOpen(t *testing.T) {
	b := open(t, false, Config{})
	a := open(t, false, Config{})
	s := b.stripes[0]
	s.lease.lock()
	now := b.now()
	from, _ := sock.Parse(a.Address())
	for range 3 * maxHalfOpen {
		side := a.stripes[0].newSide(0)
		if s.accept(now, &from, &wire.Init{Client: side}, ifaceKey{}) == nil {
			t.Error("not accepted")
		}
	}
	s.leave()
	b.CheckPeers()
	if n := b.count.Load(); n != maxHalfOpen {
		t.Errorf("%d half-open connections are kept", n)
	}
	for _, c := range s.halfOpen {
		c.dial.expires = now
		c.due = now
	}
	s.next = now
	b.CheckPeers()
	if n := b.count.Load(); n != 0 || len(s.byPeer) != 0 {
		t.Errorf("%d half-open connections are left after their time", n)
	}
	if lost := b.Stats().PeersLost; lost != 0 {
		t.Errorf("%d peers reported", lost)
	}
}

// evil sends frames over a connection that are made up.
func evil(c *Endpoint, frames []byte) {
	c.s.lease.lock()
	b := c.s.take(wire.HeaderSize + len(frames) + wire.TagSize)[:wire.HeaderSize+len(frames)]
	c.header(b, wire.FlagAckNow)
	copy(b[wire.HeaderSize:], frames)
	c.ship(b, nil, true)
	c.tx.sent.Void()
	c.s.leave()
}

// TestHostilePeer has a peer that holds the connection, and the key, break the
// rules.
func TestHostilePeer(t *testing.T) {
	ackOf := func(first, last uint64) []byte {
		b := make([]byte, (&wire.Ack{N: 1}).Size())
		(&wire.Ack{N: 1, Ranges: [wire.MaxRanges]wire.Range{{First: first, Last: last}}}).Put(b)
		return b
	}
	streamAt := func(offset uint64, data []byte) []byte {
		b := make([]byte, wire.StreamHeader+len(data))
		wire.PutStream(b, offset)
		copy(b[wire.StreamHeader:], data)
		return b
	}
	put := make([]byte, wire.PutHeader+8)
	wire.PutPut(put, 1, 12345, 0, 8)
	get := make([]byte, wire.GetSize)
	wire.PutGet(get, 1, 12345, 0, 1<<60)
	data := make([]byte, wire.DataHeader+8)
	wire.PutData(data, 77, 1<<40, 8)
	refuse := make([]byte, wire.RefuseSize)
	wire.PutRefuse(refuse, 1<<31, 200)
	bad := make([]byte, recordHeader)
	putRecord(bad, 1, 60000, 8, 0)
	kind := make([]byte, recordHeader)
	putRecord(kind, 1, 0, 0, 0)
	kind[7] = 99
	long := make([]byte, recordHeader)
	putRecord(long, 1, 0, 1<<30, 0)
	for name, c := range map[string]struct {
		frames []byte
		dies   bool
	}{
		"ack of the future":      {ackOf(1<<30, 1<<30), true},
		"ack of everything":      {ackOf(0, 1<<30), true},
		"beyond the window":      {streamAt(1<<30, []byte("x")), false},
		"end of the window":      {streamAt(256<<10-1, []byte("xy")), false},
		"unknown frame":          {[]byte{200, 0, 0, 0}, false},
		"put without a key":      {put, false},
		"get without a key":      {get, false},
		"data nothing asked for": {data, false},
		"refusal of nothing":     {refuse, false},
		"record's head":          {streamAt(0, bad), true},
		"record's kind":          {streamAt(0, kind), true},
		"record's length":        {streamAt(0, long), true},
	} {
		t.Run(name, func(t *testing.T) {
			conf := Config{Key: []byte("key"), PeerTimeout: time.Second}
			a, b := open(t, false, conf), open(t, false, conf)
			ep := pair(t, a, b).(*Endpoint)
			back := pair(t, b, a).(*Endpoint)
			got := 0
			b.SetHandler(2, func(hw.Source, uint64, []byte, []byte) { got++ })
			for range 20 {
				a.Progress(1)
				b.Progress(1)
			}
			evil(ep, c.frames)
			for range 50 {
				a.Progress(1)
				b.Progress(1)
			}
			if c.dies {
				eventually(t, "end of the connection",
					func() bool { b.Progress(1); b.CheckPeers(); return back.Err() != nil })
				return
			}
			if back.Err() != nil || ep.Err() != nil {
				t.Fatalf("the connection ended: %v, %v", back.Err(), ep.Err())
			}
			if err := ep.AMShort(2, 0, nil, nil); err != nil {
				t.Fatal(err)
			}
			eventually(t, "message", func() bool { a.Progress(1); b.Progress(1); return got == 1 })
		})
	}
}

// FuzzDatagram gives arbitrary datagrams to an interface with a connection,
// some with the right numbers, as if from the peer.
func FuzzDatagram(f *testing.F) {
	f.Add([]byte{0xB5, 0, 0, 0}, false, uint64(5))
	f.Add(make([]byte, 60), true, uint64(9))
	frames := make([]byte, wire.StreamHeader+16)
	wire.PutStream(frames, 0)
	f.Add(frames, true, uint64(3))
	f.Fuzz(func(t *testing.T, b []byte, inside bool, number uint64) {
		x, y := fuzzPair(t)
		defer x.Close()
		defer y.Close()
		c := pair(t, x, y).(*Endpoint)
		from, _ := sock.Parse(y.Address())
		s := c.s
		for k := range uint64(3) {
			s.lease.lock()
			packet := bytes.Clone(b)
			if inside {
				packet = append(make([]byte, wire.HeaderSize), b...)
				h := wire.Header{CID: c.own.CID, Number: number%(1<<20) + k}
				h.Put(packet)
			}
			s.dispatch(x.now(), x.now(), &from, packet, number&1 != 0)
			s.settle(x.now())
			s.leave()
			x.Progress(16)
			x.CheckPeers()
		}
	})
}

func fuzzPair(t *testing.T) (x, y *Iface) {
	c := Config{Linger: -1, Memory: NewMemoryDomain()}
	var err error
	if x, err = Open(bound(t, false), c); err != nil {
		t.Fatal(err)
	}
	if y, err = Open(bound(t, false), c); err != nil {
		t.Fatal(err)
	}
	return x, y
}
