package messages

import (
	"os"
	"sync/atomic"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/provider/internal/links"
	"github.com/weft-fabric/weft/provider/internal/outcome"
	"github.com/weft-fabric/weft/provider/internal/rkey"
	"github.com/weft-fabric/weft/provider/internal/vector"
	"github.com/weft-fabric/weft/provider/internal/wire"
)

// sendRTS sends the RTS of a rendezvous. Its elements are addresses of this process where the transport reads a peer's
// memory (hw.CapPeerMemory), keys where it reads registered memory (package rkey); else the receiver asks for fragments
// (wire.FlagNoGet).
func (s *Sender) sendRTS(m *Send, p *links.Path, req *request, id, total uint64, lease int) error {
	r := wire.RTS{Request: id, Length: total, Data: m.Data, Flags: m.wireBits() &^ wire.FlagMatch, Count: req.Count}
	for i, v := range req.IOV[:req.Count] {
		r.IOV[i] = hw.RemoteSegment{Addr: uint64(v.Base), Len: v.Len}
	}
	onDevice := m.onDevice()
	if p.Via.Attr.Caps&hw.CapPeerMemory == 0 {
		r.Flags |= wire.FlagNoGet
		if p.Via.Exposes() && !onDevice {
			return s.sendExposed(m, p, req, id, &r, lease)
		}
	}
	if onDevice {
		s.deviceRTS(&r, m, p)
	} else if r.Flags&wire.FlagNoGet == 0 {
		s.accesses.Own(req.IOV[:req.Count], atomic.SwapUint64(&s.hot.RTSBytes, 0))
	}
	return outcome.OfPost(p.AMShort(wire.AMRTS, m.Tag, r.Put(s.scratch[lease].head[:]), nil))
}

// sendExposed sends the RTS of a message whose payload the receiver gets (package rendezvous).
func (s *Sender) sendExposed(m *Send, p *links.Path, req *request, id uint64, r *wire.RTS, lease int) error {
	sc := &s.scratch[lease]
	n := s.expose(p.Via.On.Device, req, id, r, sc.keys[:])
	payload := [1]fi.IOVec{vector.Of(sc.keys[:n])}
	return s.SendPayload(&p.Path, wire.AMRTS, m.Tag, r.Put(sc.head[:]), payload[:], n, lease)
}

// deviceRTS completes the RTS of a message in device memory.
func (s *Sender) deviceRTS(r *wire.RTS, m *Send, p *links.Path) {
	r.Flags |= wire.FlagNoGet
	least := uint64(s.cfg.HMEMMapSize)
	if len(m.IOV) != 1 || p.Via.Attr.Caps&hw.CapPeerMemory == 0 || least == 0 || r.Length < least {
		return
	}
	if token, offset, ok := s.host.Share(uint64(m.IOV[0].Base), r.Length); ok {
		r.Flags |= wire.FlagShared
		r.IOV[0].Addr, r.Token, r.PID = offset, token, uint32(os.Getpid())
	}
}

// expose registers what a request sends and puts the keys into its RTS, or into keys, whose length it returns. Without
// memory for that the payload goes in fragments.
func (s *Sender) expose(d rkey.Device, req *request, id uint64, r *wire.RTS, keys []byte) int {
	regions, n, ok := d.Expose(req.IOV[:req.Count], r, keys)
	if ok {
		req.Flags |= exposed
		s.exposed.Add(id, regions)
	}
	return n
}

// conceal takes back what a request exposed.
func (s *Sender) conceal(req *request, id uint64) {
	if req.Flags&exposed != 0 {
		rkey.Close(s.exposed.Remove(id))
	}
}
