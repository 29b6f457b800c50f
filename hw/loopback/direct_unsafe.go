package loopback

import (
	"fmt"
	"sync/atomic"
	"unsafe"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/outbound"
)

// FillPeer writes the endpoint into a line of the table by which the data plane posts.
func (i *Iface) FillPeer(ep hw.Endpoint, line *hot.Peer) error {
	e, ok := ep.(*Endpoint)
	if !ok || e.iface != i {
		return fmt.Errorf("loopback: endpoint of another interface: %w", hw.ErrInvalid)
	}
	if err := e.Err(); err != nil {
		return err
	}
	view := e.ring.Hot()
	line.Tail = view.Tail
	line.RxState = uintptr(unsafe.Pointer(e.rxState))
	line.Log2Slots = uint16(view.Log2Slots)
	line.Owner = e.owner
	line.Peer = e.number
	keys := e.keys()
	line.Keys, line.KeyCount, line.PID = keys.At, keys.Count, 0
	if i.cfg.UseCMA != CMANo && !e.noCMA.Load() {
		line.PID = e.pid
	}
	atomic.StoreUint64(&line.Put, 0)
	line.Exclusive = 0
	if e.exclusive {
		line.Exclusive = 1
	}
	atomic.StoreUintptr(&line.Slots, view.Slots) // release: C loads it with acquire and then the rest
	return nil
}

// keys is the peer's key table.
func (e *Endpoint) keys() outbound.Keys {
	if e.seg.geo.keyCount == 0 {
		return outbound.Keys{}
	}
	return outbound.Keys{At: uintptr(unsafe.Pointer(e.seg.key(0))), Count: e.seg.geo.keyCount}
}

// PutPending reports whether the peer has yet to take in a write or atomic that
// the data plane posted by a line of its table.
func (i *Iface) PutPending(ep hw.Endpoint, line *hot.Peer) bool {
	e, ok := ep.(*Endpoint)
	if !ok || e.begin() != nil {
		return false
	}
	defer e.end()
	return outbound.Overtakes(line, &e.ring)
}

// SendPending reports whether the peer's ring holds messages that it has yet to
// take in. It reads the ring from the last position that is known to be claimed
// on: the hint may be behind that of another sender.
func (i *Iface) SendPending(ep hw.Endpoint) bool {
	e, ok := ep.(*Endpoint)
	if !ok || e.begin() != nil {
		return false
	}
	defer e.end()
	tail := atomic.LoadUint64(e.ring.TailWord())
	return tail != 0 && !e.ring.Released(tail-1) || claimed(&e.ring, tail)
}

// FillEP writes what the data plane needs to find arrivals.
func (i *Iface) FillEP(ep *hot.EP) {
	for n := range i.rx.rings {
		l, in := &i.rx.rings[n], &ep.Inbound[n]
		in.Ring = l.ring.Hot()
		l.in = in
		l.show()
	}
	ep.RxState = uintptr(unsafe.Pointer(i.seg.rxState()))
	ep.RxRings = uintptr(unsafe.Pointer(i.rx.inUse))
	ep.PID, ep.StartTime = i.host.self.pid, i.host.self.start
}

// FillStripe writes part n of the bounce pool into s, before the first send
// over this stripe. The stripe's lease is not touched.
func (i *Iface) FillStripe(n int, s *hot.Stripe) error {
	if n < 0 || n >= len(i.stripes) {
		return fmt.Errorf("loopback: stripe %d of %d: %w", n, len(i.stripes), hw.ErrInvalid)
	}
	i.fillStripe(n, s)
	i.stripes[n] = s
	return nil
}

// fillStripe gives stripe n of k the buffers from count*n/k to count*(n+1)/k.
func (i *Iface) fillStripe(n int, s *hot.Stripe) {
	g := &i.seg.geo
	first := uint64(g.bounceCount) * uint64(n) / uint64(i.cfg.Stripes)
	end := uint64(g.bounceCount) * uint64(n+1) / uint64(i.cfg.Stripes)
	s.Bounce = uintptr(unsafe.Pointer(i.seg.bounce(uint32(first))))
	s.BounceFirst = uint32(first)
	s.BounceCount = uint32(end - first)
	s.BounceNext = 0
	s.BounceStride = g.bounceStride
}

// FillSource writes a sender's bounce buffers into a line of the table by which
// the data plane delivers. False: the sender is not known, or its segment is gone.
func (i *Iface) FillSource(src hw.Source, line *hot.Source) bool {
	if int(src) >= len(i.rx.sources) {
		return false
	}
	s := &i.rx.sources[src]
	if s.state != sourceReady || s.seg == nil {
		return false
	}
	g := &s.seg.geo
	line.Bounce = uintptr(unsafe.Pointer(s.seg.bounce(0)))
	line.BounceCount, line.BounceStride, line.BounceBytes = g.bounceCount, g.bounceStride, g.bounceBytes
	s.line = line
	return true
}

// WakePeer is Wake of the endpoint with this number.
func (i *Iface) WakePeer(peer uint32) {
	if list := *i.endpoints.Load(); peer < uint32(len(list)) && list[peer] != nil {
		list[peer].Wake()
	}
}
