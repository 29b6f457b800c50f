package links

import (
	"errors"
	"iter"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/config"
	"github.com/weft-fabric/weft/internal/dataplane"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/info"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/internal/mem"
	"github.com/weft-fabric/weft/provider/internal/av"
	"github.com/weft-fabric/weft/provider/internal/peers"
	"github.com/weft-fabric/weft/provider/internal/rkey"
	"github.com/weft-fabric/weft/provider/internal/rma"
	"github.com/weft-fabric/weft/provider/names"
)

// Host is what links need of their endpoint. Any thread may call it.
type Host interface {
	// Disconnected reports whether there was a connection, which has ended. A thread that has seen it before asks
	// again under the lock of a link, under which the end takes the peer away.
	Disconnected() bool
	// Closed reports whether the endpoint closes or has closed.
	Closed() bool
	// SeekEnds has the next progress check for peers that are gone: one is, and its end is not reported.
	SeekEnds()
	// Connected prepares the path that a link gets, and counts it.
	Connected(*rma.Path)
	// Here reports whether a name is one of this host.
	Here(names.Name) bool
	// Made says that a link was made, which names a peer.
	Made()
	// Line is where the data plane counts for the peer of a link that gets a number. The table of links is locked.
	Line(number uint32) *dataplane.Link
}

// Links are the links of an endpoint, by number, by the interfaces to which they lead, and by addresses of its address
// vector: each address has a line of the table that C reads (hot.Peer). Init comes first; what leads to peers is there
// from Open to Close.
//
// Any thread may call its methods, but for Init, Open, Add, Drive, Free and Close.
type Links struct {
	host   Host
	config *config.Config
	table  peers.Table[Link, *Link]

	// The rest is immutable between Open and Close, but for what says otherwise.

	vector     *av.AV
	hot        *hot.EP
	apart      bool      // no memory is shared with peers
	local      hw.Direct // of the first transport
	transports Transports
	lines      mem.Growing[hot.Peer] // grown under growMu
	growMu     sync.Mutex            // not on the way of a send to a known peer
	driven     *Transport            // the transport to other hosts that C polls, nil: none
	paths      mem.Array[uintptr]    // the ways over it, by lines
}

// Init makes the links of an endpoint that has none.
func (s *Links) Init(h Host, c *config.Config) {
	s.host, s.config = h, c
	s.table.Init()
}

// Open makes room for lines of the addresses of a vector, by which C finds peers in h. apart: no memory is shared with
// peers. Errors: those of memory.
func (s *Links) Open(h *hot.EP, vector *av.AV, apart bool) error {
	s.vector, s.hot, s.apart = vector, h, apart
	return s.lines.Reserve(int(vector.Lines()))
}

// Add adds the next transport, over an open interface. The first one is local. Memory is registered with device.
func (s *Links) Add(i hw.Iface, device rkey.Device) *Transport {
	if len(s.transports) == 0 {
		s.local, _ = i.(hw.Direct)
	}
	p := newTransport(i, uint32(len(s.transports)), s.config, device)
	s.transports = append(s.transports, p)
	return p
}

// Drive makes the table by which C sends over a transport. Errors: those of memory.
func (s *Links) Drive(p *Transport) (err error) {
	if s.paths, err = mem.NewSparseArray[uintptr](max(s.lines.Len(), 1)); err == nil {
		s.driven = p
	}
	return err
}

// Fill gives C the table of lines.
func (s *Links) Fill(h *hot.EP) {
	atomic.StoreUint64(&h.PeerLimit, 0) // Line makes it larger
	h.Peers = uintptr(s.lines.Base())
	if s.driven != nil {
		h.Paths = addressOfPath(s.paths.At(0))
	}
}

// Close forgets the transports, which the caller closes.
func (s *Links) Close() { s.transports, s.local = nil, nil }

// Free gives back the lines, and forgets the links. No thread uses them any more.
func (s *Links) Free() {
	s.table.Init()
	s.driven = nil
	_ = s.lines.Free()
	_ = s.paths.Free()
}

// Transports are those of the endpoint.
func (s *Links) Transports() Transports { return s.transports }

// Driven is the transport to other hosts that C polls, nil: none.
func (s *Links) Driven() *Transport { return s.driven }

// Capacity is for how many lines there is room.
func (s *Links) Capacity() int { return s.lines.Len() }

// At returns the link of a number that has been used, nil if there is none now.
func (s *Links) At(number uint32) *Link { return s.table.At(number) }

// All are the links that there are when it is called.
func (s *Links) All() iter.Seq[*Link] { return s.table.All() }

// Made is how many links were ever made.
func (s *Links) Made() uint64 { return s.table.Made() }

// Find returns the link to a peer's interface, nil if there is none.
func (s *Links) Find(a peers.Address) *Link { return s.table.Find(a) }

// Hold returns the link to a peer's interface, making it if need be, and holds it for the caller, which releases it.
func (s *Links) Hold(a peers.Address) *Link {
	made := s.table.Made()
	l := s.table.Hold(a, func(number uint32) *Link { return newLink(number, a, s.host.Line(number)) })
	if s.table.Made() != made {
		s.host.Made()
	}
	return l
}

// Line returns the line of an address, nil if there is no memory for it yet.
func (s *Links) Line(addr fi.Addr) *hot.Peer { return s.lines.At(s.vector.Line(addr)) }

// LineAt returns a line by its number, nil if there is no memory for it yet.
func (s *Links) LineAt(number uint64) *hot.Peer { return s.lines.At(number) }

// Number is the number of the link that an address has, plus one; 0: it has none.
func (s *Links) Number(addr fi.Addr) uint32 {
	line := s.Line(addr)
	if line == nil {
		return 0
	}
	return atomic.LoadUint32(&line.Link)
}

// Now is the path to an address if there is one already, else nil.
func (s *Links) Now(addr fi.Addr) *Path {
	n := s.Number(addr)
	if n == 0 {
		return nil
	}
	l := s.At(n - 1)
	if l == nil || !l.Hold() {
		return nil
	}
	defer l.Release()
	p, _ := l.Ready()
	return p
}

// lineOf returns the line of an address, which there is memory for from then on. fi.EINVAL for an address that the
// address vector cannot have, fi.ENOMEM where the kernel gives no memory.
func (s *Links) lineOf(addr fi.Addr) (*hot.Peer, error) {
	i := s.vector.Line(addr)
	if line := s.lines.At(i); line != nil {
		return line, nil
	}
	if !Leads(s.vector, addr) {
		return nil, fi.EINVAL
	}
	s.growMu.Lock()
	defer s.growMu.Unlock()
	if err := s.lines.Grow(int(i) + 1); err != nil {
		log.Warnf(log.EPData, "lines of %d addresses: %v", i+1, err)
		return nil, fi.ENOMEM
	}
	atomic.StoreUint64(&s.hot.PeerLimit, uint64(s.lines.Ready()))
	return s.lines.At(i), nil
}

// Of returns the link of an address of the address vector and holds it for
// the caller, which releases it. fi.EINVAL for an address that is not in it, fi.ENOMEM.
func (s *Links) Of(addr fi.Addr) (*Link, error) {
	line, err := s.lineOf(addr)
	if err != nil {
		return nil, err
	}
	shared := s.vector.Shared()
	for {
		// Another process may change a shared address vector at any time:
		// this runs, and drops the lines of addresses that are gone.
		seen := s.vector.Generation()
		n := atomic.LoadUint32(&line.Link)
		if n != 0 && !shared {
			if l := s.At(n - 1); l != nil && l.Hold() {
				if atomic.LoadUint32(&line.Link) == n { // else its number may be another's by now
					return l, nil
				}
				l.Release()
			}
			continue
		}
		to, ok := targetAt(s.vector, addr)
		if !ok {
			return nil, fi.EINVAL
		}
		l := s.Hold(to)
		if n == l.Index+1 {
			return l, nil
		}
		if n != 0 { // removed and inserted by another process meanwhile
			l.Release()
			s.clearLine(line)
			continue
		}
		l.renew()
		if atomic.CompareAndSwapUint32(&line.Link, 0, l.Index+1) {
			l.lines.Add(1)
			if s.vector.Generation() == seen {
				return l, nil
			}
			s.clearLine(line) // the address may have been removed meanwhile
		}
		l.Release()
	}
}

// clearLine takes the link away from a line.
func (s *Links) clearLine(line *hot.Peer) {
	if i := atomic.SwapUint32(&line.Link, 0); i != 0 {
		s.At(i - 1).lines.Add(-1) // it is there: the line counted
	}
}

// Publish writes a connected peer into its line of the table by which the data plane
// posts (hot.Peer), or its way over a driven transport. A shared address
// vector has no lines: the data plane would not see that another process changes it. Each post that the runtime does
// calls it: it takes no lock where there is nothing to write.
func (s *Links) Publish(addr fi.Addr, l *Link, p *Path) {
	i := uint32(s.vector.Line(addr))
	line := s.lines.At(uint64(i))
	if line == nil || s.vector.Shared() || atomic.LoadUintptr(&line.Slots) != 0 || s.hasPath(i) {
		return
	}
	far := p.Via.Number != 0
	if far && p.Via != s.driven {
		return // the data plane has no way over the transport
	}
	seen := s.vector.Generation()
	defer func() {
		if s.vector.Generation() != seen {
			atomic.StoreUintptr(&line.Slots, 0)
			s.dropPath(i)
		}
	}()
	l.mu.Lock()
	defer l.mu.Unlock()
	if cur := l.path.Load(); cur != p || p.Err() != nil || s.host.Disconnected() {
		return
	}
	if far {
		way := p.Endpoint.(hw.DrivenEndpoint).HotPath()
		atomic.StoreUintptr(s.paths.At(i), addressOfWay(way))
	} else if s.local.FillPeer(p.Endpoint, line) != nil {
		return
	}
	if !slices.Contains(l.filled, i) {
		l.filled = append(l.filled, i)
	}
}

// DropAddress is called when an address is removed from the address vector.
func (s *Links) DropAddress(addr fi.Addr) {
	first := s.vector.Line(addr)
	for i := first; i < first+1<<s.vector.RxCtxBits(); i++ {
		if line := s.lines.At(i); line != nil {
			atomic.StoreUintptr(&line.Slots, 0)
			s.dropPath(uint32(i))
			s.clearLine(line)
		}
	}
}

// PutPending reports whether a peer, of a path on this host, has yet to carry out what the data plane has put to an
// address.
func (s *Links) PutPending(to hw.Endpoint, dest fi.Addr) bool {
	line := s.Line(dest)
	return line != nil && s.local.PutPending(to, line)
}

// AnyPutPending reports the same of all addresses that lead to the peer of a link.
func (s *Links) AnyPutPending(to hw.Endpoint, l *Link) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, i := range l.filled { // several, if the peer is in the address vector several times
		if s.local.PutPending(to, s.lines.At(uint64(i))) {
			return true
		}
	}
	return false
}

// hasPath reports whether a line has a way over the driven transport.
func (s *Links) hasPath(line uint32) bool {
	return s.driven != nil && atomic.LoadUintptr(s.paths.At(line)) != 0
}

// dropPath takes the way from a line.
func (s *Links) dropPath(line uint32) {
	if s.driven != nil {
		atomic.StoreUintptr(s.paths.At(line), 0)
	}
}

// Forget takes the peer's lines away from the data plane: it is gone, or the endpoint closes.
func (s *Links) Forget(l *Link) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s.forget(l)
}

// forget is Forget for a caller that has l.mu.
func (s *Links) forget(l *Link) {
	p := l.path.Load()
	if p == nil || !p.former.Load() { // else the end is of the endpoint that had the address before
		l.attempts.Lose(p != nil && errors.Is(p.Err(), hw.ErrPathLost))
	}
	for _, i := range l.filled {
		line := s.lines.At(uint64(i))
		if atomic.LoadUint32(&line.Link) == l.Index+1 {
			atomic.StoreUintptr(&line.Slots, 0)
			s.dropPath(i)
		}
	}
	l.filled = l.filled[:0]
	for _, line := range l.backs {
		if atomic.LoadUint32(&line.Link) == l.Index+1 {
			atomic.StoreUintptr(&line.Slots, 0)
		}
	}
	l.backs = l.backs[:0]
}

// targetAt returns what a send to an address reaches, false if it is not in the
// address vector or has the index of a receive context that cannot exist.
func targetAt(a *av.AV, addr fi.Addr) (peers.Address, bool) {
	base, index := a.Peer(addr)
	n, ok := a.Name(base)
	return peers.Address{Name: n, Number: uint8(index)}, ok && index < info.MaxCtx
}

// Leads reports whether an address vector has an address, and may have a link for it.
func Leads(vector *av.AV, addr fi.Addr) bool {
	_, ok := targetAt(vector, addr)
	return ok && vector.Line(addr) < vector.Lines()
}
