package loopback

import (
	"maps"
	"path/filepath"
	"sync/atomic"

	"github.com/weft-fabric/weft/hot"
	"github.com/weft-fabric/weft/hw"
)

// peerScan is what CheckPeers keeps between its calls. Progress lease.
type peerScan struct {
	next  uint32           // attach entry at which the rolling part of the scan goes on
	alive map[process]bool // of this call: a process may have many interfaces
}

// scanRun is how many free attach entries in a row end the scan from the
// front. Senders take the first free entry, so used ones are in front; holes
// wider than this are found by the rolling part, which looks at as many
// entries in each call.
const scanRun = 64

// CheckPeers finds peers that have died or closed their interface, gives back
// what they held, and reports them. The caller holds the progress lease.
func (i *Iface) CheckPeers() {
	if !i.usable() {
		return
	}
	if i.rx.checks.alive == nil {
		i.rx.checks.alive = map[process]bool{}
	}
	clear(i.rx.checks.alive)
	owner, state, lapOK := i.rx.ring.Load(i.rx.head)
	if !lapOK || state != hot.SlotReady {
		i.unblock(owner, state, lapOK, true)
	}
	i.checkEndpoints()
	i.checkSources()
}

// runs is process.alive, asked once for each call of CheckPeers.
func (i *Iface) runs(p process) bool {
	if p == i.host.self {
		return true
	}
	alive, known := i.rx.checks.alive[p]
	if !known {
		alive = p.alive()
		i.rx.checks.alive[p] = alive
	}
	return alive
}

// checkEndpoints looks at those we send to.
func (i *Iface) checkEndpoints() {
	dead := 0
	for _, e := range *i.endpoints.Load() {
		switch {
		case e.dead.Load():
			dead++
		case e.lost() || !i.runs(e.seg.id.owner):
			dead++
			i.bury(e)
		}
	}
	if dead > 0 {
		i.freeDeadBounces()
	}
}

// bury ends an endpoint whose peer is gone.
func (i *Iface) bury(e *Endpoint) {
	e.leave() // for a peer that only seems gone, because somebody wrote its rx_state
	e.dead.Store(true)
	i.lost.Add(1)
	i.freeDeadBounces()
	removeStale(e.seg.path, &i.host)
	i.mu.Lock()
	maps.DeleteFunc(i.peers, func(_ sockaddr, other *Endpoint) bool { return other == e })
	i.mu.Unlock()
	if err := e.seg.mem.detach(); err != nil {
		i.logf("%v", err) // its memory stays until Close
	}
	i.onPeer(hw.PeerEvent{Endpoint: e, Err: hw.ErrPeerDead})
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
		if p := atomic.LoadUint32(&b.Peer); p < uint32(len(endpoints)) && endpoints[p].dead.Load() {
			atomic.CompareAndSwapUint32(&b.State, state, 0)
		}
	}
}

// checkSources looks at those who send to us.
func (i *Iface) checkSources() {
	count := i.seg.geo.attachCount
	free := 0
	n := uint32(0)
	for ; n < count && free < scanRun; n++ {
		if i.checkSource(n) {
			free = 0
		} else {
			free++
		}
	}
	if n == count {
		return
	}
	c := &i.rx.checks
	if c.next < n || c.next >= count {
		c.next = n
	}
	for end := min(c.next+scanRun, count); c.next < end; c.next++ {
		i.checkSource(c.next)
	}
}

// checkSource frees attach entry n if its sender is gone and none of its
// messages is left. It tells whether the entry is in use.
func (i *Iface) checkSource(n uint32) bool {
	a := i.seg.attach(n)
	word := atomic.LoadUint64(attachWord(a))
	state, src := uint32(word), i.known(n)
	if state == hot.AttachFree && src == nil {
		return false
	}
	switch {
	case state == hot.AttachLeaving:
	case src != nil && src.state != sourceRefused:
		if i.runs(src.owner) && (src.seg == nil || !src.seg.gone()) {
			return true
		}
	case state == hot.AttachClaimed || state == hot.AttachReady:
		if i.runs(process{uint32(word >> 32), startOf(a, state)}) {
			return true
		}
	}
	if i.hasMessages(n + 1) {
		return true
	}
	met := src != nil && src.state != sourceRefused
	if met && state != hot.AttachLeaving {
		removeStale(filepath.Join(i.cfg.Dir, fileName(i.host.uid, i.host.netns, &src.name)), &i.host)
	}
	if src != nil {
		src.reset()
	}
	a.StartTime, a.Cookie, a.NameBytes, a.Flags = 0, 0, 0, 0
	atomic.StoreUint64(attachWord(a), hot.AttachFree) // release ↔ claimAttach
	if met {
		i.lost.Add(1)
		i.onPeer(hw.PeerEvent{Source: hw.Source(n), HasSource: true, Err: hw.ErrPeerDead})
	}
	return false
}

// hasMessages tells whether a slot of the ring is taken or ready for owner.
// The owner is gone, so what is not there now does not come.
func (i *Iface) hasMessages(owner uint32) bool {
	r := &i.rx.ring
	for pos := i.rx.head; pos != i.rx.head+r.Slots(); pos++ {
		if o, state, _ := r.Load(pos); o == owner && state != hot.SlotFree {
			return true
		}
	}
	return false
}
