package links

import (
	"iter"
	"slices"
	"sync/atomic"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/internal/mem"
	"github.com/weft-fabric/weft/provider/internal/peers"
)

// Sender is the source of a message: a peer and which of its interfaces. Matching goes by the peer, answers go to the
// interface.
type Sender struct {
	ID     uint32 // identity, 0: not known
	Number uint8
}

// Leased is what the holder of the progress lease has beside the Links of an endpoint: the senders behind the sources
// of transports, and the ways back to them. The endpoint keeps it behind that lease. Init comes first.
type Leased struct {
	links   *Links
	sources [][]Sender // by transport, by the interface's hw.Source
	paths   [][]*Path  // to the sources, likewise, that are not a link's path; nil: none
	back    []*Link    // by identity, the last that was used
	// lines lead back to senders that are contexts of scalable endpoints or strangers, by hw.Source; of length 0 before
	// the first. Filled under the link's mutex, under which Slots is zeroed.
	lines mem.Array[hot.Peer]
}

// Init makes what is there of s before anything has come.
func (h *Leased) Init(s *Links) { h.links = s }

// Close forgets all.
func (h *Leased) Close() {
	_ = h.lines.Free()
	h.sources, h.paths, h.back = nil, nil, nil
}

// Known returns the sender behind a source, if it was met.
func (h *Leased) Known(src hw.Source) (Sender, bool) {
	p, own := src>>sourceShift, src&SourceMask
	if int(p) >= len(h.sources) || int(own) >= len(h.sources[p]) || h.sources[p][own].ID == 0 {
		return Sender{}, false
	}
	return h.sources[p][own], true
}

// SetKnown enters the sender behind a source, or takes it out.
func (h *Leased) SetKnown(src hw.Source, s Sender) {
	p, own := src>>sourceShift, src&SourceMask
	for int(p) >= len(h.sources) {
		h.sources = append(h.sources, nil)
	}
	for int(own) >= len(h.sources[p]) {
		h.sources[p] = append(h.sources[p], Sender{})
	}
	h.sources[p][own] = s
}

// Senders are those that were met and are not gone, with their sources.
func (h *Leased) Senders() iter.Seq2[hw.Source, Sender] {
	return func(yield func(hw.Source, Sender) bool) {
		for p, list := range h.sources {
			for own, s := range list {
				if s.ID != 0 && !yield(hw.Source(p)<<sourceShift|hw.Source(own), s) {
					return
				}
			}
		}
	}
}

// Back is the link to a sender, whose address is address.
func (h *Leased) Back(s Sender, address func(Sender) peers.Address) *Link {
	slot := peers.Slot(s.ID)
	for slot >= len(h.back) {
		h.back = append(h.back, nil)
	}
	l := h.back[slot]
	if l == nil || l.To.Number != s.Number {
		l = h.links.Hold(address(s))
		l.Release() // links are removed by Sweep alone
		h.back[slot] = l
	}
	return l
}

// DropSlot forgets the link back to an identity that is given up.
func (h *Leased) DropSlot(slot int) {
	if slot < len(h.back) {
		h.back[slot] = nil
	}
}

// BackPath returns the path over the own connection of a source, fi.EAGAIN if that is lost, which will be reported. l
// is the link to the sender, whose path it is unless both have connected, or the link's leads to its predecessor. The
// source's transport answers over connections of sources.
func (h *Leased) BackPath(l *Link, src hw.Source) (*Path, error) {
	p, own := h.links.transports.Of(src)
	ep := p.Answer(own)
	if ep == nil {
		return nil, fi.EAGAIN
	}
	if at, err := h.links.Connect(l); err == nil && at.Endpoint == ep {
		return at, nil // nearly always
	}
	for int(p.Number) >= len(h.paths) {
		h.paths = append(h.paths, nil)
	}
	for int(own) >= len(h.paths[p.Number]) {
		h.paths[p.Number] = append(h.paths[p.Number], nil)
	}
	b := h.paths[p.Number][own]
	if b == nil {
		b = NewPath(ep, p)
		b.Peer, b.Back = l.To, true
		h.paths[p.Number][own] = b
	}
	return b, nil
}

// TakeBack takes out the path back to a source that is gone, nil: it had none.
func (h *Leased) TakeBack(src hw.Source) *Path {
	p, own := src>>sourceShift, src&SourceMask
	if int(p) >= len(h.paths) || int(own) >= len(h.paths[p]) {
		return nil
	}
	b := h.paths[p][own]
	h.paths[p][own] = nil
	return b
}

// HasLine reports whether the data plane answers a source, whose line is source, over one of the lines back.
func (h *Leased) HasLine(src uint32, source *hot.Source) bool {
	return source.Back != 0 && atomic.LoadUintptr(&h.lines.At(src).Slots) != 0
}

// FillLine connects to a sender that is a context of a scalable endpoint or a stranger by the link l, and has the data
// plane answer it: no address of the address vector need lead to it, so it has a line of its own. There are limit
// sources at most.
func (h *Leased) FillLine(l *Link, src uint32, source *hot.Source, limit int) {
	p, err := h.links.Connect(l)
	if err != nil || p.Via.Number != 0 {
		return
	}
	if h.lines.Len() == 0 {
		if h.lines, err = mem.NewSparseArray[hot.Peer](limit); err != nil {
			log.Warnf(log.EPData, "lines of senders with several contexts: %v", err)
			return
		}
	}
	line := h.lines.At(src)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.path.Load() != p || p.Err() != nil {
		return
	}
	atomic.StoreUint32(&line.Link, l.Index+1)
	if h.links.local.FillPeer(p.Endpoint, line) != nil {
		return
	}
	if !slices.Contains(l.backs, line) {
		l.backs = append(l.backs, line)
	}
	source.Back = addressOfLine(line)
}

// Sweep removes the links that nothing leads to, when there are many more than the last time, so that an endpoint that
// stays does not grow with those that come and go: no thread holds such a link, no address of the address vector has
// resolved to it, and no request, no live source, and none of the messages that wait for room (waiting) names it. Then
// its number is used again.
func (h *Leased) Sweep(waiting iter.Seq[*Link]) {
	if !h.links.table.Due() {
		return
	}
	named := map[*Link]bool{}
	for l := range waiting {
		named[l] = true
	}
	live := map[int]bool{}
	for _, s := range h.Senders() {
		live[peers.Slot(s.ID)] = true
	}
	for slot, l := range h.back {
		if live[slot] {
			named[l] = true
		} else {
			h.back[slot] = nil
		}
	}
	h.links.table.Sweep(func(l *Link) bool { return !named[l] && l.retire() })
}
