package onesided

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/weft-fabric/weft/cq"
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/mem"
	"github.com/weft-fabric/weft/provider/internal/claim"
	"github.com/weft-fabric/weft/provider/internal/region"
	"github.com/weft-fabric/weft/provider/internal/vector"
	"github.com/weft-fabric/weft/provider/internal/wire"
)

// owner is the object that a region of a test is part of.
type owner struct{}

const (
	sources = 3
	barred  = hw.Source(2) // some regions are not for it
)

// host is the endpoint of a test as its target has it, and what its peers see.
type host struct {
	t       testing.TB
	r       *rand.Rand
	target  Target[owner]
	on      map[hw.AMID]hw.Handler
	table   region.Table[owner]
	regions []*memory
	arena   []byte // off the Go heap
	used    int
	pool    *mem.Pool
	part    int // bytes of a message
	full    int // one of so many posts finds no room, 0: none does
	gone    [sources]bool
	counts  map[int]uint64
	bad     int // malformed messages

	writes, reads         atomic.Pointer[cq.Counter]
	wantWrites, wantReads uint64

	ops       map[uint64]*operation
	last      uint64 // request
	delivered []uint64

	words  [sources][4]uint64
	copies bool // this side copies as much by itself
	dead   bool // reads and writes of peers' memory fail
}

// memory is a region, and a plain copy of it.
type memory struct {
	m        *region.Region[owner]
	key      uint64
	plain    []byte
	parts    [][]byte
	barred   bool
	closed   bool // or its key is spent
	shut     bool
	counter  *cq.Counter
	expected uint64 // of the counter
}

func address(b []byte) uint64 { return uint64(uintptr(unsafe.Pointer(unsafe.SliceData(b)))) }

func viewOf(s hw.Segment) []byte { return unsafe.Slice((*byte)(s.Addr), s.Len) }

// newHost makes an endpoint with regions of all kinds.
func newHost(t testing.TB, seed uint64) *host {
	t.Helper()
	h := &host{t: t, r: rand.New(rand.NewPCG(seed, 5)), part: 300, counts: map[int]uint64{},
		ops: map[uint64]*operation{}, pool: mem.NewPool(1 << 20)}
	var err error
	if h.arena, err = mem.Map(1<<26, mem.NoReserve); err != nil {
		t.Fatal(err)
	}
	h.target.Init(h, Counters{Reads: &h.reads, Writes: &h.writes})
	h.on = h.target.Handlers()
	t.Cleanup(func() {
		for _, m := range h.regions { // hangs if a gate is left entered
			if !m.shut {
				m.m.Gate.Shut()
			}
			if m.counter != nil {
				_ = m.counter.Close()
			}
		}
		_ = h.pool.Close()
		_ = mem.Unmap(h.arena)
	})
	return h
}

// counter opens a counter.
func (h *host) counter() *cq.Counter {
	c, err := cq.OpenCounter(&fi.CntrAttr{}, nil)
	if err != nil {
		h.t.Fatal(err)
	}
	return c
}

// buffer is memory of n bytes, aligned, of which what surrounds it stays zero.
func (h *host) buffer(n int) []byte {
	h.used = (h.used + 63 + 16) &^ 15
	b := h.arena[h.used:][:n:n]
	h.used += n
	return b
}

// region registers memory with rights, in parts of some lengths.
func (h *host) region(key, rights uint64, single bool, lengths ...int) *memory {
	h.t.Helper()
	m := &memory{m: &region.Region[owner]{Owner: &owner{}}, key: key}
	a := fi.MRAttr{Access: rights}
	for _, n := range lengths {
		b := h.buffer(n)
		for i := range b {
			b[i] = byte(h.r.Uint32())
		}
		m.parts = append(m.parts, b)
		a.IOV = append(a.IOV, fi.IOVec{Base: uintptr(address(b)), Len: uint64(n)})
	}
	m.plain = bytes.Join(m.parts, nil)
	flags := uint64(0)
	if single {
		flags = fi.MRSingleUse
	}
	if err := m.m.Init(&a, flags, &region.Options{}); err != nil {
		h.t.Fatal(err)
	}
	h.table.Describe(m.m)
	if _, err := h.table.Add(m.m, key, false); err != nil {
		h.t.Fatal(err)
	}
	h.regions = append(h.regions, m)
	return m
}

// allow enters a region anew, with other rights of peers.
func (h *host) allow(m *memory, rights uint64) {
	h.t.Helper()
	h.table.Expire(m.m)
	m.m.Rights = rights
	if _, err := h.table.Add(m.m, m.key, false); err != nil {
		h.t.Fatal(err)
	}
}

// check compares all memory with the plain copies.
func (h *host) check() {
	h.t.Helper()
	want := make([]byte, h.used+64)
	for _, m := range h.regions {
		left := m.plain
		for _, p := range m.parts {
			left = left[copy(want[address(p)-address(h.arena):][:len(p)], left):]
		}
	}
	if !bytes.Equal(want, h.arena[:len(want)]) {
		h.t.Fatal("memory differs from its copy")
	}
}

// find is the region of a key as the copies have it, nil: there is none.
func (h *host) find(key uint64) *memory {
	for _, m := range h.regions {
		if m.key == key && !m.closed {
			return m
		}
	}
	return nil
}

// admits is what an access is to lead to.
func (h *host) admits(src hw.Source, key, addr, n, rights uint64) (m *memory, status fi.Errno) {
	switch m = h.find(key); {
	case m == nil:
		return nil, fi.ENOKEY
	case m.m.Rights&rights != rights || addr > uint64(len(m.plain)) || n > uint64(len(m.plain))-addr,
		m.barred && src == barred:
		return nil, fi.EACCES
	}
	return m, fi.Success
}

// close takes a region back.
func (h *host) close(m *memory) {
	h.table.Remove(m.m)
	m.m.Gate.Shut()
	m.closed, m.shut = true, true
}

type named hw.Source

func (n named) String() string { return fmt.Sprintf("source %d", n) }

func (h *host) Count(i int, n uint64)               { h.counts[i] += n }
func (h *host) Malformed(hw.Source, string, ...any) { h.bad++ }
func (h *host) Pool() *mem.Pool                     { return h.pool }
func (h *host) Copying(uint64) bool                 { return h.copies }
func (h *host) Sender(src hw.Source) Sender         { return Sender{ID: uint32(src) + 1, Number: 7} }
func (h *host) NameOf(src hw.Source) fmt.Stringer   { return named(src) }
func (h *host) FillBack(hw.Source)                  {}
func (h *host) Deliver(_ hw.Source, n, data uint64) { h.delivered = append(h.delivered, n, data) }
func (h *host) Spend(m *region.Region[owner])       { h.table.Expire(m) }
func (h *host) noRoom() bool                        { return h.full != 0 && h.r.IntN(h.full) == 0 }
func (h *host) MaxPart() int                        { return h.part }
func (h *host) memoryOf(m *region.Region[owner]) (of *memory) {
	for _, of = range h.regions {
		if of.m == m {
			break
		}
	}
	return of
}

func (h *host) Access(src hw.Source, key, addr, n, rights uint64) (*region.Region[owner], uint64, error) {
	m, offset, err := h.table.Access(key, addr, n, rights)
	if err == nil && h.memoryOf(m).barred && src == barred {
		m.Gate.Leave()
		return nil, 0, fi.EACCES
	}
	return m, offset, err
}

func (h *host) AccessOf(to Sender, key, addr, n, rights uint64) (*region.Region[owner], uint64, error) {
	return h.Access(hw.Source(to.ID-1), key, addr, n, rights)
}

func (h *host) Reached(src hw.Source, key uint64) *region.Region[owner] {
	m := h.table.Find(key)
	if m == nil || h.memoryOf(m).barred && src == barred {
		return nil
	}
	return m
}

func (h *host) Back(src hw.Source, to Sender) (Path, error) {
	switch {
	case to != h.Sender(src):
		h.t.Fatalf("%+v is not behind source %d", to, src)
	case h.gone[src]:
		return nil, fi.ECONNRESET
	case h.noRoom():
		return nil, fi.EAGAIN
	}
	return h, nil
}

func (h *host) Answer(src hw.Source, to Sender, request uint64, head []byte) {
	var d wire.Done
	if to != h.Sender(src) || !d.Parse(head) {
		h.t.Fatalf("source %d, sender %+v: answer of %d bytes", src, to, len(head))
	}
	if op := h.ops[request]; op != nil && !h.gone[src] {
		op.answered(h, src, &d)
	}
}

func (h *host) Send(_ Path, id hw.AMID, header uint64, head []byte, iov []fi.IOVec, total int) error {
	at, ok := wire.ParseWord(head)
	if !ok || id != wire.AMReadData || total > h.part {
		h.t.Fatalf("message %d of %d bytes", id, total)
	}
	if h.noRoom() {
		return fi.EAGAIN
	}
	b := make([]byte, total)
	sum := uint64(0)
	for _, v := range iov {
		sum += v.Len
	}
	if sum != uint64(total) {
		h.t.Fatalf("a vector of %d bytes for %d", sum, total)
	}
	vector.Gather(b, iov)
	if op := h.ops[header]; op != nil {
		op.data(h, at, b)
	}
	return nil
}

func (h *host) Words(src hw.Source) *claim.Words {
	if h.gone[src] {
		return nil
	}
	return claim.OneSidedWords(&h.words[src])
}

func (h *host) Memory(src hw.Source) hw.PeerMemory {
	if h.gone[src] {
		return nil
	}
	return peer{h}
}

// peer is the memory of an initiator's process, which is this one.
type peer struct{ h *host }

func (p peer) SharedWords() *[4]uint64 { return nil }

func (p peer) move(local []hw.Segment, remote []hw.RemoteSegment, write bool) (int, error) {
	if p.h.dead {
		return 0, hw.ErrPeerDead
	}
	here, there := viewOf(local[0]), mem.Bytes(remote[0].Addr, int(remote[0].Len))
	if len(here) != len(there) || len(local) != 1 || len(remote) != 1 {
		p.h.t.Fatal("segments of different lengths")
	}
	if write {
		here, there = there, here
	}
	return copy(here, there), nil
}

func (p peer) ReadPeer(local []hw.Segment, remote []hw.RemoteSegment) (int, error) {
	return p.move(local, remote, false)
}

func (p peer) WritePeer(local []hw.Segment, remote []hw.RemoteSegment) (int, error) {
	return p.move(local, remote, true)
}

func (p peer) MovePieces(*hw.Pieces, bool) (uint64, error) { panic("not of a target") }

func (p peer) MovePeer(q *hw.Pieces, write bool) (moved uint64, err error) {
	for i := range q.N {
		local := []hw.Segment{{Addr: mem.Pointer(q.Local[i].Addr), Len: int(q.Local[i].Len)}}
		n, err := p.move(local, []hw.RemoteSegment{{Addr: q.Remote[i].Addr, Len: q.Remote[i].Len}}, write)
		if err != nil {
			return moved, err
		}
		moved += uint64(n)
	}
	return moved, nil
}

// bytesOf are those of an array of pieces.
func bytesOf(list []wire.Piece) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(list))), len(list)*wire.PieceBytes)
}
