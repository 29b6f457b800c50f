package netsim

import (
	"slices"
	"time"

	"github.com/weft-fabric/weft/internal/congestion"
	"github.com/weft-fabric/weft/internal/exchange"
)

// Fabric is hosts that exchange slices, with flows instead of packets, so that thousands of hosts are
// simulated in seconds. Each chunk is a flow: it begins at the sender's port, at the path if that is slow, and at
// the receiver's port as soon as its first bytes are there, and ends when all of these have served it, after
// delay. Ports drop nothing and mark nothing. Words take delay and none of a port's time.
type Fabric struct {
	// Took are the times of the members in the last operation, and Waited is the most choices of a member for which a
	// peer with bytes left had none on their way.
	Took   []time.Duration
	Waited uint64

	net     *Net
	links   FlowLinks
	paths   map[[2]int]*Port
	members []*fabricMember
	began   congestion.Time
	open    int // members that have not ended
	free    *flowChunk
}

// FlowLinks are what flows go through.
type FlowLinks struct {
	// Ports describes a host's link, up and down.
	Ports func(rank int) (up, down Port)
	// Path is the bytes per second of the path from one host to another, 0: no less than both ports.
	Path func(from, to int) float64
	// Delay is of each way.
	Delay time.Duration
}

// fabricMember is one host. Peers are in shifted order: peer 0 is the next host.
type fabricMember struct {
	fabric   *Fabric
	rank     int
	engine   *exchange.Engine
	up, down Port
	wake     congestion.Time
	ended    bool
	choices  uint64 // chunks with bytes that were sent
	partners []fabricPartner
}

// fabricPartner is a peer that is sent bytes to.
type fabricPartner struct {
	peer      int32
	sent, got int64  // bytes that were sent and acknowledged
	since     uint64 // choice at which they last were the same
}

// flowChunk is a chunk on its way, and then the word that answers it.
type flowChunk struct {
	exchange.Chunk
	from, to   *fabricMember
	peer, back int32 // the receiver's number at the sender, and the sender's at the receiver
	stage      flowStage
	ends       congestion.Time // when it has gone through what is before the receiver's port, after delay
	word       exchange.Word
	next       *flowChunk
}

// flowStage is what happens to a chunk next.
type flowStage uint8

const (
	flowReaches flowStage = iota // its first bytes reach the receiver's port
	flowArrives                  // its last bytes are at the receiver
	flowAnswers                  // a word is at the sender
)

// Fabric makes a group of hosts with engines of a configuration.
func (n *Net) Fabric(hosts int, cfg exchange.Config, links FlowLinks) *Fabric {
	f := &Fabric{net: n, links: links, paths: map[[2]int]*Port{}, Took: make([]time.Duration, hosts)}
	cfg.Peers = hosts - 1
	for rank := range hosts {
		e, err := exchange.New(cfg)
		if err != nil {
			panic(err) // a test's mistake
		}
		m := &fabricMember{fabric: f, rank: rank, engine: e}
		m.up, m.down = links.Ports(rank)
		f.members = append(f.members, m)
	}
	return f
}

// Exchange runs an all-to-all: given calls give with each partner of a host, once, and the bytes for it, which are as
// many as the partner has for the host. It returns the time of the last member, or limit, and what the ports and paths
// alone would take.
func (f *Fabric) Exchange(given func(rank int, give func(to int, bytes int64)), limit time.Duration) (
	took, bound time.Duration) {
	n := len(f.members)
	f.began, f.open, f.Waited = f.net.now, n, 0
	out, in := make([]int64, n-1), make([]int64, n-1)
	got := make([]int64, n) // in all, by target
	for _, m := range f.members {
		clear(out)
		total := int64(0)
		given(m.rank, func(to int, bytes int64) {
			out[(to-m.rank-1+n)%n] = bytes
			total += bytes
			got[to] += bytes
			bound = max(bound, f.alone(m.rank, to, bytes))
		})
		copy(in, out)
		m.begin(out, in)
		bound = max(bound, f.serving(m.up, total))
	}
	for _, m := range f.members {
		bound = max(bound, f.serving(m.down, got[m.rank]))
		f.Took[m.rank] = limit
	}
	for _, m := range f.members {
		m.pump()
	}
	for end := f.net.now.Add(limit); f.open > 0 && f.net.now < end; {
		f.net.Run(time.Millisecond)
	}
	for _, d := range f.Took {
		took = max(took, d)
	}
	return took, bound
}

// serving is what a port takes for so many bytes from the operation's beginning on.
func (f *Fabric) serving(p Port, bytes int64) time.Duration {
	_, ends := p.serve(f.began, bytes)
	return ends.Sub(f.began)
}

// alone is what the path between two hosts takes for so many bytes.
func (f *Fabric) alone(from, to int, bytes int64) time.Duration {
	rate := f.links.Path(from, to)
	if rate == 0 {
		return 0
	}
	return f.serving(Port{Rate: rate}, bytes)
}

// begin starts a member's engine.
func (m *fabricMember) begin(out, in []int64) {
	m.ended, m.choices, m.wake, m.partners = false, 0, 0, m.partners[:0]
	for p, bytes := range out {
		if bytes != 0 {
			m.partners = append(m.partners, fabricPartner{peer: int32(p)})
		}
	}
	m.engine.Start(m.fabric.net.now, out, in)
}

// pump sends what the engine says.
func (m *fabricMember) pump() {
	now := m.fabric.net.now
	for a, ok := m.engine.Next(now); ok; a, ok = m.engine.Next(now) {
		m.send(&a)
	}
	if m.engine.Done() {
		m.end()
		return
	}
	m.arm(m.engine.Wake())
}

// arm has the engine's timer run out at a time, if it does not run out before.
func (m *fabricMember) arm(at congestion.Time, ok bool) {
	if now := m.fabric.net.now; ok && (m.wake <= now || at < m.wake) {
		m.wake = max(at, now+1)
		m.fabric.net.at(m.wake, m, nil)
	}
}

// handle is the engine's timer.
func (m *fabricMember) handle(*Packet) {
	now := m.fabric.net.now
	if m.ended || now < m.wake {
		return
	}
	if at, ok := m.engine.Wake(); !ok || at > now {
		m.arm(at, ok)
		return
	}
	m.engine.Tick(now)
	m.pump()
}

// end notes that a member has everything and all others have what it gave.
func (m *fabricMember) end() {
	if f := m.fabric; !m.ended {
		m.ended = true
		f.open--
		f.Took[m.rank] = f.net.now.Sub(f.began)
	}
}

// partner is what is kept of a peer with bytes.
func (m *fabricMember) partner(peer int32) *fabricPartner {
	i, _ := slices.BinarySearchFunc(m.partners, peer, func(p fabricPartner, id int32) int { return int(p.peer - id) })
	return &m.partners[i]
}

// send sends a chunk or a word.
func (m *fabricMember) send(a *exchange.Action) {
	f, n := m.fabric, len(m.fabric.members)
	to, back := f.members[(m.rank+1+a.Peer)%n], int32(n-2-a.Peer)
	now := f.net.now
	switch {
	case a.Kind == exchange.SendWord:
		c := f.chunk()
		*c = flowChunk{from: to, to: m, peer: back, stage: flowAnswers, word: a.Word}
		f.net.at(now.Add(f.links.Delay), c, nil)
	default:
		p := m.partner(int32(a.Peer))
		if m.choices++; p.sent == p.got {
			f.Waited = max(f.Waited, m.choices-p.since)
		}
		p.sent += a.Head.Length
		begins, ends := m.up.serve(now, a.Head.Length)
		if path := f.slow(m.rank, to.rank); path != nil {
			_, through := path.serve(begins, a.Head.Length)
			ends = max(ends, through)
		}
		c := f.chunk()
		*c = flowChunk{Chunk: a.Head, from: m, to: to, peer: int32(a.Peer), back: back, ends: ends.Add(f.links.Delay)}
		f.net.at(begins.Add(f.links.Delay), c, nil)
	}
}

// slow is the path from one host to another, nil: it is no slower than their ports.
func (f *Fabric) slow(from, to int) *Port {
	rate := f.links.Path(from, to)
	if rate == 0 {
		return nil
	}
	p := f.paths[[2]int{from, to}]
	if p == nil {
		p = &Port{Rate: rate}
		f.paths[[2]int{from, to}] = p
	}
	return p
}

// chunk takes a chunk that is not used.
func (f *Fabric) chunk() *flowChunk {
	c := f.free
	if c == nil {
		return new(flowChunk)
	}
	f.free = c.next
	return c
}

// handle is the next stage of a chunk.
func (c *flowChunk) handle(*Packet) {
	m, f := c.to, c.to.fabric
	now := f.net.now
	switch c.stage {
	case flowReaches:
		_, ends := m.down.serve(now, c.Length)
		c.stage = flowArrives
		f.net.at(max(ends, c.ends), c, nil)
		return
	case flowArrives:
		m.engine.Arrived(now, int(c.back), &c.Chunk, c.Offset, c.Length, true)
	case flowAnswers:
		m = c.from
		m.acknowledged(c.peer, c.word.Got)
		m.engine.OnWord(now, int(c.peer), c.word)
	}
	c.next, f.free = f.free, c
	m.pump()
}

// acknowledged takes in how much of a peer's slice has arrived.
func (m *fabricMember) acknowledged(peer int32, got int64) {
	p := m.partner(peer)
	if p.got = got; p.sent == got {
		p.since = m.choices
	}
}
