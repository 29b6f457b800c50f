package provider

import (
	"encoding/binary"
	"sync"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/hw/regcache"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/provider/wire"
)

// Where a transport reads memory that the peer has registered, a message that
// goes as a rendezvous is exposed: each element of its vector is a region, until the
// receiver has acknowledged the message. Two kinds of keys go with the RTS:
//
//   - Short ones, of 8 bytes, take the place of the elements' addresses, which
//     mean nothing to another host. Each element is a region of its own, whose
//     addresses begin at 0.
//   - Longer ones are the payload of the RTS (wire.FlagPacked), one after the
//     other. Elements keep their addresses. Such regions come from a cache of
//     registrations and may be larger than the element.

// keyBytes is the size of the keys that take the place of addresses, and
// maxKey that of the longest that goes with an RTS.
const (
	keyBytes = 8
	maxKey   = 32
)

// exposes reports whether messages to peers of a port are exposed.
func (p *port) exposes() bool {
	if p.attr.Caps&hw.CapGetZcopy == 0 || p.attr.Caps&hw.CapPeerMemory != 0 || p.Memory() == nil {
		return false
	}
	a := p.Memory().Attr()
	return p.cache != nil && a.MaxKey <= maxKey || a.MaxKey == keyBytes && a.Caps&hw.MDLocal == 0
}

// packed reports whether its keys are a payload of the RTS.
func (p *port) packed() bool { return p.Memory().Attr().MaxKey != keyBytes }

// register makes a region of memory of this process, which is taken back by its
// Close.
func (p *port) register(addr uint64, n int, access hw.Access) (hw.Memory, error) {
	if p.cache == nil {
		return p.Memory().Register(hw.Region{Addr: pointerAt(addr), Len: n, Access: access})
	}
	e, err := p.cache.Get(pointerAt(addr), n, access)
	if err != nil {
		return nil, err
	}
	return &borrowed{e.Memory(), p.cache, e}, nil
}

// borrowed is a region from a cache.
type borrowed struct {
	hw.Memory
	cache *regcache.Cache
	entry *regcache.Entry
}

// Close gives it back.
func (b *borrowed) Close() error {
	b.cache.Put(b.entry)
	return nil
}

// registered is the registration that a transport knows.
func registered(m hw.Memory) hw.Memory {
	if b, ok := m.(*borrowed); ok {
		return b.Memory
	}
	return m
}

// exposures are the regions of an endpoint's transmits, by request. The lock is
// not on the path of messages on this host; a message to another one that
// takes it costs several system calls.
type exposures struct {
	mu   sync.Mutex
	list map[uint64][]hw.Memory
}

func (x *exposures) add(id uint64, regions []hw.Memory) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.list == nil {
		x.list = map[uint64][]hw.Memory{}
	}
	x.list[id] = regions
}

func (x *exposures) remove(id uint64) []hw.Memory {
	x.mu.Lock()
	defer x.mu.Unlock()
	regions := x.list[id]
	delete(x.list, id)
	return regions
}

// expose registers what a request sends and puts the keys into its RTS,
// or into keys, whose length it returns. Without memory for that the payload goes
// in fragments.
func (e *txRequests) expose(p *port, req *txRequest, id uint64, r *wire.RTS, keys []byte) int {
	if r.Length == 0 {
		return 0
	}
	regions := make([]hw.Memory, 0, r.Count)
	var short [wire.IOVLimit]uint64
	packed := keys[:0]
	for i, v := range req.IOV[:req.Count] {
		if v.Len == 0 {
			if p.packed() {
				packed = append(packed, make([]byte, p.Memory().Attr().MaxKey)...)
			}
			continue
		}
		m, err := p.register(uint64(v.Base), int(v.Len), hw.RemoteRead)
		if err != nil {
			log.Infof(log.EPData, "a message of %d bytes goes in fragments: %v", r.Length, err)
			closeAll(regions)
			return 0
		}
		regions = append(regions, m)
		packed = m.PackKey(packed)
		if !p.packed() {
			short[i] = binary.LittleEndian.Uint64(packed)
			packed = packed[:0]
		}
	}
	r.Flags = r.Flags&^wire.FlagNoGet | wire.FlagKeyed
	if p.packed() {
		r.Flags |= wire.FlagPacked
	} else {
		packed = packed[:0]
		for i := range short[:r.Count] {
			r.IOV[i].Addr = short[i]
		}
	}
	req.Flags |= txExposed
	e.exposed.add(id, regions)
	return len(packed)
}

// takeKeys reads the keys of an RTS. False: they do not parse.
func (e *portSet) takeKeys(src hw.Source, m *wire.RTS, payload []byte) bool {
	if m.Flags&wire.FlagKeyed == 0 {
		return len(payload) == 0 && m.Flags&wire.FlagPacked == 0
	}
	if m.Flags&wire.FlagPacked == 0 {
		for i := range m.IOV[:m.Count] {
			m.Keys[i] = hw.RemoteKey{m.IOV[i].Addr}
			m.IOV[i].Addr = 0
		}
		return len(payload) == 0
	}
	p, _ := e.portOf(src)
	if !p.exposes() || !p.packed() {
		return false
	}
	n := p.Memory().Attr().MaxKey
	if len(payload) != n*int(m.Count) {
		return false
	}
	for i := range m.IOV[:m.Count] {
		if m.IOV[i].Len == 0 {
			continue
		}
		var err error
		if m.Keys[i], err = p.Memory().UnpackKey(payload[n*i : n*(i+1)]); err != nil {
			return false
		}
	}
	return true
}

// conceal takes back what a request exposed.
func (e *txRequests) conceal(req *txRequest, id uint64) {
	if req.Flags&txExposed != 0 {
		closeAll(e.exposed.remove(id))
	}
}

// of returns the regions of a request.
func (x *exposures) of(id uint64) []hw.Memory {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.list[id]
}

// all takes out all regions.
func (x *exposures) all() (list []hw.Memory) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, regions := range x.list {
		list = append(list, regions...)
	}
	x.list = nil
	return list
}

// any reports whether there is one.
func (x *exposures) any() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return len(x.list) != 0
}

func closeAll(regions []hw.Memory) {
	for _, m := range regions {
		_ = m.Close()
	}
}
