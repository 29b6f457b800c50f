package links

import (
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/config"
	"github.com/weft-fabric/weft/provider/internal/coll"
	"github.com/weft-fabric/weft/provider/internal/flow"
	"github.com/weft-fabric/weft/provider/internal/peers"
	"github.com/weft-fabric/weft/provider/internal/rkey"
	"github.com/weft-fabric/weft/provider/internal/rma"
	"github.com/weft-fabric/weft/provider/internal/watch"
)

// An endpoint's transports are numbered: 0 is the one to peers that share this host's memory, the others are networks,
// in the order of their priorities (hw.Attr). A peer on another host is reached over the first of those that leads to
// it.

// Transport is an interface of an endpoint with what belongs to it. Its fields are immutable once there are paths.
type Transport struct {
	hw.Iface
	Attr    hw.Attr                     // On and paths point at it
	Number  uint32                      // among the endpoint's
	Answer  func(hw.Source) hw.Endpoint // see hw.Answerer, nil: not offered
	Network *watch.Transport            // nil: peers that share memory with us
	Eager   uint64                      // bytes of the longest message that goes with its payload
	Coll    coll.Transport              // the transport as collective operations have it
	On      rma.Transport               // as one-sided operations have it
}

// An endpoint's sources are those of its transports, with the transport's number above the interface's own number: 4
// and 20 bits, which match.Message has room for. SourceMask has the bits of the latter.
const (
	sourceShift = 20
	SourceMask  = 1<<sourceShift - 1
)

// newTransport makes the transport with a number of an open interface, with whose device memory is registered.
func newTransport(i hw.Iface, number uint32, c *config.Config, device rkey.Device) *Transport {
	p := &Transport{Iface: i, Attr: i.Attr(), Number: number}
	if a, ok := i.(hw.Answerer); ok {
		p.Answer = a.Answer
	}
	p.Eager = EagerOver(c, &p.Attr)
	p.On = rma.Transport{Attr: &p.Attr, Number: number, Segments: flow.On(c, &p.Attr), Device: device}
	p.Coll = coll.Transport{
		Iface: p.Iface, Caps: p.Attr.Caps, MaxAMBcopy: p.Attr.MaxAMBcopy, DeviceName: p.Attr.DeviceName,
		Eager: p.Eager, Notify: p.Notify, Device: device,
	}
	return p
}

// EagerOver is the longest message, in bytes, that goes over a transport with its payload.
func EagerOver(c *config.Config, a *hw.Attr) uint64 {
	if a.EagerAM > 0 {
		return uint64(min(a.EagerAM, a.MaxAMBcopy))
	}
	return uint64(min(c.EagerSize, a.MaxAMBcopy))
}

// NumberOf is the number of the transport that a source belongs to.
func NumberOf(src hw.Source) uint32 { return uint32(src >> sourceShift) }

// Source is the endpoint's source that is a source of the transport's interface.
func (p *Transport) Source(src hw.Source) hw.Source { return hw.Source(p.Number)<<sourceShift | src }

// Notify has polls include the transport if it is one to other hosts.
func (p *Transport) Notify() {
	if p.Network != nil {
		p.Network.Notify()
	}
}

// Exposes reports whether messages to peers of the transport are exposed.
func (p *Transport) Exposes() bool {
	return p.Attr.Caps&hw.CapGetZcopy != 0 && p.Attr.Caps&hw.CapPeerMemory == 0 && p.On.Device.Exposes()
}

// Use has the transport's device know memory; see [rkey.Device].
func (p *Transport) Use(addr, n uint64, access hw.Access) (rkey.Local, error) {
	return p.On.Device.Use(addr, n, access)
}

// Leave ends that.
func (p *Transport) Leave(l *rkey.Local) { p.On.Device.Leave(l) }

// Keep has yield called when it has no room for other memory.
func (p *Transport) Keep(l *rkey.Local, yield func()) { p.On.Device.Keep(l, yield) }

// Still reports whether it knows the memory as it is now.
func (p *Transport) Still(l *rkey.Local) bool { return p.On.Device.Still(l) }

// Transports are an endpoint's, by number. Immutable from Enable on.
type Transports []*Transport

// Of returns the transport that a source belongs to, and its number there.
func (list Transports) Of(src hw.Source) (*Transport, hw.Source) {
	return list[src>>sourceShift], src & SourceMask
}

// Reach reports whether an address leads to the interface behind a source.
func (list Transports) Reach(src hw.Source, a peers.Address) bool {
	p, own := list.Of(src)
	return p.SourceReaches(own, a.Raw())
}

// Words are the words that a source shares with us, nil if there are none.
func (list Transports) Words(src hw.Source) *[4]uint64 {
	p, own := list.Of(src)
	if s, ok := p.Iface.(hw.SourceWords); ok {
		return s.SourceWords(own)
	}
	return nil
}

// Read reports whether the memory of a source's process can be read.
func (list Transports) Read(src hw.Source) bool {
	p, _ := list.Of(src)
	return p.Attr.Caps&hw.CapPeerMemory != 0
}

// Get reports whether memory that a source exposes can be read.
func (list Transports) Get(src hw.Source) bool {
	p, _ := list.Of(src)
	return p.Exposes()
}

// Postpone leaves the message of the handler at work, which came from a source, at its transport.
func (list Transports) Postpone(src hw.Source) {
	p, _ := list.Of(src)
	p.Postpone()
}

// SetEagerWindow opens or closes the eager window at all transports: senders read it before each message.
func (list Transports) SetEagerWindow(open bool) {
	for _, p := range list {
		p.SetEagerWindow(open)
	}
}
