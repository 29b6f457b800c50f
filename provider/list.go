package provider

import (
	"fmt"
	"slices"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/dataplane"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/provider/hmem"
	"github.com/weft-fabric/weft/provider/refs"
	"github.com/weft-fabric/weft/provider/token"
	"github.com/weft-fabric/weft/provider/wire"
)

// A list is a read or write of many pieces of memory, prepared once and posted often. What
// depends on the pieces alone is checked when it is prepared; a post (list_post.go) has the
// way of each element chosen, and is one operation with one completion.

// MaxElements is how many elements a list has at most.
const MaxElements = dataplane.MaxElements

// Piece is one entry of a list: Count elements of Len bytes each, at regular distances here
// and there.
type Piece struct {
	Local        uintptr // address of the first element; of device memory as Domain.Translate gives it
	LocalStride  uint64  // from one element to the next, bytes; 0: Len
	Remote       *Remote
	Addr         uint64 // of the first element, from RemoteInfo.Base on
	RemoteStride uint64 // as LocalStride
	Len          uint64 // bytes
	Count        uint64 // 0: one
}

// List is a prepared list. It has one owner of the remote memory. Its methods may be called from any
// thread, and a list may be posted again before an earlier post of it has ended.
type List struct {
	ep      *Endpoint
	refs    refs.Count     // users: posts that have not ended
	shape   dataplane.List // what posts read of it
	remotes []*Remote      // used until Close
	mapped  bool           // some elements are
	near    uint64         // local memory of a device, 0: all is the process's own
	addr    fi.Addr        // of the owner
}

// NewList prepares a list. Elements are numbered from 0 in the order of the pieces. Local memory must
// stay reachable, and where it is, until the list is closed.
//
// Errors: fi.EINVAL for no elements, for more than MaxElements, for pieces without a remote region,
// without local memory, or whose addresses wrap, and for regions of several owners;
// fi.EMSGSIZE for elements, or all of them together, longer than a message; fi.EACCES for elements beyond
// their region; fi.EDOMAIN for a region that another endpoint has opened; fi.EBADF for one that is closed.
func (e *Endpoint) NewList(pieces []Piece) (*List, error) {
	return e.NewListOf(len(pieces), func(i int, p *Piece) error {
		*p = pieces[i]
		return nil
	})
}

// NewListOf is NewList of n pieces, which at fills in one after the other, from zero. An error of at is
// returned, with the piece's number.
func (e *Endpoint) NewListOf(n int, at func(i int, p *Piece) error) (*List, error) {
	l, err := e.newList(n, at)
	if err != nil {
		return nil, refuse(log.EPData, fi.ErrnoOf(err), "prepare a list: %v", err)
	}
	return l, nil
}

func (e *Endpoint) newList(n int, at func(i int, p *Piece) error) (*List, error) {
	l := &List{ep: e, addr: fi.AddrNotAvail}
	l.shape.Flat, l.shape.Direct, l.shape.Read, l.shape.Write = true, true, true, true
	p := new(Piece)
	for i := range n {
		*p = Piece{}
		if len(l.shape.Runs) == cap(l.shape.Runs) {
			l.grow(i, n)
		}
		err := at(i, p)
		if err == nil {
			err = l.add(p)
		}
		if err != nil {
			l.release()
			return nil, fmt.Errorf("piece %d: %w", i, err)
		}
	}
	if l.shape.Count == 0 {
		return nil, fmt.Errorf("no elements: %w", fi.EINVAL)
	}
	if err := e.refs.Acquire(); err != nil {
		l.release()
		return nil, err
	}
	if cap(l.shape.Runs) > 2*len(l.shape.Runs) {
		l.shape.Runs = slices.Clone(l.shape.Runs)
	}
	l.prepare()
	return l, nil
}

// prepare sets what the data plane needs to post the list.
func (l *List) prepare() {
	on, s := &l.ep.domain.cfg.TokenWays, &l.shape
	s.Dest = uint64(l.addr)
	s.Single = s.Count == 1 && s.Direct && *on == allWays
	if s.Direct && !s.Single && on.IPC {
		s.Batches = l.ep.lists.forPosts().Address()
	}
}

// Shape is what the data plane knows of the list.
func (l *List) Shape() *dataplane.List { return &l.shape }

// firstRuns is for how many runs of a list there is room before it is known how many pieces become one.
const firstRuns = 16

// grow makes room for more runs, before piece i of n: for as many as there are if those to come join as those before.
// Most of what a long list takes is the first use of its memory.
func (l *List) grow(i, n int) {
	used := len(l.shape.Runs)
	left := min(n-i, MaxElements-used) // a piece adds one at most
	want := min(left, firstRuns)
	if used != 0 {
		want = min(left, max(used, used*left/i+1))
	}
	runs := make([]dataplane.Run, used, used+want)
	copy(runs, l.shape.Runs)
	l.shape.Runs = runs
}

// add appends a piece.
func (l *List) add(p *Piece) error {
	count := max(1, p.Count)
	run := dataplane.Run{
		First: l.shape.Count, Local: uint64(p.Local), Remote: p.Addr, Len: p.Len, Here: p.LocalStride,
		There: p.RemoteStride,
	}
	if run.Here == 0 {
		run.Here = p.Len
	}
	if run.There == 0 {
		run.There = p.Len
	}
	switch {
	case p.Remote == nil:
		return fmt.Errorf("no remote region: %w", fi.EINVAL)
	case p.Remote.ep != l.ep:
		return fmt.Errorf("its remote region was opened by another endpoint: %w", fi.EDOMAIN)
	case count > MaxElements-uint64(l.shape.Count):
		return fmt.Errorf("over %d elements in all: %w", MaxElements, fi.EINVAL)
	case p.Len > wire.MaxMessage || count*p.Len > wire.MaxMessage-l.shape.Bytes:
		return fmt.Errorf("%d elements of %d bytes, at most %d in all: %w", count, p.Len,
			uint64(wire.MaxMessage), fi.EMSGSIZE)
	case p.Local == 0 && p.Len != 0:
		return fmt.Errorf("no local memory: %w", fi.EINVAL)
	}
	if _, ok := extent(run.Local, run.Here, run.Len, count); !ok {
		return fmt.Errorf("%d elements of %d bytes at %#x, %d bytes apart: %w", count, p.Len, p.Local, run.Here,
			fi.EINVAL)
	}
	about := &p.Remote.about
	length, ok := extent(run.Remote, run.There, run.Len, count)
	if offset := run.Remote - about.Base; !ok || offset > about.Length || length > about.Length-offset {
		return fmt.Errorf("%d elements of %d bytes at %#x, %d bytes apart, are not in %d bytes at %#x: %w", count, p.Len,
			p.Addr, run.There, about.Length, about.Base, fi.EACCES)
	}
	if err := l.hold(p.Remote); err != nil {
		return err
	}
	run.Count, run.Key, run.Direct = uint32(count), about.Key, about.Kind == token.Host && !hmem.OnDevice(run.Local)
	run.Mapped = !run.Direct && p.Remote.whyNotMapped(run.Local) == ""
	l.mapped, l.shape.Direct = l.mapped || run.Mapped, l.shape.Direct && run.Direct
	if hmem.OnDevice(run.Local) {
		l.near = run.Local
	}
	l.append(run)
	l.shape.Count += run.Count
	l.shape.Bytes += count * p.Len
	return nil
}

// extent is how many bytes there are from the first byte of count elements to the last. ok: the
// addresses do not wrap.
func extent(addr, stride, n, count uint64) (bytes uint64, ok bool) {
	if count-1 != 0 && stride > (1<<63)/(count-1) {
		return 0, false
	}
	bytes = stride*(count-1) + n // n is far below 1<<63
	return bytes, addr+bytes >= addr
}

// hold keeps a remote region open, and finds that it is of the one owner.
func (l *List) hold(r *Remote) error {
	if n := len(l.remotes); n != 0 && l.remotes[n-1] == r || slices.Contains(l.remotes, r) {
		return nil
	}
	if l.addr != fi.AddrNotAvail && l.addr != r.addr {
		return fmt.Errorf("a list of the memory of several owners, at addresses %d and %d: %w", l.addr, r.addr, fi.EINVAL)
	}
	if err := r.refs.Acquire(); err != nil {
		return err
	}
	l.addr = r.addr
	l.remotes = append(l.remotes, r)
	l.shape.Read = l.shape.Read && r.about.Rights&token.Read != 0
	l.shape.Write = l.shape.Write && r.about.Rights&token.Write != 0
	return nil
}

// append appends a run, or makes it part of the last.
func (l *List) append(run dataplane.Run) {
	if n := len(l.shape.Runs); n != 0 {
		if last := &l.shape.Runs[n-1]; takes(last, &run) {
			last.Count += run.Count
			l.shape.Flat = false
			return
		}
	}
	l.shape.Flat = l.shape.Flat && run.Count == 1
	l.shape.Runs = append(l.shape.Runs, run)
}

// takes reports whether a run goes on where r ends, and if that has a single element makes the distances those to the
// run's.
func takes(r, next *dataplane.Run) bool {
	if r.Len != next.Len || r.Key != next.Key || r.Direct != next.Direct || r.Mapped != next.Mapped ||
		next.Local < r.Local || next.Remote < r.Remote {
		return false
	}
	here, there := r.Here, r.There
	if r.Count == 1 {
		here, there = next.Local-r.Local, next.Remote-r.Remote
	}
	n := uint64(r.Count)
	if next.Local != r.Local+n*here || next.Remote != r.Remote+n*there ||
		next.Count != 1 && (next.Here != here || next.There != there) {
		return false
	}
	r.Here, r.There = here, there
	return true
}

func (l *List) release() {
	for _, r := range l.remotes {
		r.refs.Release()
	}
}

// Close gives the list up. fi.EBUSY while posts of it have not ended.
func (l *List) Close() error {
	if err := l.refs.Close(); err != nil {
		return err
	}
	l.release()
	l.ep.refs.Release()
	return nil
}

// Len is the number of elements, Bytes that of their bytes.
func (l *List) Len() int { return int(l.shape.Count) }

// Bytes is the number of bytes of all elements.
func (l *List) Bytes() uint64 { return l.shape.Bytes }

// SetTag gives the notifications of later posts a tag.
func (l *List) SetTag(tag uint64) { l.shape.Tag.Store(tag) }

// Addr is the address of the owner.
func (l *List) Addr() fi.Addr { return l.addr }

// selection are the elements of a post in its order: all of them, or picks.
type selection struct {
	list  *List
	picks []uint32 // elements, nil: all
	run   int      // of the last element that was found
}

// len is the number of elements.
func (s *selection) len() int {
	if s.picks == nil {
		return int(s.list.shape.Count)
	}
	return len(s.picks)
}

// number is that of the i-th element.
func (s *selection) number(i int) uint32 {
	if s.picks == nil {
		return uint32(i)
	}
	return s.picks[i]
}

// at returns the i-th element.
func (s *selection) at(i int) dataplane.Element { return s.list.shape.At(s.number(i), &s.run) }

// bytes is the number of bytes of the elements.
func (s *selection) bytes() uint64 {
	if s.picks == nil {
		return s.list.shape.Bytes
	}
	total := uint64(0)
	for i := range s.picks {
		e := s.at(i)
		total += e.Len
	}
	return total
}

// check finds that the picks are elements of the list.
func (s *selection) check() error {
	for i, n := range s.picks {
		if n >= s.list.shape.Count {
			return fmt.Errorf("pick %d is element %d of %d: %w", i, n, s.list.shape.Count, fi.EINVAL)
		}
	}
	return nil
}

// Describe makes Local, which is an address of memory that a descriptor names, what NewList takes. Errors
// as of Domain.Translate.
func (p *Piece) Describe(desc uint64) error {
	stride := p.LocalStride
	if stride == 0 {
		stride = p.Len
	}
	n, ok := extent(uint64(p.Local), stride, p.Len, max(1, p.Count))
	if !ok || p.Remote == nil {
		return fmt.Errorf("%d elements of %d bytes at %#x: %w", p.Count, p.Len, p.Local, fi.EINVAL)
	}
	v := []fi.IOVec{{Base: p.Local, Len: n}}
	err := p.Remote.ep.domain.Translate(v, []uint64{desc})
	p.Local = v[0].Base
	return err
}
