package provider

import (
	"sync"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/provider/claim"
	"github.com/weft-fabric/weft/provider/pieces"
	"github.com/weft-fabric/weft/provider/wire"
)

// The target's side of a list that is shared (package list). The pieces of a chunk are read from the initiator's memory
// and checked against their regions before the chunk is taken. What is not in a region of this process, or in more than
// helpRegions of them, is left to the initiator.

// helpRegions is how many regions the pieces of a chunk are in at most: as long as it is copied none of them closes.
const helpRegions = 8

// chunkHelp is what the target has of the chunk that it is at.
type chunkHelp struct {
	pieces  [hw.MaxPieces]wire.Piece
	move    hw.Pieces
	regions [helpRegions]*peerRegion // whose gates are entered
	keys    [helpRegions]uint64
	used    int
	bytes   uint64
	local   [1]hw.Segment
	remote  [1]hw.RemoteSegment
}

var chunkHelps = sync.Pool{New: func() any { return new(chunkHelp) }}

// stepListHelp is stepHelp for a list.
func (e *leasedEP) stepListHelp(h *help, words *claim.Words, peer hw.PeerMemory) bool {
	mover, ok := peer.(hw.PieceMover)
	if !ok {
		return true
	}
	c := chunkHelps.Get().(*chunkHelp)
	defer chunkHelps.Put(c)
	n := claim.Chunks(h.Want, uint64(h.Chunk))
	for budget := int64(assistBurst); budget > 0; budget -= int64(c.bytes) {
		back, left := words.Left(uint64(h.Round), n)
		if !left {
			return true
		}
		err := c.read(h, peer, back-1)
		if err == nil && !c.enter(e, h) {
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
func (c *chunkHelp) read(h *help, peer hw.PeerMemory, chunk uint64) error {
	first := chunk * uint64(h.Chunk)
	c.move.N = int(min(uint64(h.Chunk), h.Want-first))
	size := c.move.N * wire.PieceBytes
	c.local[0] = hw.Segment{Addr: pointerAt(pieces.Address(c.pieces[:])), Len: size}
	c.remote[0] = hw.RemoteSegment{Addr: h.Local + first*wire.PieceBytes, Len: uint64(size)}
	_, err := peer.ReadPeer(c.local[:], c.remote[:])
	return err
}

// enter finds the memory of all pieces here, and enters the gates of their regions. False: it is not to be had, and no
// gate is entered.
func (c *chunkHelp) enter(e *leasedEP, h *help) bool {
	rights := fi.RemoteWrite
	if h.Read {
		rights = fi.RemoteRead
	}
	c.bytes = 0
	for i := range c.pieces[:c.move.N] {
		p := &c.pieces[i]
		m := c.region(e, h.src, p, rights)
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
func (c *chunkHelp) region(e *leasedEP, src hw.Source, p *wire.Piece, rights uint64) *peerRegion {
	for i := c.used - 1; i >= 0; i-- {
		if c.keys[i] == p.Key {
			return c.regions[i]
		}
	}
	if c.used == helpRegions {
		return nil
	}
	m, _, err := e.access(src, p.Key, p.Addr, p.Len, rights)
	if err != nil {
		return nil
	}
	c.keys[c.used], c.regions[c.used] = p.Key, m
	c.used++
	if !e.helpsWith(m) {
		return nil
	}
	return m
}

// leave leaves the gates.
func (c *chunkHelp) leave() {
	for i := range c.used {
		c.regions[i].Gate.Leave()
		c.regions[i] = nil
	}
	c.used = 0
}
