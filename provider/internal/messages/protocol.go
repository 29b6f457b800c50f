package messages

import (
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/dataplane"
	"github.com/weft-fabric/weft/internal/stats"
	"github.com/weft-fabric/weft/provider/internal/rma"
	"github.com/weft-fabric/weft/provider/internal/vector"
	"github.com/weft-fabric/weft/provider/internal/wire"
)

// Protocol is what progress does with the messages of a [Sender]: it takes in ACKs, and ends what waits for peers that
// are gone. It is for the holder of the progress lease, but for Requested.
type Protocol struct {
	s  *Sender
	ep LeasedHost
}

// Init prepares the protocol of a sender.
func (pr *Protocol) Init(s *Sender, ep LeasedHost) { pr.s, pr.ep = s, ep }

// Handlers are those of the receivers' answers.
func (pr *Protocol) Handlers() map[hw.AMID]hw.Handler {
	return map[hw.AMID]hw.Handler{wire.AMAck: pr.onAck}
}

// Busy reports whether Pump has something to do.
func (pr *Protocol) Busy() bool { return pr.s.requests.lost.Load() }

// Requested reports whether another thread has left something for Pump. Any thread.
func (pr *Protocol) Requested() bool { return pr.s.requests.lost.Load() }

// Pump ends the messages of the data plane to peers of which the end has been reported, if SeekLost was called.
func (pr *Protocol) Pump() {
	if !pr.s.requests.lost.Swap(false) {
		return
	}
	pr.s.requests.Range(func(id uint64, req *request) {
		live := uint32(id >> 32)
		if req.Live.Load() != live || req.Ring == 0 || pr.s.links.At(req.Link).LeadsTo(req.Ring) ||
			!req.Live.CompareAndSwap(live, 0) {
			return
		}
		pr.end(req, id, fi.ECONNRESET)
	})
}

// SourceLost does nothing: what waits is for the peers of links.
func (pr *Protocol) SourceLost(hw.Source) {}

// PeerLost ends with status what waits for the peer of a link, of that number, that is gone.
func (pr *Protocol) PeerLost(number uint32, status fi.Errno) {
	pr.s.requests.Range(func(id uint64, req *request) {
		live := uint32(id >> 32)
		if req.Live.Load() == live && req.Link == number && req.Live.CompareAndSwap(live, 0) {
			pr.end(req, id, status)
		}
	})
}

// onAck completes a tracked message.
func (pr *Protocol) onAck(src hw.Source, header uint64, head, payload []byte) {
	status, ok := wire.ParseAck(head)
	pr.Acknowledged(src, header, status, ok)
}

// Acknowledged completes a tracked message with the status in an ACK of src. ok is false for an ACK that does not
// parse.
func (pr *Protocol) Acknowledged(src hw.Source, header uint64, status fi.Errno, ok bool) {
	s := pr.s
	req, known := s.requests.Lookup(header)
	if !ok || !known || !pr.ep.Owns(src, req.Link) {
		pr.ep.Malformed(src, "acknowledgement of unknown request %#x", header)
		return
	}
	if status == fi.Success {
		if todo, done := dataplane.EndRequest(s.hot, nil, req, header); done {
			pr.ep.Act(todo)
			return
		}
	}
	if !req.Live.CompareAndSwap(uint32(header>>32), 0) {
		pr.ep.Malformed(src, "acknowledgement of request %#x, which has not gone out", header)
		return
	}
	pr.end(req, header, status)
}

// end ends a tracked message that the caller has found and claimed, by changing its Live to 0.
func (pr *Protocol) end(req *request, id uint64, status fi.Errno) {
	s := pr.s
	s.conceal(req, id)
	pr.ep.RequestEnded(id)
	s.links.At(req.Link).Transmits.Add(-1)
	if status != fi.Success {
		s.counts.Failed(status)
	}
	if req.Flags&reported == 0 {
		s.host.End(Ended{
			Context: req.Context, Work: req.Work, Total: req.Length, Status: status,
			Tagged: req.Flags&dataplane.RequestTagged != 0, Completes: req.Flags&dataplane.RequestCompletes != 0,
			Asked: req.Flags&asked != 0,
		})
	} else { // it has succeeded: it stands in the ring of a peer that dies
		s.requests.copies.Add(-1)
	}
	s.requests.Free(id)
}

// Fragment sends n bytes of a request from byte from on, and counts them. Errors as of SendPayload.
func (pr *Protocol) Fragment(p *rma.Path, req *request, from, n uint64) error {
	s, stripe := pr.s, pr.s.progress
	sc := &s.scratch[stripe]
	iov := vector.Window(sc.frag[:0], req.IOV[:req.Count], from, n)
	head := wire.PutWord(sc.head[:], from)
	err := s.SendPayload(p, wire.AMFrag, req.Fragments.Op, head, iov, int(n), stripe)
	if err == nil {
		s.counts.Add(stripe, stats.StripeFragments, 1)
		s.counts.Add(stripe, stats.StripeFragmentBytes, n)
	}
	return err
}
