package onesided

import (
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/mem"
	"github.com/weft-fabric/weft/provider/internal/claim"
	"github.com/weft-fabric/weft/provider/internal/pieces"
	"github.com/weft-fabric/weft/provider/internal/region"
	"github.com/weft-fabric/weft/provider/internal/wire"
)

// The target's share of a list that an initiator on the same host copies (package list). The pieces of a chunk are read
// from the initiator's memory and checked against their regions before the chunk is taken. What is not in a region of
// this process, or in more than helpRegions of them, is left to the initiator.

// helpRegions is how many regions the pieces of a chunk are in at most: as long as it is copied none of them closes.
const helpRegions = 8

// chunk is what the target has of the chunk of a list that it is at.
type chunk[O any] struct {
	pieces  [hw.MaxPieces]wire.Piece
	move    hw.Pieces
	regions [helpRegions]*region.Region[O] // whose gates are entered
	keys    [helpRegions]uint64
	used    int
	bytes   uint64
	local   [1]hw.Segment
	remote  [1]hw.RemoteSegment
}

// stepListHelp is stepHelp for a list.
func (t *Target[O]) stepListHelp(h *help, words *claim.Words, peer hw.PeerMemory) bool {
	mover, ok := peer.(hw.PieceMover)
	if !ok {
		return true
	}
	if t.chunk == nil {
		t.chunk = new(chunk[O])
	}
	c := t.chunk
	n := claim.Chunks(h.Want, uint64(h.Chunk))
	for budget := int64(helpBurst); budget > 0; budget -= int64(c.bytes) {
		back, left := words.Left(uint64(h.Round), n)
		if !left {
			return true
		}
		err := c.read(h, peer, back-1)
		if err == nil && !c.enter(t, h) {
			return true
		}
		i, ok := words.TakeBack(uint64(h.Round), n)
		if ok {
			if err == nil && i == back-1 {
				_, err = mover.MovePeer(&c.move, h.Read)
			}
			words.Count(err != nil || i != back-1)
		}
		c.leave()
		if !ok || err != nil {
			return true
		}
	}
	return false
}

// read reads the pieces of a chunk from the initiator.
func (c *chunk[O]) read(h *help, peer hw.PeerMemory, number uint64) error {
	first := number * uint64(h.Chunk)
	c.move.N = int(min(uint64(h.Chunk), h.Want-first))
	size := c.move.N * wire.PieceBytes
	c.local[0] = hw.Segment{Addr: mem.Pointer(pieces.Address(c.pieces[:])), Len: size}
	c.remote[0] = hw.RemoteSegment{Addr: h.Local + first*wire.PieceBytes, Len: uint64(size)}
	_, err := peer.ReadPeer(c.local[:], c.remote[:])
	return err
}

// enter finds the memory of all pieces here, and enters the gates of their regions. False: it is not to be had, and no
// gate is entered.
func (c *chunk[O]) enter(t *Target[O], h *help) bool {
	rights := fi.RemoteWrite
	if h.Read {
		rights = fi.RemoteRead
	}
	c.bytes = 0
	for i := range c.pieces[:c.move.N] {
		p := &c.pieces[i]
		m := c.region(t, h.src, p, rights)
		if m == nil || !m.Covers(p.Addr, p.Len) {
			c.leave()
			return false
		}
		c.move.Local[i] = hw.Span{Addr: m.At(p.Addr), Len: p.Len}
		c.move.Remote[i] = hw.Span{Addr: p.Local, Len: p.Len}
		c.bytes += p.Len
	}
	c.bytes = max(c.bytes, 1)
	return true
}

// region is the region of a piece, whose gate is entered, nil: the initiator does the piece.
func (c *chunk[O]) region(t *Target[O], src hw.Source, p *wire.Piece, rights uint64) *region.Region[O] {
	for i := c.used - 1; i >= 0; i-- {
		if c.keys[i] == p.Key {
			return c.regions[i]
		}
	}
	if c.used == helpRegions {
		return nil
	}
	m, _, err := t.ep.Access(src, p.Key, p.Addr, p.Len, rights)
	if err != nil {
		return nil
	}
	c.keys[c.used], c.regions[c.used] = p.Key, m
	c.used++
	if !t.helpsWith(m) {
		return nil
	}
	return m
}

// leave leaves the gates.
func (c *chunk[O]) leave() {
	for i := range c.used {
		c.regions[i].Gate.Leave()
		c.regions[i] = nil
	}
	c.used = 0
}
