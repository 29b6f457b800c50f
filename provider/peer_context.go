package provider

import (
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/provider/internal/receive"
)

// Receive contexts of other providers (fi_peer(3), FI_PEER): what arrives there is package receive's.

// PeerOwner is the owner of a receive context. All methods but Inserted are called under the progress lease.
type PeerOwner = receive.Owner

// PeerReceive is a receive that an owner has matched.
type PeerReceive = receive.Receive

// OpenPeerRx makes a receive context whose receives are owner's. Errors as of
// OpenSharedRx, and fi.ENOSYS unless the domain was opened with fi.Peer.
func (d *Domain) OpenPeerRx(attr *fi.RxAttr, owner PeerOwner) (*SharedRx, error) {
	if err := d.matchesNot("shared receive context"); err != nil {
		return nil, err
	}
	if d.info.Caps&fi.Peer == 0 && d.info.Domain.Caps&fi.Peer == 0 {
		return nil, refuse(log.Domain, fi.ENOSYS, "import a receive context: the domain was opened without FI_PEER")
	}
	s, err := d.OpenSharedRx(attr)
	if err != nil {
		return nil, err
	}
	s.rx.owner, s.rx.offload = owner, false
	s.rx.leased.Alone().matching.Own(owner, contextLease{s.rx})
	return s, nil
}

// contextLease is the progress lease of a context for calls by its owner.
type contextLease struct{ r *rxContext }

// Wait takes the lease.
func (l contextLease) Wait() *receive.Context { return &l.r.acquire().matching }

// Give gives the lease, after progress's last step.
func (l contextLease) Give() {
	r := l.r.leased.Taken()
	r.publish()
	r.give()
}

// Imported reports whether another provider matches the endpoint's receives.
func (e *Endpoint) Imported() bool {
	return e.base.bound.srx != nil && e.base.bound.srx.rx.owner != nil
}

// StartPeer gives an unexpected message to the receive that entry has become. Errors: fi.ENOENT
// for a message that is not there: its endpoint was closed.
func StartPeer(entry, id uint64) error { return receive.Start(entry, id) }

// DiscardPeer drops an unexpected message. Its sender gets the acknowledgement of a receive; the entry
// stays the owner's. Errors as of StartPeer.
func DiscardPeer(id uint64) error { return receive.Discard(id) }

// PeerAddr is the source address of an unexpected message, which the address vector
// may know now; fi.AddrUnspec if it does not. It takes no lease: the caller may have a lock
// that the holder of the lease waits for in the owner's functions.
func PeerAddr(id uint64) fi.Addr { return receive.Addr(id) }

// inserted is called when an endpoint's address vector has new addresses.
func (r *rxContext) inserted(e *Endpoint) {
	lease := r.acquire()
	if l := e.leased.Of(lease); lease.matching.Has(&l.received) {
		lease.nameQueued(l)
	}
	lease.give()
	r.owner.Inserted()
}

// reportInsertions has the owner ask for addresses again if another process has changed an address vector.
func (r *leasedRx) reportInsertions() {
	if r.base.owner == nil {
		return
	}
	changed := false
	for _, e := range r.eps {
		if e.ep.base.bound.av.Shared() && e.ep.base.bound.av.Generation() != e.peersNamed {
			r.nameQueued(e)
			changed = true
		}
	}
	if changed {
		r.base.owner.Inserted()
	}
}

// nameQueued finds the addresses of the senders of an endpoint's messages that the owner has queued.
func (r *leasedRx) nameQueued(e *leasedEP) {
	e.peersNamed = e.ep.base.bound.av.Generation()
	r.matching.NameQueued(&e.received)
}
