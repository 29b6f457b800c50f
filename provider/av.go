package provider

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/provider/av"
	"github.com/weft-fabric/weft/provider/names"
)

// OpenAV opens an address vector: see [av.Open].
func (d *Domain) OpenAV(attr *fi.AVAttr) (*AV, error) { return d.openAV(attr, av.MaxLines) }

// openAV is OpenAV with room for so many addresses at most.
func (d *Domain) openAV(attr *fi.AVAttr, limit uint64) (*AV, error) {
	if err := d.refs.Acquire(); err != nil {
		return nil, err
	}
	o := av.Options{Owner: d, Format: d.format, Capacity: uint64(d.cfg.AVSizeMax), Limit: limit,
		UserIDs: (d.info.Caps|d.info.Domain.Caps)&fi.AVUserID != 0,
		Domain:  d.DomainName(), Dir: d.cfg.SHMDir, Timeout: d.cfg.ConnectTimeout,
		Resolve: func(node, service string) ([]names.Name, error) {
			return d.resolver.Resolve(node, service, false)
		},
		Reach: d.reach, Here: d.local.has, Closed: d.refs.Release}
	if d.Keyed() {
		o.Keys = d.keyLimit()
	}
	a, err := av.Open(attr, o)
	if err != nil {
		d.refs.Release()
	}
	return a, err
}

// Address vectors, for callers of this package.
type (
	// AV is an address vector.
	AV = av.AV
	// AVSet is an ordered set of addresses of an address vector.
	AVSet = av.Set
	// Insertion is what the calls that insert addresses have in common.
	Insertion = av.Insertion
)

// localAddrs says which addresses are this host's. Endpoints are bound to
// sockets of this network namespace, so an address that none of its interfaces
// has belongs to no endpoint that can be reached through shared memory, unless
// that is shared with other network namespaces (FI_WEFT_SHM_ACROSS). The
// reverse does not hold; whether a peer is there is found out by connecting.
type localAddrs struct {
	src names.Source

	// mu guards what follows. It is not on the data path: addresses are
	// found when they are inserted into an address vector.
	mu   sync.Mutex
	ifis []names.Interface
	read time.Time
}

// localAddrsAge is how long a list without the address that is asked for
// counts as current.
const localAddrsAge = 100 * time.Millisecond

// has reports whether n's address is one of this host, as far as that can be found out.
func (l *localAddrs) has(n names.Name) bool {
	is, err := l.find(n)
	if err != nil {
		log.Warnf(log.AV, "%v", err)
	}
	return is
}

// find reports whether n's address is one of this host. Errors are of the kernel, which may have no descriptor.
func (l *localAddrs) find(n names.Name) (bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.known(n) {
		return true, nil
	}
	if !l.read.IsZero() && time.Since(l.read) < localAddrsAge {
		return false, nil
	}
	ifis, err := l.src()
	if err != nil {
		return false, fmt.Errorf("list network interfaces: %w", err)
	}
	l.ifis, l.read = ifis, time.Now()
	return l.known(n), nil
}

// all returns the addresses, with port 0, as they were when they were last
// read.
func (l *localAddrs) all() []names.Name {
	l.mu.Lock()
	defer l.mu.Unlock()
	locals, err := names.Locals(func() ([]names.Interface, error) { return slices.Clone(l.ifis), nil })
	if err != nil {
		return nil // cannot be: the list is at hand
	}
	var list []names.Name
	for _, a := range locals {
		list = append(list, a.Name)
	}
	return list
}

// known finds n in the list. The caller has l.mu.
func (l *localAddrs) known(n names.Name) bool {
	local, err := names.IsLocal(func() ([]names.Interface, error) { return l.ifis, nil }, n)
	return local && err == nil
}

// reach reports whether the domain's endpoints may reach an address: it is on this
// host, or in a container that shares memory with us, or there is a transport to others.
// Errors: fi.EHOSTUNREACH, and the kernel's if it cannot be found out.
func (d *Domain) reach(n names.Name) error {
	if d.cfg.Across() || d.Matches() {
		return nil
	}
	here, err := d.local.find(n)
	if here || err != nil {
		return err
	}
	locals, err := names.Locals(names.System)
	if err != nil {
		return fmt.Errorf("list network interfaces: %w", err)
	}
	for _, l := range locals {
		if l.Iface == d.DomainName() && networked(l.Name, d.cfg) && !n.IsLoopback() {
			return nil
		}
	}
	if device, _ := d.rdmaDevice(); device != nil && !n.IsLoopback() {
		return nil
	}
	return fmt.Errorf("it is not on this host: %w", fi.EHOSTUNREACH)
}
