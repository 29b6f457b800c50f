package loopback

import (
	"runtime"
	"sync/atomic"
	"time"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/outbound"
)

// The key table of a segment is where peers find the regions that they may
// read and write by themselves, and a claim shows its owner that a peer accesses
// one of them (internal/hot/segment.go). Both sides store first and load second,
// with a full fence between:
//
//	peer                                   owner, ending a registration
//	1. claim the entry                     1. change the entry's state
//	2. load the state, and give up if it   2. load the claims, and wait for
//	   is not the one of the key              those of this entry
//
// so at least one of them sees the other.

// Words of a hw.RemoteKey. A key from UnpackKey has a name only.
const (
	keyName  = 0
	keyEntry = 1 // entry of the table plus one
	keyState = 2
)

// publish enters a region in an interface's table, if there is room. The
// domain's mutex is locked.
func (m *region) publish(i *Iface) {
	r := &m.about
	count := i.seg.geo.keyCount
	if count == 0 || r.Access&(hw.RemoteRead|hw.RemoteWrite) == 0 {
		return
	}
	for n := range min(hot.KeyProbes, count) {
		at := (hot.KeyPlace(r.Name, count) + n) & (count - 1)
		k := i.seg.key(at)
		state := atomic.LoadUint64(&k.State)
		if state&1 != 0 {
			continue
		}
		atomic.StoreUint64(&k.Name, r.Name)
		atomic.StoreUint64(&k.Addr, addrOf(r.Addr))
		atomic.StoreUint64(&k.Base, r.Base)
		atomic.StoreUint64(&k.Len, uint64(r.Len))
		atomic.StoreUint32(&k.Access, rightsOf(r))
		atomic.StoreUint64(&k.State, state+1)
		m.places[i] = at
		return
	}
}

// rightsOf are the rights that a region's entry has.
func rightsOf(r *hw.Region) uint32 {
	if r.Device {
		return hot.KeyDevice
	}
	access := uint32(0)
	if r.Access&hw.RemoteRead != 0 {
		access |= hot.KeyRead
	}
	if r.Access&hw.RemoteWrite != 0 {
		access |= hot.KeyWrite
	}
	return access
}

// withdraw takes a region out of an interface's table and waits for the peers
// that are at it, no longer than until end. The domain's mutex is locked.
func (m *region) withdraw(i *Iface, end time.Time) {
	at, ok := m.places[i]
	if !ok {
		return
	}
	delete(m.places, i)
	k := i.seg.key(at)
	atomic.StoreUint64(&k.State, atomic.LoadUint64(&k.State)&^1+2)
	for n := range uint32(hot.Claims) {
		i.awaitClaim(i.seg.claim(n), at, end)
	}
}

const claimPause = 50 * time.Microsecond

// claimPatience is how long the end of a region, or of an interface, waits for live processes that keep claims, because
// they are stopped or hostile. Tests change it.
var claimPatience = 30 * time.Second

// awaitClaim waits until a claim is not one of the entry, its process is dead, or it is later than end.
func (i *Iface) awaitClaim(c *hot.Claim, entry uint32, end time.Time) {
	for spins := 0; ; spins++ {
		word := atomic.LoadUint64(&c.Word)
		if uint32(word) != entry+1 {
			return
		}
		if spins < 1000 {
			runtime.Gosched()
			continue
		}
		if !i.host.alive(claimantOf(c, word)) {
			freeClaim(c, word)
			return
		}
		if time.Now().After(end) {
			i.logf("process %d is at a region that ends for over %v: not waited for", word>>32, claimPatience)
			return
		}
		time.Sleep(claimPause)
	}
}

// freeDeadClaims gives back the claims of dead processes. The caller holds the
// progress lease.
func (i *Iface) freeDeadClaims() {
	if i.seg.geo.keyCount == 0 {
		return
	}
	for n := range uint32(hot.Claims) {
		c := i.seg.claim(n)
		word := atomic.LoadUint64(&c.Word)
		if word != 0 && !i.runs(claimantOf(c, word)) {
			freeClaim(c, word)
		}
	}
}

// claimantOf is the process that has a claim with a word. A start of 0 is not known (yet), and fits any.
func claimantOf(c *hot.Claim, word uint64) process {
	return process{pid: uint32(word >> 32), start: atomic.LoadUint64(&c.StartTime)}
}

// freeClaim frees a claim of a dead process, if it has it still. The time of the start is forgotten first: the next
// process stores its own after the word, and would be taken for the dead one until then.
func freeClaim(c *hot.Claim, word uint64) {
	atomic.StoreUint64(&c.StartTime, 0)
	atomic.CompareAndSwapUint64(&c.Word, word, 0)
}

// FindKey finds a name in the peer's table.
func (e *Endpoint) FindKey(name uint64) (hw.RemoteKey, error) {
	if err := e.ready(); err != nil {
		return hw.RemoteKey{}, err
	}
	k, entry, state := e.keys().Find(name)
	if k == nil || atomic.LoadUint32(&k.Access)&hot.KeyDevice != 0 {
		return hw.RemoteKey{}, hw.ErrKey
	}
	return hw.RemoteKey{keyName: name, keyEntry: uint64(entry) + 1, keyState: state}, nil
}

// OfDevice reports whether the peer has a region of a name with memory of a device.
func (e *Endpoint) OfDevice(name uint64) bool {
	if e.begin() != nil {
		return false
	}
	defer e.end()
	k, _, _ := e.keys().Find(name)
	return k != nil && atomic.LoadUint32(&k.Access)&hot.KeyDevice != 0
}

// Instance names the peer.
func (e *Endpoint) Instance() hw.Instance {
	return hw.Instance{PID: int(e.pid), NetNS: e.seg.id.netns, Cookie: e.seg.id.cookie}
}

// claim says that this process is at a region, and checks the access. Without
// an error the caller releases the claim after it. at is the address in the
// peer's process. Errors: hw.ErrKey; hw.ErrNoResource when all claims are taken.
func (e *Endpoint) claim(key hw.RemoteKey, addr, n uint64, right uint32) (c *hot.Claim, at uint64, err error) {
	table, self, hint := e.keys(), &e.iface.host.self, e.claimHint.Load()
	claimant := outbound.Claimant{PID: self.pid, Start: self.start, First: hint}
	var extent outbound.Extent
	var why outbound.Refusal
	switch entry := uint32(key[keyEntry]) - 1; {
	case key[keyEntry] == 0:
		c, extent, why = table.ClaimName(&claimant, key[keyName], right)
	case entry >= table.Count:
		return nil, 0, hw.ErrKey
	default:
		c, extent, why = table.ClaimEntry(&claimant, entry, key[keyState], right)
	}
	if claimant.First != hint {
		e.claimHint.Store(claimant.First)
	}
	switch {
	case why == outbound.Later:
		return nil, 0, hw.ErrNoResource
	case why != outbound.None:
		return nil, 0, hw.ErrKey
	case !extent.Has(addr, n):
		outbound.Release(c)
		return nil, 0, hw.ErrKey
	}
	return c, addr + extent.Shift, nil
}
