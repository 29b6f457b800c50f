package rma

import (
	"bytes"
	"math/rand/v2"
	"sync/atomic"
	"testing"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/provider/internal/claim"
	"github.com/weft-fabric/weft/provider/internal/vector"
)

func (p *peer) SharedWords() *[4]uint64 { return &p.words }

func (p *peer) ReadPeer([]hw.Segment, []hw.RemoteSegment) (int, error)  { return 0, hw.ErrPermission }
func (p *peer) WritePeer([]hw.Segment, []hw.RemoteSegment) (int, error) { return 0, hw.ErrPermission }

// offered has the peer take chunks of a share that it is offered. It copies them later.
func (p *peer) offered(head []byte) {
	if !p.share.Parse(head) {
		p.h.t.Fatal("an offer does not parse")
	}
	words := claim.OneSidedWords(&p.words)
	words.See()
	n := claim.Chunks(p.share.Want, uint64(p.share.Chunk))
	for ; p.takes > 0; p.takes-- {
		i, ok := words.TakeBack(uint64(p.share.Round), n)
		if !ok {
			p.h.t.Fatal("nothing to take")
		}
		p.taken = append(p.taken, i)
	}
}

// help copies the chunks that the peer has taken of a write to an address, or fails to.
func (p *peer) help(local []byte, addr uint64, fails bool) {
	for _, i := range p.taken {
		from := i * uint64(p.share.Chunk)
		if part := local[from:min(from+uint64(p.share.Chunk), uint64(len(local)))]; !fails {
			copy(p.memory[addr+from:], part)
		}
		claim.OneSidedWords(&p.words).Count(fails)
	}
	p.taken = nil
}

// shared posts a write of n bytes of which the first peer takes some chunks.
func shared(t *testing.T, n, takes int) (h *host, p *peer, op *operation, local []byte, addr uint64) {
	t.Helper()
	h = newHost(t, way{shares: true}, 1)
	p = h.peers[0]
	h.unread, p.takes = hot.DelegateAhead, takes
	p.place(64) // an operation at address 0 meets what was there before the first
	local, addr = h.local(n), p.place(n)
	h.last++
	op = &operation{peer: p, completes: true, hasData: true, total: uint64(n), check: func() error { return nil }}
	h.ops[h.last] = op
	a := Operation{
		IOV: []fi.IOVec{vector.Of(local)}, Remote: []fi.RMAIOVec{{Addr: addr, Len: uint64(n), Key: goodKey}},
		Flags: fi.Completion, Context: h.last, HasData: true, Data: h.last,
	}
	if err := h.in.Post(&a, &p.link, &p.path, uint64(n)); err != nil {
		t.Fatal(err)
	}
	return h, p, op, local, addr
}

const longWrite = 256 << 10

// TestShare: a write whose target copies a share ends when the target has, in place, with its data once.
func TestShare(t *testing.T) {
	for what, end := range map[string]func(h *host, p *peer, local []byte, addr uint64){
		"copied":       func(_ *host, p *peer, local []byte, addr uint64) { p.help(local, addr, false) },
		"not copied":   func(_ *host, p *peer, local []byte, addr uint64) { p.help(local, addr, true) },
		"by the other": func(_ *host, p *peer, local []byte, addr uint64) { p.help(local, addr, false) },
	} {
		h, p, op, local, addr := shared(t, longWrite, 2)
		if h.in.Reap(); op.ended || h.in.Waiting() != 1 || p.link.InFlight.Load() != 1 {
			t.Fatalf("%s: ended %v while the target copies, %d wait", what, op.ended, h.in.Waiting())
		}
		end(h, p, local, addr)
		if what == "by the other" { // a thread without the progress lease
			if h.in.Reap(); !op.ended {
				t.Errorf("%s: not ended", what)
			}
		}
		if h.complete(); !bytes.Equal(p.memory[addr:][:longWrite], local) || h.in.Waiting() != 0 {
			t.Errorf("%s: wrong bytes, or %d wait", what, h.in.Waiting())
		}
	}
}

// TestShareLost: the target goes before it has completed its share, or behind that.
func TestShareLost(t *testing.T) {
	for _, completed := range []bool{false, true} {
		h, p, op, local, addr := shared(t, longWrite, 1)
		if completed {
			p.help(local, addr, false)
		}
		p.dead = true
		if h.in.Reap(); op.ended {
			t.Errorf("completed %v: ended without the lease", completed)
		}
		h.pump()
		if !op.ended || h.in.Waiting() != 0 || p.link.InFlight.Load() != 0 {
			t.Errorf("completed %v: ended %v, %d wait", completed, op.ended, h.in.Waiting())
		}
	}
}

// TestDelegate: an operation that the target does not take is reclaimed when all completions are read, or after some
// polls, by the holder of the lease.
func TestDelegate(t *testing.T) {
	for _, read := range []bool{false, true} {
		h, p, op, local, addr := shared(t, 64<<10, 0)
		if h.in.Waiting() != 1 {
			t.Fatal("not delegated")
		}
		if read {
			h.unread = 0
		}
		if h.in.Reap(); op.ended {
			t.Error("reclaimed without the lease")
		}
		polls := 0
		for ; !op.ended && polls < 2*DelegatePatience; polls++ {
			h.pump()
		}
		if read != (polls == 1) || !op.ended {
			t.Errorf("all read %v: ended %v after %d polls", read, op.ended, polls)
		}
		if h.complete(); !bytes.Equal(p.memory[addr:][:len(local)], local) {
			t.Error("wrong bytes")
		}
	}
}

// TestShareHostile: a target may write anything into the words that it shares.
func TestShareHostile(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 40 {
		h, p, op, _, _ := shared(t, longWrite, r.IntN(3))
		for range 30 {
			atomic.StoreUint64(&p.words[r.IntN(4)], r.Uint64()>>r.IntN(64))
			h.in.Reap()
			h.pump()
		}
		p.dead = true // which ends what the words do not
		h.pump()
		h.leased(func(pr *Protocol) { pr.PeerLost(0, fi.ECONNRESET) })
		if !op.ended || p.link.InFlight.Load() != 0 {
			t.Fatalf("ended %v, %d in flight", op.ended, p.link.InFlight.Load())
		}
	}
}
