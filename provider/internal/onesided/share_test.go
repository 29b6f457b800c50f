package onesided

import (
	"bytes"
	"testing"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/provider/internal/claim"
	"github.com/weft-fabric/weft/provider/internal/wire"
)

// shared is an operation that an initiator shares with the target.
type shared struct {
	h      *host
	src    hw.Source
	rounds claim.Rounds
	words  *claim.Words
}

func (h *host) shares(src hw.Source) *shared {
	return &shared{h: h, src: src, words: claim.OneSidedWords(&h.words[src])}
}

// offer opens a round of n chunks and offers it.
func (s *shared) offer(n uint64, w wire.Share, addr uint64) (round uint64) {
	round, ok := s.rounds.Begin(s.words, n)
	if !ok {
		s.h.t.Fatal("no round begins")
	}
	w.Round = uint16(round)
	s.h.on[wire.AMShare](s.src, addr, w.Put(make([]byte, wire.ShareBytes)), nil)
	return round
}

// TestShare shares reads and writes of one region: the chunks that the target has taken are copied, and no other. One
// whose region has not the range or the rights, is counted, or is closed meanwhile, is left to the initiator.
func TestShare(t *testing.T) {
	const chunk = wire.MinShareChunk
	helped, all := 0, 0
	for seed := range seeds(60) {
		h := newHost(t, seed)
		n := h.r.IntN(8*chunk) + 1
		m := h.region(1, rightsOfAll, false, n+20)
		mine, read := h.buffer(n), h.r.IntN(2) == 0
		copy(mine, h.payload(uint64(n)))
		before := bytes.Clone(mine)
		s, why := h.shares(1), h.r.IntN(8)
		addr := uint64(h.r.IntN(21))
		switch why {
		case 0:
			addr += 21
		case 1:
			h.allow(m, fi.RemoteRead)
			if read {
				h.allow(m, fi.RemoteWrite)
			}
		case 2:
			h.writes.Store(h.counter())
		case 3:
			m.m.Single = true
		case 4:
			h.copies = true // it is asked again and again
		}
		chunks := claim.Chunks(uint64(n), chunk)
		w := wire.Share{Key: 1, Local: address(mine), Want: uint64(n), Chunk: chunk, Read: read}
		round := s.offer(chunks, w, addr)
		front, taken := uint64(0), true
		for taken && h.r.IntN(3) != 0 {
			if h.target.Helps() {
				h.target.Help()
			}
			if _, taken = s.words.TakeFront(round, chunks); taken {
				front++
			}
		}
		if why == 5 && h.target.Helps() {
			h.close(m)
		}
		back := s.words.Stop(round, chunks)
		if h.target.Helps() {
			h.target.Help()
		}
		if count, failed := s.words.Done(); failed || uint64(count) != chunks-back || h.target.Helps() {
			t.Fatalf("seed %d: %d chunks of %d from %d on are counted, failed %v", seed, count, chunks, back, failed)
		}
		if why <= 4 && back != chunks {
			t.Fatalf("seed %d: chunks from %d on are taken in case %d", seed, back, why)
		}
		cut := min(back*chunk, uint64(n))
		want := bytes.Clone(before)
		if addr <= 20 {
			if read {
				copy(want[cut:], m.plain[addr:][cut:n])
			} else {
				copy(m.plain[addr:][cut:], before[cut:])
			}
		}
		if got := bytes.Join(m.parts, nil); !bytes.Equal(mine, want) || !bytes.Equal(got, m.plain) {
			t.Fatalf("seed %d: read %v, chunks from %d on of %d differ", seed, read, back, chunks)
		}
		if all++; back != chunks {
			helped++
		}
	}
	if helped == 0 || helped == all {
		t.Errorf("the target has helped with %d of %d", helped, all)
	}
}

// TestShareList shares lists of pieces in several regions: a chunk is copied whole, or left whole, with pieces that are
// in no region, beyond one, or in too many.
func TestShareList(t *testing.T) {
	helped, left := 0, 0
	for seed := range seeds(100) {
		h := newHost(t, seed)
		regions := 1 + h.r.IntN(helpRegions+2)
		for i := range regions {
			h.region(uint64(i+1), rightsOfAll, false, 100)
		}
		if h.r.IntN(4) == 0 {
			h.allow(h.regions[0], fi.Send)
		}
		list, read := make([]wire.Piece, 1+h.r.IntN(40)), h.r.IntN(2) == 0
		mine := h.buffer(len(list) * 16)
		copy(mine, h.payload(uint64(len(mine))))
		before := bytes.Clone(mine)
		total := uint64(0)
		for i := range list {
			p := &list[i]
			p.Key, p.Len, p.Local = uint64(h.r.IntN(regions)+1), uint64(h.r.IntN(17)), address(mine[i*16:])
			p.Addr = uint64(h.r.IntN(101 - int(p.Len)))
			switch h.r.IntN(150) {
			case 0:
				p.Addr = 101
			case 1:
				p.Key = 99
			case 2:
				p.Addr = ^uint64(0)
			}
			total += p.Len
		}
		const per = 8
		s, chunks := h.shares(0), claim.Chunks(uint64(len(list)), per)
		array := h.buffer(len(list) * wire.PieceBytes)
		copy(array, bytesOf(list))
		round := s.offer(chunks, wire.Share{
			Key: total, Local: address(array), Want: uint64(len(list)), Chunk: per, Read: read, List: true,
		}, 0)
		back := s.words.Stop(round, chunks)
		if count, failed := s.words.Done(); failed || uint64(count) != chunks-back || h.target.Helps() {
			t.Fatalf("seed %d: %d chunks from %d on are counted, failed %v", seed, count, back, failed)
		}
		for c := chunks; c > back; c-- {
			for i := (c - 1) * per; i < min(c*per, uint64(len(list))); i++ {
				p := list[i]
				m := h.find(p.Key).plain[p.Addr:][:p.Len]
				if read {
					copy(before[i*16:], m)
				} else {
					copy(m, before[i*16:])
				}
			}
		}
		if !bytes.Equal(mine, before) {
			t.Fatalf("seed %d: the initiator's memory differs", seed)
		}
		for _, m := range h.regions {
			if got := bytes.Join(m.parts, nil); !bytes.Equal(got, m.plain) {
				t.Fatalf("seed %d: region %d differs", seed, m.key)
			}
		}
		if back != chunks {
			helped++
		} else {
			left++
		}
	}
	if helped == 0 || left == 0 {
		t.Errorf("the target has helped with %d, not with %d", helped, left)
	}
}

// TestShareLost: the offers of an initiator that is gone are dropped, and chunks that could not be copied are counted
// as failed.
func TestShareLost(t *testing.T) {
	h := newHost(t, 1)
	h.region(1, rightsOfAll, false, 64*wire.MaxShareChunk)
	w := wire.Share{Key: 1, Local: 1 << 20, Want: 64 * wire.MaxShareChunk, Chunk: wire.MaxShareChunk}
	h.dead = true
	a, b := h.shares(0), h.shares(1)
	a.offer(64, w, 0)
	b.offer(64, w, 0)
	if n, failed := a.words.Done(); !failed || n == 0 || h.target.Left().Helps != 2 {
		t.Fatalf("%d chunks, failed %v, left %+v", n, failed, h.target.Left())
	}
	h.target.SourceLost(0)
	if h.target.Left().Helps != 1 {
		t.Errorf("left %+v", h.target.Left())
	}
	h.gone[1] = true
	if h.target.Help(); h.target.Helps() {
		t.Errorf("left %+v", h.target.Left())
	}
	h.on[wire.AMShare](1, 0, w.Put(make([]byte, wire.ShareBytes)), nil)
	h.on[wire.AMShare](2, 0, make([]byte, wire.ShareBytes), nil)
	if h.bad != 2 || h.target.Helps() {
		t.Errorf("%d offers are refused, left %+v", h.bad, h.target.Left())
	}
}

// TestNewOffer: an offer of a source ends the help with the one before.
func TestNewOffer(t *testing.T) {
	h := newHost(t, 1)
	h.region(1, rightsOfAll, false, 64*wire.MaxShareChunk)
	h.dead = true
	w := wire.Share{Key: 1, Local: 1 << 20, Want: 64 * wire.MaxShareChunk, Chunk: wire.MaxShareChunk}
	s := h.shares(0)
	round := s.offer(64, w, 0)
	s.words.Stop(round, 64)
	s.rounds, *s.words = claim.Rounds{}, claim.Words{}
	s.offer(64, w, 0)
	if h.target.Left().Helps != 1 {
		t.Errorf("left %+v", h.target.Left())
	}
}
