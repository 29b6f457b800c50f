package messages

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/dataplane"
	"github.com/weft-fabric/weft/internal/mem"
	"github.com/weft-fabric/weft/provider/internal/vector"
	"github.com/weft-fabric/weft/provider/internal/wire"
)

// post posts a random message to a peer, and overwrites its memory if it is injected.
func (h *host) post(to int, length int, flags uint64, arena []byte) error {
	p := h.peers[to]
	for i := range arena[:length] {
		arena[i] = byte(h.r.Uint32())
	}
	context := uint64(len(h.ops) + 1)
	m := Send{
		Dest: fi.Addr(to), Tag: context, Context: context, Flags: flags, Tagged: h.r.IntN(2) == 0,
		HasData: h.r.IntN(2) == 0, Data: h.r.Uint64(),
	}
	if h.way.works && h.r.IntN(4) == 0 {
		m.Work = h.r.Uint64() | 1
	}
	if flags&fi.Inject != 0 && h.r.IntN(2) == 0 {
		m.Inject, m.Flags = true, flags&^fi.Inject
	}
	for rest := arena[:length]; len(rest) != 0 && len(m.IOV) < wire.IOVLimit; {
		n := len(rest)
		if len(m.IOV) < wire.IOVLimit-1 {
			n = 1 + h.r.IntN(n)
		}
		m.IOV, rest = append(m.IOV, vector.Of(rest[:n])), rest[n:]
	}
	op := &operation{
		m: m, payload: append([]byte(nil), arena[:length]...), peer: p,
		completes: flags&fi.Completion != 0 && !m.Inject,
	}
	if flags&fi.Inject != 0 {
		defer clear(arena[:length])
	}
	total, err := m.Check(Limits{Most: 1 << 20, Inject: injectMax})
	if err != nil || total != uint64(length) {
		h.t.Fatal(total, err)
	}
	op.tracked = flags&(fi.DeliveryComplete|fi.MatchComplete) != 0 || flags&fi.TransmitComplete != 0 && !h.way.ring
	h.ops[context] = op
	before := p.link.Awaited()
	if err = h.s.Send(&m, total); err != nil {
		delete(h.ops, context)
	} else if flags&fi.Fence != 0 && before != 0 {
		h.t.Errorf("a message with a fence goes out before %d that wait", before)
	}
	return err
}

// TestModel posts messages of all kinds to peers that take them in and answer at random, of which one is lost. Each
// arrives once, unchanged, and ends once, with its outcome.
func TestModel(t *testing.T) {
	for _, w := range []way{{name: "ring", ring: true, works: true}, {name: "network", works: true}} {
		for seed := range uint64(20) {
			t.Run(fmt.Sprintf("%s/%d", w.name, seed), func(t *testing.T) { model(t, w, seed) })
		}
	}
}

func model(t *testing.T, w way, seed uint64) {
	h := newHost(t, w, seed)
	h.full = 6
	arena, err := mem.Map(2<<20, mem.NoReserve)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = mem.Unmap(arena) })
	for step := range 600 {
		p := h.peers[h.r.IntN(peersOf)]
		switch n := h.r.IntN(10); {
		case n < 4:
			length, flags := h.r.IntN(3*eagerMax), uint64(0)
			for _, f := range []uint64{fi.Completion, fi.DeliveryComplete, fi.TransmitComplete, fi.MatchComplete} {
				if h.r.IntN(3) == 0 {
					flags |= f
				}
			}
			if h.r.IntN(8) == 0 {
				flags |= fi.Fence
			}
			if h.r.IntN(4) == 0 {
				length, flags = length%(injectMax+1), flags|fi.Inject
			}
			at := arena[step*3*eagerMax:][:3*eagerMax]
			if err := h.post(int(p.src), length, flags, at); err != nil && !errors.Is(err, fi.EAGAIN) &&
				!(p.dead && errors.Is(err, fi.ECONNRESET)) {
				t.Fatal(err)
			}
		case n < 8 && len(p.out) != 0 && !p.dead:
			p.arrive()
		case n == 8 && len(p.answers) != 0 && !p.dead:
			p.answer()
		case n == 9:
			p.closed = !p.closed
		}
		if step == 400 {
			h.lose(h.peers[0])
		}
	}
	h.full = 0
	for _, p := range h.peers[1:] {
		for len(p.out) != 0 {
			p.arrive()
		}
		for len(p.answers) != 0 {
			p.answer()
		}
	}
	h.checkEnds()
}

// lose has a peer be gone, of which a late answer is refused.
func (h *host) lose(p *peer) {
	p.dead = true
	h.pr.PeerLost(p.link.Index, fi.ECONNRESET)
	for _, id := range p.answers {
		before := h.bad
		h.on[wire.AMAck](p.src, id, wire.PutAck(make([]byte, 8), fi.Success), nil)
		if h.bad != before+1 {
			h.t.Error("an answer of a peer that is gone is taken")
		}
	}
}

// checkEnds checks that nothing is under way, and that all that is to complete has.
func (h *host) checkEnds() {
	for context, op := range h.ops {
		if !op.ended && op.completes || !op.arrived && !op.peer.dead {
			h.t.Errorf("message %d of %d bytes: ended %v, arrived %v", context, len(op.payload), op.ended, op.arrived)
		}
	}
	h.s.Requests().Range(func(id uint64, req *request) {
		if req.Live.Load() != 0 {
			h.t.Errorf("request %#x is left", id)
		}
	})
	for i := range stripesOf {
		var free []uint64
		for _, id, ok := h.s.Requests().Alloc(i); ok; _, id, ok = h.s.Requests().Alloc(i) {
			free = append(free, id)
		}
		for _, id := range free {
			h.s.Requests().Free(id)
		}
		if len(free) != perStripe {
			h.t.Errorf("%d requests of stripe %d are free, of %d", len(free), i, perStripe)
		}
	}
	for i, p := range h.peers {
		if n := p.link.Awaited(); n != 0 {
			h.t.Errorf("%d messages to peer %d are counted", n, i)
		}
	}
}

// TestHostile: an ACK ends nothing that its source has not been sent, or that has not gone out.
func TestHostile(t *testing.T) {
	h := newHost(t, way{ring: true}, 1)
	arena := make([]byte, 8)
	if err := h.post(0, 8, fi.Completion|fi.DeliveryComplete, arena); err != nil {
		t.Fatal(err)
	}
	h.peers[0].arrive()
	id, ack := h.peers[0].answers[0], wire.PutAck(make([]byte, 8), fi.Success)
	unsent, other, _ := h.s.Requests().Alloc(0)
	unsent.Begin(1, 8, dataplane.RequestCompletes, h.peers[0].link.Index)
	for what, c := range map[string]struct {
		src  hw.Source
		id   uint64
		head []byte
	}{
		"of another peer":      {1, id, ack},
		"of no request":        {0, id ^ 1<<40, ack},
		"of none so far":       {0, other, ack},
		"that is cut":          {0, id, ack[:7]},
		"with no errno":        {0, id, []byte{0, 0, 0, 0, 0, 0, 0, 1}},
		"of what has not gone": {0, other, wire.PutAck(make([]byte, 8), fi.EIO)},
	} {
		before := h.bad
		h.on[wire.AMAck](c.src, c.id, c.head, nil)
		if h.bad != before+1 || h.ops[1].ended {
			t.Errorf("an ACK %s is taken", what)
		}
	}
	h.s.Requests().Free(other)
	h.ops[1].answered = true
	h.on[wire.AMAck](0, id, ack, nil)
	h.checkEnds()
}

// TestCopies: messages that find no bounce buffer for long complete with a copy, which the receiver reads, and closing
// waits for that, as long as receivers read.
func TestCopies(t *testing.T) {
	h := newHost(t, way{ring: true}, 1)
	h.noBounce = true
	arena := make([]byte, injectMax)
	send := func() {
		for end := time.Now().Add(5 * time.Second); h.post(0, injectMax, fi.Completion, arena) != nil; {
			if time.Now().After(end) {
				t.Fatal("no copy is made")
			}
			time.Sleep(time.Millisecond)
		}
		clear(arena) // it has completed
	}
	send()
	send()
	for _, op := range h.ops {
		if !op.ended {
			t.Error("a message of which there is a copy has not completed")
		}
	}
	p := h.peers[0]
	p.arrive()
	p.arrive()
	before := time.Now()
	h.s.Settle(func() {
		if len(p.answers) != 0 {
			p.answer()
		}
	}, true, 10*time.Second)
	if time.Since(before) > 9*time.Second {
		t.Error("closing waits for copies that are read")
	}
	h.checkEnds()
	send()
	before = time.Now()
	h.s.Settle(func() {}, true, 10*time.Millisecond)
	if time.Since(before) < 10*time.Millisecond {
		t.Error("closing does not wait")
	}
	p.arrive()
	h.noBounce = false
	if err := h.post(0, injectMax, fi.Completion, arena); err != nil || p.out[0].id == wire.AMRTS {
		t.Errorf("with a bounce buffer: %v, %v", err, p.out)
	}
	h.noBounce = true
	if err := h.post(0, injectMax, fi.Completion, arena); !errors.Is(err, fi.EAGAIN) {
		t.Errorf("when bounce buffers have just run out: %v", err)
	}
}

// TestPumpEndsLost: messages of the data plane to a ring that no link leads to end when that is sought, others do not.
func TestPumpEndsLost(t *testing.T) {
	h := newHost(t, way{ring: true}, 1)
	for i, ring := range []uintptr{0, 64, 32} {
		req, id, _ := h.s.Requests().Alloc(0)
		h.ops[uint64(i+1)] = &operation{peer: h.peers[0], completes: true}
		req.Begin(uint64(i+1), 0, dataplane.RequestCompletes, h.peers[0].link.Index)
		req.Ring = ring
		h.peers[0].link.Transmits.Add(1)
		req.Live.Store(uint32(id >> 32))
	}
	l, err := h.links.Of(0)
	if err != nil {
		t.Fatal(err)
	}
	p, err := h.links.Connect(l)
	if err != nil {
		t.Fatal(err)
	}
	p.Slots = 32
	l.Release()
	h.peers[0].dead = true
	if h.pr.Pump(); h.pr.Busy() || h.ops[2].ended {
		t.Error("a message has ended that nothing has sought")
	}
	if h.s.SeekLost(); !h.pr.Busy() || !h.pr.Requested() {
		t.Error("progress is not asked for")
	}
	if h.pr.Pump(); !h.ops[2].ended || h.ops[1].ended || h.ops[3].ended || h.pr.Busy() {
		t.Errorf("ended: %v, %v, %v", h.ops[1].ended, h.ops[2].ended, h.ops[3].ended)
	}
}

// TestLossy: a datagram to a peer that takes none is dropped and completes, and what a datagram cannot have is refused.
func TestLossy(t *testing.T) {
	h := newHost(t, way{ring: true, lossy: true}, 1)
	arena := make([]byte, 2*eagerMax)
	for _, c := range []struct {
		length int
		flags  uint64
		want   error
	}{
		{8, fi.DeliveryComplete, fi.EBADFLAGS}, {8, fi.Fence, fi.EBADFLAGS}, {eagerMax + 1, 0, fi.EMSGSIZE},
		{eagerMax, fi.Completion, nil},
	} {
		if err := h.post(0, c.length, c.flags, arena); !errors.Is(err, c.want) {
			t.Errorf("%d bytes, flags %#x: %v", c.length, c.flags, err)
		}
	}
	h.peers[1].dead = true
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		err := h.post(1, 8, fi.Completion, arena)
		if err == nil {
			break
		}
		if !errors.Is(err, fi.EAGAIN) || time.Now().After(end) {
			t.Fatal(err)
		}
	}
	if op := h.ops[uint64(len(h.ops))]; !op.ended || len(h.peers[1].out) != 0 {
		t.Error("a datagram that is dropped does not complete")
	}
}

// TestCheck: what is not a message.
func TestCheck(t *testing.T) {
	b := make([]byte, 64)
	for what, c := range map[string]struct {
		m    Send
		want error
	}{
		"flags":             {Send{Flags: fi.Peek}, fi.EBADFLAGS},
		"elements":          {Send{IOV: make([]fi.IOVec, wire.IOVLimit+1)}, fi.EINVAL},
		"no memory":         {Send{IOV: []fi.IOVec{{Len: 1}}}, fi.EINVAL},
		"too long":          {Send{IOV: []fi.IOVec{vector.Of(b[:33])}}, fi.EMSGSIZE},
		"too long, inject":  {Send{IOV: []fi.IOVec{vector.Of(b[:17])}, Inject: true}, fi.EINVAL},
		"too long, flagged": {Send{IOV: []fi.IOVec{vector.Of(b[:17])}, Flags: fi.Inject}, fi.EINVAL},
		"fits":              {Send{IOV: []fi.IOVec{vector.Of(b[:16]), vector.Of(b[:16])}}, nil},
	} {
		if n, err := c.m.Check(Limits{Most: 32, Inject: 16}); !errors.Is(err, c.want) || err == nil && n != 32 {
			t.Errorf("%s: %d, %v", what, n, err)
		}
	}
}
