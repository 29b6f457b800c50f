package provider

import (
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/provider/claim"
	"github.com/weft-fabric/weft/provider/rendezvous"
	"github.com/weft-fabric/weft/provider/wire"
)

// assistBurst is the most that one step of help copies, in bytes: progress serves other peers in between.
const assistBurst = rendezvous.Burst

// The target's side of rma_share.go. Everything is checked against the region of
// the key at each chunk, as where the target does it alone. A chunk is
// taken only when the region lets it be copied, so a region that is closed
// leaves the rest to the initiator, with the reason. A target that copies as much by itself takes
// nothing: its processor is no help.

// help is an operation of a peer that this side, the target, helps with.
type help struct {
	wire.Share
	addr uint64 // in the region, as peers name it
	src  hw.Source
}

// onShare accepts an initiator's offer.
func (e *rmaTarget) onShare(src hw.Source, addr uint64, head, payload []byte) {
	h := help{addr: addr, src: src}
	words := claim.OneSidedWords(e.sourceWords(src))
	if !h.Parse(head) || words == nil {
		e.malformed(src, "offer to share %d bytes at %#x", h.Want, addr)
		return
	}
	words.See()
	e.dropHelp(src) // its round is over
	if !e.copying(h.bytes()) && !e.stepHelp(&h) {
		e.helps = append(e.helps, h)
	}
}

// bytes is how many the operation has.
func (h *help) bytes() uint64 {
	if h.List {
		return h.Key
	}
	return h.Want
}

// dropHelp forgets the offer of a source.
func (e *rmaTarget) dropHelp(src hw.Source) {
	e.helps.Step(func(h *help) bool { return h.src == src })
}

// stepHelp copies chunks, and reports whether there is no more to do. The caller handles no later message of the peer
// before a chunk that was taken is copied.
func (e *rmaTarget) stepHelp(h *help) bool {
	words := claim.OneSidedWords(e.sourceWords(h.src))
	p, err := e.connect(e.linkBack(e.senderOf(h.src)))
	if err != nil || words == nil {
		return true
	}
	peer, ok := p.Endpoint.(hw.PeerMemory)
	if !ok {
		return true
	}
	if h.List {
		return e.stepListHelp(h, words, peer)
	}
	rights := fi.RemoteWrite
	if h.Read {
		rights = fi.RemoteRead
	}
	n := claim.Chunks(h.Want, uint64(h.Chunk))
	for budget := int64(assistBurst); budget > 0; budget -= int64(h.Chunk) {
		m, offset, err := e.access(h.src, h.Key, h.addr, h.Want, rights)
		if err != nil {
			return true
		}
		i, ok := uint64(0), e.helpsWith(m)
		if ok {
			i, ok = words.TakeBack(uint64(h.Round), n)
		}
		if ok {
			err = e.copyChunk(h, peer, m, offset, i)
		}
		m.Gate.Leave()
		if !ok {
			return true
		}
		words.Count(err != nil)
	}
	return false
}

// helpsWith reports whether a region is one that initiators reach by themselves: in
// one piece, of the process's own memory, and accesses to it are not counted.
func (e *bindings) helpsWith(m *peerRegion) bool {
	return m.InOnePart() && !m.OnDevice() && m.Owner.counter.Load() == nil && !m.Single && !e.counted()
}

// copyChunk copies chunk i of an operation that begins at offset of a region. The
// caller has entered the region.
func (e *rmaTarget) copyChunk(h *help, peer hw.PeerMemory, m *peerRegion, offset, i uint64) error {
	at := i * uint64(h.Chunk)
	size := min(uint64(h.Chunk), h.Want-at)
	e.local[0] = hw.Segment{Addr: pointerAt(uint64(m.Memory.Parts[0].Base) + offset + at), Len: int(size)}
	e.remote[0] = hw.RemoteSegment{Addr: h.Local + at, Len: size}
	var err error
	if h.Read {
		_, err = peer.WritePeer(e.local[:1], e.remote[:1])
	} else {
		_, err = peer.ReadPeer(e.local[:1], e.remote[:1])
	}
	e.local[0] = hw.Segment{} // the region may be Go's memory, and be freed
	return err
}
