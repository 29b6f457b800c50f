package receive

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"

	"github.com/weft-fabric/weft/cq"
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/dataplane"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/match"
	"github.com/weft-fabric/weft/internal/stats"
	"github.com/weft-fabric/weft/mpsc"
	"github.com/weft-fabric/weft/provider/internal/links"
	"github.com/weft-fabric/weft/provider/internal/rendezvous"
	"github.com/weft-fabric/weft/provider/internal/tables"
	"github.com/weft-fabric/weft/provider/internal/tally"
	"github.com/weft-fabric/weft/provider/internal/vector"
	"github.com/weft-fabric/weft/provider/internal/wire"
)

const (
	sendersOf = 4 // by source; those from strangers on are in no address vector
	strangers = 2
	ringLog2  = 4
)

// Kinds of messages.
const (
	eager   = iota
	awaited // acknowledged when it is here
	matched // acknowledged when a receive has matched
	long
)

// sent is a message that has arrived.
type sent struct {
	at      *host
	from    hw.Source
	kind    int
	tagged  bool
	tag     uint64
	payload []byte // all of one value
	number  uint64
	hasData bool
	refused bool // there is no memory to fetch it
	acks    []fi.Errno
	want    []fi.Errno // acks
}

// posted is a receive or search.
type posted struct {
	context     uint64
	source      int // -1: any
	tagged      bool
	tag, ignore uint64
	buf         []byte
	multi       bool
	used        int
	out         bool // of the queue
	apart       bool // buf is in pieces
	got, want   []outcome
}

// outcome is what a completion says. payload is the first byte, -1: none is said.
type outcome struct {
	status       fi.Errno
	tag          uint64
	length, rest uint64
	data         uint64
	payload      int
	multi        bool
}

// world is a receive context without a domain, and its endpoints.
type world struct {
	t   *testing.T
	r   *rand.Rand
	c   Context
	rx  *hot.Rx
	eps []*host

	stats    atomic.Pointer[stats.Endpoint]
	messages map[uint64]*sent // by request, and by the data that goes with them
	receives map[uint64]*posted
	fetches  []*fetch
	late     bool // payloads of long messages come later
}

// host is an endpoint of a test as what it receives has it.
type host struct {
	*world
	e       Endpoint
	on      map[hw.AMID]hw.Handler
	pending func() // what has not been taken in
	bad     int    // malformed messages
	again   int    // messages that are postponed
	known   uint32 // how many strangers have an address now
	shut    bool   // the eager window
}

// fetch is a long message whose payload is being fetched.
type fetch struct {
	at *host
	m  rendezvous.Message
}

func newWorld(t *testing.T, seed uint64, bounds Bounds, endpoints int) *world {
	w := &world{
		t: t, r: rand.New(rand.NewPCG(seed, 3)), messages: map[uint64]*sent{}, receives: map[uint64]*posted{},
	}
	table, err := tables.OpenRx(ringLog2, true)
	if err != nil {
		t.Fatal(err)
	}
	w.rx = table.Table()
	w.rx.Flags |= hot.RxExclusive
	head, first := table.Ring()
	view := mpsc.NewView(first, head, ringLog2, hot.CacheLine)
	w.rx.Posts = view.Hot()
	w.c.Init(bounds, [2]bool{true, true})
	if err := w.c.Open(&Parts{Hot: w.rx, Posts: mpsc.View(&w.rx.Posts), Sources: w, Stats: &w.stats}); err != nil {
		t.Fatal(err)
	}
	w.rx.Receiver = w.c.Address()
	block, _, err := stats.OpenEndpoint("", "", false, nil)
	if err != nil {
		t.Fatal(err)
	}
	w.stats.Store(block)
	counts := tally.On(block, 1)
	for range endpoints {
		h := &host{world: w}
		h.e.Init(h)
		table := &hot.EP{}
		counts.Fill(table)
		h.e.Open(&Resources{Context: &w.c, Rendezvous: h, Counts: &counts, Hot: table, SourceErr: true})
		w.c.Attach(&h.e)
		h.on = h.e.Handlers()
		w.eps = append(w.eps, h)
	}
	t.Cleanup(func() {
		w.c.Close()
		table.Close()
		block.Close()
	})
	return w
}

func (w *world) SourceOf(addr fi.Addr, _ uint64) uint32 {
	if addr == fi.AddrUnspec {
		return match.AnySource
	}
	return uint32(addr) + 1
}

func (h *host) Sender(src hw.Source) links.Sender {
	return links.Sender{ID: uint32(src) + 1, Number: 3}
}
func (h *host) Known(src hw.Source) (links.Sender, bool) { return h.Sender(src), true }
func (h *host) Name(s links.Sender) fmt.Stringer         { return named(s.ID) }
func (h *host) FillBack(hw.Source)                       {}
func (h *host) Postpone(hw.Source)                       { h.again++ }
func (h *host) SetWindow(open bool)                      { h.shut = !open }
func (h *host) Stranger(id uint32) (fi.Addr, []byte)     { return fi.AddrNotAvail, []byte{byte(id)} }
func (h *host) Put(cq.Entry)                             { h.t.Error("a completion of the data plane") }
func (h *host) Act(uint32)                               {}
func (h *host) Malformed(hw.Source, string, ...any)      { h.bad++ }
func (h *host) Translate([]fi.IOVec, []uint64) error     { return fi.EINVAL }

type named uint32

func (n named) String() string { return fmt.Sprintf("sender %d", uint32(n)) }

func (h *host) TakeIn() {
	if f := h.pending; f != nil {
		h.pending = nil
		f()
	}
}

func (h *host) AddrOf(id uint32) fi.Addr {
	if id > strangers+h.known {
		return fi.AddrNotAvail
	}
	return fi.Addr(id - 1)
}

func (h *host) Answer(src hw.Source, to links.Sender, id hw.AMID, header uint64, head []byte) {
	m := h.messages[header]
	status, ok := wire.ParseAck(head)
	switch {
	case m == nil || id != wire.AMAck || !ok:
		h.t.Fatalf("answer %d to request %d", id, header)
	case m.from != src || to != h.Sender(src) || m.at != h:
		h.t.Errorf("request %d of %d at %p is answered to %d, %v", header, m.from, m.at, src, to)
	case m.kind == eager:
		h.t.Errorf("request %d is no request", header)
	}
	m.acks = append(m.acks, status)
}

func (h *host) Complete(entry cq.Entry, flags uint64) { h.ended(entry, flags, cq.ErrorInfo{}) }
func (h *host) Fail(entry cq.Entry, flags uint64, info cq.ErrorInfo) {
	h.ended(entry, flags, info)
}

// ended notes a completion.
func (h *host) ended(entry cq.Entry, _ uint64, info cq.ErrorInfo) {
	p := h.receives[entry.Context]
	if p == nil {
		h.t.Fatalf("%+v completes nothing", entry)
	}
	got := outcome{
		status: info.Err, tag: entry.Tag, length: entry.Len, multi: entry.Flags&fi.MultiRecv != 0,
		rest: info.OLen, payload: -1,
	}
	if entry.Flags&fi.RemoteCQData != 0 {
		got.data = entry.Data
	}
	if n := int(entry.Len); n != 0 && entry.Buf != 0 && !p.apart {
		from := int(entry.Buf - uint64(vector.Of(p.buf).Base))
		if from < 0 || from+n > len(p.buf) {
			h.t.Fatalf("%+v is not in its buffer", entry)
		}
		got.payload = int(p.buf[from])
		if !bytes.Equal(p.buf[from:from+n], bytes.Repeat([]byte{p.buf[from]}, n)) {
			h.t.Errorf("receive %d has parts of several messages", entry.Context)
		}
	}
	p.got = append(p.got, got)
}

// Start fetches a payload, at once or later.
func (h *host) Start(m rendezvous.Message, rts *wire.RTS) bool {
	s := h.messages[rts.Request]
	if s == nil || s.kind != long || rts.Length != uint64(len(s.payload)) {
		h.t.Fatalf("fetch of request %d", rts.Request)
	}
	if s.refused {
		return false
	}
	f := &fetch{h, m}
	if h.late && h.r.IntN(2) == 0 {
		h.fetches = append(h.fetches, f)
	} else {
		f.end()
	}
	return true
}

// end has the payload in place.
func (f *fetch) end() {
	n, err := f.m.Target.Scatter(f.at.messages[f.m.Request].payload[:min(f.m.Target.Room(), f.m.Length)])
	if err != nil {
		f.at.t.Fatal(err)
	}
	f.at.e.Complete(&f.m, n, fi.Success)
}

// push posts what stands on the ring.
func (w *world) push(e hot.RecvEntry) {
	for dataplane.PushEntry(w.rx, &e) == hot.PostGo {
		w.c.Drain(0)
	}
}
