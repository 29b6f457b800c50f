package rendezvous

import (
	"slices"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/provider/internal/claim"
	"github.com/weft-fabric/weft/provider/internal/target"
	"github.com/weft-fabric/weft/provider/internal/wire"
)

// assist is a rendezvous of which this side, the sender, copies a share.
type assist struct {
	wire.Offer
	request uint64
}

// onAssist accepts a receiver's offer.
func (s *sending) onAssist(src hw.Source, header uint64, head, payload []byte) {
	var o wire.Offer
	req, known := s.requestOf(src, header)
	if !o.Parse(head) || !known || o.Want > req.Length || req.Count != 1 || s.assisting(header) {
		s.ep.Malformed(src, "offer for request %#x", header)
		return
	}
	if a := (assist{o, header}); !s.stepAssist(&a) {
		s.assists.Add(a)
	}
}

// assisting reports whether this side copies a share of a request already.
func (s *sending) assisting(request uint64) bool {
	return slices.ContainsFunc(s.assists, func(a assist) bool { return a.request == request })
}

// stepAssist writes chunks into the receiver's buffer, and reports whether there is no more to do.
func (s *sending) stepAssist(a *assist) bool {
	req, known := s.ep.Request(a.request)
	if !known {
		return true
	}
	path, ok := s.ep.Path(req.Link)
	if !ok {
		return true
	}
	memory, ok := path.Transport().(hw.PeerMemory)
	if !ok {
		return true
	}
	words := claim.MessageWords(memory.SharedWords())
	if words == nil {
		return true
	}
	n := claim.Chunks(a.Want, a.Chunk)
	for budget := int64(Burst); budget > 0; budget -= int64(a.Chunk) {
		i, ok := words.TakeBack(a.Round, n)
		if !ok {
			return true
		}
		off := i * a.Chunk
		size := min(a.Chunk, a.Want-off)
		s.remote[0] = hw.RemoteSegment{Addr: a.Addr + off, Len: size}
		_, err := memory.WritePeer(s.part(req.IOV[0], off, size), s.remote[:1])
		s.local[0] = hw.Segment{}
		words.Count(err != nil)
	}
	return false
}

// part is n bytes of an element from byte from on, as a transport takes them.
func (s *sending) part(v fi.IOVec, from, n uint64) []hw.Segment {
	t := target.Target{Buf: uint64(v.Base)}
	return t.Segments(s.local[:0], from, n)
}
