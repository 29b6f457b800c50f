package coll

import (
	"sync"
	"sync/atomic"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/config"
	"github.com/weft-fabric/weft/internal/exchange"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/internal/pending"
	"github.com/weft-fabric/weft/provider/internal/av"
	"github.com/weft-fabric/weft/provider/internal/wire"
)

// Protocol is what the holder of the progress lease has, and the protocol of the messages. Groups is for any
// thread, and leads to it by Endpoint.WithLease only.
type Protocol struct {
	*Groups
	ep Leased // immutable

	joins      joins
	blocked    []*collMember
	steps      *collStep // free
	spareEarly *earlyStep
	long       longSteps
	ordered    exchanges
	head       [wire.RTSBytes]byte // of a message that is sent
	// scratch; cleared before an operation ends: the collector would take a pointer to freed memory for a fault
	local  [1]hw.Segment
	remote [1]hw.RemoteSegment
}

// Groups are the groups that an endpoint has joined or is about to, and the operations posted to them. Any thread
// may call its methods.
type Groups struct {
	host Endpoint       // immutable
	cfg  *config.Config // immutable

	deviceMemory bool // descriptors may name it; immutable

	// mu guards what posting threads leave to the lease holder. It is on the
	// path of collective operations only, whose steps cost more.
	mu sync.Mutex
	// groups are by index; nil where there is none. Changed under the lease and mu, read under either.
	groups      []*Group
	posted      pending.List[*collOp]
	spare       []*collOp // the other array of posted
	free        *collOp
	persistent  map[*keptMemory]struct{} // of requests that are not freed
	outstanding int                      // operations that have not ended
	generation  uint32                   // of the last group
	// store is of what is relayed: set for the first engine that may, then the lease holder's.
	store  *exchange.Store
	always bool // set before the first operation: relays that are not faster are used, too

	// queued is the number of operations in posted, which progress reads without the lock. Written under mu, read
	// by the lease holder; sequentially consistent.
	queued atomic.Int32
}

// maxCollectives is how many operations of an endpoint may be under way.
const maxCollectives = 1024

// New prepares an endpoint for collective operations: the groups, and what the lease holder has of them.
func New(host Endpoint, leased Leased, s Settings) (*Groups, *Protocol) {
	g := &Groups{
		host: host, cfg: s.Config, deviceMemory: s.DeviceMemory, persistent: map[*keptMemory]struct{}{},
	}
	c := &Protocol{Groups: g, ep: leased}
	c.joins = joins{c: c, series: map[uint64]*series{}}
	c.long = longSteps{c: c, sends: map[uint64]*collStep{}, pulls: map[uint64]*collStep{}}
	c.ordered.c = c
	return g, c
}

// Handlers are those of the messages of collectives.
func (c *Protocol) Handlers() map[hw.AMID]hw.Handler {
	return map[hw.AMID]hw.Handler{
		wire.AMCollJoin: c.joins.onJoin,
		wire.AMCollStep: c.onStep,
		wire.AMCollRTS:  c.long.onRTS,
		wire.AMCollDone: c.long.onDone,
		wire.AMCollCTS:  c.long.onCTS,
		wire.AMCollFrag: c.long.onFrag,
		wire.AMCollNote: c.onNote,
	}
}

// Requested reports whether operations were posted. Any thread.
func (c *Groups) Requested() bool { return c.queued.Load() != 0 }

// Busy reports whether there is work that no ring shows.
func (c *Protocol) Busy() bool {
	return len(c.blocked) != 0 || c.long.busy() || c.queued.Load() != 0 || c.joins.unsent() ||
		c.joins.expires() || c.ordered.timed()
}

// Pump does that work, as far as it can be done.
func (c *Protocol) Pump() {
	if c.queued.Load() != 0 {
		c.startPosted()
	}
	if len(c.joins.list) != 0 {
		c.joins.pump()
	}
	c.pumpBlocked()
	c.long.pumpStreams()
	c.long.pumpReads()
	c.ordered.pump()
}

// startPosted begins the operations that were posted.
func (c *Protocol) startPosted() {
	c.mu.Lock()
	list := c.posted
	c.posted, c.spare = c.spare[:0], nil
	c.queued.Store(0)
	c.mu.Unlock()
	for i, o := range list {
		list[i] = nil
		c.start(o)
	}
	c.mu.Lock()
	c.spare = list[:0]
	c.mu.Unlock()
}

// group returns the group of a number, nil if there is none.
func (c *Groups) group(id uint64) *Group {
	i := uint32(id)
	if i >= uint32(len(c.groups)) || c.groups[i] == nil || c.groups[i].id != id {
		return nil
	}
	return c.groups[i]
}

// find returns the group of an address. The caller has c.mu.
func (c *Groups) find(addr fi.Addr) *Group {
	if addr&av.CollAddrKind != av.CollGroupAddr {
		return nil
	}
	i := uint32(addr) & (1<<groupIndexBits - 1)
	if i >= uint32(len(c.groups)) || c.groups[i] == nil || c.groups[i].address != addr {
		return nil
	}
	return c.groups[i]
}

// The address of a group has its index and as much of its generation as fits.
const groupIndexBits = 20

// enter gives a group an index. The caller has c.mu and the lease.
func (c *Groups) enter(g *Group) error {
	i := 0
	for i < len(c.groups) && c.groups[i] != nil {
		i++
	}
	if i == 1<<groupIndexBits {
		return fi.ENOSPC
	}
	if i == len(c.groups) {
		c.groups = append(c.groups, nil)
	}
	g.id = uint64(i)
	c.name(g)
	g.address = av.CollGroupAddr | fi.Addr(g.id>>32<<groupIndexBits|g.id&(1<<groupIndexBits-1))&^av.CollAddrKind
	c.groups[i] = g
	return nil
}

// name gives a group another number, by which the members name it. The caller has c.mu and the lease.
func (c *Groups) name(g *Group) {
	c.generation++
	g.id = uint64(c.generation)<<32 | g.id&(1<<32-1)
}

// member returns the group of a number and its member of a rank, which a message is from. g is nil if there is no such
// group (any more), which is no fault of the sender. m is nil, too, if the message is not from that member, which is
// reported; what names it.
func (c *Protocol) member(src hw.Source, id uint64, rank uint32, what string) (g *Group, m *collMember) {
	if g = c.group(id); g == nil {
		return nil, nil
	}
	if rank < uint32(len(g.members)) {
		if m = &g.members[rank]; m.joined && m.peer != nil && !m.gone && m.src == src {
			return g, m
		}
	}
	c.malformed(src, "%s of a group whose rank %d it is not", what, rank)
	return g, nil
}

// malformed reports a message that a peer should not have sent.
func (c *Protocol) malformed(src hw.Source, format string, args ...any) {
	c.ep.Malformed(src, "collective: "+format, args...)
}

// control sends a message with a head of at most control.HeadMax bytes to a member, now or when there is room.
func (c *Protocol) control(m *collMember, id hw.AMID, header uint64, head []byte) {
	if m.peer != nil && !m.dead {
		c.ep.Send(m.peer, id, header, head)
	}
}

// warn logs what went wrong with a group.
func (g *Group) warn(format string, args ...any) {
	about := []any{uint64(g.address), g.rank, len(g.members)}
	log.Warnf(log.EPData, "group %#x, rank %d of %d: "+format, append(about, args...)...)
}
