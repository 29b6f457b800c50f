package rma

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/config"
	"github.com/weft-fabric/weft/internal/congestion"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/mem"
	"github.com/weft-fabric/weft/internal/stats"
	"github.com/weft-fabric/weft/provider/internal/flow"
	"github.com/weft-fabric/weft/provider/internal/lease"
	"github.com/weft-fabric/weft/provider/internal/list"
	"github.com/weft-fabric/weft/provider/internal/onesided"
	"github.com/weft-fabric/weft/provider/internal/ordering"
	"github.com/weft-fabric/weft/provider/internal/pages"
	"github.com/weft-fabric/weft/provider/internal/rendezvous"
	"github.com/weft-fabric/weft/provider/internal/tally"
	"github.com/weft-fabric/weft/provider/internal/vector"
	"github.com/weft-fabric/weft/provider/internal/wire"
	"github.com/weft-fabric/weft/stripe"
)

const (
	peersOf    = 3
	goodKey    = 1
	badKey     = 2
	mostParts  = 3
	peerMemory = 1 << 19
)

// way is what the transport of a test can, and what the endpoint was asked for.
type way struct {
	name     string
	direct   bool // the initiator reaches the peers' memory
	single   bool // messages have one element each
	segments bool
	shares   bool // peers copy a share of long operations, and short ones that are delegated
	rules    ordering.Rules
}

// host is the endpoint of a test as its initiator has it.
type host struct {
	t        testing.TB
	r        *rand.Rand
	way      way
	in       Initiator
	pr       Protocol
	answers  onesided.Answers
	pendings onesided.Pendings
	on       map[hw.AMID]hw.Handler
	attr     hw.Attr
	lease    uint32
	now      congestion.Time
	peers    []*peer
	arena    []byte // of local memory, off the Go heap
	used     int
	unread   uint64
	full     int // one of so many posts finds no room, 0: none does
	holds    int
	bad      int // malformed messages
	ops      map[uint64]*operation
	last     uint64 // context
	ids      []uint64
}

// operation is one that was posted, as its initiator knows it.
type operation struct {
	peer      *peer
	completes bool
	refused   bool // the target refuses a part
	read      bool
	check     func() error // nil: what a success has to have done is done
	ended     bool
	hasData   bool
	total     uint64 // bytes, with data
}

func (h *host) Completes(_, flags uint64) bool { return flags&fi.Completion != 0 }
func (h *host) Room() bool                     { return h.full == 0 || h.r.IntN(h.full) != 0 }
func (h *host) Unread() uint64                 { return h.unread }
func (h *host) Sleeps() bool                   { return false }
func (h *host) NotifyPoll()                    {}
func (h *host) Advance()                       {}
func (h *host) Hold(n int)                     { h.holds += n }
func (h *host) Closed() bool                   { return false }
func (h *host) PeerToPeer() bool               { return false }
func (h *host) Link(number uint32) *Link       { return &h.peers[number].link }

func (h *host) End(e Ended) {
	op := h.ops[e.Context]
	switch {
	case op == nil || op.ended:
		h.t.Fatalf("%+v ends again, or what was not posted", e)
	case e.Status == fi.Success && e.Completes != op.completes, e.Asked != op.completes,
		e.Flags&fi.Read != 0 != op.read:
		h.t.Fatalf("an operation that completes %v ends as %+v", op.completes, e)
	case op.peer.dead:
		if e.Status != fi.ECONNRESET && e.Status != fi.Success && !op.refused {
			h.t.Fatalf("an operation on a peer that is gone ends with %v", e.Status)
		}
	case (e.Status == fi.EACCES) != op.refused || e.Status != fi.EACCES && e.Status != fi.Success:
		h.t.Fatalf("an operation that is refused: %v ends with %v", op.refused, e.Status)
	}
	op.ended = true
	if e.Status == fi.Success {
		if err := op.check(); err != nil {
			h.t.Fatalf("operation %d: %v", e.Context, err)
		}
	} else if _, is := op.peer.delivered[e.Context]; is && !op.peer.dead {
		h.t.Fatalf("data of operation %d, which is refused, is delivered", e.Context)
	}
}

func (h *host) Ready(l *Link) (*Path, bool) {
	p := h.peers[l.Index]
	return &p.path, !p.dead
}

func (h *host) Send(p *Path, id hw.AMID, header uint64, head []byte, iov []fi.IOVec, total, _ int) error {
	payload := make([]byte, total)
	vector.Gather(payload, iov)
	err := p.AMShort(id, header, head, payload)
	switch {
	case errors.Is(err, hw.ErrNoResource):
		return fi.EAGAIN
	case err != nil:
		return fi.ECONNRESET
	}
	return nil
}

func (h *host) Broken(err error) error {
	if errors.Is(err, fi.ECONNRESET) {
		return fi.EAGAIN
	}
	return err
}

func (h *host) Overtakes(*Path, fi.Addr) bool                      { return false }
func (h *host) CaughtUp(*Link, *Path) bool                         { return true }
func (h *host) Took(*Link, list.Way, uint64, uint64)               {}
func (h *host) FindKey(*Link, *Path, uint64, *hw.RemoteKey) bool   { return false }
func (h *host) KeyRefused(*Path, uint64)                           {}
func (h *host) Owns(src hw.Source, link uint32) bool               { return uint32(src) == link }
func (h *host) Malformed(hw.Source, string, ...any)                { h.bad++ }
func (h *host) Reads(*flow.Flow, *Path) *rendezvous.Flow           { return nil }
func (h *host) NameOf(l *Link) fmt.Stringer                        { return named(l.Index) }
func (h *host) LinkTo(fi.Addr, uintptr) (uint32, bool)             { return 0, false }
func (h *host) Leads(uint32, uintptr) bool                         { return false }
func (h *host) Complete(_, _ uint64, _ bool, _ fi.Errno, _ uint64) {}

// named is a peer in logs.
type named uint32

func (n named) String() string { return fmt.Sprintf("peer %d", uint32(n)) }

// newHost makes an endpoint with peers.
func newHost(t testing.TB, w way, seed uint64) *host {
	t.Helper()
	h := &host{t: t, r: rand.New(rand.NewPCG(seed, 11)), way: w, ops: map[uint64]*operation{}}
	h.attr = hw.Attr{MaxAMBcopy: 400, MaxAMShort: 100}
	if w.direct {
		h.attr.Caps |= DirectCaps
	}
	if w.single {
		h.attr.Caps |= hw.CapDirectRing
	}
	var err error
	if h.arena, err = mem.Map(1<<20, mem.NoReserve); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = mem.Unmap(h.arena) })
	block, _, err := stats.OpenEndpoint("", "", false, nil)
	if err != nil {
		t.Fatal(err)
	}
	cfg := config.Default()
	cfg.MinSegment, cfg.SegmentSize, cfg.MaxSegment = 512, 512, 2048
	cfg.RMAAssistSize, cfg.RMADelegateSize = 0, 0
	if w.shares {
		h.attr.Caps |= DirectCaps | hw.CapPeerMemory
		cfg.RMAAssistSize, cfg.RMADelegateSize = 128<<10, 32<<10
	}
	const stripes = 2
	counts := tally.On(block, stripes+1)
	h.in.Init(h, Parts{Config: cfg, Lists: new(list.Posts), Accesses: new(pages.Counter), Counts: &counts})
	h.answers.Init(h, &h.pendings)
	h.pr.Init(&h.in, h, &h.answers, &h.pendings, func() congestion.Time { h.now += 1000; return h.now })
	if err := h.in.Open(&Resources{
		Hot: new(hot.EP), Rules: w.rules, Stripes: stripe.NewSet(make([]hot.Stripe, stripes), false), PerStripe: 16,
		InjectMax: 64, Leased: lease.Guard(&h.lease, &h.pr),
	}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.in.Close)
	h.on = h.pr.Handlers()
	for i := range uint32(peersOf) {
		h.peers = append(h.peers, newPeer(h, i))
		h.in.Connected(&h.peers[i].path)
	}
	return h
}

// message is one under way.
type message struct {
	id            hw.AMID
	header        uint64
	head, payload []byte
}

// peer is a peer as the initiator reaches it, its memory, and the messages between both.
type peer struct {
	hw.Endpoint // none
	h           *host
	link        Link
	path        Path
	memory      []byte
	used        int
	out, back   []message
	dead        bool
	delivered   map[uint64]uint64 // CQ data, and the length of its write
	words       [4]uint64
	takes       int // chunks of the next share that it is offered
	share       wire.Share
	taken       []uint64
}

func newPeer(h *host, i uint32) *peer {
	p := &peer{h: h, memory: make([]byte, peerMemory), delivered: map[uint64]uint64{}}
	p.link.Index = i
	p.path = Path{Endpoint: p, On: &Transport{Attr: &h.attr, Segments: h.way.segments}, Serial: 1}
	for at := range p.memory {
		p.memory[at] = byte(h.r.Uint32())
	}
	return p
}

func (p *peer) Err() error {
	if p.dead {
		return hw.ErrPeerDead
	}
	return nil
}

// AMShort takes a message of the initiator's, if there is room.
func (p *peer) AMShort(id hw.AMID, header uint64, head, payload []byte) error {
	switch {
	case p.dead:
		return hw.ErrPeerDead
	case p.h.full != 0 && p.h.r.IntN(p.h.full) == 0:
		return hw.ErrNoResource
	case len(payload) > p.h.attr.MaxAMBcopy:
		p.h.t.Fatalf("a message of %d bytes", len(payload))
	}
	if id == wire.AMShare {
		p.offered(head)
	}
	p.out = append(p.out, message{id, header, append([]byte(nil), head...), append([]byte(nil), payload...)})
	return nil
}

func (p *peer) OfDevice(uint64) bool { return false }

func (p *peer) FindKey(name uint64) (hw.RemoteKey, error) {
	if name != goodKey {
		return hw.RemoteKey{}, hw.ErrKey
	}
	return hw.RemoteKey{name}, nil
}

func (p *peer) PutZcopy(local []hw.Segment, addr uint64, _ hw.RemoteKey, _ *hw.Completion) (hw.Status, error) {
	return p.copies(local, addr, func(mine, theirs []byte) { copy(theirs, mine) })
}

func (p *peer) GetZcopy(local []hw.Segment, addr uint64, _ hw.RemoteKey, _ *hw.Completion) (hw.Status, error) {
	return p.copies(local, addr, func(mine, theirs []byte) { copy(mine, theirs) })
}

func (p *peer) copies(local []hw.Segment, addr uint64, move func(mine, theirs []byte)) (hw.Status, error) {
	if p.dead {
		return hw.Done, hw.ErrPeerDead
	}
	for _, s := range local {
		move(viewOf(s), p.memory[addr:][:s.Len])
		addr += uint64(s.Len)
	}
	return hw.Done, nil
}
