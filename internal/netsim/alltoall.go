package netsim

import (
	"time"

	"github.com/weft-fabric/weft/internal/congestion"
	"github.com/weft-fabric/weft/internal/exchange"
)

// Group is hosts that exchange slices, each with a flow to each other. The flows stay
// for further operations.
type Group struct {
	// Took are the times of the members in the last operation.
	Took []time.Duration

	net     *Net
	routes  func(from, to int) Route
	members []*groupMember
	open    int // that have not ended
	began   congestion.Time
	piece   int64 // bytes
	arrived int64 // bytes of chunks, in the last operation

	// refuses, if not nil, says that a relay's path to a target is known at the source to be no help: the relay is
	// not asked then.
	refuses func(source, relay, target int) bool
}

// groupMember is one host of a group. Peers are in shifted order: peer 0 is the next host.
type groupMember struct {
	group  *Group
	rank   int
	engine *exchange.Engine // of all operations that have no fixed order
	pairs  []*pairFlow      // to the peers
	wake   congestion.Time
	out    []int64
	in     []int64
	fixed  fixedOrder
	ended  bool
	beside []*groupMember  // the other members of its host
	readAt congestion.Time // when it last read what they do
}

// pairFlow carries one member's chunks to another, and back what the receiver says.
type pairFlow struct {
	from, to *groupMember
	peer     int // the receiver's number at the sender
	back     int // the sender's number at the receiver
	flow     *Flow
	heads    []load            // on their way, the oldest first
	at       int64             // bytes of the oldest that have arrived
	words    []exchange.Action // that the receiver has sent, words and notes
	taken    int               // of them
}

// load is a chunk on its way, or the piece of an action.
type load struct {
	exchange.Chunk
	piece *exchange.Action
}

// fixedOrder sends to so many peers at a time, in shifted order, and goes on when all of
// them have everything and all that it expects from as many has come.
type fixedOrder struct {
	width int
	next  int
	open  int
}

// Group makes a group of so many hosts. routes gives the way from one to another.
func (n *Net) Group(hosts int, cc congestion.Config, routes func(from, to int) Route) *Group {
	g := &Group{net: n, routes: routes, Took: make([]time.Duration, hosts)}
	for i := range hosts {
		g.members = append(g.members, &groupMember{group: g, rank: i})
	}
	for _, m := range g.members {
		for p := range hosts - 1 {
			to := g.members[(m.rank+1+p)%hosts]
			f := &pairFlow{from: m, to: to, peer: p, back: hosts - 2 - p}
			f.flow = n.Flow(cc, routes(m.rank, to.rank), routes(to.rank, m.rank), 0)
			f.flow.OnDelivered = f.delivered
			m.pairs = append(m.pairs, f)
		}
	}
	return g
}

// Engine gives all members engines of a configuration, and a store of so many bytes for relays, 0: none.
func (g *Group) Engine(cfg exchange.Config, relay int64) {
	cfg.Peers = len(g.members) - 1
	g.piece = cfg.Piece
	for _, m := range g.members {
		if relay > 0 {
			cfg.Store = exchange.NewStore(relay, cfg.Piece)
		}
		e, err := exchange.New(cfg)
		if err != nil {
			panic(err) // a test's mistake
		}
		m.engine = e
	}
}

// Hosts has the members of each host share its links: they know of each other what [exchange.Use] says, as it was up to
// useEvery ago. The engines are there.
func (g *Group) Hosts(of func(rank int) int) {
	for _, m := range g.members {
		m.beside = nil
		for p := range m.pairs {
			if other := g.members[(m.rank+1+p)%len(g.members)]; of(other.rank) == of(m.rank) {
				m.engine.Near(p)
				m.beside = append(m.beside, other)
			}
		}
	}
}

// useEvery is how often a member reads what the others of its host do.
const useEvery = 100 * time.Microsecond

// readUses reads it before an event.
func (m *groupMember) readUses() {
	now := m.group.net.now
	if len(m.beside) == 0 || now.Sub(m.readAt) < useEvery {
		return
	}
	m.readAt = now
	uses := make([]exchange.Use, len(m.beside))
	for i, other := range m.beside {
		uses[i] = other.engine.Use()
	}
	m.engine.Share(now, uses)
}

// Exchange runs an all-to-all: slice is what one has for another, in bytes. With a width
// the order is fixed, and so many peers are sent to at a time. It returns the time of the last
// member, or limit.
func (g *Group) Exchange(width int, slice func(from, to int) int64, limit time.Duration) time.Duration {
	n := len(g.members)
	g.open, g.began, g.arrived = n, g.net.now, 0
	for _, m := range g.members {
		m.ended = false
		m.out, m.in = make([]int64, n-1), make([]int64, n-1)
		for p := range n - 1 {
			other := (m.rank + 1 + p) % n
			m.out[p], m.in[p] = slice(m.rank, other), slice(other, m.rank)
			m.pairs[p].heads, m.pairs[p].words = m.pairs[p].heads[:0], m.pairs[p].words[:0]
			m.pairs[p].at, m.pairs[p].taken = 0, 0
		}
	}
	for _, m := range g.members {
		g.Took[m.rank] = limit
		m.fixed = fixedOrder{width: width}
		if width == 0 {
			m.readUses()
			m.engine.Start(g.net.now, m.out, m.in)
			m.pump()
		} else {
			m.block()
		}
	}
	end := g.net.now.Add(limit)
	for g.open > 0 && g.net.now < end {
		g.net.Run(100 * time.Microsecond)
	}
	worst := time.Duration(0)
	for _, t := range g.Took {
		worst = max(worst, t)
	}
	g.net.Run(2 * time.Millisecond) // what is on its way arrives
	return worst
}

// Reports returns what the engines say of the last operation.
func (g *Group) Reports() (all []exchange.Report) {
	for _, m := range g.members {
		all = append(all, m.engine.Report())
	}
	return all
}

// end notes that a member has everything and all others have what it gave.
func (m *groupMember) end() {
	if !m.ended {
		m.ended = true
		m.group.open--
		m.group.Took[m.rank] = m.group.net.now.Sub(m.group.began)
	}
}

// block begins the next block of a fixed order.
func (m *groupMember) block() {
	f := &m.fixed
	for f.open == 0 {
		n := min(f.width, len(m.pairs)-f.next)
		if n == 0 {
			m.end()
			return
		}
		for p := f.next; p < f.next+n; p++ {
			if m.in[len(m.pairs)-1-p] > m.pairs[len(m.pairs)-1-p].mirror().at {
				f.open++
			}
			if m.out[p] > 0 {
				f.open++
				m.pairs[p].send(exchange.Chunk{Total: m.out[p], Length: m.out[p]})
			}
		}
		f.next += n
	}
}

// mirror is the flow of the other direction.
func (f *pairFlow) mirror() *pairFlow { return f.to.pairs[f.back] }

// send sends a chunk.
func (f *pairFlow) send(c exchange.Chunk) {
	f.heads = append(f.heads, load{Chunk: c})
	f.flow.AddBytes(c.Length)
}

// delivered takes in a packet at the receiver.
func (f *pairFlow) delivered(now congestion.Time) {
	if len(f.heads) == 0 {
		return // of an operation that was cut off
	}
	c := &f.heads[0]
	n := min(f.flow.size, c.Length-f.at)
	f.at += n
	m := f.to
	ends := f.at == c.Length
	if c.piece == nil {
		m.group.arrived += n
	}
	switch {
	case c.piece != nil:
		f.arrivedPiece(now, c, n)
	case m.fixed.width == 0:
		m.readUses()
		m.engine.Arrived(now, f.back, &c.Chunk, c.Offset+f.at-n, n, ends)
	}
	if !ends {
		return
	}
	if m.fixed.width != 0 {
		f.answer(exchange.Action{Word: exchange.Word{Got: c.Total}})
		if p := len(m.pairs) - 1 - f.back; p < m.fixed.next { // its block has begun
			m.fixed.open--
			m.block()
		}
		return
	}
	f.heads, f.at = f.heads[1:], 0
	m.pump()
}

// wordSize is the bytes of a word on the wire.
const wordSize = 14 + 20 + 8 + 24 + 16 + 24

// answer sends a word back, and again until it has arrived: when it has been on its way for twice as long as the
// queues there take, as the timer of a connection has it.
func (f *pairFlow) answer(w exchange.Action) {
	f.words = append(f.words, w)
	f.resend(len(f.words), f.from.group.began)
}

func (f *pairFlow) resend(number int, operation congestion.Time) {
	g := f.from.group
	if f.taken >= number || g.began != operation {
		return
	}
	p := g.net.packet()
	p.Size, p.Number, p.Stamp = wordSize, uint64(number), operation
	route := g.routes(f.to.rank, f.from.rank)
	again := max(20*time.Millisecond, 2*route.takes(wordSize))
	g.net.send(p, route, f)
	g.net.At(g.net.now.Add(again), func() { f.resend(number, operation) })
}

// receive takes in words at the sender.
func (f *pairFlow) receive(p *Packet) {
	m, number := f.from, int(p.Number)
	if m.group.began != p.Stamp || number <= f.taken {
		return
	}
	for ; f.taken < number; f.taken++ {
		if m.fixed.width == 0 {
			m.readUses()
			f.heard(&f.words[f.taken])
		} else {
			m.fixed.open--
		}
	}
	if m.fixed.width == 0 {
		m.pump()
	} else {
		m.block()
	}
}

// pump sends what the engine says.
func (m *groupMember) pump() {
	now := m.group.net.now
	for a, ok := m.engine.Next(now); ok; a, ok = m.engine.Next(now) {
		if m.refused(&a) {
			continue
		}
		switch a.Kind {
		case exchange.SendChunk:
			m.pairs[a.Peer].send(a.Head)
		case exchange.SendPiece:
			m.pairs[a.Peer].sendPiece(&a)
		default:
			m.pairs[a.Peer].mirror().answer(a)
		}
	}
	if m.engine.Done() {
		m.end()
		return
	}
	if at, ok := m.engine.Wake(); ok && (m.wake <= now || at < m.wake) {
		m.wake = max(at, now+1)
		m.group.net.at(m.wake, m, nil)
	}
}

// handle is the engine's timer.
func (m *groupMember) handle(*Packet) {
	if m.ended || m.fixed.width != 0 || m.engine == nil || m.group.net.now < m.wake {
		return
	}
	m.readUses()
	m.engine.Tick(m.group.net.now)
	m.pump()
}

// Stranger sends packets that nothing holds back into a route: on for a while at a rate, and
// off for a while, both of random length.
type Stranger struct {
	// Rate is the bytes per second while it is on; On and Off are the mean times.
	Rate    int64
	On, Off time.Duration

	// Taken is the time that the stranger has been on, until now or to come.
	Times []struct{ From, To congestion.Time }

	net   *Net
	route Route
	until congestion.Time
}

// Stranger begins one at a random time.
func (n *Net) Stranger(s Stranger, route Route) *Stranger {
	s.net, s.route = n, route
	n.At(n.now.Add(n.gap(s.Off)), s.on)
	return &s
}

func (s *Stranger) on() {
	s.until = s.net.now.Add(s.net.gap(s.On))
	s.Times = append(s.Times, struct{ From, To congestion.Time }{s.net.now, s.until})
	s.handle(nil)
}

// handle sends one packet.
func (s *Stranger) handle(*Packet) {
	if s.net.now >= s.until {
		s.net.At(s.net.now.Add(s.net.gap(s.Off)), s.on)
		return
	}
	p := s.net.packet()
	p.Size = 1500
	s.net.send(p, s.route, sink{})
	s.net.at(s.net.now.Add(time.Duration(1500*float64(time.Second)/float64(s.Rate))), s, nil)
}

// sink drops what arrives.
type sink struct{}

func (sink) receive(*Packet) {}
