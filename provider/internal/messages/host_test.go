package messages

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/config"
	"github.com/weft-fabric/weft/internal/dataplane"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/mem"
	"github.com/weft-fabric/weft/internal/stats"
	"github.com/weft-fabric/weft/provider/internal/av"
	"github.com/weft-fabric/weft/provider/internal/links"
	"github.com/weft-fabric/weft/provider/internal/onesided"
	"github.com/weft-fabric/weft/provider/internal/pages"
	"github.com/weft-fabric/weft/provider/internal/peers"
	"github.com/weft-fabric/weft/provider/internal/rkey"
	"github.com/weft-fabric/weft/provider/internal/rma"
	"github.com/weft-fabric/weft/provider/internal/tally"
	"github.com/weft-fabric/weft/provider/internal/wire"
	"github.com/weft-fabric/weft/provider/names"
	"github.com/weft-fabric/weft/stripe"
)

const (
	peersOf   = 3
	stripesOf = 2
	perStripe = 16 // requests
	injectMax = 256
	eagerMax  = 1000
)

// way is what the transport of a test can, and what the endpoint is.
type way struct {
	name  string
	ring  bool // messages stand in the peers' rings, and peers read this process's memory
	lossy bool
	works bool // some messages are deferred works
}

// host is the endpoint of a test as its messages have it, and as its links do.
type host struct {
	t        *testing.T
	r        *rand.Rand
	way      way
	s        Sender
	pr       Protocol
	links    links.Links
	pendings onesided.Pendings
	counts   tally.Counts
	table    hot.EP
	peers    []*peer
	on       map[hw.AMID]hw.Handler
	full     int  // one of so many posts finds no room, 0: none does
	noBounce bool // no bounce buffer is free
	bad      int  // malformed messages
	ops      map[uint64]*operation
}

// operation is a message that was posted.
type operation struct {
	m         Send
	payload   []byte // as it was then
	peer      *peer
	completes bool
	tracked   bool // it ends when the peer has answered
	arrived   bool
	answered  bool
	refused   bool // by the peer
	ended     bool
}

func (h *host) LinkOf(dest fi.Addr) (*links.Link, error) { return h.links.Of(dest) }
func (h *host) Completes(_, flags uint64) bool           { return flags&fi.Completion != 0 }
func (h *host) Room(int) bool                            { return !h.unlucky() }
func (h *host) Share(uint64, uint64) (uint64, uint64, bool) {
	h.t.Error("memory of a device")
	return 0, 0, false
}
func (h *host) Owns(src hw.Source, link uint32) bool { return h.peers[src].link.Index == link }
func (h *host) Malformed(hw.Source, string, ...any)  { h.bad++ }
func (h *host) Act(uint32)                           {}
func (h *host) RequestEnded(uint64)                  {}
func (h *host) Disconnected() bool                   { return false }
func (h *host) Closed() bool                         { return false }
func (h *host) SeekEnds()                            {}
func (h *host) Connected(*rma.Path)                  {}
func (h *host) Here(names.Name) bool                 { return true }
func (h *host) Made()                                {}
func (h *host) Line(number uint32) *dataplane.Link   { return h.s.Line(number) }
func (h *host) unlucky() bool                        { return h.full != 0 && h.r.IntN(h.full) == 0 }

func (h *host) Broken(err error) error {
	if errors.Is(err, fi.ECONNRESET) {
		return fi.EAGAIN
	}
	return err
}

// What SendHere asks for, which the tests do not call.
func (h *host) Complete(uint64, uint64) { h.t.Error("a completion of the data plane's") }
func (h *host) PeerLost()               { h.t.Error("a peer of the data plane's") }
func (h *host) WakePeer(uint32)         { h.t.Error("a peer of the data plane's") }

func (h *host) End(e Ended) {
	op := h.ops[e.Context]
	if op == nil || op.ended {
		h.t.Fatalf("%+v ends again, or what was not posted", e)
	}
	op.ended = true
	switch {
	case e.Status == fi.Success && e.Completes != op.completes || e.Total != uint64(len(op.payload)):
		h.t.Errorf("a message of %d bytes that completes %v ends as %+v", len(op.payload), op.completes, e)
	case e.Tagged != op.m.Tagged || e.Work != op.m.Work || e.Ring < 0 || e.Ring > stripesOf ||
		op.m.Work != 0 && e.Asked != (op.m.Flags&fi.Completion != 0):
		h.t.Errorf("a message of work %d, tagged %v, flags %#x ends as %+v", op.m.Work, op.m.Tagged, op.m.Flags, e)
	case e.Status == fi.ECONNRESET && op.peer.dead:
	case e.Status != fi.Success && !op.refused || e.Status == fi.Success && op.refused:
		h.t.Errorf("a message that is refused, %v, ends with %v", op.refused, e.Status)
	case op.tracked && !op.answered && e.Status == fi.Success:
		h.t.Error("a message ends before its peer has answered")
	}
}

// wireOf is the interface of a test.
type wireOf struct {
	hw.Iface
	hw.Direct
	h *host
}

func (w *wireOf) Attr() hw.Attr {
	a := hw.Attr{DeviceName: "test", MaxAMShort: 300, MaxAMBcopy: eagerMax}
	if w.h.way.ring {
		a.Caps = hw.CapDirectRing | hw.CapPeerMemory
	}
	return a
}

func (w *wireOf) Connect(at []byte) (hw.Endpoint, error) {
	for _, p := range w.h.peers {
		if bytes.Equal(p.at, at) {
			return p, nil
		}
	}
	return nil, hw.ErrUnreachable
}

func (w *wireOf) FillPeer(_ hw.Endpoint, line *hot.Peer) error { return nil }

// message is one under way to a peer.
type message struct {
	id            hw.AMID
	header        uint64
	head, payload []byte
}

// peer is a peer as the endpoint reaches it, and the messages to it.
type peer struct {
	peers.Gone
	h       *host
	src     hw.Source
	at      []byte
	link    *links.Link
	closed  bool // its eager window is
	dead    bool
	out     []message
	answers []uint64 // requests that it has yet to answer
}

func (p *peer) Address() []byte { return p.at }
func (p *peer) EagerOpen() bool { return !p.closed }
func (p *peer) Reported() bool  { return false }

func (p *peer) Err() error {
	if p.dead {
		return hw.ErrPeerDead
	}
	return nil
}

// eager notes a message that comes with its payload though the peer does not welcome that.
func (p *peer) eager(id hw.AMID) {
	if p.closed && (id == wire.AMMsg || id == wire.AMMsgData || id == wire.AMTag || id == wire.AMTagData ||
		id == wire.AMSync) {
		p.h.t.Errorf("message %d comes while the eager window is closed", id)
	}
}

func (p *peer) AMShort(id hw.AMID, header uint64, head, payload []byte) error {
	p.eager(id)
	switch {
	case p.dead:
		return hw.ErrPeerDead
	case p.h.unlucky():
		return hw.ErrNoResource
	case len(head)+len(payload) > 300:
		p.h.t.Fatalf("a short message of %d bytes", len(head)+len(payload))
	}
	p.out = append(p.out, message{id, header, bytes.Clone(head), bytes.Clone(payload)})
	return nil
}

func (p *peer) AMBcopy(id hw.AMID, header uint64, head []byte, n int, pack func([]byte), stripe int) error {
	p.eager(id)
	switch {
	case p.dead:
		return hw.ErrPeerDead
	case p.h.unlucky() || p.h.noBounce:
		return hw.ErrNoResource
	case n > eagerMax || stripe < 0 || stripe > stripesOf:
		p.h.t.Fatalf("a message of %d bytes over stripe %d", n, stripe)
	}
	payload := make([]byte, n)
	pack(payload[:n/3])
	pack(payload[n/3:])
	p.out = append(p.out, message{id, header, bytes.Clone(head), payload})
	return nil
}

// arrive has the peer take in the oldest message. Its tag is the context.
func (p *peer) arrive() {
	m := p.out[0]
	p.out = p.out[1:]
	op := p.h.ops[m.header]
	if op == nil || op.peer != p || op.arrived {
		p.h.t.Fatalf("message %d arrives again, or at the wrong peer", m.header)
	}
	op.arrived = true
	switch m.id {
	case wire.AMMsg, wire.AMMsgData, wire.AMTag, wire.AMTagData:
		if !op.ended {
			p.h.t.Errorf("message %d, which has gone out with its payload, has not ended", m.header)
		}
		op.checkHead(p.h.t, m.id, m.head)
	case wire.AMSync:
		var s wire.Sync
		if !s.Parse(m.head) {
			p.h.t.Fatal("a head does not parse")
		}
		op.checkBits(p.h.t, s.Flags, s.Data)
		p.answers = append(p.answers, s.Request)
	case wire.AMRTS:
		m.payload = p.fetch(op, m.head)
	default:
		p.h.t.Fatalf("message %d", m.id)
	}
	if !bytes.Equal(m.payload, op.payload) {
		p.h.t.Errorf("message %d of %d bytes differs", m.header, len(op.payload))
	}
}

// checkHead checks what a message that comes with its payload says beside that.
func (op *operation) checkHead(t *testing.T, id hw.AMID, head []byte) {
	want, data := wire.AMMsg, []byte(nil)
	if op.m.Tagged {
		want = wire.AMTag
	}
	if op.m.HasData {
		want++
		data = binary.LittleEndian.AppendUint64(nil, op.m.Data)
	}
	if id != want || !bytes.Equal(head, data) {
		t.Errorf("message %d of head %x, want %d of %x", id, head, want, data)
	}
}

// checkBits checks what a message that waits for its peer says beside its payload.
func (op *operation) checkBits(t *testing.T, flags uint32, data uint64) {
	want := dataplane.RTSFlags(op.m.Tagged, op.m.HasData)
	if flags&dataplane.RTSFlags(true, true) != want || op.m.HasData && data != op.m.Data {
		t.Errorf("flags %#x, data %#x, want %#x, %#x", flags, data, want, op.m.Data)
	}
}

// fetch is the payload of an RTS.
func (p *peer) fetch(op *operation, head []byte) (payload []byte) {
	var r wire.RTS
	if !r.Parse(head) {
		p.h.t.Fatal("an RTS does not parse")
	}
	op.checkBits(p.h.t, r.Flags, r.Data)
	p.answers = append(p.answers, r.Request)
	req, known := p.h.s.Requests().Lookup(r.Request)
	if !known || r.Length != uint64(len(op.payload)) {
		p.h.t.Fatalf("an RTS of %d bytes, want %d", r.Length, len(op.payload))
	}
	if r.Flags&wire.FlagNoGet == 0 {
		for _, v := range r.IOV[:r.Count] {
			payload = append(payload, mem.Bytes(v.Addr, int(v.Len))...)
		}
		return payload
	}
	link := p.h.links.At(req.Link)
	path, _ := link.Ready()
	for at := uint64(0); at < r.Length; {
		before := len(p.out)
		n := min(r.Length-at, eagerMax)
		if p.h.pr.Fragment(&path.Path, req, at, n) != nil {
			continue
		}
		payload = append(payload, p.out[before].payload...)
		p.out = p.out[:before]
		at += n
	}
	return payload
}

// answer has the peer acknowledge one message, by chance with an error.
func (p *peer) answer() {
	i := p.h.r.IntN(len(p.answers))
	id := p.answers[i]
	p.answers = append(p.answers[:i], p.answers[i+1:]...)
	status := fi.Success
	req, known := p.h.s.Requests().Lookup(id)
	if !known {
		p.h.t.Fatal("a request has ended before its answer")
	}
	if op := p.h.ops[req.Context]; op != nil { // else one that has completed before
		op.answered = true
		if op.refused = p.h.r.IntN(8) == 0; op.refused {
			status = fi.ENOMEM
		}
	}
	p.h.on[wire.AMAck](p.src, id, wire.PutAck(make([]byte, 8), status), nil)
}

// newHost makes an endpoint with peers.
func newHost(t *testing.T, w way, seed uint64) *host {
	t.Helper()
	h := &host{t: t, r: rand.New(rand.NewPCG(seed, 7)), way: w, ops: map[uint64]*operation{}}
	vector, err := av.Open(&fi.AVAttr{}, av.Options{
		Owner: h, Format: fi.AddrStr, Capacity: 16, Limit: av.MaxLines, Reach: func(names.Name) error { return nil },
		Here: h.Here, Closed: func() {},
	})
	if err != nil {
		t.Fatal(err)
	}
	block, _, err := stats.OpenEndpoint("", "", false, nil)
	if err != nil {
		t.Fatal(err)
	}
	cfg := config.Default()
	cfg.EagerSize, cfg.ConnectTimeout = eagerMax, time.Hour
	h.counts = tally.On(block, stripesOf+1)
	h.counts.Fill(&h.table)
	h.table.InjectMax, h.table.EagerMax = injectMax, eagerMax
	h.links.Init(h, cfg)
	h.s.Init(h, Parts{
		Config: cfg, Links: &h.links, Pendings: &h.pendings, Accesses: new(pages.Counter), Counts: &h.counts,
	})
	h.pr.Init(&h.s, h)
	if err := h.links.Open(&h.table, vector, false); err != nil {
		t.Fatal(err)
	}
	h.links.Add(&wireOf{h: h}, rkey.Device{})
	if err := h.s.Open(&Resources{
		Hot: &h.table, Stripes: stripe.NewSet(make([]hot.Stripe, stripesOf), false), PerStripe: perStripe,
		InjectMax: injectMax, Lossy: w.lossy,
	}); err != nil {
		t.Fatal(err)
	}
	h.links.Fill(&h.table)
	h.s.Fill(&h.table)
	h.on = h.pr.Handlers()
	t.Cleanup(func() {
		h.s.Unregister()
		h.s.Close()
		h.links.Close()
		h.links.Free()
		_ = vector.Close()
	})
	for i := range peersOf {
		name := names.New(netip.AddrFrom4([4]byte{10, 0, 0, 1}), uint16(i+1))
		if n, err := vector.InsertNames([]string{name.String()}, &av.Insertion{}); n != 1 {
			t.Fatal(err)
		}
		p := &peer{h: h, src: hw.Source(i), at: peers.Address{Name: name}.Raw()}
		h.peers = append(h.peers, p)
		l, err := h.links.Of(fi.Addr(i))
		if err != nil {
			t.Fatal(err)
		}
		p.link = l
		l.Release()
	}
	return h
}
