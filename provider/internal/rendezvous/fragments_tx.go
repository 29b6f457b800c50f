package rendezvous

import (
	"errors"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/dataplane"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/provider/internal/wire"
)

// onCTS begins to stream a rendezvous.
func (s *sending) onCTS(src hw.Source, header uint64, head, payload []byte) {
	var c wire.CTS
	req, known := s.requestOf(src, header)
	if !c.Parse(head) || !known || c.Length == 0 || c.Length > req.Length || req.Fragments.Limit != 0 {
		s.ep.Malformed(src, "request %#x is not to be sent in fragments", header)
		return
	}
	req.Fragments = dataplane.Fragments{Op: c.Operation, Limit: c.Length}
	s.streams.Add(header)
}

// stepStream sends fragments of a request as far as there is room, and reports whether the stream is done with.
func (s *sending) stepStream(id *uint64) bool {
	req, known := s.ep.Request(*id)
	if !known {
		return true
	}
	f := &req.Fragments
	for f.Sent < f.Limit {
		path, ok := s.ep.Path(req.Link)
		if !ok {
			return true // the peer event ends the request
		}
		n := min(f.Limit-f.Sent, uint64(path.Attr().MaxAMBcopy))
		err := s.ep.Fragment(path, req, f.Sent, n)
		if errors.Is(err, fi.EAGAIN) {
			return false
		}
		if err != nil {
			log.Warnf(log.EPData, "fragment of %d bytes at %d of %d to %s: %v", n, f.Sent, f.Limit,
				s.ep.PeerOf(req.Link), err)
			s.ep.Send(req.Link, wire.AMFrag, f.Op, wire.PutWord(s.head[:], fragBroken))
			return true // the receiver's acknowledgement ends the request
		}
		f.Sent += n
	}
	return true
}
