package cxi

import (
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/hw/cxi/internal/proto"
	"github.com/weft-fabric/weft/internal/libcxi"
)

// maxNetworks is how many virtual networks an interface is in at most.
const maxNetworks = 4

// network is a virtual network that an interface is in.
type network struct {
	vni     uint16
	lcid    uint32 // the profile of what goes there
	pid     *libcxi.Domain
	profile *libcxi.Profile // nil: it is the memory domain's
	// restricted is the profile of restricted commands, lcid where they have none of their own. Stored when the
	// interface is opened, and by giveUp (atomic); read by threads that post (atomic).
	restricted uint32
	// used says that such a command was posted. Stored by the threads that post them, read by giveUp (sequentially
	// consistent).
	used uint32
	own  *libcxi.Profile // that, nil: it is the memory domain's, or there is none. Under restrictedProfile.mu
}

// ErrTaken is the error of Open where the PID that an interface is to have is another's. Such an error is
// hw.ErrNoResource, too, as is that of a NIC that has no room for the interface.
var ErrTaken = errors.New("it is another interface's")

// networks are those that an interface is in, under one PID: its lists have their indices in each. Immutable from open
// to close, but for the profiles of restricted commands.
type networks []network

// open takes a PID in each, and makes the profiles.
func (l *networks) open(d *MemoryDomain, vnis []uint16, pid uint32) error {
	// PIDs that are others' in some network are kept until one is found that is free in all.
	var passed networks
	err := l.take(d, vnis, pid)
	for ; pid == libcxi.AnyPID && len(*l) > 0 && is(err, unix.EEXIST); err = l.take(d, vnis, pid) {
		passed = append(passed, *l...)
		*l = nil
	}
	err = errors.Join(err, passed.close(d))
	for k := range *l {
		n := &(*l)[k]
		n.lcid = d.profile.LCID()
		if err != nil || n.vni == d.vni {
			continue
		}
		if n.profile, err = d.newMandatory(n.vni); err != nil {
			n.profile, err = nil, limit(err)
			continue
		}
		n.lcid = n.profile.LCID()
	}
	return err
}

// take takes a PID in each network, as far as there is one that is free in all.
func (l *networks) take(d *MemoryDomain, vnis []uint16, pid uint32) error {
	for _, vni := range vnis {
		p, err := d.lni.NewDomain(vni, pid)
		if err != nil && pid != libcxi.AnyPID && is(err, unix.EEXIST) {
			return fmt.Errorf("cxi: PID %d in network %d: %w: %w: %w", pid, vni, ErrTaken, err, hw.ErrNoResource)
		}
		if err != nil {
			return limit(err)
		}
		*l = append(*l, network{vni: vni, pid: p})
		pid = p.PID()
	}
	return nil
}

func (l *networks) close(d *MemoryDomain) error {
	var errs []error
	for k := range slices.Backward(*l) {
		n := &(*l)[k]
		errs = append(errs, d.restricted.drop(n))
		if n.profile != nil {
			errs = append(errs, n.profile.Close())
		}
		errs = append(errs, n.pid.Close())
	}
	*l = nil
	return errors.Join(errs...)
}

// newPtlTE makes a portal table entry at an index.
func (l networks) newPtlTE(d *MemoryDomain, eq *libcxi.EQ, options uint64, index uint32) (*libcxi.PtlTE, error) {
	t, err := d.lni.NewPtlTE(eq, options, l[0].pid, index)
	if err != nil {
		return nil, limit(err)
	}
	if err := l[1:].place(t, index); err != nil {
		return nil, errors.Join(err, t.Close())
	}
	return t, nil
}

// place places an entry at an index.
func (l networks) place(t *libcxi.PtlTE, index uint32) error {
	for _, n := range l {
		if err := t.Place(n.pid, index); err != nil {
			return limit(err)
		}
	}
	return nil
}

// profile is that of what goes to the first network.
func (l networks) profile(d *MemoryDomain) *libcxi.Profile {
	if p := l[0].profile; p != nil {
		return p
	}
	return d.profile
}

// number is which network has a VNI, -1: none. It needs nothing of the runtime.
func (l networks) number(vni uint16) int {
	for k := range l {
		if l[k].vni == vni {
			return k
		}
	}
	return -1
}

// vnis are the VNIs of an interface of a memory domain.
func (c *Config) vnis(d *MemoryDomain) []uint16 {
	if c.Match == nil || len(c.Match.VNIs) == 0 {
		return []uint16{d.vni}
	}
	return c.Match.VNIs
}

// checkVNIs judges the VNIs of a configuration.
func checkVNIs(list []uint16) error {
	if len(list) > maxNetworks {
		return fmt.Errorf("cxi: %d VNIs, at most %d: %w", len(list), maxNetworks, hw.ErrInvalid)
	}
	for k, vni := range list {
		if vni == 0 || slices.Contains(list[:k], vni) {
			return fmt.Errorf("cxi: VNI %d, or twice: %w", vni, hw.ErrInvalid)
		}
	}
	return nil
}

// Admits judges whether an interface of the domain may be in the virtual network of a service. Errors:
// hw.ErrInvalid for another service than the domain's, hw.ErrPermission for a VNI that it does not have.
func (d *MemoryDomain) Admits(service uint32, vni uint16) error {
	if service != d.service || vni == 0 {
		return fmt.Errorf("cxi: service %d, VNI %d, of a domain of service %d: %w", service, vni, d.service,
			hw.ErrInvalid)
	}
	return admits(d.handle, service, vni)
}

// InNetwork is the address of the same endpoint in the network with a number.
func (m *matcher) InNetwork(a hw.MatchAddress, number int) (hw.MatchAddress, bool) {
	n, ok := proto.NameOf(uint64(a), m.pidBits)
	if !ok || number < 0 || number >= len(m.i.networks) {
		return a, false
	}
	n.VNI = m.i.networks[number].vni
	return hw.MatchAddress(n.Word()), true
}

// NetworkOf is the number of an address's network.
func (m *matcher) NetworkOf(a hw.MatchAddress) int {
	n, _ := proto.NameOf(uint64(a), m.pidBits)
	return m.i.networks.number(n.VNI)
}
