package coll

import (
	"errors"
	"slices"
	"time"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/config"
	"github.com/weft-fabric/weft/internal/congestion"
	"github.com/weft-fabric/weft/internal/exchange"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/internal/mem"
	"github.com/weft-fabric/weft/internal/pending"
	"github.com/weft-fabric/weft/provider/collective"
	"github.com/weft-fabric/weft/provider/internal/wire"
)

// exchanges are the all-to-alls whose order package exchange chooses: chunks go as active messages with
// their payload, and the receiver's words come back. The engine decides under the
// progress lease, once for each chunk; the transport's flows carry the bytes.
//
// What one member has for another goes in fragments of a chunk, each of which says
// which bytes it has. The first chunks may come before this member has begun the operation;
// they are kept as the messages of steps are. There are two for each member at most:
// a sender goes on when it has an answer.
//
// All belongs to the holder of the progress lease.
type exchanges struct {
	c       *Protocol // immutable
	list    []*collOp // under way
	spare   *collCopy // free
	copied  int64     // by puts and gets in this thread, since it began to serve an operation
	key     [wire.CollKey]byte
	beside  besides
	lens    [2][]int64 // of what a member gives and gets, by peer, while an operation begins
	streams streams

	unflushed pending.List[*collCopy] // puts whose flushes wait for room
}

// exchangeChunk is the most bytes of a chunk, exchangeShort those of a slice that goes at once and
// without an answer, and exchangeLong those of a slice from which on an all-to-all of equal slices
// is worth an answer.
const (
	exchangeChunk = 64 << 10
	exchangeShort = 4 << 10
	exchangeLong  = 16 << 10
)

// collExchange is the part of an operation that an engine orders. It belongs to the lease holder
// from the operation's start on.
type collExchange struct {
	c       *Protocol // set when an operation begins
	engine  *exchange.Engine
	peers   exchangePeers
	given   []byte
	inPlace bool // what is given is what got holds at first, copied to scratch memory
	got     []byte
	ownIn   collective.Piece    // of what this member has for itself, in given
	ownOut  collective.Piece    // and in got
	ready   pending.List[int32] // peers with pending chunks
	empties pending.List[int32] // peers: the empty slices to them were chosen and are not sent
	pieces  pending.List[pendingPiece]
	more    bool                // the engine has to be asked again
	flying  int                 // puts and gets that have not ended
	fetches pending.List[int32] // peers with chunks to be fetched
	seen    exchange.Report
	besides []beside        // the other members of this host; immutable
	uses    []exchange.Use  // theirs, in that order
	readAt  congestion.Time // when they were read
	used    exchange.Use    // as it was last written
	began   congestion.Time
	ended   congestion.Time // of the operation before, 0: there was none
}

// pendingChunks are the chunks of a peer that were chosen and are not sent yet, or that may be fetched and are
// not yet. They follow each other.
type pendingChunks struct {
	head    exchange.Chunk          // of the first one, from its first byte that has not been sent
	ends    [exchange.Deepest]int64 // of the chunks
	n       int
	in      bool // the peer is in ready, or in fetches
	full    bool // a piece waits for room
	delayed delayed
}

// exchangeConfig is what the variables say of the order.
func exchangeConfig(c *config.Config, peers int) (exchange.Config, error) {
	policy, err := exchange.ParsePolicy(c.SchedPolicy)
	cfg := exchange.DefaultConfig(peers)
	cfg.Policy, cfg.Chunk, cfg.Short = policy, exchangeChunk, exchangeShort
	cfg.Threshold, cfg.Factor, cfg.Most = c.SchedThreshold, c.SchedFactor, c.SchedMost
	cfg.Window, cfg.Backoff, cfg.Percent = c.SchedWindow, c.SchedBackoff, c.PercentBW
	return cfg, err
}

// exchanger returns an engine with its lists for one operation, of one that has ended if
// there is one: it knows the paths. The caller has c.mu.
func (g *Group) exchanger() (*collExchange, error) {
	if x := g.engines.take(); x != nil {
		return x, nil
	}
	n := len(g.members)
	cfg, err := exchangeConfig(g.c.cfg, n-1)
	if err != nil {
		return nil, log.Reject(log.EPData, fi.EINVAL, "alltoall: %v", err)
	}
	if g.ways.relays {
		cfg.Piece, cfg.Store, cfg.Always = relayPiece, g.c.relayStore(), g.c.always
	}
	x := &collExchange{peers: exchangePeers{slots: make([]int32, n-1)}}
	cfg.Seen = func(peer int) (queue, dev time.Duration, ok bool) { return x.row(g, peer) }
	if x.engine, err = exchange.New(cfg); err != nil {
		return nil, log.Reject(log.EPData, fi.EINVAL, "alltoall: %v", err)
	}
	return x, nil
}

// peerOf is the engine's number of a rank, and rankOf the rank of such a number.
func (g *Group) peerOf(rank int) int {
	return (rank - g.rank - 1 + len(g.members)) % len(g.members)
}

func (g *Group) rankOf(peer int) int { return (g.rank + 1 + peer) % len(g.members) }

// beginExchange begins the part of an operation that an engine orders.
func (xs *exchanges) begin(o *collOp) {
	g, x := o.group, o.exchange
	if x.c == nil {
		x.c = xs.c
		x.share(g)
	}
	if x.inPlace {
		copy(o.scratch, x.got)
		x.given = o.scratch
	}
	copy(x.got[x.ownOut.Off:][:x.ownOut.Len], x.given[x.ownIn.Off:])
	x.ready, x.empties, x.pieces, x.seen = x.ready[:0], x.empties[:0], x.pieces[:0], exchange.Report{}
	x.fetches = x.fetches[:0]
	xs.list = append(xs.list, o)
	o.advancing = true
	out, in := xs.lengths(g, x)
	x.began = xs.refresh(o)
	x.engine.Start(x.began, out, in)
	xs.offer(o)
	for p := range len(g.members) - 1 {
		m := &g.members[g.rankOf(p)]
		for h := m.takeEarly(o.seq); h != nil; h = m.takeEarly(o.seq) {
			xs.takeEarly(o, m, h)
		}
		if (m.left || m.gone) && x.engine.Needs(p) {
			xs.c.fail(o, fi.ECONNRESET)
		}
	}
	xs.goOn(o)
}

// takeEarly takes in a message that came before the operation began here.
func (xs *exchanges) takeEarly(o *collOp, m *collMember, h *earlyStep) {
	defer xs.c.freeEarly(h)
	switch {
	case o.status != fi.Success:
	case !h.kind.ordered():
		xs.c.unlike(o, &h.head.CollStep)
	case h.kind == earlyTarget:
		xs.takeTarget(o, m, &h.target)
	case h.kind == earlyWord:
		xs.takeWord(o, m, &wire.CollWord{CollStep: h.head.CollStep, Word: h.word})
	case h.kind == earlyGrant:
		xs.takeGrant(o, m, &wire.CollGrant{CollStep: h.head.CollStep, Part: h.part})
	default:
		payload := []byte(nil)
		if h.payload != 0 {
			payload = mem.Bytes(h.payload, h.head.Length)
		}
		xs.takeChunk(o, m, &wire.CollChunk{CollStep: h.head.CollStep, Part: h.part}, payload)
	}
	if h.kind == earlyRTS {
		xs.c.long.refuse(m, h.head.Request, o.status)
	}
}

// unlike fails an operation that another member was called with in another way.
func (c *Protocol) unlike(o *collOp, h *wire.CollStep) {
	o.group.warn("operation %d is of kind %d here and %d at rank %d, or goes in another way there",
		o.seq, o.kind, h.Kind, h.Rank)
	c.fail(o, fi.EINVAL)
}

// onChunk is a fragment of a chunk.
func (xs *exchanges) onChunk(src hw.Source, id uint64, head, payload []byte) {
	var h wire.CollChunk
	if !h.Parse(head) || int64(len(payload)) > h.Part.Length || len(payload) == 0 && h.Part.Total != 0 {
		xs.c.malformed(src, "chunk of %d bytes with %d does not parse", len(head), len(payload))
		return
	}
	g, m := xs.c.member(src, id, h.Rank, "chunk")
	if m == nil {
		return
	}
	early := earlyStep{kind: earlyChunk, part: h.Part}
	early.head = wire.CollLong{CollStep: h.CollStep, Length: uint64(len(payload))}
	if o := xs.begun(g, m, &early, payload); o != nil {
		xs.takeChunk(o, m, &h, payload)
		xs.goOn(o)
	}
}

// unexpected answers bytes for an operation that has ended here: failed, which the sender knows, or without bytes
// for one that expects some.
func (xs *exchanges) unexpected(m *collMember, seq uint32) {
	note := wire.CollNote{Seq: seq, Status: fi.ETRUNC}
	xs.say(m, note.Put(xs.c.head[:]))
}

// takeChunk takes in a fragment: its bytes are in place when the engine knows of them.
func (xs *exchanges) takeChunk(o *collOp, m *collMember, h *wire.CollChunk, payload []byte) {
	x, part, peer := o.exchange, &h.Part, o.group.peerOf(int(h.Rank))
	if to := x.peers.out(peer); xs.expected(o, &h.CollStep, part) && xs.next(o, m, peer, part, int64(len(payload))) {
		copy(x.got[to.Off+uint64(part.Offset):][:len(payload)], payload)
		x.arrived(o, peer, to.Len)
	}
}

// expected reports whether a chunk is of the operation that goes on here, and of as many bytes as this member has room
// for. It fails the operation if members do not agree.
func (xs *exchanges) expected(o *collOp, h *wire.CollStep, part *exchange.Chunk) bool {
	x, peer := o.exchange, o.group.peerOf(int(h.Rank))
	to := x.peers.out(peer)
	switch {
	case o.status != fi.Success:
	case h.Kind != o.kind:
		xs.c.unlike(o, h)
	case part.Total != int64(to.Len):
		o.group.warn("operation %d: rank %d sends %d bytes, expected %d", o.seq, h.Rank, part.Total, to.Len)
		xs.c.fail(o, fi.ETRUNC)
	case x.peers.none(peer):
		o.group.warn("operation %d: rank %d expects bytes of this one, which has none for it", o.seq, h.Rank)
		xs.c.fail(o, fi.ETRUNC)
	default:
		return true
	}
	return false
}

// next has the engine know of the first n bytes of a part of a chunk. It returns false if they are not the next, which
// drops them.
func (xs *exchanges) next(o *collOp, m *collMember, peer int, part *exchange.Chunk, n int64) bool {
	ok := o.exchange.engine.Arrived(xs.refresh(o), peer, part, part.Offset, n, n == part.Length)
	if !ok {
		xs.c.malformed(m.src, "chunk of %d bytes at %d of %d, which are not the next",
			n, part.Offset, part.Total)
	}
	return ok
}

// arrived counts a peer if bytes that are in place now were the last that it had for this member, of so many.
func (x *collExchange) arrived(o *collOp, peer int, of uint64) {
	if of != 0 && x.engine.Whole(peer) {
		o.arrivals.arrived()
	}
}

// onWord is what a receiver says.
func (xs *exchanges) onWord(src hw.Source, id uint64, head []byte) {
	var h wire.CollWord
	if !h.Parse(head) {
		xs.c.malformed(src, "word of %d bytes does not parse", len(head))
		return
	}
	g, m := xs.c.member(src, id, h.Rank, "word")
	if m == nil {
		return
	}
	switch o := g.runs.under[h.Seq]; {
	case o == nil && !g.runs.over(h.Seq) && !h.Word.Unasked():
		xs.c.malformed(src, "word about %d bytes of operation %d, which has not begun", h.Word.Got, h.Seq)
		return
	case o != nil && (o.exchange == nil || h.Kind != o.kind):
		xs.c.malformed(src, "word about operation %d, which is of another kind here", h.Seq)
		return
	}
	// A receiver with room invites a member that has yet to begin.
	early := earlyStep{kind: earlyWord, head: wire.CollLong{CollStep: h.CollStep}, word: h.Word}
	if o := xs.begun(g, m, &early, nil); o != nil {
		xs.takeWord(o, m, &h)
		xs.goOn(o)
	}
}

// takeWord takes in what a receiver says.
func (xs *exchanges) takeWord(o *collOp, m *collMember, h *wire.CollWord) {
	if h.Kind != o.kind || !o.exchange.engine.OnWord(xs.refresh(o), o.group.peerOf(int(h.Rank)), h.Word) {
		xs.c.malformed(m.src, "word about %d bytes of operation %d, which were not sent", h.Word.Got, h.Seq)
	}
}

// goOn sends what the engine says, as far as there is room, and ends the operation if that
// was all. It ends what set advancing.
func (xs *exchanges) goOn(o *collOp) {
	x := o.exchange
	xs.copied = 0
	for x.more = true; x.more && o.status == fi.Success; {
		x.more = false
		xs.fetchAll(o)
		xs.choose(o)
		xs.sendChunks(o)
		xs.sendPieces(o)
	}
	o.advancing = false
	x.count(xs.c.ep.Stats())
	xs.publish(xs.c.ep.Now())
	if o.status != fi.Success || x.sent() && x.flying == 0 && x.engine.Done() {
		xs.c.end(o)
	}
}

// sent reports whether nothing that was chosen, or is to be fetched, waits for room.
func (x *collExchange) sent() bool {
	return len(x.ready)+len(x.empties)+len(x.pieces)+len(x.fetches) == 0
}

// choose takes what the engine says is to be sent, and sends what is short.
func (xs *exchanges) choose(o *collOp) {
	g, x, now := o.group, o.exchange, xs.c.ep.Now()
	for a, ok := x.engine.Next(now); ok && o.status == fi.Success; a, ok = x.engine.Next(now) {
		m := &g.members[g.rankOf(a.Peer)]
		switch a.Kind {
		case exchange.SendChunk:
			x.add(a.Peer, &a.Head)
		case exchange.SendPiece:
			x.pieces = append(x.pieces, pendingPiece{action: a})
		case exchange.SendNote:
			xs.say(m, (&wire.CollRelay{CollStep: o.head(), Note: a.Note}).Put(xs.c.head[:]))
		default:
			xs.say(m, (&wire.CollWord{CollStep: o.head(), Word: a.Word}).Put(xs.c.head[:]))
		}
	}
}

// say sends a word or a note about relays.
func (xs *exchanges) say(m *collMember, head []byte) { xs.c.control(m, wire.AMCollNote, m.id, head) }

// add keeps a chunk until it is sent.
func (x *collExchange) add(peer int, h *exchange.Chunk) {
	if h.Total == 0 {
		x.empties = append(x.empties, int32(peer))
		return
	}
	p := &x.peers.at(peer).pending
	p.add(h)
	x.ready = p.list(int32(peer), x.ready)
}

// sendChunks sends pending chunks, as far as there is room for each peer.
func (xs *exchanges) sendChunks(o *collOp) {
	x := o.exchange
	x.empties.Step(func(peer *int32) bool { return xs.sendTo(o, int(*peer), &pendingChunks{n: 1}) })
	x.ready.Step(func(peer *int32) bool {
		p := &x.peers.at(int(*peer)).pending
		p.in = !xs.sendTo(o, int(*peer), p)
		return !p.in
	})
}

// sendTo sends the pending chunks of a peer, as far as there is room, and reports whether that was all of them.
func (xs *exchanges) sendTo(o *collOp, peer int, p *pendingChunks) bool {
	err := error(nil)
	for p.n != 0 && err == nil && o.status == fi.Success {
		err = xs.sendPart(o, peer, p)
	}
	if err != nil && !errors.Is(err, fi.EAGAIN) {
		xs.c.fail(o, fi.ErrnoOf(err))
	}
	return p.n == 0
}

// sendPart sends a fragment of the first pending chunk of a peer.
func (xs *exchanges) sendPart(o *collOp, peer int, p *pendingChunks) error {
	g, x := o.group, o.exchange
	m := &g.members[g.rankOf(peer)]
	if m.dead {
		return fi.ECONNRESET
	}
	if p.delayed != 0 && !xs.streams.checks {
		return fi.EAGAIN
	}
	path, err := m.peer.Connect()
	if err != nil {
		return err
	}
	over := path.Over()
	over.Notify()
	p.head.Length = p.ends[0] - p.head.Offset
	switch q := x.peers.at(peer); {
	case p.head.Total > exchangeShort && g.ways.gets && q.region != nil:
		xs.grant(o, m, peer, p)
		return nil
	case p.head.Total > exchangeShort && g.ways.puts && q.target.transport == over && !q.refused:
		n, err := xs.copy(o, path, peer, &p.head)
		p.sent(n)
		return err
	case g.ways.puts && q.copies != nil:
		return fi.EAGAIN // what was put before is counted before
	}
	if p.head.Total > exchangeShort && xs.streams.delays(&p.delayed, xs.c.ep.Now(), path) {
		return fi.EAGAIN
	}
	n := min(p.head.Length, int64(over.MaxAMBcopy))
	h := wire.CollChunk{CollStep: o.head(), Part: p.head}
	data := []byte(nil)
	if n != 0 {
		in := x.peers.at(peer).in
		data = x.given[in.Off:][:in.Len][p.head.Offset:][:n]
	}
	if err := xs.c.ep.Post(path, wire.AMCollStep, m.id, h.Put(xs.c.head[:]), data); err != nil {
		return err
	}
	p.sent(n)
	return nil
}

// pumpExchanges goes on with what waited for room or time.
func (xs *exchanges) pump() {
	if len(xs.list) == 0 {
		return
	}
	now := xs.c.ep.Now()
	xs.streams.pump(now)
	xs.publish(now)
	unflushed := xs.unflushed
	xs.unflushed = nil
	for _, t := range unflushed {
		t.flushAgain()
	}
	for _, o := range slices.Clone(xs.list) {
		x := o.exchange
		if o.status != fi.Success {
			continue // it waits for the ends of puts and gets
		}
		at, timed := x.engine.Wake()
		if timed = timed && at <= now; !timed && x.sent() {
			continue
		}
		o.advancing = true
		if timed {
			x.engine.Tick(xs.refresh(o))
		}
		xs.goOn(o)
	}
}

// timed reports whether an exchange waits for room or time.
func (xs *exchanges) timed() bool {
	if len(xs.unflushed) != 0 {
		return true
	}
	for _, o := range xs.list {
		if o.status != fi.Success {
			continue
		}
		if _, timed := o.exchange.engine.Wake(); timed || !o.exchange.sent() {
			return true
		}
	}
	return false
}

// dropExchange ends the engine's part of an operation, and keeps what it has learnt.
func (xs *exchanges) drop(o *collOp) {
	x, g := o.exchange, o.group
	if x == nil {
		return
	}
	o.exchange = nil
	if xs.list = slices.DeleteFunc(xs.list, func(p *collOp) bool { return p == o }); len(xs.list) == 0 {
		xs.streams.pumped = 0
	}
	xs.publish(xs.c.ep.Now())
	x.stop()
	xs.dropCopies(x)
	x.given, x.got, x.inPlace = nil, nil, false
	xs.c.mu.Lock()
	if o.status == fi.Success { // else it does not know what has come of its chunks
		x.ended = xs.c.ep.Now()
		g.engines.completed(x)
	} else {
		g.engines.failed(x)
	}
	xs.c.mu.Unlock()
}
