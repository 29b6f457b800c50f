package exchange

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/weft-fabric/weft/internal/congestion"
)

// net is a group of members that exchange slices over a network that takes and
// delivers bytes when chance says: a chunk arrives in pieces, words overtake chunks of
// other pairs, and what is to be sent waits for room. Each pair's messages stay in order.
type net struct {
	t interface {
		Fatalf(format string, args ...any)
	}
	r       *rand.Rand
	what    string
	now     congestion.Time
	members []*member
	pairs   map[[2]int][]message // by sender and receiver
	order   [][2]int             // pairs that have messages
	forge   bool
	idle    int // timers that ran since something was sent
	slow    int // one of so many paths is slow, 0: none
	hops    int // pieces that were sent to relays
	onward  int // and that relays have sent to their targets
	each    int // members of a host, which share its links; 0: one

	// fault changes what a member sends, and returns how often it does; nil: nothing is wrong.
	// With leak relays keep the places of what they have passed on.
	fault func(msg *message) int
	leak  bool
}

type member struct {
	e         *Engine
	in, out   [][]byte // by rank
	want      [][]byte // what out is to hold
	blocked   []message
	dead      bool
	completed bool
	begun     bool
	slow      []bool // paths, by peer
	credited  []bool // ranks that have a credit and have not completed a chunk since
}

// message is a part of a chunk, or a word.
type message struct {
	from, to int
	kind     Kind
	w        Word
	note     Note
	piece    Piece
	c        Chunk
	at       int64  // bytes of the chunk that have arrived
	data     []byte // of the chunk: the sender's, or a copy
}

// passed reports whether a message is a piece that a relay passes on.
func (m *message) passed() bool { return m.kind == SendPiece && !m.piece.Hop && m.piece.Third != Own }

// peerOf is the number of a rank at another, and rankOf the other way round.
func (n *net) peerOf(rank, other int) int {
	return (other - rank - 1 + len(n.members)) % len(n.members)
}
func (n *net) rankOf(rank, peer int) int { return (rank + 1 + peer) % len(n.members) }

// newNet makes a group whose slices are of random lengths up to most.
func newNet(t interface {
	Fatalf(format string, args ...any)
}, r *rand.Rand, size int, most int64, cfg Config) *net {
	n := &net{t: t, r: r, now: 1000, members: make([]*member, size), pairs: map[[2]int][]message{}}
	n.what = fmt.Sprintf("%d ranks, %+v", size, cfg)
	cfg.Peers = size - 1
	for i := range n.members {
		e, err := New(cfg)
		if err != nil {
			t.Fatalf("%v", err)
		}
		n.members[i] = &member{e: e}
	}
	n.load(most)
	return n
}

// load makes the slices of an operation.
func (n *net) load(most int64) {
	n.hops, n.onward = 0, 0
	for i, m := range n.members {
		m.e.Stop()
		m.credited = make([]bool, len(n.members))
		m.in, m.out, m.completed, m.begun = make([][]byte, len(n.members)), make([][]byte, len(n.members)), false, false
		for j := range n.members {
			if length := n.r.Int64N(most + 1); i != j && n.r.IntN(4) != 0 {
				m.in[j] = make([]byte, length)
				for k := range m.in[j] {
					m.in[j][k] = byte(n.r.IntN(251))
				}
			}
		}
	}
	for i, m := range n.members {
		m.want = make([][]byte, len(n.members))
		for j, o := range n.members {
			m.out[j], m.want[j] = bytes.Repeat([]byte{0xEE}, len(o.in[i])), bytes.Clone(o.in[i])
		}
	}
}

// begin begins the operation at a member.
func (n *net) begin(rank int) {
	m := n.members[rank]
	out, in := make([]int64, len(n.members)-1), make([]int64, len(n.members)-1)
	for p := range out {
		other := n.rankOf(rank, p)
		out[p], in[p] = int64(len(m.in[other])), int64(len(m.out[other]))
	}
	m.begun = true
	m.e.Start(n.now, out, in)
	n.pump(rank)
}

// pump takes what a member has to send; some of it waits for room.
func (n *net) pump(rank int) {
	m := n.members[rank]
	if m.completed {
		return // nothing asks it any more
	}
	n.slowDown(m)
	for a, ok := m.e.Next(n.now); ok; a, ok = m.e.Next(n.now) {
		n.starves(m)
		msg := message{from: rank, to: n.rankOf(rank, a.Peer), kind: a.Kind, w: a.Word, c: a.Head}
		msg.note, msg.piece = a.Note, a.Piece
		if m.e.gone(int32(a.Peer)) {
			n.t.Fatalf("%s: something for a peer that is lost", n.what)
		}
		if a.Kind == SendChunk {
			n.limits(m, a)
			msg.data = m.in[msg.to][a.Head.Offset:][:a.Head.Length]
			if short := a.Head.Total <= m.e.cfg.Short; short || n.r.IntN(2) == 0 {
				msg.data = bytes.Clone(msg.data) // which is not acknowledged, or taken early
			}
		}
		if a.Kind == SendPiece {
			msg.data = n.pieceData(m, rank, &a)
		}
		times := 1
		if n.fault != nil {
			times = n.fault(&msg)
		}
		for range times {
			n.rules(m, &msg)
			m.blocked = append(m.blocked, msg)
		}
	}
	for len(m.blocked) != 0 && n.r.IntN(8) != 0 {
		n.post(m.blocked[0])
		m.blocked = m.blocked[1:]
	}
}

// rules checks what a member says of credits, and counts pieces for passedOn.
func (n *net) rules(m *member, msg *message) {
	switch {
	case msg.kind == SendWord && msg.w.Invite:
		if m.credited[msg.to] {
			n.t.Fatalf("%s: rank %d gets a second credit before it has used the first", n.what, msg.to)
		}
		m.credited[msg.to] = true
	case msg.kind == SendPiece && msg.piece.Hop:
		n.hops++
	case msg.passed():
		n.onward++
	}
}

// limits checks what the engine promises of a chunk.
func (n *net) limits(m *member, a Action) {
	p := m.e.known.find(int32(a.Peer))
	if p == nil {
		return
	}
	flying, length := Deepest, a.Head.Total
	if !p.heard || m.e.waiting.len() != 0 && !p.near {
		length = m.e.cfg.Chunk * 5 / 4
	}
	if !p.heard {
		flying = Early
	}
	if a.Head.Length > length || int(p.flying) > flying || p.lost {
		n.t.Fatalf("%s: chunk %+v with %d on their way, lost %v", n.what, a.Head, p.flying, p.lost)
	}
}

// starves checks the bound on waiting.
func (n *net) starves(m *member) {
	i := m.e.ages.head()
	bound := m.e.Patience() + 2*uint64(m.e.cfg.Peers) + Early
	if m.e.cfg.Percent < 100 {
		bound += 2 * uint64(m.e.cfg.Peers)
	}
	if i >= 0 && m.e.choices-m.e.at(i).since > bound {
		n.t.Fatalf("%s: peer %d waits for %d choices, at most %d", n.what, i, m.e.choices-m.e.at(i).since, bound)
	}
}

func (n *net) post(msg message) {
	if n.members[msg.from].dead {
		return
	}
	pair := [2]int{msg.from, msg.to}
	if len(n.pairs[pair]) == 0 {
		n.order = append(n.order, pair)
	}
	n.pairs[pair] = append(n.pairs[pair], msg)
}

// step does one thing, and returns whether there was anything to do.
func (n *net) step() bool {
	n.now += congestion.Time(n.r.Int64N(int64(200 * time.Microsecond)))
	if len(n.order) != 0 && n.r.IntN(8) != 0 {
		n.idle = 0
		n.deliver(n.r.IntN(len(n.order)))
		return true
	}
	moved := len(n.order) != 0
	for i, m := range n.members {
		if m.dead {
			continue
		}
		n.share(i)
		if at, ok := m.e.Wake(); ok && at <= n.now {
			m.e.Tick(n.now)
		}
		moved = moved || len(m.blocked) != 0
		n.pump(i)
		moved = moved || len(m.blocked)+len(n.order) != 0
		n.judge(i)
	}
	if moved {
		n.idle = 0
		return true
	}
	if n.idle++; n.idle > 1000 {
		return false // timers run and nothing comes of it
	}
	for _, m := range n.members { // nothing is on its way: time passes
		if at, ok := m.e.Wake(); ok && !m.dead && !m.completed {
			n.now = max(n.now, at)
			return true
		}
	}
	return false
}

// deliver brings the first message of a pair to its receiver, or a part of it.
func (n *net) deliver(at int) {
	pair := n.order[at]
	q := n.pairs[pair]
	msg := &q[0]
	m := n.members[msg.to]
	if !m.begun && !m.dead {
		return // it is kept until the receiver begins
	}
	from := n.peerOf(msg.to, msg.from)
	whole := true
	n.share(msg.to)
	switch {
	case m.dead:
	case m.completed:
		n.late(msg)
	case msg.kind == SendWord:
		n.takes(m.e.OnWord(n.now, from, msg.w), msg)
	case msg.kind == SendNote:
		n.takes(m.e.OnNote(n.now, from, msg.note), msg)
	case msg.kind == SendPiece:
		whole = n.partOfPiece(m, from, msg)
	default:
		whole = n.part(m, from, msg)
	}
	if n.forge && !m.dead && !m.completed && n.r.IntN(4) == 0 {
		n.lie(m, from)
		n.lieAboutRelays(m, from)
	}
	if whole {
		if n.pairs[pair] = q[1:]; len(q) == 1 {
			n.order[at] = n.order[len(n.order)-1]
			n.order = n.order[:len(n.order)-1]
		}
	}
	if !m.dead {
		n.pump(pair[1])
		n.judge(pair[1])
	}
}

// part delivers a part of a chunk, and returns whether it was the last one.
func (n *net) part(m *member, from int, msg *message) bool {
	length := msg.c.Length - msg.at
	if length > 1 {
		length = 1 + n.r.Int64N(length)
	}
	off, data := msg.c.Offset+msg.at, msg.data[msg.at:][:length]
	msg.at += length
	ends := msg.at == msg.c.Length
	n.takes(m.e.Arrived(n.now, from, &msg.c, off, length, ends), msg)
	copy(m.out[msg.from][off:], data)
	if ends {
		m.credited[msg.from] = false
	}
	return ends
}

func (n *net) takes(ok bool, msg *message) {
	if !ok {
		n.t.Fatalf("%s: refused %+v", n.what, *msg)
	}
}

// lie brings messages that no member has sent.
func (n *net) lie(m *member, from int) {
	p := m.e.at(int32(from))
	forged := m.e.report.Forged
	switch n.r.IntN(4) {
	case 0:
		m.e.OnWord(n.now, from, Word{Got: p.sent + 1, Invite: true})
	case 1:
		m.e.Arrived(n.now, from, &Chunk{Total: p.in.want, Offset: p.in.got + 1, Length: 1}, p.in.got+1, 1, true)
	case 2:
		m.e.Arrived(n.now, from, &Chunk{Total: p.in.want + 1, Offset: p.in.got, Length: 1}, p.in.got, 1, true)
	default:
		head := Chunk{Total: p.in.want, Offset: p.in.got, Length: 1}
		m.e.Arrived(n.now, from, &head, p.in.got, p.in.want-p.in.got+1, true)
	}
	if m.e.report.Forged != forged+1 {
		n.t.Fatalf("%s: a forged message was taken", n.what)
	}
	m.e.OnWord(n.now, from, Word{Got: p.acked, Invite: n.r.IntN(2) == 0, Busy: n.r.IntN(2) == 0}) // credits without end
}

// judge sees to what a member has when it says that it has completed.
func (n *net) judge(rank int) {
	m := n.members[rank]
	if m.completed || !m.begun || !m.e.Done() || len(m.blocked) != 0 {
		return
	}
	m.completed = true
	if m.e.Failed() {
		return
	}
	for i, got := range m.out {
		if i != rank && !bytes.Equal(got, m.want[i]) {
			n.t.Fatalf("%s: rank %d has not what rank %d gave", n.what, rank, i)
		}
	}
	for _, given := range m.in {
		for i := range given {
			given[i] ^= 0xFF // it is the caller's again
		}
	}
}

// run runs an operation to its end.
func (n *net) run() {
	for _, i := range n.r.Perm(len(n.members)) {
		n.begin(i)
		for range n.r.IntN(3) {
			n.step()
		}
	}
	for n.step() {
	}
	for i, m := range n.members {
		if n.judge(i); !m.completed && !m.dead {
			n.t.Fatalf("%s: rank %d never ends: %d of %d sent, %d received",
				n.what, i, m.e.outOver, m.e.cfg.Peers, m.e.in.over)
		}
	}
}

// die has a member die: some of what it has sent arrives, and then the others are
// informed.
func (n *net) die(rank int) {
	n.members[rank].dead = true
	for at := 0; at < len(n.order); {
		pair := n.order[at]
		if pair[0] != rank {
			at++
			continue
		}
		for range n.r.IntN(len(n.pairs[pair]) + 1) {
			if len(n.pairs[pair]) != 0 && !n.members[pair[1]].dead {
				n.deliver(at)
			}
			if at >= len(n.order) || n.order[at] != pair {
				break
			}
		}
		if at < len(n.order) && n.order[at] == pair {
			n.pairs[pair] = nil
			n.order[at] = n.order[len(n.order)-1]
			n.order = n.order[:len(n.order)-1]
		}
	}
	for i, m := range n.members {
		if i == rank || m.dead {
			continue
		}
		m.blocked = without(m.blocked, rank)
		m.e.Lost(n.now, n.peerOf(i, rank))
		n.pump(i)
		n.judge(i)
	}
}

// without drops the messages to a rank.
func without(list []message, to int) []message {
	var kept []message
	for _, msg := range list {
		if msg.to != to {
			kept = append(kept, msg)
		}
	}
	return kept
}
