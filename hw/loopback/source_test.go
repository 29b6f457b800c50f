package loopback

import (
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/hot"
)

// TestNoDescriptors has the first message of a sender arrive while the process
// has no file descriptor left to map the sender's segment: it waits.
func TestNoDescriptors(t *testing.T) {
	dir := shmDir(t)
	a, b := open(t, Config{Dir: dir}), open(t, Config{Dir: dir})
	got := 0
	b.SetHandler(1, func(hw.Source, uint64, []byte, []byte) { got++ })
	ep, err := a.Connect(b.Address())
	if err != nil {
		t.Fatal(err)
	}
	if err := ep.AMBcopy(1, 0, nil, 100, func([]byte) {}, 0); err != nil {
		t.Fatal(err)
	}
	var old unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &old); err != nil {
		t.Fatal(err)
	}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 3, Max: old.Max}); err != nil {
		t.Fatal(err)
	}
	for begin := time.Now(); time.Since(begin) < 1200*time.Millisecond; time.Sleep(10 * time.Millisecond) {
		b.Progress(8)
	}
	_, connectErr := a.Connect(testAddress())
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &old); err != nil {
		t.Fatal(err)
	}
	if got != 0 || b.Stats().Malformed != 0 || !transient(connectErr) {
		t.Errorf("without descriptors: got %d, %+v, connect %v", got, b.Stats(), connectErr)
	}
	if b.Progress(8) != 1 || got != 1 {
		t.Errorf("with descriptors again: got %d, %+v", got, b.Stats())
	}
}

// TestRefusedSources sends from attach entries that do not say which they are.
func TestRefusedSources(t *testing.T) {
	for name, damage := range map[string]func(a *hot.Attach){
		"free":       func(a *hot.Attach) { a.State = hot.AttachFree },
		"claimed":    func(a *hot.Attach) { a.State = hot.AttachClaimed },
		"nonsense":   func(a *hot.Attach) { a.State = 77 },
		"long name":  func(a *hot.Attach) { a.NameBytes = 29 },
		"no name":    func(a *hot.Attach) { a.NameBytes = 0 },
		"bad family": func(a *hot.Attach) { a.Name[0] = 99 },
	} {
		t.Run(name, func(t *testing.T) {
			dir := shmDir(t)
			a, b := open(t, Config{Dir: dir}), open(t, Config{Dir: dir})
			b.SetHandler(1, func(hw.Source, uint64, []byte, []byte) { t.Error("delivered") })
			ep, err := a.Connect(b.Address())
			if err != nil {
				t.Fatal(err)
			}
			damage(b.seg.attach(ep.(*Endpoint).owner - 1))
			for range 3 {
				if err := ep.AMShort(1, 0, nil, nil); err != nil {
					t.Fatal(err)
				}
			}
			b.Progress(8)
			if s := b.Stats(); s.Malformed != 3 || s.Delivered != 0 {
				t.Errorf("%+v", s)
			}
			if b.SourceAddress(0) != nil {
				t.Error("it has an address")
			}
		})
	}
}

// TestRefusedSenderEnds has a receiver refuse a sender while all of the sender's bounce buffers are on their way to it:
// the sender finds the peer gone and has its buffers back, those of messages that it sends before it polls too, and
// another connection is another try. Its memory of the receiver's goes when no thread is at it.
func TestRefusedSenderEnds(t *testing.T) {
	dir := shmDir(t)
	a, b, c := open(t, Config{Dir: dir, BounceCount: 8}), open(t, Config{Dir: dir}), open(t, Config{Dir: dir})
	got := 0
	for _, i := range []*Iface{b, c} {
		i.SetHandler(1, func(hw.Source, uint64, []byte, []byte) { got++ })
	}
	var gone []hw.PeerEvent
	a.OnPeerEvent(func(e hw.PeerEvent) { gone = append(gone, e) })
	connect := func(to *Iface) *Endpoint {
		t.Helper()
		ep, err := a.Connect(to.Address())
		if err != nil {
			t.Fatal(err)
		}
		return ep.(*Endpoint)
	}
	send := func(ep *Endpoint) error { return ep.AMBcopy(1, 0, nil, 1000, func([]byte) {}, 0) }
	ep, other := connect(b), connect(c)
	b.seg.attach(ep.owner - 1).NameBytes = 29
	sent := 0
	for send(ep) == nil {
		sent++
	}
	if sent != 8 || send(other) == nil {
		t.Fatalf("%d buffers are on their way", sent)
	}
	b.Progress(64)
	if err := send(ep); !errors.Is(err, hw.ErrPeerDead) {
		t.Errorf("a send to the receiver that refuses: %v", err)
	}
	entry := &b.seg.attach(ep.owner - 1).State
	ep.users.Add(1) // a thread is at a copy under a claim
	for range 3 {
		a.CheckPeers()
	}
	if len(gone) != 1 || gone[0].Endpoint != hw.Endpoint(ep) || !ep.Reported() {
		t.Errorf("peer events %+v", gone)
	}
	if s := atomic.LoadUint32(entry); s != hot.AttachRefused {
		t.Errorf("the sender leaves beside an operation: %d", s)
	}
	ep.users.Add(-1)
	for end := time.Now().Add(10 * time.Second); atomic.LoadUint32(entry) != hot.AttachLeaving; a.CheckPeers() {
		if time.Now().After(end) {
			t.Fatal("the sender does not leave")
		}
	}
	for n := range sent {
		if err := send(other); err != nil {
			t.Fatalf("buffer %d of %d: %v", n, sent, err)
		}
	}
	b.CheckPeers()
	if again := connect(b); again == ep {
		t.Error("the endpoint that was refused is given again")
	} else if c.Progress(64); got != sent || send(again) != nil || b.Progress(64) != 1 {
		t.Errorf("%d messages of %d, %+v", got, sent, b.Stats())
	}
	if s := b.Stats(); s.Malformed != uint64(sent) || s.Delivered != 1 {
		t.Errorf("%+v", s)
	}
}

// TestMalformedMessages sends slots whose fields lie.
func TestMalformedMessages(t *testing.T) {
	ref := func(s *hot.Slot, head int, index uint32) {
		s.Flags, s.Head = hot.SlotBounce, uint16(head)
		at := refOffset(head)
		for k := range 4 {
			s.Body[at+k] = byte(index >> (8 * k))
		}
	}
	for name, damage := range map[string]func(s *hot.Slot){
		"id":            func(s *hot.Slot) { s.AMID = hw.MaxAM },
		"no handler":    func(s *hot.Slot) { s.AMID = 2 },
		"flags":         func(s *hot.Slot) { s.Flags = 0x80 },
		"length":        func(s *hot.Slot) { s.Length = hot.SlotBody + 1 },
		"long length":   func(s *hot.Slot) { s.Length = ^uint32(0) },
		"head":          func(s *hot.Slot) { s.Head = hot.SlotBody + 1 },
		"long head":     func(s *hot.Slot) { s.Head = ^uint16(0) },
		"sum":           func(s *hot.Slot) { s.Head, s.Length = 100, 5 },
		"no reference":  func(s *hot.Slot) { s.Flags, s.Head = hot.SlotBounce, uint16(maxHead+1) },
		"buffer number": func(s *hot.Slot) { ref(s, 0, 64) },
		"huge number":   func(s *hot.Slot) { ref(s, 8, ^uint32(0)) },
		"free buffer":   func(s *hot.Slot) { ref(s, 8, 3) },
		"buffer length": func(s *hot.Slot) { ref(s, 0, 0); s.Length = 8193 },
	} {
		t.Run(name, func(t *testing.T) {
			dir := shmDir(t)
			a, b := open(t, Config{Dir: dir}), open(t, Config{Dir: dir})
			got := 0
			b.SetHandler(1, func(hw.Source, uint64, []byte, []byte) { got++ })
			p, err := a.Connect(b.Address())
			if err != nil {
				t.Fatal(err)
			}
			ep := p.(*Endpoint)
			slot, pos, ok := ep.ring.Claim(ep.owner, false)
			if !ok {
				t.Fatal("no slot")
			}
			s := (*hot.Slot)(slot)
			s.AMID, s.Flags, s.Head, s.Length = 1, 0, 0, 8
			damage(s)
			ep.ring.Publish(slot, ep.owner, pos)
			if err := ep.AMShort(1, 0, nil, nil); err != nil {
				t.Fatal(err)
			}
			if n := b.Progress(8); n != 1 || got != 1 {
				t.Errorf("%d messages after it", got)
			}
			if s := b.Stats(); s.Malformed != 1 || s.Delivered != 1 {
				t.Errorf("%+v", s)
			}
		})
	}
}
