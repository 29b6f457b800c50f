package coll

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
	"unsafe"

	"github.com/weft-fabric/weft/cq"
	"github.com/weft-fabric/weft/eq"
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/config"
	"github.com/weft-fabric/weft/internal/congestion"
	"github.com/weft-fabric/weft/internal/mem"
	"github.com/weft-fabric/weft/provider/collective"
	"github.com/weft-fabric/weft/provider/names"
)

// mesh is a network of endpoints in one process, which chance delays: messages of a pair stay in order, those of
// different pairs overtake each other, there is no room now and then, and copies end some time after they were posted.
type mesh struct {
	buffers [][]byte // of operations, which know them by their addresses
	t       testing.TB
	r       *rand.Rand
	now     congestion.Time
	nodes   []*node
	keys    map[uint64]*meshRegion
	last    uint64 // of keys
	full    int    // one of so many posts finds no room, 0: none does
	still   bool   // nothing arrives
}

// node is an endpoint of a mesh.
type node struct {
	*mesh
	number, host         int
	cfg                  config.Config
	groups               *Groups
	protocol             *Protocol
	handlers             map[hw.AMID]hw.Handler
	transports           [2]*Transport // to the nodes of the host, and to others
	events               *eq.Queue
	inbox                [][]packet // by sender
	knows                []*node    // the others, until it is known that one is gone
	after                *node      // that the node has begun anew as
	flying               []func()   // ends of copies
	landing              []landing  // of puts of a device that have ended, in order
	ended                []ending
	early                map[uint64][]byte // payloads kept, by address
	kept                 int               // what is accounted for early messages, bytes
	malformed            int
	counts               map[int]uint64
	refuses              int   // gets of refused that succeed before one is refused; negative: all do
	refused              *node // nil: of all nodes
	notice               hw.Notice
	measured             hw.PathInfo // of each path; without samples: nothing
	unsent               int64       // bytes in each path's stream
	streamBusy           bool        // what is there is not known
	locked               bool        // a device takes no memory
	keeps                int         // keys that name no other region
	crammed              bool        // a device has no room for a flush
	leased, gone, closed bool        // closed: its transports are
	uses                 int         // of the endpoint
}

// packet is a message, or that its sender is gone.
type packet struct {
	id            hw.AMID
	header        uint64
	head, payload []byte
	lost          bool
}

// ending is the end of an operation.
type ending struct {
	context uint64
	status  fi.Errno
}

// newMesh makes a node for each entry of hosts, which says on which host it is.
func newMesh(t testing.TB, hosts []int, change func(*config.Config)) *mesh {
	t.Helper()
	m := &mesh{t: t, r: rand.New(rand.NewPCG(1, 41)), now: 1, keys: map[uint64]*meshRegion{}}
	for i, host := range hosts {
		m.nodes = append(m.nodes, m.newNode(i, host, len(hosts), change))
	}
	return m
}

// newNode makes a node that is to be one of so many.
func (m *mesh) newNode(i, host, nodes int, change func(*config.Config)) *node {
	n := &node{mesh: m, number: i, host: host, cfg: *config.Default(), inbox: make([][]packet, nodes),
		knows: make([]*node, nodes), early: map[uint64][]byte{}, counts: map[int]uint64{}, refuses: -1}
	if change != nil {
		change(&n.cfg)
	}
	const caps = hw.CapPutZcopy | hw.CapPutPlaced | hw.CapGetZcopy
	local := caps | hw.CapSameHost
	if n.cfg.UseCMA != config.No {
		local |= hw.CapPeerMemory
	}
	n.transports = [2]*Transport{
		{Caps: local, DeviceName: "memory"}, {Caps: caps | hw.CapDrops, DeviceName: "net"},
	}
	for _, p := range n.transports {
		p.Iface, p.MaxAMBcopy, p.Eager, p.Notify = meshIface{n: n}, 8<<10, 4<<10, func() {}
	}
	var err error
	if n.events, err = eq.Open(&fi.EQAttr{}, nil); err != nil {
		m.t.Fatal(err)
	}
	n.groups, n.protocol = New(n, meshLeased{n}, Settings{&n.cfg, false})
	n.handlers = n.protocol.Handlers()
	m.t.Cleanup(n.close)
	return n
}

// onHosts puts n nodes on hosts of their own, and onHost on one.
func onHosts(n int) []int {
	hosts := make([]int, n)
	for i := range hosts {
		hosts[i] = i
	}
	return hosts
}

func onHost(n int) []int { return make([]int, n) }

// close ends the node, whose groups are left by then or not.
func (n *node) close() {
	for _, g := range slices.Clone(n.groups.groups) {
		if g != nil {
			if err := g.Close(); err != nil {
				n.t.Errorf("node %d: close a group: %v", n.number, err)
			}
		}
	}
	if n.protocol.Close(); n.uses != 0 {
		n.t.Errorf("node %d: %d uses are left", n.number, n.uses)
	}
	if err := n.events.Close(); err != nil {
		n.t.Errorf("node %d: close its events: %v", n.number, err)
	}
}

// die has a node be gone: what it has sent arrives, then the others hear of it.
func (n *node) die() {
	n.gone = true
	for _, to := range n.nodes {
		if to != n {
			to.inbox[n.number] = append(to.inbox[n.number], packet{lost: true})
		}
	}
}

// step makes progress at one node: copies end, a few messages arrive, what waits goes on.
func (n *node) step() {
	if n.gone || n.leased {
		return
	}
	n.leased = true
	n.now += congestion.Time(1 + n.r.IntN(int(20*time.Microsecond)))
	for len(n.flying) != 0 && n.r.IntN(2) == 0 {
		end := n.flying[0]
		n.flying = n.flying[1:]
		end()
	}
	n.land()
	for range n.r.IntN(8) {
		if n.still {
			break
		}
		from := n.r.IntN(len(n.nodes))
		if len(n.inbox[from]) == 0 {
			continue
		}
		n.receive(from)
	}
	n.pump()
	n.leased = false
}

// receive takes in a node's next message.
func (n *node) receive(from int) {
	p := n.inbox[from][0]
	n.inbox[from] = n.inbox[from][1:]
	if p.lost {
		n.knows[from] = n.other(from).after
		n.protocol.SourceLost(hw.Source(from))
		n.protocol.PeerLost(uint32(from), fi.ECONNRESET)
		return
	}
	n.handlers[p.id](hw.Source(from), p.header, p.head, p.payload)
}

// pump goes on with what waits.
func (n *node) pump() {
	if n.protocol.Busy() || n.protocol.Requested() {
		n.protocol.Pump()
	}
}

// progress makes some at all nodes, in an order of chance.
func (m *mesh) progress() {
	for _, i := range m.r.Perm(len(m.nodes)) {
		m.nodes[i].step()
	}
}

// until makes progress until ok.
func (m *mesh) until(what string, ok func() bool) {
	m.t.Helper()
	for range 200_000 {
		if ok() {
			return
		}
		m.progress()
	}
	m.t.Fatalf("%s: not within 200,000 steps", what)
}

// The node as collective operations have it in any thread.

func (n *node) Enabled() bool         { return !n.gone }
func (n *node) Acquire() error        { n.uses++; return nil }
func (n *node) Release()              { n.uses-- }
func (n *node) Completes(uint64) bool { return true }
func (n *node) Notify()               { n.step() }
func (n *node) Progress()             { n.step() }

func (n *node) CountsAt(*cq.Counter) error { return nil }

func (n *node) Member(addr fi.Addr) (names.Name, Peer, error) {
	name := names.Name{Port: uint16(addr) + 1}
	if int(addr) == n.number {
		return name, nil, nil
	}
	return name, meshPeer{n, n.other(int(addr))}, nil
}

// other is a node as this one knows it.
func (n *node) other(i int) *node {
	if n.knows[i] == nil {
		n.knows[i] = n.nodes[i]
	}
	return n.knows[i]
}

func (n *node) WithLease(f func(*Protocol)) {
	if n.leased {
		n.t.Fatal("the lease is taken twice")
	}
	n.leased = true
	f(n.protocol)
	n.leased = false
}

// meshLeased is the node as they have it with the lease.
type meshLeased struct{ n *node }

func (l meshLeased) Now() congestion.Time     { return l.n.now }
func (l meshLeased) Transports() []*Transport { return l.n.transports[:] }
func (l meshLeased) Name() names.Name         { return names.Name{Port: 1, IP: [16]byte{byte(l.n.host + 1)}} }
func (l meshLeased) Closed() bool             { return l.n.closed }
func (l meshLeased) Stats() Counters          { return l }

func (l meshLeased) Rx(i int, v uint64)           { l.n.counts[i] += v }
func (l meshLeased) RxPeak(i, peak int, v uint64) { l.n.counts[i] = v }

func (l meshLeased) TransportOf(src hw.Source) *Transport { return l.n.transportTo(l.n.nodes[src]) }

func (n *node) transportTo(to *node) *Transport {
	if n.host == to.host {
		return n.transports[0]
	}
	return n.transports[1]
}

func (l meshLeased) IsFrom(src hw.Source, p Peer) bool { return uint32(src) == p.Number() }

func (l meshLeased) Post(p Path, id hw.AMID, header uint64, head, data []byte) error {
	to := p.(meshPath).to
	switch {
	case to.gone:
		return fi.ECONNRESET
	case len(data) > p.Over().MaxAMBcopy:
		return fi.EMSGSIZE
	case l.n.full != 0 && l.n.r.IntN(l.n.full) == 0:
		return fi.EAGAIN
	}
	to.inbox[l.n.number] = append(to.inbox[l.n.number],
		packet{id: id, header: header, head: bytes.Clone(head), payload: bytes.Clone(data)})
	return nil
}

func (l meshLeased) Send(to Peer, id hw.AMID, header uint64, head []byte) {
	l.Answer(hw.Source(to.Number()), id, header, head)
}

func (l meshLeased) Answer(src hw.Source, id hw.AMID, header uint64, head []byte) {
	if to := l.n.other(int(src)); !to.gone {
		to.inbox[l.n.number] = append(to.inbox[l.n.number], packet{id: id, header: header, head: bytes.Clone(head)})
	}
}

func (l meshLeased) Hold(payload []byte, cost int) (addr uint64, err error) {
	if len(payload) != 0 {
		b := bytes.Clone(payload)
		addr = mem.Address(b)
		l.n.early[addr] = b
	}
	l.n.kept += cost
	return addr, nil
}

func (l meshLeased) Unhold(addr uint64, n, cost int) {
	if addr != 0 {
		if len(l.n.early[addr]) != n {
			l.n.t.Errorf("%d bytes are given back of %d", n, len(l.n.early[addr]))
		}
		delete(l.n.early, addr)
	}
	l.n.kept -= cost
}

func (l meshLeased) Complete(context uint64, completes bool, status fi.Errno) {
	l.n.ended = append(l.n.ended, ending{context, status})
}

func (l meshLeased) Malformed(src hw.Source, format string, args ...any) { l.n.malformed++ }

// meshPeer is a node as another one reaches it.
type meshPeer struct{ from, to *node }

func (p meshPeer) Number() uint32 { return uint32(p.to.number) }
func (p meshPeer) Release()       {}

func (p meshPeer) Connect() (Path, error) {
	if p.to.gone {
		return nil, fi.ECONNRESET
	}
	return meshPath{meshPeer: p}, nil
}

func (p meshPeer) Ready() (Path, bool) {
	if p.to.gone {
		return nil, false
	}
	return meshPath{meshPeer: p}, true
}

// meshPath is the path to it.
type meshPath struct {
	meshPeer
	hw.Endpoint // nil: messages go by Post
}

func (p meshPath) Transport() hw.Endpoint     { return p }
func (p meshPath) Over() *Transport           { return p.from.transportTo(p.to) }
func (p meshPath) EagerOpen() bool            { return p.to.kept <= p.to.cfg.UnexpectedBytes }
func (p meshPath) PeerNotice() *hw.Notice     { return &p.to.notice }
func (p meshPath) Path() (hw.PathInfo, bool)  { return p.to.measured, true }
func (p meshPath) Unsent() (int64, bool)      { return p.to.unsent, !p.to.streamBusy }
func (p meshPath) SharedWords() *[4]uint64    { return nil }
func (p meshPath) memory(s hw.Segment) []byte { return unsafe.Slice((*byte)(s.Addr), s.Len) }
func (p meshPath) Address() []byte            { return nil }

func (p meshPath) WritePeer([]hw.Segment, []hw.RemoteSegment) (int, error) { return 0, hw.ErrInvalid }

func (p meshPath) ReadPeer(local []hw.Segment, remote []hw.RemoteSegment) (int, error) {
	if p.to.gone {
		return 0, hw.ErrPeerDead
	}
	return copy(p.memory(local[0]), mem.Bytes(remote[0].Addr, remote[0].Len)), nil
}

func (p meshPath) PutZcopy(local []hw.Segment, at uint64, key hw.RemoteKey, c *hw.Completion) (hw.Status, error) {
	if p.device() {
		return p.putByDevice(local[0], at, key, c)
	}
	return p.copy(hw.RemoteWrite, local, at, key, c)
}

func (p meshPath) GetZcopy(local []hw.Segment, at uint64, key hw.RemoteKey, c *hw.Completion) (hw.Status, error) {
	if p.device() {
		p.known(local[0], hw.LocalWrite)
	}
	if p.from.refused != nil && p.from.refused != p.to {
		return p.copy(hw.RemoteRead, local, at, key, c)
	}
	if p.from.refuses == 0 {
		return hw.Done, hw.ErrPermission
	}
	p.from.refuses--
	return p.copy(hw.RemoteRead, local, at, key, c)
}

// copy copies when it ends, as the key says then.
func (p meshPath) copy(
	access hw.Access, local []hw.Segment, at uint64, key hw.RemoteKey, c *hw.Completion,
) (hw.Status, error) {
	here := p.memory(local[0])
	do := func() error {
		r := p.from.keys[key[0]]
		switch {
		case r == nil || r.n != p.to:
			return hw.ErrKey
		case p.to.gone:
			return hw.ErrPeerDead
		case r.of.Access&access == 0 || at+uint64(len(here)) > uint64(r.of.Len):
			return hw.ErrPermission
		}
		there := unsafe.Slice((*byte)(r.of.Addr), r.of.Len)[at:]
		if access == hw.RemoteWrite {
			copy(there, here)
		} else {
			copy(here, there)
		}
		return nil
	}
	if r := p.from.keys[key[0]]; r == nil || r.n != p.to {
		return hw.Done, hw.ErrKey
	}
	if p.from.r.IntN(3) == 0 {
		return hw.Done, do()
	}
	p.from.flying = append(p.from.flying, func() { c.Update(1, do()) })
	return hw.InProgress, nil
}

// meshIface is a transport of a node, and its memory domain.
type meshIface struct {
	hw.Iface // nil
	n        *node
	device   bool
}

func (i meshIface) Memory() hw.MemoryDomain { return meshMemory{n: i.n, device: i.device} }
func (i meshIface) OwnNotice() *hw.Notice   { return &i.n.notice }

type meshMemory struct {
	hw.MemoryDomain // nil
	n               *node
	device          bool
}

func (d meshMemory) Attr() hw.MDAttr {
	if d.device {
		return hw.MDAttr{MaxKey: meshDeviceKey, Caps: hw.MDLocal | hw.MDCost}
	}
	return hw.MDAttr{MaxKey: meshKey}
}

// meshKey and meshDeviceKey are the bytes of packed keys.
const (
	meshKey       = 8
	meshDeviceKey = 30
)

func (d meshMemory) Register(r hw.Region) (hw.Memory, error) {
	if d.device && d.n.locked {
		return nil, hw.ErrNoResource
	}
	d.n.last++
	of := &meshRegion{r, d.n, d.n.last, d.Attr().MaxKey, false}
	d.n.keys[of.key] = of
	return of, nil
}

func (d meshMemory) UnpackKey(b []byte) (k hw.RemoteKey, err error) {
	if len(b) != d.Attr().MaxKey {
		return k, hw.ErrInvalid
	}
	for i, v := range b[:meshKey] {
		k[0] |= uint64(v) << (8 * i)
	}
	return k, nil
}

// meshRegion is registered memory of a node.
type meshRegion struct {
	of    hw.Region
	n     *node
	key   uint64
	bytes int // of its key, packed
	keeps bool
}

func (r *meshRegion) Region() hw.Region { return r.of }

func (r *meshRegion) PackKey(to []byte) []byte {
	for i := range r.bytes {
		to = append(to, byte(r.key>>(8*i)))
	}
	return to
}

// Keep notes that the key is to name no other region.
func (r *meshRegion) Keep() bool { r.keeps = true; r.n.keeps++; return true }

func (r *meshRegion) Close() error { delete(r.n.keys, r.key); return nil }

// begin has a node begin to join the group of all, in the order of their numbers.
func (n *node) begin() *Group {
	n.t.Helper()
	members := make([]fi.Addr, len(n.nodes))
	for i := range members {
		members[i] = fi.Addr(i)
	}
	g, err := n.groups.Join(fi.AddrNotAvail, 0, members, n.events, 99)
	if err != nil {
		n.t.Fatal(err)
	}
	g.Notify(0x1234)
	return g
}

// join has all nodes join a group.
func (m *mesh) join() (groups []*Group) {
	m.t.Helper()
	for _, n := range m.nodes {
		groups = append(groups, n.begin())
	}
	m.until("the group", func() bool {
		return !slices.ContainsFunc(groups, func(g *Group) bool { return g.state.Load() != groupJoined })
	})
	return groups
}

// outcome waits for a node's next operation to end.
func (m *mesh) outcome(i int) fi.Errno {
	m.t.Helper()
	n := m.nodes[i]
	m.until(fmt.Sprintf("completion of node %d", i), func() bool { return len(n.ended) != 0 })
	e := n.ended[0]
	n.ended = n.ended[1:]
	return e.status
}

// postAllToAll posts a node's part of an all-to-all of slices of so many bytes.
func (m *mesh) postAllToAll(i int, g *Group, in, out []byte, slice int) {
	m.t.Helper()
	m.buffers = append(m.buffers, in, out)
	if err := m.nodes[i].groups.Collective(&CollectiveArgs{
		Kind: collective.AllToAll, Buf: uintptr(mem.Address(in)), Result: uintptr(mem.Address(out)),
		Count: uint64(slice), Datatype: fi.Uint8, Group: g.Addr(), Context: 5,
	}); err != nil {
		m.t.Fatal(err)
	}
}

// fill makes n bytes of chance.
func (m *mesh) fill(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(m.r.Uint32())
	}
	return b
}

// allToAll runs one of slices of so many bytes and checks it.
func (m *mesh) allToAll(groups []*Group, slice int) {
	m.t.Helper()
	n := len(groups)
	in, out := make([][]byte, n), make([][]byte, n)
	for i := range n {
		in[i], out[i] = m.fill(n*slice), make([]byte, n*slice)
		m.postAllToAll(i, groups[i], in[i], out[i], slice)
	}
	for i := range n {
		if err := m.outcome(i); err != fi.Success {
			m.t.Fatalf("rank %d: %v", i, err)
		}
	}
	m.compare(in, out, slice)
}

// compare checks what all ranks have of each other.
func (m *mesh) compare(in, out [][]byte, slice int) {
	m.t.Helper()
	for i := range in {
		for j := range in {
			if !bytes.Equal(out[i][j*slice:][:slice], in[j][i*slice:][:slice]) {
				m.t.Fatalf("slices of %d bytes: rank %d has the wrong data of rank %d", slice, i, j)
			}
		}
	}
}

// idle fails the test if a node keeps anything of operations that have ended.
func (n *node) idle() {
	n.t.Helper()
	if err := n.protocol.Idle(); err != nil || n.kept != 0 || len(n.early) != 0 {
		n.t.Errorf("node %d: %v; %d bytes of early messages", n.number, err, n.kept)
	}
}
