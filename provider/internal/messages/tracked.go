package messages

import (
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/dataplane"
	"github.com/weft-fabric/weft/internal/stats"
	"github.com/weft-fabric/weft/provider/internal/links"
	"github.com/weft-fabric/weft/provider/internal/vector"
	"github.com/weft-fabric/weft/provider/internal/wire"
)

// sendTracked sends a message that the receiver acknowledges: with its payload if eager, else as a rendezvous, of which
// the RTS goes out now.
func (s *Sender) sendTracked(m *Send, l *links.Link, p *links.Path, total uint64, eager bool) error {
	lease, ok := s.stripes.Acquire(0)
	if !ok {
		s.counts.Shared(stats.SharedNoStripe, 1)
		return fi.EAGAIN
	}
	defer s.stripes.Release(lease)
	req, id, ok := s.requests.Alloc(lease)
	if !ok {
		s.counts.Add(lease, stats.StripeNoRequest, 1)
		return fi.EAGAIN
	}
	req.Begin(m.Context, total, dataplane.RequestFlags(m.Tagged, s.completes(m)), l.Index)
	req.Work, req.Count = m.Work, uint32(copy(req.IOV[:], m.IOV))
	if m.Work != 0 && m.Flags&fi.Completion != 0 {
		req.Flags |= asked
	}
	if m.reported {
		req.Flags |= reported
	}
	if !eager {
		req.Flags |= dataplane.RequestRTS
		if m.injects() {
			s.keepInject(req, id, m, total)
		}
	}
	l.Transmits.Add(1)
	req.Live.Store(uint32(id >> 32))
	var err error
	word := stats.StripeRendezvous
	if eager {
		word = stats.StripeSync
		err = s.sendSync(m, p, id, int(total), lease)
	} else {
		err = s.sendRTS(m, p, req, id, total, lease)
	}
	if err != nil && req.Live.CompareAndSwap(uint32(id>>32), 0) { // else PeerLost or Pump has completed it
		l.Transmits.Add(-1)
		s.conceal(req, id)
		s.requests.Free(id)
		err = s.host.Broken(err)
	} else {
		err = nil
	}
	s.counts.Posted(lease, word, total, err)
	return err
}

// sendSync sends a message with its payload that the receiver acknowledges.
func (s *Sender) sendSync(m *Send, p *links.Path, id uint64, total, lease int) error {
	head := wire.Sync{Request: id, Data: m.Data, Flags: m.wireBits()}
	return s.SendPayload(&p.Path, wire.AMSync, m.Tag, head.Put(s.scratch[lease].head[:]), m.IOV, total, lease)
}

// keepInject copies an injected payload to the request's own buffer, because the caller may reuse its own at once.
func (s *Sender) keepInject(req *request, id uint64, m *Send, total uint64) {
	if total == 0 {
		return
	}
	buf := s.requests.injectBuffer(id)[:total]
	vector.Gather(buf, m.IOV)
	req.IOV[0] = vector.Of(buf)
	req.Count = 1
}
