package provider

import (
	"bytes"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/weft-fabric/weft/cq"
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/config"
	"github.com/weft-fabric/weft/internal/stats"
	"github.com/weft-fabric/weft/provider/internal/rendezvous"
	"github.com/weft-fabric/weft/provider/internal/wire"
)

// helpSides makes two sides as helpSide does, which have reached each other.
func helpSides(t *testing.T, change func(*config.Config)) (x, y *side) {
	t.Helper()
	x, y = helpSide(t, change), helpSide(t, change)
	helpMeet(t, x, y)
	return x, y
}

func helpMeet(t *testing.T, x, y *side) {
	t.Helper()
	x.know(y)
	y.know(x)
	oneMessage(t, x, y, 8)
	oneMessage(t, y, x, 8)
}

// helpSide makes a side that has nothing but a device which is software between it and
// others: soft-RoCE in a virtual machine that has it, else UDP, which is taken for one.
func helpSide(t *testing.T, change func(*config.Config)) *side {
	t.Helper()
	rdma := os.Getenv("WEFT_TEST_RDMA") != ""
	if rdma && os.Getenv("WEFT_TEST_PAIR") != "" {
		t.Skip("this test is for one machine")
	}
	node, settings := "127.0.0.1", map[string]string(nil)
	if rdma {
		node, settings = os.Getenv("OWN"), map[string]string{"FI_WEFT_VERBS": "yes", "FI_WEFT_UDP": "no"}
	}
	hints := rmaHints()
	hints.Domain = &fi.DomainAttr{MRMode: fi.MRAllocated}
	b := newBenchAt(t, node, settings, func(c *config.Config) {
		c.SHMDir, c.SHMAcross, c.RTTControl = t.TempDir(), config.No, config.No
		if !rdma {
			c.UDP = config.Yes
		}
		if change != nil {
			change(c)
		}
	}, hints)
	s := b.side(t)
	for _, p := range s.ep.base.links.Transports()[1:] {
		p.Attr.Caps |= hw.CapSoftware
	}
	return s
}

// helped is how many bytes a side's peers have put into its memory.
func helped(s *side) uint64 {
	return *(*uint64)(pointerAt(uint64(s.ep.base.stats.RxLine() + 8*stats.RxHelped)))
}

// handled is an endpoint's handler of a message of rendezvous.
func handled(e *Endpoint, id hw.AMID) hw.Handler { return leasedOf(e).rendezvous.Handlers()[id] }

// intercept has a side's handler of a message be another one.
func (s *side) intercept(id hw.AMID, h hw.Handler) {
	for _, p := range s.ep.base.links.Transports()[1:] {
		p.SetHandler(id, leasedOf(s.ep).handler(p, h))
	}
}

// TestHelped has the sender put its share of messages of several lengths, some at once and both ways.
func TestHelped(t *testing.T) {
	x, y := helpSides(t, nil)
	for _, n := range []int{256 << 10, 1<<20 + 5, 3 << 20} {
		before := helped(y)
		sent, got := bufPattern(n, byte(n)), make([]byte, n)
		y.recv(RecvArgs{IOV: iovOf(got), Src: fi.AddrUnspec, Context: 1}, x)
		x.send(SendArgs{IOV: iovOf(sent), Dest: x.addr[y], Context: 2}, y)
		if e := y.completion(x); e.Len != uint64(n) {
			t.Errorf("%d bytes of %d", e.Len, n)
		}
		x.completion(y)
		if !bytes.Equal(sent, got) {
			t.Fatalf("a message of %d bytes is wrong", n)
		}
		if share := helped(y) - before; n > 256<<10 && share == 0 || share > uint64(n)*7/8 {
			t.Errorf("the sender of %d bytes has put %d", n, share)
		}
	}
	const messages, n = 6, 1 << 20
	sides := [2]*side{x, y}
	var sent, got [2][messages][]byte
	for i := range messages {
		for s, from := range sides {
			to := sides[1-s]
			sent[s][i], got[s][i] = bufPattern(n, byte(2*i+s)), make([]byte, n)
			to.recv(RecvArgs{IOV: iovOf(got[s][i]), Src: fi.AddrUnspec}, from)
			from.send(SendArgs{IOV: iovOf(sent[s][i]), Dest: from.addr[to]}, to)
		}
	}
	for range 2 * messages {
		x.completion(y)
		y.completion(x)
	}
	for s := range sides {
		for i := range messages {
			if !bytes.Equal(sent[s][i], got[s][i]) {
				t.Errorf("message %d of side %d is wrong", i, s)
			}
		}
	}
	settled(t, x, y)
}

// settled checks that nothing is left of the operations of two sides.
func settled(t *testing.T, sides ...*side) {
	t.Helper()
	drain(sides...)
	for i, s := range sides {
		e := leasedOf(s.ep)
		left, r := e.rendezvous.Left(), &e.rx.rendezvous
		if left != (rendezvous.Left{}) || r.Waiting() || r.Active() || e.ep.base.sends.Exposes() {
			t.Errorf("side %d: left %+v, operations %+v", i, left, r.Operations())
		}
	}
}

// TestHelpedNot: messages that their sender does not help with, for one reason or another, arrive.
func TestHelpedNot(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*config.Config)
		before func(x, y *side)
		pieces int
	}{
		"the sender computes": {before: func(x, _ *side) {
			x.intercept(wire.AMLanding, func(hw.Source, uint64, []byte, []byte) {})
		}},
		"it is switched off":   {change: func(c *config.Config) { c.AssistSize = 0 }},
		"the message is short": {change: func(c *config.Config) { c.AssistSize = 2 << 20 }},
		"two pieces":           {pieces: 2},
		"the device is none": {before: func(_, y *side) {
			for _, p := range y.ep.base.links.Transports() {
				p.Attr.Caps &^= hw.CapSoftware
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			x, y := helpSides(t, c.change)
			if c.before != nil {
				c.before(x, y)
			}
			const n = 1 << 20
			sent, got := bufPattern(n, 3), make([]byte, n)
			iov := iovOf(got)
			if c.pieces == 2 {
				iov = append(iovOf(got[:n/2]), iovOf(got[n/2:])...)
			}
			y.recv(RecvArgs{IOV: iov, Src: fi.AddrUnspec}, x)
			x.send(SendArgs{IOV: iovOf(sent), Dest: x.addr[y]}, y)
			y.completion(x)
			x.completion(y)
			if !bytes.Equal(sent, got) || helped(y) != 0 {
				t.Errorf("the sender has put %d bytes, all are right: %v", helped(y), bytes.Equal(sent, got))
			}
			settled(t, x, y)
		})
	}
}

// kept is a message that a test has kept from its handler.
type kept struct {
	src    hw.Source
	header uint64
	head   []byte
}

// owing makes two sides of which x has been left a part of a message of n bytes, and has not read that yet.
func owing(t *testing.T, n int) (x, y *side, sent, got []byte, put kept) {
	t.Helper()
	x, y = helpSides(t, nil)
	var puts []kept
	x.intercept(wire.AMPut, func(src hw.Source, header uint64, head, _ []byte) {
		puts = append(puts, kept{src, header, bytes.Clone(head)})
	})
	sent, got = bufPattern(n, 9), make([]byte, n)
	y.recv(RecvArgs{IOV: iovOf(got), Src: fi.AddrUnspec, Context: 1}, x)
	x.send(SendArgs{IOV: iovOf(sent), Dest: x.addr[y], Context: 2}, y)
	for end := time.Now().Add(time.Minute); len(puts) == 0; drain(x, y) {
		if time.Now().After(end) {
			t.Fatal("the sender is left nothing")
		}
	}
	for range 200 { // all that is not the sender's
		drain(x, y)
	}
	var e [1]cq.Entry
	if k, err := y.cq.Read(e[:]); k != 0 || !errors.Is(err, fi.EAGAIN) {
		t.Fatalf("the message is complete without its last part: %d, %v", k, err)
	}
	return x, y, sent, got, puts[0]
}

// arrivals has a side take in the part that it was left.
func (s *side) arrivals(put kept) {
	s.ep.base.rx.acquire()
	handled(s.ep, wire.AMPut)(put.src, put.header, put.head, nil)
	leasedOf(s.ep).rx.give()
}

// completes has a message from x to y end, and checks that it is right and nothing is left of it.
func completes(t *testing.T, x, y *side, sent, got []byte) {
	t.Helper()
	y.completion(x)
	x.completion(y)
	if !bytes.Equal(sent, got) {
		t.Error("the message is wrong")
	}
	settled(t, x, y)
}

// TestHelpedLate: a sender that is left a part and computes has the message wait for that part only.
func TestHelpedLate(t *testing.T) {
	x, y, sent, got, put := owing(t, 1<<20)
	x.arrivals(put)
	completes(t, x, y, sent, got)
	if helped(y) == 0 {
		t.Error("the sender has put nothing")
	}
}

// TestHelpedGone: a sender that goes with a part left to it ends the message with an error.
func TestHelpedGone(t *testing.T) {
	x, y, _, _, _ := owing(t, 1<<20)
	x.close()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); y.housekeep() {
		y.ep.Progress()
		var e [1]cq.Entry
		if _, err := y.cq.Read(e[:]); errors.Is(err, fi.EAVAIL) {
			break
		}
	}
	y.wantError(1, fi.ECONNRESET)
	settled(t, y)
}

// TestHelpedOtherSource: the end of another source of a sender, by which it was known before, does not
// end the message that it has a part of.
func TestHelpedOtherSource(t *testing.T) {
	x, y, sent, got, put := owing(t, 1<<20)
	op := y.operation(0)
	y.ep.base.rx.acquire()
	leasedOf(y.ep).rendezvous.SourceLost(op.Src + 1)
	leasedOf(y.ep).rx.give()
	x.arrivals(put)
	completes(t, x, y, sent, got)
}

// TestGetLost: nothing more is asked of what comes behind the source of a message, which is gone.
func TestGetLost(t *testing.T) {
	x, y := helpSides(t, nil)
	const n = 1 << 20
	y.recv(RecvArgs{IOV: iovOf(make([]byte, n)), Src: fi.AddrUnspec, Context: 1})
	x.send(SendArgs{IOV: iovOf(make([]byte, n)), Dest: x.addr[y]}, y)
	op := y.operation(0)
	y.ep.base.rx.acquire()
	leasedOf(y.ep).rendezvous.SourceLost(op.Src)
	leasedOf(y.ep).rx.give()
	y.wantErrorAmong(1, fi.ECONNRESET, x)
	settled(t, y)
}

// TestHelpedClosed: a receiver may close with a part left to the sender, whose message ends.
func TestHelpedClosed(t *testing.T) {
	x, y, _, _, put := owing(t, 1<<20)
	y.close()
	x.arrivals(put)
	for end := time.Now().Add(time.Minute); time.Now().Before(end); x.housekeep() {
		x.ep.Progress()
		var e [1]cq.Entry
		if _, err := x.cq.Read(e[:]); errors.Is(err, fi.EAVAIL) {
			break
		}
	}
	x.wantError(2, fi.ECONNRESET)
	settled(t, x)
}

// TestHelpedRefused: a part that cannot be put ends the message with an error on both sides.
func TestHelpedRefused(t *testing.T) {
	x, y := helpSides(t, nil)
	landed := handled(x.ep, wire.AMLanding)
	x.intercept(wire.AMLanding, func(src hw.Source, header uint64, head, key []byte) {
		other := bytes.Clone(key)
		other[min(3, len(other)-1)] ^= 1 // a byte of the device's own key, whatever the device
		landed(src, header, head, other)
	})
	y.recv(RecvArgs{IOV: iovOf(make([]byte, 1<<20)), Src: fi.AddrUnspec, Context: 1}, x)
	x.send(SendArgs{IOV: iovOf(make([]byte, 1<<20)), Dest: x.addr[y], Context: 2}, y)
	y.wantErrorAmong(1, fi.EIO, x)
	x.wantErrorAmong(2, fi.EIO, y)
	settled(t, x, y)
}

// wantErrorAmong waits for an error completion, making progress on other sides.
func (s *side) wantErrorAmong(context uint64, want fi.Errno, others ...*side) {
	s.t.Helper()
	if _, err := s.next(others...); !errors.Is(err, fi.EAVAIL) {
		s.t.Fatalf("an operation that should fail: %v", err)
	}
	s.wantError(context, want)
}

// TestHelpedHostile: what no well-meaning peer sends about help is refused, and the message arrives.
func TestHelpedHostile(t *testing.T) {
	x, y, sent, got, put := owing(t, 1<<20)
	var b [wire.LandingBytes]byte
	other := wire.Landing{Operation: 1, Addr: 1 << 40, Want: 2 << 20}
	word := func(v uint64) []byte { return bytes.Clone(wire.PutWord(b[:], v)) }
	var op uint64
	for _, o := range leasedOf(y.ep).rx.rendezvous.Operations() {
		op = o.ID
	}
	for i, h := range []struct {
		to   *side
		call func(*Endpoint, hw.Source)
		bad  uint64
	}{
		// longer than the message
		{x, func(e *Endpoint, s hw.Source) {
			handled(e, wire.AMLanding)(s, put.header, bytes.Clone(other.Put(b[:])), nil)
		}, 1},
		{x, func(e *Endpoint, s hw.Source) {
			handled(e, wire.AMLanding)(s, 1<<40, bytes.Clone(other.Put(b[:])), nil)
		}, 1},
		{x, func(e *Endpoint, s hw.Source) {
			handled(e, wire.AMLanding)(s, put.header, nil, nil)
		}, 1},
		{x, func(e *Endpoint, s hw.Source) { handled(e, wire.AMPut)(s, 1<<40, put.head, nil) }, 1},
		{x, func(e *Endpoint, s hw.Source) {
			handled(e, wire.AMPut)(s, put.header, bytes.Clone(wire.PutSpan(b[:], 1<<20, 1)), nil)
		}, 1},
		{x, func(e *Endpoint, s hw.Source) {
			handled(e, wire.AMPut)(s, put.header, bytes.Clone(wire.PutSpan(b[:], ^uint64(0), 2)), nil)
		}, 1},
		{x, func(e *Endpoint, s hw.Source) {
			handled(e, wire.AMPut)(s, put.header, bytes.Clone(wire.PutSpan(b[:], 0, 0)), nil)
		}, 1},
		{x, func(e *Endpoint, s hw.Source) {
			handled(e, wire.AMPut)(s, put.header, put.head[:8], nil)
		}, 1},
		{y, func(e *Endpoint, s hw.Source) { handled(e, wire.AMHelped)(s, op, nil, nil) }, 1},
		{y, func(e *Endpoint, s hw.Source) {
			handled(e, wire.AMHelped)(s, op, word(1<<20), nil)
		}, 1},
		{y, func(e *Endpoint, s hw.Source) {
			handled(e, wire.AMHelped)(s, op+1<<32, word(0), nil)
		}, 0}, // ended
		{y, func(e *Endpoint, s hw.Source) {
			handled(e, wire.AMHelped)(s+1, op, word(0), nil)
		}, 1}, // another's
	} {
		src := put.src
		if h.to == y {
			src = y.operation(0).Src
		}
		h.to.ep.base.rx.acquire()
		before := leasedOf(h.to.ep).malformedHere
		h.call(h.to.ep, src)
		if notified := leasedOf(h.to.ep).malformedHere - before; notified != h.bad {
			t.Errorf("case %d: %d are refused, want %d", i, notified, h.bad)
		}
		leasedOf(h.to.ep).rx.give()
	}
	x.ep.base.rx.acquire()
	handled(x.ep, wire.AMPut)(put.src, put.header, put.head, nil)
	handled(x.ep, wire.AMPut)(put.src, put.header, put.head, nil) // while the device is at it
	leasedOf(x.ep).rx.give()
	completes(t, x, y, sent, got)
}

// TestHelpedOthers: a message whose sender does not do its part in its gets does not keep one of another sender
// waiting.
func TestHelpedOthers(t *testing.T) {
	x, y := helpSides(t, nil)
	z := helpSide(t, nil)
	helpMeet(t, z, y)
	const n = 1 << 20
	sent, got, late := bufPattern(n, 1), make([]byte, n), make([]byte, n)
	y.recv(RecvArgs{IOV: iovOf(late), Src: y.addr[x], Context: 1}, x, z)
	y.recv(RecvArgs{IOV: iovOf(got), Src: y.addr[z], Context: 2}, x, z)
	x.send(SendArgs{IOV: iovOf(sent), Dest: x.addr[y]}, y)
	first := y.operation(0) // whose sender makes no progress any more
	z.send(SendArgs{IOV: iovOf(sent), Dest: z.addr[y]}, y)
	second := y.operation(first.ID)
	for polls := 0; second.Asked == 0 && first.Gets == rendezvous.HelpedGets; polls++ {
		if drain(y); polls > 100 {
			t.Fatal("nothing of the second message is asked for")
		}
		was := first
		first = rendezvous.Operation{}
		for _, op := range leasedOf(y.ep).rx.rendezvous.Operations() {
			switch op.ID {
			case was.ID:
				first = op
			case second.ID:
				second = op
			}
		}
	}
	for range 2 {
		y.completion(x, z)
	}
	x.completion(y)
	z.completion(y)
	if !bytes.Equal(sent, got) || !bytes.Equal(sent, late) {
		t.Error("a message is wrong")
	}
	settled(t, x, y, z)
}

// operation waits until a side receives a message by rendezvous other than one.
func (s *side) operation(but uint64) rendezvous.Operation {
	s.t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); drain(s) {
		for _, op := range leasedOf(s.ep).rx.rendezvous.Operations() {
			if op.ID != but {
				return op
			}
		}
	}
	s.t.Fatal("no message comes by rendezvous")
	return rendezvous.Operation{}
}

// TestHelpedUnexpected has a sender help with messages that wait for their receives, in another order.
func TestHelpedUnexpected(t *testing.T) {
	x, y := helpSides(t, nil)
	const n = 512 << 10
	for round := range 10 {
		var sent, got [3][]byte
		for i := range sent {
			sent[i], got[i] = bufPattern(n, byte(round+i)), make([]byte, n)
			x.send(SendArgs{IOV: iovOf(sent[i]), Dest: x.addr[y], Tagged: true, Tag: uint64(i)}, y)
		}
		drain(x, y)
		for i := range got {
			i = len(got) - 1 - i
			y.recv(RecvArgs{IOV: iovOf(got[i]), Src: fi.AddrUnspec, Tagged: true, Tag: uint64(i)}, x)
		}
		for range sent {
			y.completion(x)
			x.completion(y)
		}
		for i := range sent {
			if !bytes.Equal(sent[i], got[i]) {
				t.Fatalf("round %d: message %d is wrong", round, i)
			}
		}
	}
	if helped(y) == 0 {
		t.Error("nothing has helped")
	}
	settled(t, x, y)
}
