package rma

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"testing"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/testseed"
	"github.com/weft-fabric/weft/provider/atomics"
	"github.com/weft-fabric/weft/provider/internal/ordering"
	"github.com/weft-fabric/weft/provider/internal/vector"
	"github.com/weft-fabric/weft/provider/internal/wire"
)

// modelWays are the transports and rules that the model runs over.
var modelWays = []way{
	{name: "messages"},
	{name: "messages of one element", single: true},
	{name: "copies", direct: true},
	{name: "segments", segments: true},
	{name: "segments that are copied", segments: true, direct: true},
	{name: "in order", rules: ordering.Rules(fi.OrderRAW | fi.OrderWAR | fi.OrderWAW)},
	{name: "copies in order", direct: true, rules: ordering.Rules(fi.OrderWAR | fi.OrderSAR)},
}

// TestModel posts operations of chance to peers that answer late, find no room, refuse, are gone, or send answers to
// what is none. Each operation ends once, has done what it is to do, and leaves nothing behind.
func TestModel(t *testing.T) {
	seed := testseed.New(t)
	for _, w := range modelWays {
		t.Run(w.name, func(t *testing.T) {
			for n := range uint64(9) {
				h := newHost(t, w, seed+n)
				if n%3 != 0 {
					h.full = 3
				}
				for range 600 {
					h.step(n%4 == 3)
				}
				h.complete()
			}
		})
	}
}

// step does something. losses: peers may go.
func (h *host) step(losses bool) {
	p := h.peers[h.r.IntN(len(h.peers))]
	switch k := h.r.IntN(40); {
	case k < 8:
		h.post(p)
	case k < 20 && len(p.out) != 0:
		p.perform()
	case k < 32:
		h.deliver(p)
	case k < 36:
		h.pump()
	case k < 39:
		h.forge(p)
	case losses && h.r.IntN(20) == 0:
		h.lose(p)
	}
}

// leased calls f with the progress lease.
func (h *host) leased(f func(pr *Protocol)) {
	pr := h.in.leased.Take()
	if pr == nil {
		h.t.Fatal("the lease is taken")
	}
	defer h.in.leased.Give()
	f(pr)
}

func (h *host) pump() { h.leased(func(pr *Protocol) { pr.Pump() }) }

// deliver gives the initiator the oldest answer of a peer.
func (h *host) deliver(p *peer) {
	if len(p.back) == 0 {
		return
	}
	m := p.back[0]
	p.back = p.back[1:]
	bad := h.bad
	h.receive(p.link.Index, m)
	// An operation with CQ data ends with the first refusal, and messages of its last element may be refused behind it.
	var d wire.Done
	behind := m.id == wire.AMRMADone && d.Parse(m.head) && d.Status == fi.EACCES && d.Units == 0
	if h.bad != bad && !p.dead && !behind {
		h.t.Fatalf("an answer of peer %d about %#x is refused: %+v", p.link.Index, m.header, m)
	}
}

func (h *host) receive(src uint32, m message) {
	h.leased(func(*Protocol) { h.on[m.id](hw.Source(src), m.header, m.head, m.payload) })
}

// lose has a peer be gone: what it has sent is delivered before its end is reported.
func (h *host) lose(p *peer) {
	p.dead = true
	p.out = nil
	for len(p.back) != 0 {
		h.deliver(p)
	}
	h.leased(func(pr *Protocol) { pr.PeerLost(p.link.Index, fi.ECONNRESET) })
	for context, op := range h.ops {
		if op.peer == p && !op.ended {
			h.t.Fatalf("operation %d has not ended with its peer", context)
		}
	}
}

// forge sends an answer that is none.
func (h *host) forge(p *peer) {
	if len(h.ids) == 0 {
		return
	}
	id := h.ids[h.r.IntN(len(h.ids))]
	src, done := p.link.Index, wire.Done{Units: 1 << 40, At: wire.NoPlace}
	m := message{id: wire.AMRMADone, header: id}
	switch h.r.IntN(6) {
	case 0: // more than is to be answered
	case 1: // of a request that is none
		m.header, done.Units = id+1<<40, 1
	case 2: // of a source that is none
		src, done.Units = peersOf, 0
	case 3: // beyond the result
		m.id, m.payload = wire.AMReadData, make([]byte, 100)
		m.head = wire.PutWord(make([]byte, 8), 1<<30)
	case 4: // more than the result has
		m.id, m.payload = wire.AMReadData, make([]byte, 1<<16)
		m.head = wire.PutWord(make([]byte, 8), 0)
	default: // that does not parse
		m.head = make([]byte, 3)
	}
	if m.id == wire.AMRMADone && m.head == nil {
		m.head = done.Put(make([]byte, wire.DoneBytes))
	}
	bad := h.bad
	if h.receive(src, m); h.bad != bad+1 {
		h.t.Fatalf("forged message %d about %#x is taken in", m.id, m.header)
	}
}

// local is local memory of n bytes.
func (h *host) local(n int) []byte {
	h.used = (h.used + 15) &^ 7
	b := h.arena[h.used:][:n:n]
	h.used += n
	for i := range b {
		b[i] = byte(h.r.Uint32())
	}
	return b
}

// place is an address of the peer's memory that no operation has used, and none uses again.
func (p *peer) place(n int) uint64 {
	p.used = (p.used + 15) &^ 7
	at := p.used
	p.used += n
	return uint64(at)
}

// post posts an operation.
func (h *host) post(p *peer) {
	if p.dead || h.used > len(h.arena)-1<<14 || p.used > len(p.memory)-1<<14 {
		return
	}
	h.last++
	op := &operation{peer: p, completes: h.r.IntN(2) == 0}
	flags := uint64(0)
	if op.completes {
		flags = fi.Completion
	}
	h.ops[h.last] = op
	var err error
	if h.r.IntN(4) == 0 {
		err = h.postAtomic(p, op, flags)
	} else {
		err = h.postAccess(p, op, flags)
	}
	if err != nil {
		if !errors.Is(err, fi.EAGAIN) || op.ended {
			h.t.Fatalf("post: %v, ended %v", err, op.ended)
		}
		delete(h.ops, h.last)
	}
}

// key is that of a part of an operation.
func (h *host) key(op *operation, n int) uint64 {
	if h.r.IntN(15) != 0 || n == 0 {
		return goodKey
	}
	op.refused = true
	return badKey
}

// postAccess posts a read or write.
func (h *host) postAccess(p *peer, op *operation, flags uint64) error {
	a := Operation{Dest: fi.Addr(p.link.Index), Flags: flags, Context: h.last, Read: h.r.IntN(2) == 0}
	op.read = a.Read
	most := []int{20, 300, 3000}[h.r.IntN(3)]
	if !a.Read && most == 20 && h.r.IntN(2) == 0 {
		a.Flags |= fi.Inject
	}
	if !a.Read && h.r.IntN(3) == 0 {
		a.HasData, a.Data = true, h.last
	}
	total := 0
	for range h.r.IntN(mostParts + 1) {
		n := h.r.IntN(most)
		a.Remote = append(a.Remote, fi.RMAIOVec{Addr: p.place(n), Len: uint64(n), Key: h.key(op, n)})
		total += n
	}
	mine := h.local(total)
	if total != 0 {
		cut := h.r.IntN(total)
		for _, b := range [][]byte{mine[:cut], mine[cut:]} {
			if len(b) != 0 {
				a.IOV = append(a.IOV, vector.Of(b))
			}
		}
	}
	want := bytes.Clone(mine)
	op.check = func() error {
		at := uint64(0)
		for _, r := range a.Remote {
			b := want[at:][:r.Len]
			if op.read {
				b = mine[at:][:r.Len]
			}
			if theirs := p.memory[r.Addr:][:r.Len]; !bytes.Equal(theirs, b) {
				return fmt.Errorf("%d bytes at %d of %d differ", r.Len, at, len(mine))
			}
			at += r.Len
		}
		return nil
	}
	op.hasData, op.total = a.HasData, uint64(total)
	n, err := a.Check(Limits{Most: 1 << 20, Inject: 64})
	if err != nil {
		h.t.Fatal(err)
	}
	if !h.way.rules.InTurn(&p.link.Order, kindOf(a.Read)) {
		return fi.EAGAIN
	}
	err = h.in.Post(&a, &p.link, &p.path, n)
	if err == nil && a.Injects() {
		clear(mine) // it is the caller's again
	}
	return err
}

func kindOf(read bool) ordering.Kind {
	if read {
		return ordering.Read
	}
	return ordering.Update
}

// postAtomic posts a sum of words.
func (h *host) postAtomic(p *peer, op *operation, flags uint64) error {
	words := 1 + h.r.IntN(3)
	operand, result := h.local(8*words), h.local(8*words)
	a := Atomic{Op: fi.OpSum, Datatype: fi.Uint64, Kind: atomics.Base, Flags: flags, Context: h.last}
	a.Operand = []fi.IOVec{vector.Of(operand)}
	if op.read = h.r.IntN(2) == 0; op.read {
		a.Kind, a.Result = atomics.Fetch, []fi.IOVec{vector.Of(result[:8])}
		if words > 1 {
			a.Result = append(a.Result, vector.Of(result[8:]))
		}
	} else if h.r.IntN(2) == 0 {
		a.Flags |= fi.Inject
	}
	for range words {
		a.Remote = append(a.Remote, fi.RMAIOVec{Addr: p.place(8), Len: 8, Key: h.key(op, 8)})
	}
	added, before := bytes.Clone(operand), make([]byte, 0, 8*words)
	for _, r := range a.Remote {
		before = append(before, p.memory[r.Addr:][:8]...)
	}
	op.check = func() error {
		for i, r := range a.Remote {
			le := binary.LittleEndian
			want := le.Uint64(before[8*i:]) + le.Uint64(added[8*i:])
			if got := le.Uint64(p.memory[r.Addr:]); got != want {
				return fmt.Errorf("word %d is %#x, want %#x", i, got, want)
			}
		}
		if op.read && !bytes.Equal(result, before) {
			return fmt.Errorf("result %x, want %x", result, before)
		}
		return nil
	}
	n, err := a.Check(Limits{Most: 1 << 20, Inject: 64})
	if err != nil {
		h.t.Fatal(err)
	}
	if !h.way.rules.InTurn(&p.link.Order, ordering.Update) {
		return fi.EAGAIN
	}
	err = h.in.PostAtomic(&a, &p.link, &p.path, n)
	if err == nil && a.Flags&fi.Inject != 0 {
		clear(operand)
	}
	return err
}

// sent is how many messages the peers have not taken in.
func (h *host) sent() (n int) {
	for _, p := range h.peers {
		n += len(p.out)
	}
	return n
}

// complete has all operations end, and finds nothing left.
func (h *host) complete() {
	h.full = 0
	left := func() (n int) {
		for _, op := range h.ops {
			if !op.ended {
				n++
			}
		}
		return n
	}
	for turns := 0; left() != 0 || h.sent() != 0; turns++ {
		if turns == 10000 {
			h.t.Fatalf("%d operations do not end", left())
		}
		for _, p := range h.peers {
			if len(p.out) != 0 {
				p.perform()
			}
			h.deliver(p)
		}
		h.pump()
	}
	h.pump()
	for _, p := range h.peers {
		if n := p.link.InFlight.Load(); n != 0 || !p.link.Order.Idle() || len(p.out) != 0 && !p.dead {
			h.t.Fatalf("%d operations are in flight to peer %d, %d messages", n, p.link.Index, len(p.out))
		}
	}
	for context, op := range h.ops {
		n, is := op.peer.delivered[context]
		if is != (op.hasData && !op.refused) && !op.peer.dead || is && n != op.total {
			h.t.Fatalf("data of operation %d of %d bytes: delivered %v of %d", context, op.total, is, n)
		}
	}
	h.leased(func(pr *Protocol) {
		if n, _ := pr.Requests(); n != 0 || pr.Transfers() != 0 || pr.Busy() || h.holds != 0 {
			h.t.Fatalf("%d requests and %d transfers are left, busy %v, %d holds", n, pr.Transfers(), pr.Busy(),
				h.holds)
		}
	})
	h.in.requests.Range(func(id uint64, _ *Request) { h.t.Fatalf("request %#x is left", id) })
}
