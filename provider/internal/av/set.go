package av

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/weft-fabric/weft/fi"
)

// Set is an ordered set of addresses of an address vector (fi_av_set(3)): the
// Members of a group of collective operations, by rank. Its methods may be
// called from any thread. Groups that have been joined from it do not change
// with it.
type Set struct {
	av   *AV
	id   uint64      // in its address
	open atomic.Bool // set by OpenSet, cleared by Close, loaded by any thread; sequentially consistent

	mu    sync.Mutex // no data transfer takes it
	addrs []fi.Addr  // in the order in which they were added
	has   map[fi.Addr]bool
}

// Addresses of collectives, as applications know them: with one of these bits
// above the number of a set or a group. No address of an address vector has
// them: those are indexes, with a receive context in the uppermost bits.
const (
	CollSetAddr   fi.Addr = 0xC5 << 48
	CollGroupAddr fi.Addr = 0xC6 << 48
	CollAddrKind  fi.Addr = 0xFFFF << 48
)

// avSetIDs counts the sets of the process.
var avSetIDs atomic.Uint64

// avSetFlags are the flags of a set.
const avSetFlags = fi.Universe | fi.BarrierSet | fi.BroadcastSet | fi.AllToAllSet | fi.AllReduceSet | fi.AllGatherSet |
	fi.ReduceScatterSet | fi.ReduceSet | fi.ScatterSet | fi.GatherSet

// OpenSet makes a set of the addresses from attr.Start to attr.End, each
// attr.Stride further, that are in the address vector; of all its addresses
// with fi.Universe; or of none. Every set supports all operations. Errors:
// fi.EBADFLAGS, fi.EOPNOTSUPP for a communication key, which is for fabrics
// that have a manager, and fi.EINVAL for a range of which only one end is
// there, that is empty or longer than attr.Count, for a stride that does not go
// with it, and for a range in an address vector of type fi.AVMap.
func (a *AV) OpenSet(attr *fi.AVSetAttr) (*Set, error) {
	if err := a.checkSet(attr); err != nil {
		return nil, err
	}
	if err := a.refs.Acquire(); err != nil {
		return nil, err
	}
	s := &Set{av: a, id: avSetIDs.Add(1), has: map[fi.Addr]bool{}}
	s.open.Store(true)
	start, end, stride := uint64(attr.Start), uint64(attr.End), attr.Stride
	if attr.Flags&fi.Universe != 0 {
		start, end, stride = 0, a.Limit()-1, 1
	}
	if attr.Flags&fi.Universe != 0 || attr.Start != fi.AddrNotAvail {
		for _, addr := range a.within(start, end, stride) {
			s.add(addr)
		}
	}
	return s, nil
}

// checkSet says what is wrong with the attributes of a set.
func (a *AV) checkSet(attr *fi.AVSetAttr) error {
	bad := func(err fi.Errno, format string, args ...any) error {
		return refuse(err, "open address vector set: "+format, args...)
	}
	ranged := attr.Start != fi.AddrNotAvail
	switch {
	case attr.Flags&^avSetFlags != 0:
		return bad(fi.EBADFLAGS, "flags %#x", attr.Flags&^avSetFlags)
	case len(attr.CommKey) != 0:
		return bad(fi.EOPNOTSUPP, "communication key of %d bytes: there is no fabric manager", len(attr.CommKey))
	case attr.Flags&fi.Universe != 0:
		return nil // whatever the range is, it is in it
	case ranged != (attr.End != fi.AddrNotAvail):
		return bad(fi.EINVAL, "range from %#x to %#x", attr.Start, attr.End)
	case !ranged && attr.Stride != 0:
		return bad(fi.EINVAL, "stride %d without a range", attr.Stride)
	case !ranged:
		return nil
	case a.mapped:
		return bad(fi.EINVAL, "range in an address vector of type FI_AV_MAP")
	case attr.End < attr.Start:
		return bad(fi.EINVAL, "range from %d to %d", attr.Start, attr.End)
	case attr.Stride == 0:
		return bad(fi.EINVAL, "stride 0 in a range")
	case attr.Count != 0 && uint64(attr.End-attr.Start)/attr.Stride >= attr.Count:
		return bad(fi.EINVAL, "%d addresses from %d to %d, the set is for at most %d",
			uint64(attr.End-attr.Start)/attr.Stride+1, attr.Start, attr.End, attr.Count)
	}
	return nil
}

// within returns the addresses of a range that are in the address vector.
func (a *AV) within(start, end, stride uint64) (list []fi.Addr) {
	for _, i := range a.addrs.Range(start, end, stride) {
		list = append(list, fi.Addr(i))
	}
	return list
}

// add appends an address, and reports false if it is there. The caller has s.mu, or
// no other thread knows the set.
func (s *Set) add(addr fi.Addr) bool {
	if s.has[addr] {
		return false
	}
	s.has[addr] = true
	s.addrs = append(s.addrs, addr)
	return true
}

// keep drops the addresses for which want is false, and returns how many.
func (s *Set) keep(want func(fi.Addr) bool) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	was := len(s.addrs)
	s.addrs = slices.DeleteFunc(s.addrs, func(a fi.Addr) bool {
		if want(a) {
			return false
		}
		delete(s.has, a)
		return true
	})
	return was - len(s.addrs)
}

// Members returns a copy of the addresses.
func (s *Set) Members() []fi.Addr {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.addrs)
}

// lookup returns the members of src as a set, fi.EINVAL if it is closed or of
// another address vector.
func (s *Set) lookup(src *Set) (map[fi.Addr]bool, error) {
	if !src.Of(s.av) {
		return nil, refuse(fi.EINVAL, "sets of different address vectors")
	}
	has := map[fi.Addr]bool{}
	for _, a := range src.Members() {
		has[a] = true
	}
	return has, nil
}

// Union appends the addresses of src that are not in the set, in their order.
// fi.EINVAL for a set of another address vector; so for the next two.
func (s *Set) Union(src *Set) error {
	if _, err := s.lookup(src); err != nil {
		return err
	}
	list := src.Members()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range list {
		s.add(a)
	}
	return nil
}

// Intersect removes the addresses that are not in src.
func (s *Set) Intersect(src *Set) error {
	has, err := s.lookup(src)
	if err == nil {
		s.keep(func(a fi.Addr) bool { return has[a] })
	}
	return err
}

// Diff removes the addresses that are in src.
func (s *Set) Diff(src *Set) error {
	has, err := s.lookup(src)
	if err == nil {
		s.keep(func(a fi.Addr) bool { return !has[a] })
	}
	return err
}

// Insert appends an address. fi.EINVAL if it is not in the address vector, or
// in the set already.
func (s *Set) Insert(addr fi.Addr) error {
	if _, ok := s.av.Name(addr); !ok {
		return refuse(fi.EINVAL, "insert %d into a set: not in the address vector", addr)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.add(addr) {
		return refuse(fi.EINVAL, "insert %d into a set: it is there", addr)
	}
	return nil
}

// Remove takes an address out. fi.EINVAL if it is not in the set.
func (s *Set) Remove(addr fi.Addr) error {
	if s.keep(func(a fi.Addr) bool { return a != addr }) == 0 {
		return refuse(fi.EINVAL, "remove %d from a set: not in it", addr)
	}
	return nil
}

// Of reports whether the set is open and of an address vector.
func (s *Set) Of(a *AV) bool { return s.open.Load() && s.av == a }

// Addr is the set's address, for Endpoint.Join of package provider.
func (s *Set) Addr() fi.Addr { return CollSetAddr | fi.Addr(s.id) }

// Close ends the set.
func (s *Set) Close() error {
	if !s.open.Swap(false) {
		return fi.EBADF
	}
	s.av.refs.Release()
	return nil
}
