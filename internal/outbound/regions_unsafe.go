package outbound

import (
	"unsafe"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/hot"
)

// MaxRegions is how many regions the pieces of one system call are in at most. Their claims are of a table that all
// peers of the owner share.
const MaxRegions = 4

// maxBytes is how many bytes one operation on pieces has at most.
const maxBytes = 1 << 40

// Regions are some regions of a peer that are claimed as long as pieces of them are copied. The zero value has none. It
// has no pointers, so that the data plane may have it anywhere.
type Regions struct {
	list [MaxRegions]region
	used uint32
	last uint32 // that find returned
}

// region is a region that is claimed.
type region struct {
	name   uint64
	claim  uintptr // address of a hot.Claim
	extent Extent
}

// Refusal is why a piece is not among those that are claimed.
type Refusal int

const (
	None     Refusal = iota // it is
	Later                   // no claim is free, here or in the table
	Refused                 // the region is not there, or does not have the piece or the right
	Mismatch                // it is not as long here as there, or too long
)

// Release gives the claims back.
func (s *Regions) Release() {
	for i := range s.used {
		Release(*(**hot.Claim)(unsafe.Pointer(&s.list[i].claim)))
	}
	s.used, s.last = 0, 0
}

// Locate makes the remote addresses of pieces from one on those of the peer's process, as far as they lie in regions
// with some rights (hot.KeyRead, hot.KeyWrite), of which there are few, and claims these. It returns where it ends, how
// many bytes precede that, and if that is not the end why.
func (s *Regions) Locate(t Keys, c *Claimant, p *hw.Pieces, first int, rights uint32) (end int, n uint64, why Refusal) {
	for end = first; end < p.N; end++ {
		local, remote := &p.Local[end], &p.Remote[end]
		r, why := s.find(t, c, p.Keys[end], rights)
		if r == nil {
			return end, n, why
		}
		if !r.extent.Has(remote.Addr, remote.Len) {
			return end, n, Refused
		}
		if local.Len != remote.Len || local.Len > maxBytes-n {
			return end, n, Mismatch
		}
		remote.Addr += r.extent.Shift
		n += local.Len
	}
	return end, n, None
}

// find returns the region of a name, which it claims if need be; nil: why not.
func (s *Regions) find(t Keys, c *Claimant, name uint64, rights uint32) (*region, Refusal) {
	if s.used != 0 && s.list[s.last].name == name {
		return &s.list[s.last], None
	}
	for i := range s.used {
		if s.list[i].name == name {
			s.last = i
			return &s.list[i], None
		}
	}
	if s.used == MaxRegions {
		return nil, Later
	}
	claim, extent, why := t.ClaimName(c, name, rights)
	if why != None {
		return nil, why
	}
	s.last = s.used
	s.used++
	r := &s.list[s.last]
	r.name, r.claim, r.extent = name, uintptr(unsafe.Pointer(claim)), extent
	return r, None
}
