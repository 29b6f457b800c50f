package messages

import (
	"encoding/binary"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/stats"
	"github.com/weft-fabric/weft/provider/internal/links"
	"github.com/weft-fabric/weft/provider/internal/wire"
)

// sendEager sends a message with its payload and completes it. starved: it found no bounce buffer, and none has been
// free for hot.StarvedMillis.
func (s *Sender) sendEager(m *Send, p *links.Path, total uint64) (starved bool, err error) {
	lease, ok := s.stripes.Acquire(0)
	if !ok {
		s.counts.Shared(stats.SharedNoStripe, 1)
		return false, fi.EAGAIN
	}
	defer s.stripes.Release(lease)
	completes, ring := s.completes(m), m.ring(s.hot)
	if completes && !s.host.Room(ring) {
		s.counts.Add(lease, stats.StripeNoCQ, 1)
		return false, fi.EAGAIN
	}
	id, head := wire.AMMsg, []byte(nil)
	if m.Tagged {
		id = wire.AMTag
	}
	sc := &s.scratch[lease]
	if m.HasData {
		id++
		head = binary.LittleEndian.AppendUint64(sc.head[:0], m.Data)
	}
	err = s.SendPayload(&p.Path, id, m.Tag, head, m.IOV, int(total), lease)
	starved = s.starve(p, lease, total, err)
	if err == nil {
		s.sent(m, completes, ring, total)
	} else {
		err = s.host.Broken(err)
	}
	s.counts.Posted(lease, stats.StripeEager, total, err)
	return starved, err
}

// sent counts a message of total bytes that is sent, and completes it, if it completes, on a ring of the queue:
// a stripe's, or 0.
func (s *Sender) sent(m *Send, completes bool, ring int, total uint64) {
	s.host.End(Ended{
		Context: m.Context, Work: m.Work, Total: total, Ring: ring, Tagged: m.Tagged, Completes: completes,
		Asked: m.Flags&fi.Completion != 0,
	})
}
