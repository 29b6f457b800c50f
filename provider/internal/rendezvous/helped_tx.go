package rendezvous

import (
	"errors"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/dataplane"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/provider/internal/outcome"
	"github.com/weft-fabric/weft/provider/internal/rkey"
	"github.com/weft-fabric/weft/provider/internal/wire"
)

// putter is this side's help with a message that it sends.
type putter struct {
	done    hw.Completion
	s       *sending
	request uint64
	wire.Landing
	key  hw.RemoteKey
	path Path

	ready bool   // the device can put there, and the receiver knows that
	from  uint64 // of what is to be put, 0 bytes: nothing
	n     uint64
}

// onLanding takes in where a message of this side lands.
func (s *sending) onLanding(src hw.Source, header uint64, head, payload []byte) {
	g := &putter{s: s, request: header}
	req, known := s.requestOf(src, header)
	if !g.Parse(head) || !known || g.Want > req.Length || req.Count != 1 || len(s.ep.Exposed(header)) == 0 ||
		s.putters[header] != nil {
		s.ep.Malformed(src, "landing of request %#x", header)
		return
	}
	var ok bool
	if g.path, ok = s.ep.Path(req.Link); !ok || !s.ep.CameOver(src, g.path) {
		return
	}
	var err error
	if g.key, err = g.path.TransportDevice().Domain.UnpackKey(payload); err != nil {
		s.ep.Malformed(src, "landing of request %#x: %v", header, err)
		return
	}
	g.done.Func, g.done.Idempotent = func(c *hw.Completion) { g.ended(c.Err()) }, true
	if s.putters == nil {
		s.putters = map[uint64]*putter{}
	}
	s.putters[header] = g
	s.stepPutter(g)
}

// onPut takes in what the receiver of a message leaves to this side.
func (s *sending) onPut(src hw.Source, header uint64, head, payload []byte) {
	g := s.putters[header]
	req, known := s.ep.Request(header)
	if g == nil || !known || !s.ep.Owns(src, req.Link) || !g.ready || g.n != 0 {
		s.ep.Malformed(src, "put for request %#x, with which this side does not help", header)
		return
	}
	var ok bool
	if g.from, g.n, ok = wire.ParseSpan(head, g.Want); !ok {
		g.n = 0
		s.ep.Malformed(src, "put for request %#x beyond its %d bytes", header, g.Want)
		return
	}
	s.stepPutter(g)
}

// stepPutter goes on with a putter, now or when there is room.
func (s *sending) stepPutter(g *putter) {
	if !g.step() {
		s.putting = append(s.putting, g)
	}
}

// stepPutters goes on with what earlier steps left.
func (s *sending) stepPutters() {
	list := s.putting
	s.putting = nil
	for _, g := range list {
		s.stepPutter(g)
	}
}

// current returns the request of a putter, if it has not ended.
func (g *putter) current() (*dataplane.Request, bool) {
	req, known := g.s.ep.Request(g.request)
	return req, known && g.s.putters[g.request] == g
}

// step reports whether there is nothing to go on with: the message has ended, or the device is at the put or cannot.
func (g *putter) step() bool {
	req, ok := g.current()
	if !ok {
		return true
	}
	o := g.path.Transport().(hw.OneSided)
	if !g.ready {
		_, err := o.PutZcopy(nil, g.Addr, g.key, nil) // which makes the connection for puts
		if errors.Is(err, hw.ErrNoResource) {
			return false
		}
		if g.ready = err == nil; g.ready {
			g.sendPutState(req, fi.Success)
		}
		return true
	}
	local := g.s.part(req.IOV[0], g.from, g.n)
	local[0].Memory = rkey.Covering(g.s.ep.Exposed(g.request), uintptr(local[0].Addr), g.n)
	g.done.Expect(1)
	status, err := o.PutZcopy(local, g.Addr+g.from, g.key, &g.done)
	g.s.local[0] = hw.Segment{}
	switch {
	case errors.Is(err, hw.ErrNoResource):
		return false
	case err != nil || status == hw.Done:
		g.ended(err)
	}
	return true
}

// ended takes in that a put has ended. The transport calls it under the progress lease, or while the endpoint closes.
func (g *putter) ended(err error) {
	if g.s.ep.Closed() {
		return
	}
	req, ok := g.current()
	if !ok {
		return
	}
	g.n = 0
	status := fi.Success
	if err != nil {
		log.Warnf(log.EPData, "put %d bytes to %s: %v", g.Want, g.s.ep.PeerOf(req.Link), err)
		status = outcome.OfCopy(err)
	}
	g.sendPutState(req, status)
}

// sendPutState sends the receiver word that this side waits for a put to do.
func (g *putter) sendPutState(req *dataplane.Request, status fi.Errno) {
	g.s.ep.Send(req.Link, wire.AMHelped, g.Operation, wire.PutAck(g.s.head[:], status))
}
