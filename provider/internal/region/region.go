package region

import (
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/weft-fabric/weft/cq"
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/info"
	"github.com/weft-fabric/weft/provider/internal/authkey"
	"github.com/weft-fabric/weft/provider/internal/hmem"
	"github.com/weft-fabric/weft/provider/names"
)

// rights are those that a region can have.
const rights = fi.Send | fi.Recv | fi.Read | fi.Write | fi.RemoteRead | fi.RemoteWrite | fi.Collective

// remoteRights are those of peers.
const remoteRights = fi.RemoteRead | fi.RemoteWrite

// Region is registered memory. Owner is the object of type O that it is part of. All exported fields but Counter and
// Gate are immutable once peers can find it, until it is closed.
type Region[O any] struct {
	Owner  *O
	Rights uint64      // fi.Send to fi.Collective
	Auth   authkey.Key // that of endpoints through which peers reach it, "": of all
	Scope  *Scope      // in the place of Auth where keys are in address vectors, else nil
	Memory hmem.Region
	Length uint64 // bytes of all parts
	Base   uint64 // the address by which peers name the first byte
	Single bool   // FI_MR_SINGLE_USE: the key ends with the first operation of a peer
	// Counter counts what peers write, nil: nothing does. Stored once, before peers know the key; read by holders of
	// the progress leases of endpoints; sequentially consistent.
	Counter atomic.Pointer[cq.Counter]
	Gate    Gate

	desc  uint64 // of Table.Describe
	known publication

	table   *Table[O] // that it is entered in, nil: none; written before it is, then immutable, as the next
	key     uint64
	alias   uint64 // another key; Table.mu, as the next
	aliased bool   // there is one
}

// Options are what the regions of a domain have in common.
type Options struct {
	Keyed     bool // authorisation keys are in address vectors
	Device    bool // memory may be a device's (FI_HMEM)
	Matched   bool // devices match messages, which take one part
	Addressed bool // peers name bytes by their addresses (FI_MR_VIRT_ADDR), else the first is 0
	// PeerTimeout is how long other processes have to give up a mapping of memory of a device.
	PeerTimeout time.Duration
}

// Check checks the attributes and flags of a registration. The errors wrap fi.EBADFLAGS for flags that regions do not
// have, fi.EINVAL for no or too many parts, one that wraps around the address space, and FI_MR_DMABUF without a
// dma-buf, and fi.ENOSYS for several parts where devices match messages.
func (o *Options) Check(a *fi.MRAttr, flags uint64) error {
	allowed := fi.MRSingleUse | fi.RMAEvent
	if o.Keyed {
		allowed |= fi.AuthKey
	}
	if o.Device {
		allowed |= fi.HMEMDeviceOnly | fi.HMEMHostAlloc | fi.MRDMABuf
	}
	switch {
	case flags&^allowed != 0:
		return fmt.Errorf("flags %#x: %w", flags&^allowed, fi.EBADFLAGS)
	case flags&fi.MRDMABuf != 0 && a.DMABuf == nil:
		return fmt.Errorf("FI_MR_DMABUF without a dma-buf: %w", fi.EINVAL)
	case flags&fi.MRDMABuf != 0:
	case o.Matched && len(a.IOV) > 1:
		return fmt.Errorf("%d parts, 1 is possible with FI_PROTO_CXI: %w", len(a.IOV), fi.ENOSYS)
	case len(a.IOV) == 0 || len(a.IOV) > info.MRIOVLimit:
		return fmt.Errorf("%d parts, 1 to %d are possible: %w", len(a.IOV), info.MRIOVLimit, fi.EINVAL)
	}
	for i, v := range a.IOV {
		if uint64(v.Base)+v.Len < uint64(v.Base) {
			return fmt.Errorf("part %d of %d bytes at %#x: %w", i, v.Len, v.Base, fi.EINVAL)
		}
	}
	return nil
}

// Init takes in the memory of a registration that Check has found right. Owner, Auth and Scope are the caller's to set.
// Errors: those of hmem.EnterRegion.
func (r *Region[O]) Init(a *fi.MRAttr, flags uint64, o *Options) (err error) {
	r.Rights, r.Single = a.Access&rights, flags&fi.MRSingleUse != 0
	r.Memory = hmem.Region{Parts: slices.Clone(a.IOV)}
	if o.Device { // else the kind of memory is not read
		writable := r.Rights&(fi.Recv|fi.Read|fi.RemoteWrite) != 0
		if r.Memory, err = hmem.EnterRegion(a, flags, writable, o.PeerTimeout); err != nil {
			return err
		}
	}
	for _, p := range r.Memory.Parts {
		r.Length += p.Len
	}
	if o.Addressed {
		r.Base = uint64(r.Memory.App()[0].Base)
	}
	return nil
}

// Remote reports whether peers may access the region.
func (r *Region[O]) Remote() bool { return r.Rights&remoteRights != 0 }

// RemoteAccess is what peers may do, as transports take it.
func (r *Region[O]) RemoteAccess() (a hw.Access) {
	if r.Rights&fi.RemoteRead != 0 {
		a |= hw.RemoteRead
	}
	if r.Rights&fi.RemoteWrite != 0 {
		a |= hw.RemoteWrite
	}
	return a
}

// Desc is the region's descriptor, which is never 0.
func (r *Region[O]) Desc() uint64 { return r.desc }

// Covers reports whether n bytes that peers name by addr and what follows are in the region.
func (r *Region[O]) Covers(addr, n uint64) bool {
	offset := addr - r.Base
	return offset <= r.Length && n <= r.Length-offset
}

// At is where a byte is that peers name by addr, of a region in one part that covers it.
func (r *Region[O]) At(addr uint64) uint64 { return uint64(r.Memory.Parts[0].Base) + (addr - r.Base) }

// InOnePart reports whether the region is one part, from which operations on all of it can be done in one go.
func (r *Region[O]) InOnePart() bool { return len(r.Memory.Parts) == 1 }

// OnDevice reports whether the region is memory of a device that the application names by other addresses than those
// by which it is copied.
func (r *Region[O]) OnDevice() bool { return r.Memory.Named != nil }

// Opens reports whether a peer of an endpoint reaches the region. Without a scope it does through an endpoint with the
// region's key, auth. With one it does under a key of the region, and if the scope names a peer it must be that one:
// own are the endpoint's keys, by whose numbers peer has one, and ids its identities. peer is not read without a scope.
func (r *Region[O]) Opens(auth authkey.Key, own []hw.Key, peer names.Name, ids Identities) bool {
	if r.Scope == nil {
		return r.Auth == "" || r.Auth == auth
	}
	return r.Scope.opens(own, peer, ids)
}

// Keys are the authorisation keys under which tokens of the region lead to an endpoint: its own, auth, unless it is
// empty, or those of its address vector, own, that are in the region's scope.
func (r *Region[O]) Keys(auth authkey.Key, own []hw.Key) (keys [][]byte) {
	switch {
	case r.Scope != nil:
		return r.Scope.of(own)
	case auth == "":
		return nil
	}
	return [][]byte{auth.Bytes()}
}

// Leads reports whether tokens of the region may lead to an endpoint: it has the region's key, or one of its scope.
func (r *Region[O]) Leads(auth authkey.Key, own []hw.Key) bool {
	if r.Scope != nil {
		return len(r.Scope.of(own)) != 0
	}
	return auth == r.Auth
}

// Unattended reports whether peers can be given the region to access by themselves, through endpoints with a domain's
// key: it is one part that has bytes, all of them may access it, and its key does not end with an access.
func (r *Region[O]) Unattended(domain authkey.Key) bool {
	return r.InOnePart() && r.Length != 0 && r.OpenToAll(domain) && !r.Single
}

// OpenToAll reports whether all peers that reach endpoints with a domain's key reach the region.
func (r *Region[O]) OpenToAll(domain authkey.Key) bool { return r.Auth == domain && r.Scope == nil }
