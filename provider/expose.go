package provider

import (
	"encoding/binary"
	"sync"

	"github.com/weft-fabric/weft/hw"
)

// Where a transport reads memory that the peer has registered, a message that
// is announced is exposed: each element of its vector is a region of its own,
// under a random key, until the receiver has acknowledged the message. The
// announcement carries the keys in place of addresses, which mean nothing to
// another host.

// keyBytes is the size of the keys that an announcement has room for.
const keyBytes = 8

// exposes tells whether messages to peers of a port are exposed.
func (p *port) exposes() bool {
	if p.attr.Caps&hw.CapGetZcopy == 0 || p.attr.Caps&hw.CapPeerMemory != 0 || p.Memory() == nil {
		return false
	}
	a := p.Memory().Attr()
	return a.MaxKey == keyBytes && a.Caps&hw.MDLocal == 0
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

// expose registers what a request sends and puts the keys into its
// announcement. Without memory for that the payload goes in fragments.
func (e *Endpoint) expose(p *port, req *txRequest, id uint64, r *rts) {
	if r.length == 0 {
		return
	}
	regions := make([]hw.Memory, 0, r.count)
	var keys [iovLimit]uint64
	for i, v := range req.iov[:req.count] {
		if v.Len == 0 {
			continue
		}
		m, err := p.Memory().Register(hw.Region{Addr: pointerAt(uint64(v.Base)), Len: int(v.Len), Access: hw.RemoteRead})
		if err != nil {
			closeAll(regions)
			return
		}
		regions = append(regions, m)
		var b [keyBytes]byte
		keys[i] = binary.LittleEndian.Uint64(m.PackKey(b[:0]))
	}
	for i := range keys[:r.count] {
		r.iov[i].Addr = keys[i]
	}
	r.flags = r.flags&^wireNoGet | wireKeyed
	req.flags |= txExposed
	e.exposed.add(id, regions)
}

// conceal takes back what a request exposed.
func (e *Endpoint) conceal(req *txRequest, id uint64) {
	if req.flags&txExposed != 0 {
		closeAll(e.exposed.remove(id))
	}
}

// any tells whether there is one.
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
