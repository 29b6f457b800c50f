package rendezvous

import (
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/dataplane"
	"github.com/weft-fabric/weft/internal/pending"
)

// sending is what an endpoint does for the receivers of its messages.
type sending struct {
	ep      Host                 // immutable
	streams pending.List[uint64] // requests that are sent in fragments
	assists pending.List[assist] // of which this side copies a share
	putters map[uint64]*putter   // by request, that this side helps with over a device
	putting []*putter            // of those that have something to do
	// scratch
	local  [1]hw.Segment
	remote [1]hw.RemoteSegment
	head   [16]byte // of a message that is sent
}

// Busy reports whether Pump has something to do.
func (s *sending) Busy() bool { return len(s.streams)+len(s.assists)+len(s.putting) != 0 }

// Pump goes on with what waits, as far as there is room.
func (s *sending) Pump() {
	s.streams.Step(s.stepStream)
	s.assists.Step(s.stepAssist)
	s.stepPutters()
}

// Ended forgets a request that ends: nothing is read for its receiver any more.
func (s *sending) Ended(request uint64) {
	s.streams.Step(func(id *uint64) bool { return *id == request })
	delete(s.putters, request)
}

// requestOf returns a request whose RTS has gone out to the peer of a source. Nothing of another request is read for a
// peer: its buffer may be the program's again.
func (s *sending) requestOf(src hw.Source, id uint64) (*dataplane.Request, bool) {
	req, known := s.ep.Request(id)
	if !known || req.Live.Load() != uint32(id>>32) || req.Flags&dataplane.RequestRTS == 0 || !s.ep.Owns(src, req.Link) {
		return nil, false
	}
	return req, true
}
