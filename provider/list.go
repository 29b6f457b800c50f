package provider

import (
	"fmt"
	"runtime"
	"slices"
	"sync/atomic"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/dataplane"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/provider/hmem"
	"github.com/weft-fabric/weft/provider/pieces"
	"github.com/weft-fabric/weft/provider/token"
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
	closed  atomic.Bool    // set by Close, read by posts; sequentially consistent
	posts   atomic.Int64   // that have not ended; changed by any thread, read by Close, likewise
	shape   dataplane.List // what posts read of it
	room    pieces.Room    // of its runs; Close's, then the collector's, if posts have not ended
	remotes []*Remote      // used until Close
	mapped  bool           // some elements are
	near    uint64         // local memory of a device, 0: all is the process's own
	host    listExtent     // that has all local memory of the process's own
	addr    fi.Addr        // of the owner
}

// NewList prepares a list. Elements are numbered from 0 in the order of the pieces. Local memory must
// stay reachable, and where it is, until the list is closed.
//
// Errors: fi.EINVAL for no elements, for more than MaxElements, for pieces without a remote region,
// without local memory, or whose addresses wrap, and for regions of several owners;
// fi.EMSGSIZE for elements, or all of them together, longer than a message; fi.EACCES for elements beyond
// their region; fi.EDOMAIN for a region that another endpoint has opened; fi.EBADF for one that is closed; fi.ENOMEM.
func (e *Endpoint) NewList(list []Piece) (*List, error) {
	return e.NewListOf(len(list), func(i int, p *Piece) error {
		*p = list[i]
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
		err := l.room.Grow(&l.shape, i, n)
		if err == nil {
			err = at(i, p)
		}
		if err == nil {
			err = l.add(p)
		}
		if err != nil {
			l.release()
			l.room.Free()
			return nil, fmt.Errorf("piece %d: %w", i, err)
		}
	}
	if l.shape.Count == 0 {
		return nil, fmt.Errorf("no elements: %w", fi.EINVAL)
	}
	err := l.prepare()
	if err == nil {
		err = e.refs.Acquire()
	}
	if err != nil {
		l.release()
		l.room.Free()
		return nil, err
	}
	l.room.Trim(&l.shape)
	return l, nil
}

// prepare sets what the data plane needs to post the list. The error wraps fi.ENOMEM.
func (l *List) prepare() (err error) {
	on, s := &l.ep.domain.cfg.TokenWays, &l.shape
	s.Dest = uint64(l.addr)
	s.Single = s.Count == 1 && s.Direct && *on == allWays
	if s.Direct && !s.Single && on.IPC {
		s.Batches, err = l.ep.lists.forPosts()
	}
	return err
}

// Shape is what the data plane knows of the list.
func (l *List) Shape() *dataplane.List { return &l.shape }

// add appends a piece.
func (l *List) add(p *Piece) error {
	run := dataplane.Run{
		Local: uint64(p.Local), Remote: p.Addr, Len: p.Len, Here: p.LocalStride, There: p.RemoteStride,
	}
	switch {
	case p.Remote == nil:
		return fmt.Errorf("no remote region: %w", fi.EINVAL)
	case p.Remote.ep != l.ep:
		return fmt.Errorf("its remote region was opened by another endpoint: %w", fi.EDOMAIN)
	}
	about := &p.Remote.about
	region := pieces.Region{Base: about.Base, Length: about.Length}
	if err := pieces.Fit(&l.shape, &run, max(1, p.Count), region); err != nil {
		return err
	}
	if err := l.hold(p.Remote); err != nil {
		return err
	}
	run.Key, run.Direct = about.Key, about.Kind == token.Host && !hmem.OnDevice(run.Local)
	run.Mapped = !run.Direct && p.Remote.whyNotMapped(run.Local) == ""
	l.mapped = l.mapped || run.Mapped
	if hmem.OnDevice(run.Local) {
		l.near = run.Local
	} else {
		l.host.add(&run)
	}
	pieces.Append(&l.shape, run)
	return nil
}

// hold keeps a remote region open, and finds that it is of the one owner.
func (l *List) hold(r *Remote) error {
	if n := len(l.remotes); n != 0 && l.remotes[n-1] == r || slices.Contains(l.remotes, r) {
		return nil
	}
	if l.addr != fi.AddrNotAvail && l.addr != r.addr {
		return fmt.Errorf("a list of the memory of several owners, at addresses %d and %d: %w", l.addr,
			r.addr, fi.EINVAL)
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

func (l *List) release() {
	for _, r := range l.remotes {
		r.refs.Release()
	}
}

// Close gives the list up. Posts that have not ended begin no further elements, and complete, with fi.ECANCELED if some
// are left, when those that are under way have ended. Until then local memory must stay, or until the endpoint is
// closed: with that they end without a completion. fi.EBADF: the list is closed.
func (l *List) Close() error {
	if l.closed.Swap(true) {
		return fi.EBADF
	}
	l.release()
	l.ep.refs.Release()
	if room := l.room; l.posts.Load() == 0 {
		room.Free()
	} else {
		runtime.AddCleanup(l, func(r pieces.Room) { r.Free() }, room)
	}
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

// all are all elements of the list.
func (l *List) all() pieces.Selection { return pieces.Selection{List: &l.shape} }

// Describe makes Local, which is an address of memory that a descriptor names, what NewList takes. Errors
// as of Domain.Translate.
func (p *Piece) Describe(desc uint64) error {
	stride := p.LocalStride
	if stride == 0 {
		stride = p.Len
	}
	n, ok := pieces.Extent(uint64(p.Local), stride, p.Len, max(1, p.Count))
	if !ok || p.Remote == nil {
		return fmt.Errorf("%d elements of %d bytes at %#x: %w", p.Count, p.Len, p.Local, fi.EINVAL)
	}
	v := []fi.IOVec{{Base: p.Local, Len: n}}
	err := p.Remote.ep.domain.Translate(v, []uint64{desc})
	p.Local = v[0].Base
	return err
}
