package onesided

import (
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/mem"
	"github.com/weft-fabric/weft/provider/internal/claim"
	"github.com/weft-fabric/weft/provider/internal/flow"
	"github.com/weft-fabric/weft/provider/internal/region"
	"github.com/weft-fabric/weft/provider/internal/wire"
)

// The target's share of an operation that an initiator on the same host copies (package claim). Everything is checked
// against the region of the key at each chunk, as where the target does it alone. A chunk is taken only when the region
// lets it be copied, so a region that is closed leaves the rest to the initiator, with the reason. A target that copies
// as much by itself takes nothing: its processor is no help.

// helpBurst is the most that one step of help copies, in bytes: progress serves other peers in between.
const helpBurst = flow.Burst

// help is an operation of a peer that this side, the target, helps with.
type help struct {
	wire.Share
	addr uint64 // in the region, as peers name it
	src  hw.Source
}

// onShare accepts an initiator's offer.
func (t *Target[O]) onShare(src hw.Source, addr uint64, head, _ []byte) {
	h := help{addr: addr, src: src}
	words := t.ep.Words(src)
	if !h.Parse(head) || words == nil {
		t.ep.Malformed(src, "offer to share %d bytes at %#x", h.Want, addr)
		return
	}
	words.See()
	t.SourceLost(src) // its round is over
	if !t.ep.Copying(h.bytes()) && !t.stepHelp(&h) {
		t.helps.Add(h)
	}
}

// bytes is how many the operation has.
func (h *help) bytes() uint64 {
	if h.List {
		return h.Key
	}
	return h.Want
}

// stepHelp copies chunks, and reports whether there is no more to do. The caller handles no later message of the peer
// before a chunk that was taken is copied.
func (t *Target[O]) stepHelp(h *help) bool {
	words, peer := t.ep.Words(h.src), t.ep.Memory(h.src)
	if words == nil || peer == nil {
		return true
	}
	if h.List {
		return t.stepListHelp(h, words, peer)
	}
	rights := fi.RemoteWrite
	if h.Read {
		rights = fi.RemoteRead
	}
	n := claim.Chunks(h.Want, uint64(h.Chunk))
	for budget := int64(helpBurst); budget > 0; budget -= int64(h.Chunk) {
		m, offset, err := t.ep.Access(h.src, h.Key, h.addr, h.Want, rights)
		if err != nil {
			return true
		}
		i, ok := uint64(0), t.helpsWith(m)
		if ok {
			i, ok = words.TakeBack(uint64(h.Round), n)
		}
		if ok {
			err = t.copyChunk(h, peer, m, offset, i)
		}
		m.Gate.Leave()
		if !ok {
			return true
		}
		words.Count(err != nil)
	}
	return false
}

// helpsWith reports whether a region is one that initiators reach by themselves: in one piece, of the process's own
// memory, and accesses to it are not counted.
func (t *Target[O]) helpsWith(m *region.Region[O]) bool {
	return m.InOnePart() && !m.OnDevice() && m.Counter.Load() == nil && !m.Single &&
		!t.counters.Counted()
}

// copyChunk copies chunk i of an operation that begins at offset of a region. The caller has entered the region.
func (t *Target[O]) copyChunk(h *help, peer hw.PeerMemory, m *region.Region[O], offset, i uint64) error {
	at := i * uint64(h.Chunk)
	size := min(uint64(h.Chunk), h.Want-at)
	t.local[0] = hw.Segment{Addr: mem.Pointer(uint64(m.Memory.Parts[0].Base) + offset + at), Len: int(size)}
	t.remote[0] = hw.RemoteSegment{Addr: h.Local + at, Len: size}
	var err error
	if h.Read {
		_, err = peer.WritePeer(t.local[:1], t.remote[:1])
	} else {
		_, err = peer.ReadPeer(t.local[:1], t.remote[:1])
	}
	t.local[0] = hw.Segment{} // the region may be Go's memory, and be freed
	return err
}
