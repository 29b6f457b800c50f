package links

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/dataplane"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/internal/probe"
	"github.com/weft-fabric/weft/internal/stats"
	"github.com/weft-fabric/weft/provider/internal/list"
	"github.com/weft-fabric/weft/provider/internal/peers"
	"github.com/weft-fabric/weft/provider/internal/rma"
)

// Link is what an endpoint knows of one peer, and the path by which it reaches the
// peer now.
type Link struct {
	peers.Use // threads that are not the lease holder hold the link while they use it
	rma.Link
	To  peers.Address // immutable
	raw []byte        // To as the interface takes it, immutable

	// path is the connected transport endpoint, nil before the first
	// connect. Written under mu, read by any thread; both sequentially
	// consistent.
	path atomic.Pointer[Path]

	// Transmits counts operations that wait for this peer's answer and that InFlight does not count: it is InFlight of
	// line, which is the data plane's of the link's number, or its own where the data plane has none; both pointers are
	// immutable.
	Transmits *atomic.Int64
	line      *dataplane.Link

	// lines counts the lines of the hot peer table whose Link names
	// it. Changed by any thread; sequentially consistent.
	lines atomic.Int32

	// stats is the peer's line of counters, nil while there is none; hidden says
	// that there is no room for one. The lease holder's.
	stats  *stats.PeerLine
	hidden bool

	Ways list.Tally // what lists have moved to and from the peer

	// Probed is what probes say of the path, nil: nothing. Stored by the prober, read
	// by the lease holder.
	Probed atomic.Pointer[probe.Peer]

	// mu serialises connecting. It is not on the data path: a connected
	// link never takes it.
	mu       sync.Mutex
	paths    uint32         // that it has had
	attempts peers.Attempts // to connect
	listed   bool           // an address of the address vector has led here
	around   []*Transport   // that do not lead to the peer
	filled   []uint32       // lines of the hot peer table that point at path
	backs    []*hot.Peer    // lines of senders with several contexts that do
	stall    stall          // of datagrams
}

// newLink makes the link with a number to a peer's interface, which the data plane counts for at line.
func newLink(number uint32, to peers.Address, line *dataplane.Link) *Link {
	return &Link{
		Link: rma.Link{Index: number}, To: to, raw: to.Raw(), line: line, Transmits: &line.InFlight,
	}
}

// Path is the link's, nil before the first connect. Any thread.
func (l *Link) Path() *Path { return l.path.Load() }

// Ready returns the link's path if it works. Any thread.
func (l *Link) Ready() (*Path, bool) {
	p := l.path.Load()
	if p == nil || p.Err() != nil {
		return nil, false
	}
	return p, true
}

// Set has the link lead over p from now on, as if no attempt to connect had been made; nil: it is not connected.
func (l *Link) Set(p *Path) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.attempts.Reset()
	l.path.Store(p)
}

// Leave forgets the endpoint of a path whose end was reported, and what else the path has of it.
func (l *Link) Leave(p *Path) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.path.Load() == p {
		l.path.Store(p.gone())
	}
}

// Awaited is how many operations wait for the peer's answer.
func (l *Link) Awaited() int64 { return l.InFlight.Load() + l.Transmits.Load() }

// GoesTo reports whether there is a link, and its path is that to the peer with a ring.
func (l *Link) GoesTo(ring uintptr) bool {
	if l == nil {
		return false
	}
	p := l.path.Load()
	return p != nil && p.Slots == ring
}

// LeadsTo reports whether the link's path is that to the peer with a ring, and the peer's end is not reported.
func (l *Link) LeadsTo(ring uintptr) bool {
	p := l.path.Load()
	return p != nil && p.Slots == ring && !p.Reported()
}

// Silent reports whether the link has not come up for a limit.
func (l *Link) Silent(limit time.Duration) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.attempts.Silent(time.Now(), limit)
}

// Number, Count and Ring make a link a receiver of notifications; see [note.Peer].
func (l *Link) Number() uint32 { return l.Index }

// Count adds to the operations that wait for the peer.
func (l *Link) Count(n int64) { l.InFlight.Add(n) }

// Ring is the address of the peer's inbound ring, if it is the peer's still.
func (l *Link) Ring() (slots uintptr, open bool) {
	p, ok := l.Ready()
	if !ok || p.Slots == 0 || p.former.Load() {
		return 0, false
	}
	return p.Slots, true
}

// renew resets a link for an address that has just been inserted and is used the first time: what became of the
// endpoint that had that address before does not count, be its own still in the address vector or not.
func (l *Link) renew() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.attempts.Reset()
	if p := l.path.Load(); p != nil && l.listed {
		p.former.Store(true)
	}
	l.listed = true
}

// detour logs why a peer is not reached over a transport and the next is tried, once
// for each transport until the link is up. The caller has l.mu.
func (l *Link) detour(p *Transport, err error) {
	if !slices.Contains(l.around, p) {
		l.around = append(l.around, p)
		log.Infof(log.EPCtrl, "%s is not reached over %s: %v", l.To, p.Attr.DeviceName, err)
	}
}

// retire takes a link out of use if only its name leads to it. A thread that holds
// it makes it lead to by more than that before it lets go, or does not.
func (l *Link) retire() bool {
	if p := l.path.Load(); p != nil && p.Err() == nil {
		return false // as long as the peer is there, so is the path to it
	}
	return l.Retire(func() bool { return l.lines.Load() == 0 && l.Awaited() == 0 })
}

// Sample shows the peer in its line of counters, which it gets once it is connected, and reports how many operations
// wait for it, and whether it is connected. The holder of the lease calls it.
func (l *Link) Sample(st *stats.Endpoint) (awaited uint64, ready bool) {
	p, ready := l.Ready()
	if l.stats == nil && ready && !l.hidden {
		l.stats = st.Peer(l.raw)
		l.hidden = l.stats == nil
	}
	awaited = uint64(max(l.Awaited(), 0))
	l.stats.Up(ready)
	l.stats.Set(stats.PeerInFlight, awaited)
	l.sampleWays()
	if ready {
		l.samplePath(p)
		l.Probed.Load().Sample(l.stats)
	}
	return awaited, ready
}

// Shown is the line that Sample writes, nil: there is no room for it. The holder of the lease calls it.
func (l *Link) Shown() *stats.PeerLine { return l.stats }

// sampleWays shows which ways elements of lists have taken to the peer.
func (l *Link) sampleWays() {
	moved, counted := l.Ways.Moved()
	if !counted && l.line.Listed.Load() == 0 {
		return
	}
	moved[list.WayIPC].Elements += l.line.Listed.Load()
	moved[list.WayIPC].Bytes += l.line.ListedBytes.Load()
	for w, word := range [...]int{stats.PeerTokenIPC, stats.PeerTokenRDMA, stats.PeerTokenMessage} {
		l.stats.Set(word, moved[w].Elements)
		l.stats.Set(word+1, moved[w].Bytes)
	}
}

// samplePath shows what the transport measures of the path to the peer.
func (l *Link) samplePath(p *Path) {
	r, ok := p.Endpoint.(hw.PathReporter)
	if !ok {
		return
	}
	if at, ok := r.Path(); ok {
		l.stats.Set(stats.PeerRTT, uint64(at.RTT))
		l.stats.Set(stats.PeerRTTVar, uint64(at.RTTVar))
		l.stats.Set(stats.PeerRTTMin, uint64(at.Min))
		l.stats.Set(stats.PeerRTTMax, uint64(at.Max))
		l.stats.Set(stats.PeerSamples, at.Samples)
		l.stats.Set(stats.PeerLostPackets, at.Lost)
		l.stats.Set(stats.PeerWindow, uint64(at.Window))
		l.stats.Set(stats.PeerAge, uint64(at.Age))
	}
}
