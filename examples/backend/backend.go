// Package backend is the smallest whole transport for package hw: interfaces of one process that write messages into
// each other's memory. docs/adding-a-backend.md goes through it step by step, and the conformance suite passes.
//
// # Model
//
// A [Hub] is the network: it finds interfaces by address. An [Iface] has one bounded ring, into which all its senders
// write under its lock, so messages to one interface are ordered. A slot is taken by the send and is free again when
// its handler has returned.
//
// An interface has an address of its own ([Hub.Open]), or one that package provider has given its endpoint
// ([Hub.OpenAt]).
package backend

import (
	"bytes"
	"encoding/binary"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/weft-fabric/weft/hw"
)

// Limits of the transport, in bytes but for slots.
const (
	slots    = 64 // messages that an interface has room for
	maxShort = 128
	maxHead  = 96 // what provider.Network asks for
	maxBcopy = 4096
	slotSize = maxHead + maxBcopy

	minAddress = 8
)

// Hub is a network of interfaces. Any goroutine may use it.
type Hub struct {
	mu   sync.Mutex
	next uint64            // the last address that was given; under mu
	open map[string]*Iface // by address; under mu
}

// find returns the open interface with an address, nil if there is none.
func (h *Hub) find(address []byte) *Iface {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.open[string(address)]
}

// slot is one message in a ring. Its sender fills it, under the ring's lock.
type slot struct {
	id      hw.AMID
	src     hw.Source
	header  uint64
	head, n int    // lengths of head and payload
	data    []byte // slotSize bytes: head, then payload
}

// sender is what an interface knows of one that connected to it.
type sender struct {
	from   *Iface // nil: the number is free
	queued int    // its messages in the ring
}

// Iface is an interface; it implements [hw.Iface].
type Iface struct {
	hub      *Hub
	address  []byte               // immutable
	handlers [hw.MaxAM]hw.Handler // set before the first Progress
	later    bool                 // the handler at work has postponed its message; Progress alone
	event    func(hw.PeerEvent)   // set before the first Progress
	window   atomic.Bool          // eager payloads are welcome; written by its owner, read by senders
	closed   atomic.Bool          // written once, by Close; read by peers

	mu      sync.Mutex // guards what follows
	ring    [slots]slot
	head    uint64 // the next message to deliver
	tail    uint64 // the next slot to fill; tail-head <= slots
	senders []sender
	peers   map[string]*Endpoint // by the peer's address
	stats   hw.Stats
}

// Open opens an interface with an address that no other has.
func (h *Hub) Open() *Iface {
	h.mu.Lock()
	h.next++
	address := binary.BigEndian.AppendUint64(nil, h.next)
	h.mu.Unlock()
	i, _ := h.OpenAt(address) // the address is valid and free
	return i
}

// OpenAt opens an interface with an address. hw.ErrInvalid: the address is shorter than 8 bytes, or in use.
func (h *Hub) OpenAt(address []byte) (*Iface, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(address) < minAddress || h.open[string(address)] != nil {
		return nil, hw.ErrInvalid
	}
	i := &Iface{hub: h, address: bytes.Clone(address), peers: map[string]*Endpoint{}, event: func(hw.PeerEvent) {}}
	memory := make([]byte, slots*slotSize)
	for n := range i.ring {
		i.ring[n].data = memory[n*slotSize:][:slotSize]
	}
	i.window.Store(true)
	if h.open == nil {
		h.open = map[string]*Iface{}
	}
	h.open[string(i.address)] = i
	return i, nil
}

// Attr describes what the interface can do: messages, in order, within the host.
func (i *Iface) Attr() hw.Attr {
	return hw.Attr{
		Caps:       hw.CapAMShort | hw.CapAMBcopy | hw.CapOrdered | hw.CapSameHost,
		MaxAMShort: maxShort, MaxAMHead: maxHead, MaxAMBcopy: maxBcopy, EagerAM: maxBcopy,
		Bandwidth: 5e9, Latency: 1e-6, Overhead: 1e-7,
		DeviceName: "hub", NUMANode: -1,
	}
}

// Memory returns nil: no memory is registered.
func (i *Iface) Memory() hw.MemoryDomain { return nil }

// Address returns the address.
func (i *Iface) Address() []byte { return i.address }

// SetHandler installs a handler.
func (i *Iface) SetHandler(id hw.AMID, h hw.Handler) { i.handlers[id] = h }

// OnPeerEvent installs what is called for peers that are gone.
func (i *Iface) OnPeerEvent(f func(hw.PeerEvent)) { i.event = f }

// Connect makes an endpoint, or returns the one that there is.
func (i *Iface) Connect(address []byte) (hw.Endpoint, error) {
	if len(address) < minAddress {
		return nil, hw.ErrInvalid
	}
	to := i.hub.find(address)
	if to == nil {
		return nil, hw.ErrUnreachable
	}
	i.mu.Lock()
	ep, known := i.peers[string(to.address)]
	i.mu.Unlock()
	if known {
		return ep, nil
	}
	src := to.attach(i)
	i.mu.Lock()
	defer i.mu.Unlock()
	// Another thread may have been here: attach gave both one number.
	if ep, known = i.peers[string(to.address)]; !known {
		ep = &Endpoint{from: i, to: to, src: src}
		i.peers[string(to.address)] = ep
	}
	return ep, nil
}

// attach gives a sender its number, the lowest that is free.
func (i *Iface) attach(from *Iface) hw.Source {
	i.mu.Lock()
	defer i.mu.Unlock()
	if n := i.numberOf(from); n >= 0 {
		return hw.Source(n)
	}
	n := i.numberOf(nil)
	if n < 0 {
		n = len(i.senders)
		i.senders = append(i.senders, sender{})
	}
	i.senders[n] = sender{from: from}
	return hw.Source(n)
}

// numberOf returns the number of a sender, -1 if it has none. The caller has the lock.
func (i *Iface) numberOf(from *Iface) int {
	return slices.IndexFunc(i.senders, func(s sender) bool { return s.from == from })
}

// SourceAddress returns a sender's address.
func (i *Iface) SourceAddress(src hw.Source) []byte {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.senders[src].from.Address()
}

// SourceReaches reports whether an address is the sender's.
func (i *Iface) SourceReaches(src hw.Source, address []byte) bool {
	return string(i.SourceAddress(src)) == string(address)
}

// Progress delivers up to limit messages. Handlers run without the lock: they may send.
func (i *Iface) Progress(limit int) int {
	for n := range limit {
		i.mu.Lock()
		if i.head == i.tail {
			i.mu.Unlock()
			return n
		}
		s := &i.ring[i.head%slots]
		i.mu.Unlock()
		if h := i.handlers[s.id]; h != nil {
			i.later = false
			h(s.src, s.header, s.data[:s.head], s.data[s.head:][:s.n])
			if i.later {
				return n
			}
		}
		i.mu.Lock()
		i.senders[s.src].queued--
		i.stats.Delivered++
		i.head++
		i.mu.Unlock()
	}
	return limit
}

// Postpone leaves the message of the handler that calls it in its slot.
func (i *Iface) Postpone() { i.later = true }

// SetEagerWindow says to senders whether eager payloads are welcome.
func (i *Iface) SetEagerWindow(open bool) { i.window.Store(open) }

// CheckPeers reports peers that have closed, each when all that it sent is delivered.
func (i *Iface) CheckPeers() {
	i.mu.Lock()
	var gone []hw.PeerEvent
	var endpoints []*Endpoint
	for address, ep := range i.peers {
		if n := i.numberOf(ep.to); !ep.to.closed.Load() || n >= 0 && i.senders[n].queued > 0 {
			continue
		}
		delete(i.peers, address)
		endpoints = append(endpoints, ep)
		gone = append(gone, hw.PeerEvent{Endpoint: ep, Err: hw.ErrPeerDead})
	}
	for n, s := range i.senders {
		if s.from != nil && s.from.closed.Load() && s.queued == 0 {
			gone = append(gone, hw.PeerEvent{Source: hw.Source(n), HasSource: true, Closed: true, Err: hw.ErrPeerDead})
			defer i.release(n)
		}
	}
	i.stats.PeersLost += uint64(len(gone))
	i.mu.Unlock()
	for _, e := range gone {
		i.event(e)
	}
	for _, ep := range endpoints {
		ep.reported.Store(true)
	}
}

// release frees a sender's number, after its end was reported.
func (i *Iface) release(n int) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.senders[n] = sender{}
}

// Stats returns the counters.
func (i *Iface) Stats() hw.Stats {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.stats
}

// Close ends the interface. What it sent stays in its peers' rings; what is in its own is lost.
func (i *Iface) Close() error {
	i.hub.mu.Lock()
	defer i.hub.mu.Unlock()
	delete(i.hub.open, string(i.address))
	i.closed.Store(true)
	return nil
}

// Endpoint is the way to another interface; it implements [hw.Endpoint].
type Endpoint struct {
	from, to *Iface
	src      hw.Source   // the number that the peer knows us by
	reported atomic.Bool // written by CheckPeers of the interface, read by any
}

// AMShort copies head and payload into a slot.
func (e *Endpoint) AMShort(id hw.AMID, header uint64, head, payload []byte) error {
	if len(head)+len(payload) > maxShort {
		return hw.ErrTooLong
	}
	return e.send(id, header, head, len(payload), payload, nil)
}

// AMBcopy has pack write the payload into a slot.
func (e *Endpoint) AMBcopy(id hw.AMID, header uint64, head []byte, n int, pack func([]byte), stripe int) error {
	switch {
	case n < 0 || stripe < 0:
		return hw.ErrInvalid
	case n > maxBcopy || len(head) > maxHead:
		return hw.ErrTooLong
	}
	return e.send(id, header, head, n, nil, pack)
}

// send takes a slot of the peer's ring, or none.
func (e *Endpoint) send(id hw.AMID, header uint64, head []byte, n int, payload []byte, pack func([]byte)) error {
	if id >= hw.MaxAM {
		return hw.ErrInvalid
	}
	to := e.to
	to.mu.Lock()
	defer to.mu.Unlock()
	if to.closed.Load() {
		return hw.ErrPeerDead
	}
	if e.from.closed.Load() { // its number may be another sender's by now
		return hw.ErrCanceled
	}
	if to.tail-to.head == slots {
		return hw.ErrNoResource
	}
	s := &to.ring[to.tail%slots]
	s.id, s.src, s.header, s.head, s.n = id, e.src, header, copy(s.data, head), n
	if pack == nil {
		copy(s.data[s.head:], payload)
	} else if n > 0 {
		pack(s.data[s.head:][:n])
	}
	to.senders[e.src].queued++
	to.tail++
	return nil
}

// Address returns the peer's address.
func (e *Endpoint) Address() []byte { return e.to.Address() }

// EagerOpen reports whether the peer welcomes eager payloads.
func (e *Endpoint) EagerOpen() bool { return e.Err() == nil && e.to.window.Load() }

// Wake does nothing: peers do not sleep, since the interface has no hw.CapWakeup.
func (e *Endpoint) Wake() {}

// Check reports whether the peer is there; CheckPeers reports its end.
func (e *Endpoint) Check() error { return e.Err() }

// Err is nil while the peer is open.
func (e *Endpoint) Err() error {
	if e.to.closed.Load() {
		return hw.ErrPeerDead
	}
	return nil
}

// Reported reports whether the peer's end was reported.
func (e *Endpoint) Reported() bool { return e.reported.Load() }
