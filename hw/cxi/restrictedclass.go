package cxi

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/libcxi"
)

// Restricted commands are of a type of traffic of their own within their class, as in libfabric's provider: reads and
// writes by optimised keys that keep no order, and restricted gets of long messages. Each network of an interface that
// has the NIC match messages has a profile for them beside that of all else, that of the memory domain's VNI being the
// domain's. Where the device has none, which the log says, they go under the profile of all else.
//
// An interface can do without that profile, and not without the other. The device has few: where it has none for an
// interface that is opened, others give up those of theirs by which they have posted nothing.

// restrictedProfile is a memory domain's profile of restricted commands, made when first asked for.
type restrictedProfile struct {
	mu      sync.Mutex
	tried   bool            // under mu, as what follows
	profile *libcxi.Profile // nil: there is none
	// holders are the networks of interfaces that have such profiles of their own.
	holders []*network
}

// of makes it if it was not tried. nil: there is none.
func (p *restrictedProfile) of(d *MemoryDomain) *libcxi.Profile {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.tried {
		p.tried, p.profile = true, d.newRestricted(d.vni)
	}
	return p.profile
}

func (p *restrictedProfile) close() (err error) {
	if p.profile != nil {
		err = p.profile.Close()
		p.profile = nil
	}
	return err
}

// hold has a network have a profile of its own.
func (p *restrictedProfile) hold(n *network, own *libcxi.Profile) {
	p.mu.Lock()
	n.own = own
	p.holders = append(p.holders, n)
	p.mu.Unlock()
}

// drop closes a network's own profile, if it has one.
func (p *restrictedProfile) drop(n *network) (err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.holders = slices.DeleteFunc(p.holders, func(o *network) bool { return o == n })
	if n.own != nil {
		err = n.own.Close()
		n.own = nil
	}
	return err
}

// giveUp closes the profiles by which nothing was posted of networks that have their own, and reports whether there
// were some.
func (d *MemoryDomain) giveUp() bool {
	p := &d.restricted
	p.mu.Lock()
	defer p.mu.Unlock()
	had := len(p.holders)
	p.holders = slices.DeleteFunc(p.holders, (*network).giveUp)
	if had > len(p.holders) {
		d.logf("cxi %s: restricted commands in %d networks have the profile of all others: another needs theirs",
			d.dev.Name, had-len(p.holders))
	}
	return had > len(p.holders)
}

// giveUp closes the network's own profile unless something was posted by it. A thread that posts sets used before it
// reads restricted, so that one of both is seen.
func (n *network) giveUp() bool {
	atomic.StoreUint32(&n.restricted, n.lcid)
	if atomic.LoadUint32(&n.used) != 0 || n.own.Close() != nil {
		atomic.StoreUint32(&n.restricted, n.own.LCID())
		return false
	}
	n.own = nil
	return true
}

// restrictedOnes is the profile of restricted commands, one of which is about to be posted. It needs nothing of the
// runtime.
func (n *network) restrictedOnes() uint32 {
	if atomic.LoadUint32(&n.used) == 0 {
		atomic.StoreUint32(&n.used, 1)
	}
	return atomic.LoadUint32(&n.restricted)
}

// restrictedApart reports whether restricted commands have a profile of their own.
func (n *network) restrictedApart() bool { return atomic.LoadUint32(&n.restricted) != n.lcid }

// newMandatory makes a profile without which an interface is not, where there is none left of what others give up.
func (d *MemoryDomain) newMandatory(vni uint16) (*libcxi.Profile, error) {
	p, err := d.newProfile(vni, libcxi.TypeDefault)
	if err != nil && errors.Is(reason(err), hw.ErrNoResource) && d.giveUp() {
		p, err = d.newProfile(vni, libcxi.TypeDefault)
	}
	return p, err
}

// newRestricted makes a profile of restricted commands. nil: there is none, which is logged.
func (d *MemoryDomain) newRestricted(vni uint16) *libcxi.Profile {
	p, err := d.newProfile(vni, libcxi.TypeRestricted)
	if err != nil {
		d.logf("cxi %s: restricted commands in VNI %d have the profile of all others: %v", d.dev.Name, vni, err)
		return nil
	}
	return p
}

// openRestricted makes the profiles of restricted commands.
func (l networks) openRestricted(d *MemoryDomain) {
	for k := range l {
		n := &l[k]
		var p *libcxi.Profile
		if n.restricted = n.lcid; n.vni == d.vni {
			p = d.restricted.of(d)
		} else if p = d.newRestricted(n.vni); p != nil {
			d.restricted.hold(n, p)
		}
		if p != nil {
			n.restricted = p.LCID()
		}
	}
}

// restrictedOf is the profile of restricted commands in the network of a profile. It needs nothing of the runtime.
func (l networks) restrictedOf(profile uint32) uint32 {
	for k := range l {
		if l[k].lcid == profile {
			return l[k].restrictedOnes()
		}
	}
	return profile
}

// restrict gives a restricted access its profile. It needs nothing of the runtime.
func (l networks) restrict(a *access) {
	if a.restricted() {
		a.to.Profile = l.restrictedOf(a.to.Profile)
	}
}
