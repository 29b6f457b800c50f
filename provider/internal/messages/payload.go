package messages

import (
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/provider/internal/hmem"
	"github.com/weft-fabric/weft/provider/internal/outcome"
	"github.com/weft-fabric/weft/provider/internal/rkey"
	"github.com/weft-fabric/weft/provider/internal/rma"
	"github.com/weft-fabric/weft/provider/internal/vector"
	"github.com/weft-fabric/weft/provider/internal/wire"
)

// maxShort is the most payload that is gathered before it is sent: that of the transport that takes most, a NIC of
// Slingshot. Longer ones are packed.
const maxShort = 192

// scratch is memory of one stripe for building messages, so that posting
// allocates nothing. The lease holder owns it.
type scratch struct {
	head [wire.RTSBytes]byte
	body [maxShort]byte
	host []byte                      // what was copied from devices, as long as a bounce buffer when it is needed
	frag [2 * wire.IOVLimit]fi.IOVec // the vector of a fragment, or of operands and comparands
	from vector.Gatherer             // what pack gathers
	pack func([]byte)                // bound once
	keys [wire.IOVLimit * rkey.MaxKey]byte
}

func newScratch(n int) []scratch {
	s := make([]scratch, n)
	for i := range s {
		sc := &s[i]
		sc.pack = sc.from.Next
	}
	return s
}

// Head is memory for the head of a message over a stripe, whose lease the caller holds.
func (s *Sender) Head(stripe int) []byte { return s.scratch[stripe].head[:] }

// SendPayload sends head and the vector's bytes in one active message over a
// stripe, whose lease the caller holds.
func (s *Sender) SendPayload(
	p *rma.Path, id hw.AMID, header uint64, head []byte, iov []fi.IOVec, total, stripe int,
) error {
	sc := &s.scratch[stripe]
	if hmem.AnyOnDevice(iov) {
		var err error
		if iov, err = sc.fetch(iov, total); err != nil {
			return log.Reject(log.EPData, fi.EIO, "copy %d bytes from a device: %v", total, err)
		}
	}
	if total <= len(sc.body) && total+len(head) <= p.On.Attr.MaxAMShort {
		vector.Gather(sc.body[:total], iov)
		return outcome.OfPost(p.AMShort(id, header, head, sc.body[:total]))
	}
	sc.from = vector.Gatherer{IOV: iov}
	err := p.AMBcopy(id, header, head, total, sc.pack, stripe)
	sc.from = vector.Gatherer{}
	return outcome.OfPost(err)
}

// SendBytes is SendPayload of one piece of this process's memory.
func (s *Sender) SendBytes(p *rma.Path, id hw.AMID, header uint64, head, payload []byte, stripe int) error {
	iov := append(s.scratch[stripe].frag[:0], vector.Of(payload))
	return s.SendPayload(p, id, header, head, iov, len(payload), stripe)
}

// fetch copies a vector of which parts are device memory to the stripe's own,
// so that what fails does so before a message is begun.
func (sc *scratch) fetch(iov []fi.IOVec, total int) ([]fi.IOVec, error) {
	if len(sc.host) < total {
		sc.host = make([]byte, total)
	}
	at := sc.host
	for _, v := range iov {
		if err := hmem.Load(at[:v.Len], uint64(v.Base)); err != nil {
			return nil, err
		}
		at = at[v.Len:]
	}
	sc.frag[0] = vector.Of(sc.host[:total])
	return sc.frag[:1], nil
}
