package coll

import (
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/stats"
)

// keptMemory is what a persistent all-to-all has offered to its peers: it stays registered for the next
// operation of the request until one fails, which takes it back, or the request is freed. An offer is sent
// for each operation all the same, because it says that the operation has begun: no peer puts there, or gets,
// before it has that offer. All has ended when the operation completes, because the bytes of each put and get
// are counted in it.
//
// used and freed are under Groups.mu. The list belongs to the operation that uses it, which is one at a
// time, else to the thread that frees the request.
type keptMemory struct {
	used, freed bool
	list        []keptRegion // by entry of exchangePeers, the same in all operations
}

// keptRegion is what an entry's peer was offered, nil: nothing.
type keptRegion struct {
	region hw.Memory
	over   *Transport
}

// keep gives an operation the memory of its request, unless another one has it. The caller has c.mu.
func (o *collOp) keep(k *keptMemory) {
	if k != nil && !k.used && !k.freed {
		k.used, o.kept = true, k
	}
}

// unkeep ends that an operation uses the memory of its request.
func (c *Protocol) unkeep(o *collOp) {
	k := o.kept
	if k == nil {
		return
	}
	o.kept = nil
	c.mu.Lock()
	k.used = false
	freed := k.freed
	c.mu.Unlock()
	if freed {
		k.close()
	}
}

// register registers what the peer of an entry is offered, unless it is from an operation before.
func (o *collOp) register(entry int, over *Transport, data []byte, access hw.Access) (hw.Memory, error) {
	k := o.kept
	if k != nil && entry < len(k.list) && k.list[entry].over == over {
		return k.list[entry].region, nil
	}
	r, err := over.Memory().Register(hw.Region{Addr: segmentOf(data).Addr, Len: len(data), Access: access})
	if err == nil {
		o.c.ep.Stats().Rx(stats.RxExchangeRegistered, 1)
	}
	if k == nil || err != nil {
		return r, err
	}
	for len(k.list) <= entry {
		k.list = append(k.list, keptRegion{})
	}
	k.drop(entry)
	k.list[entry] = keptRegion{r, over}
	return r, nil
}

// revoke takes back what a peer was offered.
func (o *collOp) revoke(peer int) {
	p := o.exchange.peers.at(peer)
	if o.kept != nil {
		o.kept.drop(int(o.exchange.peers.slots[peer]) - 1)
	} else {
		_ = p.region.Close()
	}
	p.region = nil
}

// drop takes back what an entry's peer was offered.
func (k *keptMemory) drop(entry int) {
	if r := &k.list[entry]; r.region != nil {
		_ = r.region.Close()
		*r = keptRegion{}
	}
}

// close takes back everything.
func (k *keptMemory) close() {
	for i := range k.list {
		k.drop(i)
	}
	k.list = nil
}
