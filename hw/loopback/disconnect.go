package loopback

import (
	"maps"
	"slices"
	"sync/atomic"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/hot"
)

// The end of an endpoint whose peer is gone:
//
//	found gone, and what it sent us delivered, for there may be answers in it
//	           → dead, private memory in the segment's place but for what SharedWords
//	             had last, the outcome of shared operations; reported
//	           → all threads pass a barrier; the epoch readers of this moment are taken down
//	           → all of them have left: number and addresses are used again
//
// A peer that refuses us lives: our threads may be at copies under claims of its regions, or put a message on its ring.
// So its memory stays, and our entry there, until all of them have left.
//
// Each step is one CheckPeers or more. The last waits for sends of Go by their
// count and for those of the data plane by hot.Grace; the layer above has cleared
// the data plane's lines when the report returns.

// connected returns the endpoints that have a number.
func (i *Iface) connected() []*Endpoint {
	return slices.DeleteFunc(slices.Clone(*i.endpoints.Load()), func(e *Endpoint) bool { return e == nil })
}

// checkEndpoints finds endpoints whose peers are gone.
func (i *Iface) checkEndpoints() {
	dead := 0
	for _, e := range *i.endpoints.Load() {
		switch {
		case e == nil:
		case e.dead.Load():
			dead++
		case !e.refused() && (!e.lost() && i.runs(e.seg.id.owner) || i.speaks(e.seg.id.cookie)):
		default:
			dead++
			i.disconnect(e)
		}
	}
	if dead > 0 {
		i.freeDeadBounces()
		i.retireDead()
	}
}

// speaks reports whether messages of the interface with a cookie have not been delivered yet.
func (i *Iface) speaks(cookie uint64) bool {
	for n := range i.seg.geo.attachCount {
		if i.seg.attach(n).Cookie == cookie && i.rx.rings[ringOf(n)].hasMessages(n+1) {
			return true
		}
	}
	return false
}

// disconnect ends an endpoint whose peer is gone, or refuses it, and reports it.
func (i *Iface) disconnect(e *Endpoint) {
	if e.lives = e.refused(); !e.lives {
		e.leave() // for a peer that only seems gone, because its rx_state was overwritten
	}
	e.dead.Store(true)
	i.lost.Add(1)
	i.freeDeadBounces()
	removeStale(e.seg.path, &i.host, flockPatience)
	i.mu.Lock()
	maps.DeleteFunc(i.peers, func(_ target, other *Endpoint) bool { return other == e })
	i.mu.Unlock()
	if !e.lives {
		e.detach()
	}
	i.onPeer(hw.PeerEvent{Endpoint: e, Err: hw.ErrPeerDead})
	e.reported.Store(true)
}

// detach puts private memory in the place of the peer's.
func (e *Endpoint) detach() {
	if err := e.seg.mem.detachKeeping(e.SharedWords()); err != nil {
		e.iface.logf("%v", err) // its memory stays until Close
		e.kept = true
	}
}

// retireDead takes the next step with endpoints that are disconnected: a barrier and a grace period, then retire.
func (i *Iface) retireDead() {
	var fresh []*Endpoint
	for _, e := range *i.endpoints.Load() {
		switch {
		case e == nil || !e.dead.Load() || e.kept:
		case e.grace == nil:
			fresh = append(fresh, e)
		case e.users.Load() == 0 && e.grace.Over():
			i.retire(e)
		}
	}
	if len(fresh) == 0 {
		return
	}
	barrier()
	for _, e := range fresh {
		e.grace = hot.NewGrace()
	}
}

// retire gives number and addresses back: no thread uses them any more. It leaves a peer that lives.
func (i *Iface) retire(e *Endpoint) {
	if e.lives {
		e.leave()
		e.lives = false
		if e.detach(); e.kept {
			return
		}
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	list := slices.Clone(*i.endpoints.Load())
	list[e.number] = nil
	i.endpoints.Store(&list)
	i.numbers = append(i.numbers, e.number)
	words := e.SharedWords()
	for n := range words {
		atomic.StoreUint64(&words[n], 0)
	}
	peerRanges.give(e.seg.mem)
}

// holder is the endpoint that a buffer was last marked for, nil if that is
// retired.
func holder(endpoints []*Endpoint, b *hot.Bounce) *Endpoint {
	if p := atomic.LoadUint32(&b.Peer); p < uint32(len(endpoints)) {
		return endpoints[p]
	}
	return nil
}

// freeDeadBounces takes back the buffers that dead peers have not returned.
// A thread may mark a buffer for a dead peer after this, so it is done again
// at each CheckPeers while there are dead peers.
func (i *Iface) freeDeadBounces() {
	endpoints := *i.endpoints.Load()
	for n := range i.seg.geo.bounceCount {
		b := i.seg.bounce(n)
		state := atomic.LoadUint32(&b.State)
		if state == 0 {
			continue
		}
		// While the state is not 0 the sender leaves Peer alone. If the buffer is returned and
		// marked again between the two loads, the exchange fails or frees it for a dead peer.
		if e := holder(endpoints, b); e != nil && e.dead.Load() {
			atomic.CompareAndSwapUint32(&b.State, state, 0)
		}
	}
}
