package rkey

import (
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/provider/internal/wire"
)

// The exchange of keys: a peer is asked for the device's key of a region, and answers. An answer is taken in for the
// connection that the link has then; what another connection has asked for is not entered (Peer).

// Host is what the exchange needs of its endpoint, as the holder of the progress lease has it.
type Host interface {
	// Back returns the path to the sender behind a source, connecting if need be. False: there is none, or it leads
	// over another transport than the source's, where the device's keys mean nothing.
	Back(src hw.Source) (p Path, ok bool)
	// Owns reports whether a source is the peer of a link: only it may speak about the link's keys.
	Owns(src hw.Source, link uint32) bool
	// PathOf returns the path of a link that leads over the transport of a source. False: there is none any more.
	PathOf(src hw.Source, link uint32) (p Path, ok bool)
	// Key appends the key of a region for the device of a path.
	Key(p Path, region uint64, to []byte) (key []byte, status wire.KeyStatus)
	// Malformed counts a message that a peer should not have sent, and logs why.
	Malformed(src hw.Source, format string, args ...any)
}

// Path is a connection to a peer.
type Path interface {
	// AMShort sends a message; see [hw.Endpoint].
	AMShort(id hw.AMID, header uint64, head, payload []byte) error
	// DeviceKeys are the device's keys of the peer's regions, nil: no device reaches the peer's memory. Constant.
	DeviceKeys() *Peer
	// TransportDevice registers memory with the path's transport. Constant.
	TransportDevice() Device
}

// Handlers are those of the exchange.
func Handlers(h Host) map[hw.AMID]hw.Handler {
	x := exchange{h}
	return map[hw.AMID]hw.Handler{wire.AMKeyAsk: x.onAsk, wire.AMKeyAnswer: x.onAnswer}
}

// Ask asks the peer of a link for the device's key of a region, over a path that has keys. One that cannot be asked now
// is asked by the next operation. Any thread.
func Ask(p Path, region uint64, link uint32) {
	var b [wire.KeyHeadBytes]byte
	if err := p.AMShort(wire.AMKeyAsk, region, wire.PutKeyAsk(b[:], link), nil); err != nil {
		p.DeviceKeys().Forget(region)
	}
}

type exchange struct{ Host }

// onAsk sends a peer the device's key of a region.
func (x exchange) onAsk(src hw.Source, region uint64, head, payload []byte) {
	link, ok := wire.ParseKeyAsk(head, len(payload))
	if !ok {
		x.Malformed(src, "question for a key does not parse")
		return
	}
	p, ok := x.Back(src)
	if !ok {
		return
	}
	var b [wire.KeyHeadBytes + MaxKey]byte
	var packed [MaxKey]byte
	a := wire.KeyAnswer{Link: link, Status: wire.KeyNever}
	if p.DeviceKeys() != nil {
		a.Key, a.Status = x.Key(p, region, packed[:0])
	}
	_ = p.AMShort(wire.AMKeyAnswer, region, a.Put(b[:]), nil) // no room: the peer asks again
}

// onAnswer takes in what a peer says of a region.
func (x exchange) onAnswer(src hw.Source, region uint64, head, payload []byte) {
	var a wire.KeyAnswer
	if !a.Parse(head, len(payload)) || !x.Owns(src, a.Link) {
		x.Malformed(src, "answer about a key, status %d, %d bytes", a.Status, len(head))
		return
	}
	p, ok := x.PathOf(src, a.Link)
	if !ok || p.DeviceKeys() == nil {
		return // the connection that asked is gone
	}
	switch a.Status {
	case wire.KeyAbsent:
		p.DeviceKeys().Absent(region)
	case wire.KeyNever:
		p.DeviceKeys().Refused(region)
	default:
		device, err := p.TransportDevice().Domain.UnpackKey(a.Key)
		if err != nil {
			x.Malformed(src, "answer about a key: %v", err)
			return
		}
		p.DeviceKeys().Learn(region, device)
	}
}
