package loopback

import (
	"sync/atomic"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/hot"
)

// Finding peers that are gone: their processes have ended, or they have closed their interfaces.

// peerScan is what CheckPeers keeps between its calls. Progress lease.
type peerScan struct {
	next  uint32           // attach entry at which the rolling part of the scan goes on
	alive map[process]bool // of this call: a process may have many interfaces
}

// scanRun is how many free attach entries in a row end the scan from the
// front. Senders take the first free entry, so used ones are in front; holes
// wider than this are found by the rolling part, which examines as many
// entries in each call.
const scanRun = 64

// CheckPeers finds peers that have died or closed their interface, gives back
// what they had, and reports them. The caller holds the progress lease.
func (i *Iface) CheckPeers() {
	if !i.usable() {
		return
	}
	if i.rx.checks.alive == nil {
		i.rx.checks.alive = map[process]bool{}
	}
	clear(i.rx.checks.alive)
	for n := range i.rx.active() {
		l := &i.rx.rings[n]
		l.head = l.seen()
		if owner, state, lapOK := l.ring.Load(l.head); !lapOK || state != hot.SlotReady {
			i.unblock(l, owner, state, lapOK, true)
		}
	}
	i.checkEndpoints()
	i.checkSources()
	i.freeDeadClaims()
}

// runs is host.alive, asked once for each call of CheckPeers.
func (i *Iface) runs(p process) bool {
	if i.host.isSelf(p) {
		return true
	}
	alive, known := i.rx.checks.alive[p]
	if !known {
		alive = i.host.alive(p)
		i.rx.checks.alive[p] = alive
	}
	return alive
}

// checkSources checks the senders.
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
// messages is left. It reports whether the entry is in use.
func (i *Iface) checkSource(n uint32) bool {
	a := i.seg.attach(n)
	word := atomic.LoadUint64(attachWord(a))
	state, src := uint32(word), i.known(n)
	if state == hot.AttachFree && src == nil {
		return false
	}
	i.seg.useRing(ringOf(n)) // in case the number was overwritten
	switch {
	case state == hot.AttachLeaving:
	case src != nil && src.state != sourceRefused:
		if i.runs(src.owner) && (src.seg == nil || !src.seg.gone()) {
			return true
		}
	case state == hot.AttachClaimed || state == hot.AttachReady || state == hot.AttachRefused:
		if i.runs(process{pid: uint32(word >> 32), start: startOf(a, state)}) {
			return true
		}
	}
	if i.rx.rings[ringOf(n)].hasMessages(n + 1) {
		return true
	}
	met := src != nil && src.state != sourceRefused
	if met && state != hot.AttachLeaving {
		for _, at := range i.host.exact(src.name) {
			removeStale(at.path(&i.host), &i.host, flockPatience)
		}
	}
	if src != nil {
		src.reset()
	}
	if ownsRing(n) {
		i.rx.rings[n].renew()
	}
	a.StartTime, a.Cookie, a.NameBytes, a.Number, a.Flags = 0, 0, 0, 0, 0
	for w := range a.Words {
		atomic.StoreUint64(&a.Words[w], 0)
	}
	atomic.StoreUint64(attachWord(a), hot.AttachFree) // release ↔ claimAttach
	if met {
		i.lost.Add(1)
		i.onPeer(hw.PeerEvent{
			Source: hw.Source(n), HasSource: true, Closed: state == hot.AttachLeaving, Err: hw.ErrPeerDead,
		})
	}
	return false
}

// hasMessages reports whether a slot of the ring is taken or ready for owner.
// The owner is gone, so what is not there now does not come.
func (l *rxRing) hasMessages(owner uint32) bool {
	l.head = l.seen()
	for pos := l.head; pos != l.head+l.ring.Slots(); pos++ {
		if o, state, _ := l.ring.Load(pos); o == owner && state != hot.SlotFree {
			return true
		}
	}
	return false
}
