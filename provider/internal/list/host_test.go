package list

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"github.com/weft-fabric/weft/cq"
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/config"
	"github.com/weft-fabric/weft/provider/internal/claim"
	"github.com/weft-fabric/weft/provider/internal/hmem"
	"github.com/weft-fabric/weft/provider/internal/note"
	"github.com/weft-fabric/weft/provider/internal/pieces"
	"github.com/weft-fabric/weft/provider/internal/rkey"
)

// Addresses are made up: a host has memory at each of these, and that of regions by their keys.
const (
	hostBase   = uint64(1) << 20
	deviceBase = uint64(1)<<63 | 1<<20
	regionBase = uint64(1) << 12
)

// errFault is what a fault of chance is.
var errFault = errors.New("fault")

// host is an endpoint of lists in memory, with one peer. Chance says when there is no room, in which order what is
// under way ends, and with faults what fails.
type host struct {
	t     testing.TB
	r     *rand.Rand
	cfg   config.Config
	posts Posts

	local, device []byte
	regions       map[uint64]*region
	path          *path
	full          int // one of so many posts finds no room, 0: none does
	faults        int // one of so many steps fails, 0: none does
	refusals      int // one of so many elements is refused by the device, 0: none is
	gone          bool

	written  []func() // what the device has written that is not in its place
	flushes  int
	keys     int  // searches for keys
	lost     bool // flushes fail
	delivers bool // what the device writes is in its place when that is flushed

	entered []*Op
	flying  []func() // ends of what is under way
	shares  []*Share // of which the target is at its last chunk
	words   claim.Words
	rounds  uint64
	took    uint64 // chunks of the open round that the target has taken
	bad     bool   // and could not copy

	ended   []ending
	noted   []*note.Outgoing // in the order of the posts; nil: taken back
	settled map[*note.Outgoing]fi.Errno
	counts  [Ways]uint64
	// of the elements that have failed, since a post began; one that is picked twice may fail twice
	mistakes map[uint32][]fi.Errno
	reading  bool   // the post that is mapped reads
	mapping  func() // called by the goroutine of such a post
	uses     int    // of the endpoint
	kept     int    // uses of the peer
	inFlight int64
	closed   bool
}

// ending is a completion.
type ending struct {
	cq.Entry
	status fi.Errno
}

func newHost(t testing.TB, seed uint64) *host {
	h := &host{
		t: t, r: rand.New(rand.NewPCG(seed, 1)), cfg: *config.Default(), regions: map[uint64]*region{},
		local: make([]byte, 1<<18), device: make([]byte, 1<<15),
		settled: map[*note.Outgoing]fi.Errno{}, mistakes: map[uint32][]fi.Errno{},
	}
	h.path = &path{host: h, denied: map[uint64]bool{}}
	h.posts.Init(h, &h.cfg)
	t.Cleanup(func() {
		_ = h.posts.Free()
		if h.uses != 0 || h.kept != 0 || h.inFlight != 0 {
			t.Errorf("%d uses of the endpoint, %d of the peer, %d operations in flight", h.uses, h.kept, h.inFlight)
		}
		for key, r := range h.regions {
			if r.uses != 0 {
				t.Errorf("%d uses of region %d", r.uses, key)
			}
		}
	})
	return h
}

// region is a region of the peer.
type region struct {
	about  About
	memory []byte
	means  Means // of mappings
	maps   bool
	uses   int
	closed bool
}

func (r *region) About() About     { return r.about }
func (r *region) Maps(uint64) bool { return r.maps }
func (r *region) Release()         { r.uses-- }
func (r *region) Acquire() error {
	if r.closed {
		return fi.EBADF
	}
	r.uses++
	return nil
}

// region makes a region of n bytes.
func (h *host) region(key uint64, n int, device bool) *region {
	r := &region{memory: make([]byte, n), maps: device, about: About{
		Addr: 7, Key: key, Base: regionBase, Length: uint64(n), Host: !device, Read: true, Write: true,
	}}
	h.regions[key] = r
	return r
}

// here is local memory, there a region's.
func (h *host) here(addr, n uint64) []byte {
	if hmem.OnDevice(addr) {
		return h.device[addr-deviceBase:][:n]
	}
	return h.local[addr-hostBase:][:n]
}

func (h *host) there(key, addr, n uint64) []byte { return h.regions[key].memory[addr-regionBase:][:n] }

// move moves one element.
func (h *host) move(local, key, remote, n uint64, read bool) {
	if read {
		copy(h.here(local, n), h.there(key, remote, n))
		return
	}
	copy(h.there(key, remote, n), h.here(local, n))
}

func (h *host) chance(n int) bool { return n != 0 && h.r.IntN(n) == 0 }
func (h *host) fault() bool       { return h.chance(h.faults) }

// mistake notes that an element fails.
func (h *host) mistake(n uint32, status fi.Errno) fi.Errno {
	h.mistakes[n] = append(h.mistakes[n], status)
	return status
}

// settle runs the work queue and ends what is under way until nothing is left.
func (h *host) settle() {
	for h.rest(); len(h.entered)+len(h.flying)+len(h.shares) != 0; h.rest() {
		h.step()
	}
}

// rest waits for goroutines.
func (h *host) rest() {
	for h.posts.copying.Load() != 0 {
		runtime.Gosched()
	}
}

// post posts until there is room, and returns what the last attempt does.
func (h *host) post(l *List, a *Args) error {
	for {
		err := l.Post(a)
		if h.rest(); fi.ErrnoOf(err) != fi.EAGAIN {
			return err
		}
		if h.step(); h.gone && !h.chance(8) {
			return fi.ECONNRESET
		}
	}
}

// step does one of these.
func (h *host) step() {
	if n := len(h.entered); n != 0 && h.chance(2) {
		i := h.r.IntN(n)
		if h.entered[i].Pump() {
			h.entered = slices.Delete(h.entered, i, i+1)
		}
	}
	if n := len(h.flying); n != 0 && (h.chance(2) || n > 200) {
		i := h.r.IntN(n)
		end := h.flying[i]
		h.flying = slices.Delete(h.flying, i, i+1)
		end()
	}
	if len(h.shares) != 0 && h.chance(4) {
		h.endShare()
	}
}

// The endpoint.

func (h *host) Enabled() bool         { return !h.closed }
func (h *host) Completes(uint64) bool { return true }
func (h *host) Room() bool            { return !h.chance(h.full) }
func (h *host) Notes() Notes          { return h }
func (h *host) Enter(op *Op)          { h.entered = append(h.entered, op) }
func (h *host) PostReady()            {}
func (h *host) Ordered() bool         { return false }
func (h *host) Release()              { h.uses-- }

func (h *host) Acquire() error {
	if h.closed {
		return fi.EBADF
	}
	h.uses++
	return nil
}

func (h *host) Overtakes(Path, fi.Addr) bool { return h.chance(h.full) }

func (h *host) Complete(e *cq.Entry, status fi.Errno, _, _ bool, total uint64) {
	if status == fi.Success {
		e.Len = total
	}
	h.ended = append(h.ended, ending{*e, status})
}

func (h *host) Broken(err error) error {
	if errors.Is(err, fi.ECONNRESET) {
		return fi.EAGAIN
	}
	return err
}

func (h *host) Connect(fi.Addr, uint64) (Peer, Path, error) {
	switch {
	case h.gone:
		return nil, nil, fi.ECONNRESET
	case h.chance(h.full):
		return nil, nil, fi.EAGAIN
	}
	h.kept++
	return peer{h}, h.path, nil
}

func (h *host) Ready(fi.Addr) (Peer, Path, error) {
	if h.gone {
		return nil, nil, fi.ECONNRESET
	}
	h.kept++
	return peer{h}, h.path, nil
}

// peer is the owner.
type peer struct{ h *host }

func (p peer) Number() uint32        { return 0 }
func (p peer) Count(n int64)         { p.h.inFlight += n }
func (p peer) Ring() (uintptr, bool) { return 0, false }
func (p peer) Release()              { p.h.kept-- }

// path is the way to it.
type path struct {
	*host
	copies bool // the posting thread copies
	joins  bool
	rdma   Device
	denied map[uint64]bool // regions whose keys the device has refused
	dead   bool            // the peer is found dead by the next copy
	corked []func()        // ends of elements that the device has kept for the next
}

func (p *path) AckOfNote(uint64) bool { return false }
func (p *path) Device() Device        { return p.rdma }

func (p *path) OneSided(bool) (hw.OneSided, uint64) { return p, 700 }

// PutZcopy and GetZcopy are the device's, which refuses the key of a region for ever.
func (p *path) PutZcopy(local []hw.Segment, addr uint64, key hw.RemoteKey, c *hw.Completion) (hw.Status, error) {
	return p.device(local[0], addr, key[0]-1, c, false)
}

func (p *path) GetZcopy(local []hw.Segment, addr uint64, key hw.RemoteKey, c *hw.Completion) (hw.Status, error) {
	return p.device(local[0], addr, key[0]-1, c, true)
}

func (p *path) device(local hw.Segment, addr, key uint64, c *hw.Completion, read bool) (hw.Status, error) {
	here, n := uint64(uintptr(local.Addr)), uint64(local.Len)
	put := func() { p.move(here, key, addr, n, read) }
	if n > p.Message(p).Element {
		p.t.Errorf("a device has an element of %d bytes, which is cut into segments", n)
	}
	switch {
	case p.gone:
		return hw.Done, hw.ErrPeerDead
	case p.chance(p.full):
		return hw.Done, hw.ErrNoResource
	case p.chance(4 * p.refusals):
		return hw.Done, hw.ErrKey
	case !p.delivers && p.chance(20):
		put()
		return hw.Done, nil
	}
	p.corked = append(p.corked, func() {
		switch {
		case p.gone:
			c.Update(1, hw.ErrCanceled)
		case p.chance(p.refusals):
			c.Update(1, hw.ErrKey)
		case p.delivers:
			p.written = append(p.written, put)
			c.Update(1, nil)
		default:
			put()
			c.Update(1, nil)
		}
	})
	if !c.More {
		p.Uncork()
	}
	return hw.InProgress, nil
}

func (h *host) DeviceKey(_ Peer, over Path, key uint64) (hw.RemoteKey, bool) {
	p := over.(*path)
	h.keys++
	if p.denied[key] || h.chance(h.full) {
		return hw.RemoteKey{}, false
	}
	return hw.RemoteKey{key + 1}, true
}

func (h *host) KeyRefused(over Path, key uint64) { over.(*path).denied[key] = true }

func (h *host) CountDevice(_ Peer, _ bool, elements, _ uint64) { h.counts[WayRDMA] += elements }

// Uncork has the device begin with what it has kept.
func (p *path) Uncork() { p.flying, p.corked = append(p.flying, p.corked...), nil }

func (p *path) Mover() hw.PieceMover {
	if !p.copies {
		return nil
	}
	return p
}

func (p *path) MovePeer(*hw.Pieces, bool) (uint64, error) { panic("not for lists") }

// MovePieces copies, and with a fault stops anywhere.
func (p *path) MovePieces(list *hw.Pieces, write bool) (moved uint64, err error) {
	most := ^uint64(0)
	if p.dead || p.fault() {
		err, most = hw.ErrPermission, p.r.Uint64N(2000)
		if p.dead {
			err = hw.ErrPeerDead
			p.gone = true
		}
	}
	for i := range list.N {
		n := min(list.Local[i].Len, most-moved)
		p.move(list.Local[i].Addr, list.Keys[i], list.Remote[i].Addr, n, !write)
		if moved += n; moved == most {
			return moved, err
		}
	}
	if err != nil && list.N != 0 { // not all are moved with an error
		moved -= list.Local[list.N-1].Len
	}
	return moved, err
}

// element ends an element some time, one that the device may keep when another has followed.
func (h *host) element(o *Element, more bool) {
	el, work, read, later := o.Element, o.Work, o.Read, o.Later
	h.path.corked = append(h.path.corked, func() {
		switch {
		case h.gone:
			h.posts.Ended(work, h.mistake(uint32(Place(work)), fi.ECONNRESET), 0)
		case h.fault():
			h.posts.Ended(work, h.mistake(uint32(Place(work)), fi.EACCES), 0)
		default:
			put := func() { h.move(el.Local, el.Key, el.Remote, el.Len, read) }
			if later {
				h.written = append(h.written, put)
			} else {
				put()
			}
			h.posts.Ended(work, fi.Success, el.Len)
		}
	})
	if !more {
		h.path.Uncork()
	}
}

func (h *host) Single(o *Element) error {
	if h.chance(h.full) {
		return fi.EAGAIN
	}
	el, read, context := o.Element, o.Read, o.Context
	h.counts[WayMessage]++
	h.flying = append(h.flying, func() {
		h.move(el.Local, el.Key, el.Remote, el.Len, read)
		h.ended = append(h.ended, ending{cq.Entry{Context: context, Len: el.Len}, fi.Success})
	})
	return nil
}

func (h *host) Post(_ Peer, over Path, o *Element) error {
	way := WayMessage
	if over.Device() != nil && h.cfg.TokenWays.RDMA && !h.path.denied[o.Key] {
		way = WayRDMA
	}
	switch {
	case h.chance(h.full):
		return fi.EAGAIN
	case way == WayMessage && !h.cfg.TokenWays.Message:
		return h.mistake(uint32(Place(o.Work)), fi.EOPNOTSUPP)
	}
	h.counts[way]++
	if o.Later && (o.Read || o.Flags&fi.DeliveryComplete == 0) {
		h.t.Errorf("an element with flags %#x leaves to the post what it does not need", o.Flags)
	}
	one := *o
	one.Later = o.Later && way == WayRDMA
	h.element(&one, o.More && way == WayRDMA)
	return nil
}

func (h *host) PostTogether(_ Peer, _ Path, q *Request) error {
	if h.chance(h.full) {
		return fi.EAGAIN
	}
	if !h.path.joins || q.Count < 2 || q.Count > MaxTogether || !h.cfg.TokenWays.Message {
		h.t.Errorf("%d elements go together", q.Count)
	}
	h.counts[WayMessage] += uint64(q.Count)
	request := *q
	h.flying = append(h.flying, func() { h.endTogether(&request) })
	return nil
}

// Flush puts what the device has written in its place, at once or some time.
func (h *host) Flush(over Path, ended func(error)) (bool, error) {
	put := func() error {
		if h.gone || h.lost {
			return fi.ECONNRESET
		}
		for _, put := range h.written {
			put()
		}
		h.written = nil
		return nil
	}
	switch {
	case over != Path(h.path):
		h.t.Errorf("a flush of another path")
	case h.chance(h.full):
		return false, fi.EAGAIN
	}
	h.flushes++
	if h.chance(2) {
		return true, put()
	}
	h.flying = append(h.flying, func() { ended(put()) })
	return false, nil
}

// endTogether ends a request of several elements: those before the one that fails are moved.
func (h *host) endTogether(q *Request) {
	sel := h.posts.At(q.Work).Elements()
	end := Together{Work: q.Work, Total: q.Total, Count: uint32(q.Count), Read: q.Read}
	status := fi.Success
	for i := range q.Count {
		el := sel.At(Place(q.Work) + i)
		if h.gone || h.chance(h.faults*q.Count) {
			status = fi.EACCES
			if h.gone {
				status = fi.ECONNRESET
			}
			h.mistake(sel.Number(Place(q.Work)+i), status)
			if !q.Read {
				end.Failed = uint64(i)
			}
			break
		}
		h.move(el.Local, el.Key, el.Remote, el.Len, q.Read)
		if q.Read {
			end.Failed += el.Len
		}
	}
	h.posts.TogetherEnded(end, status)
}

func (h *host) Message(Path) Message {
	return Message{Joins: h.path.joins, Payload: 4096, Read: 8192, Element: 512}
}

func (h *host) Count(_ Peer, w Way, elements, _ uint64) { h.counts[w] += elements }

func (h *host) Accessed(sel pieces.Selection, total uint64, _ Peer, _ Path) {
	if sel.Bytes() != total {
		h.t.Errorf("%d bytes are about to be copied of %d", sel.Bytes(), total)
	}
}

// Notifications.

func (h *host) Add(n *note.Outgoing, _ note.Peer, _ []byte, must bool) error {
	if !must && h.chance(h.full) {
		return fi.EAGAIN
	}
	h.noted = append(h.noted, n)
	return nil
}

func (h *host) Take(n *note.Outgoing, _ note.Peer) {
	h.noted = slices.DeleteFunc(h.noted, func(m *note.Outgoing) bool { return m == n })
}

func (h *host) Settle(n *note.Outgoing, status fi.Errno) {
	if !slices.Contains(h.noted, n) {
		h.t.Errorf("a notification is settled that is not entered")
	}
	h.settled[n] = status
	n.Owner.NoteEnded(status)
}

// standIn is an RDMA device.
type standIn struct {
	used, left int
	first, n   uint64
	access     hw.Access
	knows      bool // memory: elements go without operations of their own
	full       bool // it takes no memory
	still      bool // it sees that memory has not changed
	changed    bool // it does not, once
	yields     []func()
}

func (d *standIn) Use(addr, n uint64, access hw.Access) (rkey.Local, error) {
	d.used++
	d.first, d.n, d.access = addr, n, access
	if d.full {
		return rkey.Local{}, hw.ErrNoResource
	}
	if !d.knows {
		return rkey.Local{}, nil
	}
	return rkey.Device{Domain: anyMemory{}}.Use(addr, n, access)
}

// anyMemory registers what is there and what is not.
type anyMemory struct{ hw.MemoryDomain }

func (anyMemory) Register(hw.Region) (hw.Memory, error) { return registered{}, nil }

type registered struct{ hw.Memory }

func (d *standIn) Leave(*rkey.Local)                { d.left++ }
func (d *standIn) Keep(_ *rkey.Local, yield func()) { d.yields = append(d.yields, yield) }

func (d *standIn) Still(*rkey.Local) bool {
	still := d.still && !d.changed
	d.changed = false
	return still
}

// want fails the test if an error has another errno.
func want(t testing.TB, err error, errno fi.Errno, format string, args ...any) {
	t.Helper()
	if got := fi.ErrnoOf(err); err == nil && errno != fi.Success || err != nil && got != errno {
		t.Errorf("%s: %v, want %v", fmt.Sprintf(format, args...), err, errno)
	}
}
