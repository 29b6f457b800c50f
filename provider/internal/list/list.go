package list

import (
	"fmt"
	"runtime"
	"slices"
	"sync/atomic"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/dataplane"
	"github.com/weft-fabric/weft/provider/internal/hmem"
	"github.com/weft-fabric/weft/provider/internal/pieces"
)

// Piece is one entry of a list: Count elements of Len bytes each, at regular distances here
// and there.
type Piece struct {
	Local        uint64 // address of the first element; of memory of a device one of package hmem
	LocalStride  uint64 // from one element to the next, bytes; 0: Len
	Region       Region // nil: there is none
	Addr         uint64 // of the first element, from About.Base on
	RemoteStride uint64 // as LocalStride
	Len          uint64 // bytes
	Count        uint64 // 0: one
}

// List is a prepared list. It has one owner of the remote memory. Its methods may be called from any
// thread, and a list may be posted again before an earlier post of it has ended.
type List struct {
	of      *Posts
	closed  atomic.Bool    // set by Close, read by posts; sequentially consistent
	posts   atomic.Int64   // that have not ended; changed by any thread, read by Close, likewise
	shape   dataplane.List // what posts read of it
	room    pieces.Room    // of its runs; Close's, then the collector's, if posts have not ended
	regions []Region       // used until Close
	mapped  bool           // some elements are
	near    uint64         // local memory of a device, 0: all is the process's own
	host    extent         // that has all local memory of the process's own
	addr    fi.Addr        // of the owner
	// known is host as a device knows it for posts, nil: it is not kept. Changed by compare-and-swap by the thread that
	// runs the work queue, which then reads closed, taken out by Close behind its store of that and by the other that
	// finds it, and by compare-and-swap by threads for which the device has no room; sequentially consistent.
	known atomic.Pointer[registration]
	// moved is the bytes of posts by a device since host was registered last, or was to be. Added to by the thread that
	// runs the work queue; sequentially consistent.
	moved atomic.Uint64
}

// builder is a list that is being made.
type builder struct {
	*List
	region Region // of the last piece
	about  About  // of the region
}

// newList makes a list without elements.
func (o *Posts) newList() builder {
	l := &List{of: o, addr: fi.AddrNotAvail}
	l.shape.Flat, l.shape.Direct, l.shape.Read, l.shape.Write = true, true, true, true
	return builder{List: l}
}

// New prepares a list of n pieces, which at makes one after the other of the piece before. Elements are numbered from 0
// in the order of the pieces. Local memory must stay reachable, and where it is, until the list is closed.
//
// Errors: fi.EINVAL for no elements, for more than dataplane.MaxElements, for pieces without a remote region, without
// local memory, or whose addresses wrap, and for regions of several owners; fi.EMSGSIZE for elements, or all of them
// together, longer than a message; fi.EACCES for elements beyond their region; fi.ENOMEM; those of at, and of
// Region.Acquire and Endpoint.Acquire. With an error of one piece its number is returned.
func (o *Posts) New(n int, at func(i int, p *Piece) error) (*List, error) {
	b, p := o.newList(), new(Piece)
	l := b.List
	for i := range n {
		err := l.room.Grow(&l.shape, i, n)
		if err == nil {
			err = at(i, p)
		}
		if err == nil {
			err = b.add(p)
		}
		if err != nil {
			l.drop()
			return nil, fmt.Errorf("piece %d: %w", i, err)
		}
	}
	if l.shape.Count == 0 {
		return nil, fmt.Errorf("no elements: %w", fi.EINVAL)
	}
	err := l.prepare()
	if err == nil {
		err = o.ep.Acquire()
	}
	if err != nil {
		l.drop()
		return nil, err
	}
	l.room.Trim(&l.shape)
	return l, nil
}

// drop gives up a list that is not made.
func (l *List) drop() {
	l.release()
	l.room.Free()
}

// prepare sets what the data plane needs to post the list. The error wraps fi.ENOMEM.
func (l *List) prepare() (err error) {
	on, s := l.of.cfg.TokenWays, &l.shape
	s.Dest = uint64(l.addr)
	s.Single = s.Count == 1 && s.Direct && on == allWays
	if s.Direct && !s.Single && on.IPC {
		s.Batches, err = l.of.forPosts()
	}
	return err
}

// Shape is what the data plane knows of the list.
func (l *List) Shape() *dataplane.List { return &l.shape }

// add appends a piece.
func (b *builder) add(p *Piece) error {
	run := dataplane.Run{Local: p.Local, Remote: p.Addr, Len: p.Len, Here: p.LocalStride, There: p.RemoteStride}
	if p.Region == nil {
		return fmt.Errorf("no remote region: %w", fi.EINVAL)
	}
	known := p.Region == b.region
	if !known {
		b.about = p.Region.About()
	}
	about := &b.about
	region := pieces.Region{Base: about.Base, Length: about.Length}
	if err := pieces.Fit(&b.shape, &run, max(1, p.Count), region); err != nil {
		return err
	}
	if !known {
		if err := b.hold(p.Region); err != nil {
			return err
		}
	}
	device := hmem.OnDevice(run.Local)
	run.Key, run.Direct = about.Key, about.Host && !device
	run.Mapped = !run.Direct && p.Region.Maps(run.Local)
	b.mapped = b.mapped || run.Mapped
	if device {
		b.near = run.Local
	} else {
		b.host.add(&run)
	}
	pieces.Append(&b.shape, run)
	return nil
}

// hold keeps a remote region open, which becomes the last piece's, and finds that it is of the one owner.
func (b *builder) hold(r Region) error {
	if !slices.Contains(b.regions, r) {
		if b.addr != fi.AddrNotAvail && b.addr != b.about.Addr {
			return fmt.Errorf("a list of the memory of several owners, at addresses %d and %d: %w", b.addr,
				b.about.Addr, fi.EINVAL)
		}
		if err := r.Acquire(); err != nil {
			return err
		}
		b.addr = b.about.Addr
		b.regions = append(b.regions, r)
		b.shape.Read = b.shape.Read && b.about.Read
		b.shape.Write = b.shape.Write && b.about.Write
	}
	b.region = r
	return nil
}

func (l *List) release() {
	for _, r := range l.regions {
		r.Release()
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
	l.forget()
	l.of.ep.Release()
	if room := l.room; l.posts.Load() == 0 {
		room.Free()
	} else {
		runtime.AddCleanup(l, func(r pieces.Room) { r.Free() }, room)
	}
	return nil
}

// Len is the number of elements.
func (l *List) Len() int { return int(l.shape.Count) }

// Bytes is the number of bytes of all elements.
func (l *List) Bytes() uint64 { return l.shape.Bytes }

// SetTag gives the notifications of later posts a tag.
func (l *List) SetTag(tag uint64) { l.shape.Tag.Store(tag) }

// Addr is the address of the owner.
func (l *List) Addr() fi.Addr { return l.addr }

// all are all elements of the list.
func (l *List) all() pieces.Selection { return pieces.Selection{List: &l.shape} }
