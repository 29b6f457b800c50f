package provider

import (
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
)

// An endpoint has a port for each transport that it uses: the first to peers
// on this host, and one to all others if there is a network transport. A peer
// is reached over one of them, which its address decides once, so messages to
// it keep their order.

// port is an interface of an endpoint with what belongs to it.
type port struct {
	hw.Iface
	attr    hw.Attr
	number  uint32   // in Endpoint.ports
	sources []sender // by the interface's hw.Source; the lease holder's
}

// The endpoint's sources are those of its ports, with the port's number above
// the interface's own number: 4 and 20 bits, which match.Message has room for.
const (
	sourcePortShift = 20
	sourceMask      = 1<<sourcePortShift - 1
)

// portOf returns the port that a source belongs to, and its number there.
func (e *Endpoint) portOf(src hw.Source) (*port, hw.Source) {
	return e.ports[src>>sourcePortShift], src & sourceMask
}

// addPort makes a port of an open interface.
func (e *Endpoint) addPort(i hw.Iface) *port {
	p := &port{Iface: i, attr: i.Attr(), number: uint32(len(e.ports))}
	e.ports = append(e.ports, p)
	e.setHandlers(p)
	return p
}

// portTo returns the port over which an address is reached, nil if none does.
func (e *Endpoint) portTo(a address) *port {
	if e.network == nil || e.domain.local.has(a.Name) {
		return e.ports[0]
	}
	if a.number != 0 {
		return nil // contexts have no names on the network
	}
	return e.network.port
}

// handler is h for the messages of a port.
func (p *port) handler(h hw.Handler) hw.Handler {
	if p.number == 0 {
		return h
	}
	first := hw.Source(p.number) << sourcePortShift
	return func(src hw.Source, header uint64, head, payload []byte) { h(first|src, header, head, payload) }
}

// peerEvent is f for the events of a port.
func (p *port) peerEvent(f func(hw.PeerEvent)) func(hw.PeerEvent) {
	first := hw.Source(p.number) << sourcePortShift
	return func(ev hw.PeerEvent) {
		ev.Source |= first
		f(ev)
	}
}

// known returns the sender behind a source, if it was met.
func (e *Endpoint) known(src hw.Source) (sender, bool) {
	p, own := e.portOf(src)
	if int(own) >= len(p.sources) || p.sources[own].id == 0 {
		return sender{}, false
	}
	return p.sources[own], true
}

// setKnown enters the sender behind a source, or takes it out.
func (e *Endpoint) setKnown(src hw.Source, s sender) {
	p, own := e.portOf(src)
	for int(own) >= len(p.sources) {
		p.sources = append(p.sources, sender{})
	}
	p.sources[own] = s
}

// sourceReaches tells whether an address leads to the interface behind a source.
func (e *Endpoint) sourceReaches(src hw.Source, a address) bool {
	p, own := e.portOf(src)
	return p.SourceReaches(own, a.raw())
}

// sourceWords are the words that a source shares with us, nil if there are none.
func (e *Endpoint) sourceWords(src hw.Source) *[2]uint64 {
	p, own := e.portOf(src)
	if s, ok := p.Iface.(hw.SourceWords); ok {
		return s.SourceWords(own)
	}
	return nil
}

// reads tells whether the memory of a source's process can be read.
func (e *Endpoint) reads(src hw.Source) bool {
	p, _ := e.portOf(src)
	return p.attr.Caps&hw.CapPeerMemory != 0
}

// arrivals takes in what has arrived at all ports. The caller holds the
// progress lease.
func (e *Endpoint) arrivals(max int) {
	e.countBatch(e.iface.Progress(max))
	if e.network != nil {
		e.countBatch(e.network.poll(max))
	}
}

// setEagerWindow tells the senders at all ports.
func (e *Endpoint) setEagerWindow(open bool) {
	for _, p := range e.ports {
		p.SetEagerWindow(open)
	}
}

// closePorts closes the interfaces.
func (e *Endpoint) closePorts() {
	if e.network != nil {
		e.network.close()
		e.network = nil
	}
	for _, p := range e.ports {
		_ = p.Close()
	}
	e.ports, e.iface = nil, nil
}

// openNetworkPort opens the port to other hosts, if there is a transport for
// it. The contexts of scalable endpoints have none.
func (e *Endpoint) openNetworkPort() error {
	if e.context != 0 || e.info.Caps&fi.RemoteComm == 0 {
		return nil
	}
	i, err := openNetwork(e.socket, e.name, e.domain.cfg)
	if err != nil || i == nil {
		return err
	}
	e.network = newNetwork(e, e.addPort(i))
	return nil
}
