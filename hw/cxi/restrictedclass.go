package cxi

import (
	"sync"

	"github.com/weft-fabric/weft/hw/cxi/libcxi"
)

// Restricted commands are of a type of traffic of their own within their class, as in libfabric's provider: reads and
// writes by optimised keys that keep no order, and restricted gets of long messages. Each network of an interface that
// has the NIC match messages has a profile for them beside that of all else, that of the memory domain's VNI being the
// domain's. Where the device has none, which the log says, they go under the profile of all else.

// restrictedProfile is a memory domain's profile of restricted commands, made when first asked for.
type restrictedProfile struct {
	mu      sync.Mutex
	tried   bool            // under mu, as profile
	profile *libcxi.Profile // nil: there is none
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
		} else {
			n.own = d.newRestricted(n.vni)
			p = n.own
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
			return l[k].restricted
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
