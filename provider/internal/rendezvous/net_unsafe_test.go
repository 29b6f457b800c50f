package rendezvous

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/config"
	"github.com/weft-fabric/weft/internal/congestion"
	"github.com/weft-fabric/weft/internal/dataplane"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/mem"
	"github.com/weft-fabric/weft/internal/regcache"
	"github.com/weft-fabric/weft/provider/internal/flow"
	"github.com/weft-fabric/weft/provider/internal/rkey"
	"github.com/weft-fabric/weft/provider/internal/target"
	"github.com/weft-fabric/weft/provider/internal/wire"
	"github.com/weft-fabric/weft/stripe"
)

// network is some endpoints in one process, which chance delays: messages of a pair stay in order, those of different
// pairs overtake each other, there is no room now and then, and gets and puts end some time after they were posted.
type network struct {
	t     testing.TB
	r     *rand.Rand
	now   congestion.Time
	nodes []*node
	keys  map[uint64]*region
	last  uint64 // of keys
	tags  uint64 // that were given to messages
	way   way
	arena []byte // of buffers, off the Go heap: registrations are of whole pages
	used  int
	lost  bool // a node has died: messages may fail
}

// way is what the nodes can.
type way struct {
	name     string
	host     []int // of each node; those of one host read each other's memory
	words    bool  // and share words
	refuses  bool  // but the kernel refuses to read, and to write
	fails    bool  // each second write to a peer's memory
	segments bool
	software bool // the device is
	device   bool // payloads are device memory that the receiver maps
	nogets   bool // payloads are not exposed
	offload  bool // a thread does the copies
	full     int  // one of so many posts finds no room, 0: none does
}

// room is how long the target is.
func (rv *receive) room() (n int) {
	for _, b := range rv.parts {
		n += len(b)
	}
	return n
}

// filled is the receive's memory with data at the start of the target, and the rest untouched.
func (rv *receive) filled(data []byte) []byte {
	want := bytes.Repeat([]byte{untouched}, len(rv.memory))
	for _, b := range rv.parts {
		data = data[copy(want[address(b)-address(rv.memory):][:len(b)], data):]
	}
	return want
}

// bytes are those of the target.
func (rv *receive) bytes() []byte { return bytes.Join(rv.parts, nil) }

// untouched is what the memory of a receive has before.
const untouched = 0xaa

const otherHosts = 1 << 20 // of a source, as of the transport to other hosts

// node is an endpoint of a network, with a receive context of its own.
type node struct {
	*network
	number   int
	cfg      config.Config
	rx       Receiver
	protocol Protocol
	handlers map[hw.AMID]hw.Handler
	requests *dataplane.Requests
	exposed  rkey.Table
	flows    flow.Set
	flow     map[int]*Flow
	device   rkey.Device
	attr     [2]hw.Attr
	inbox    [][]packet  // by sender
	heard    map[int]int // how many of those that are gone it knows of
	flying   []operationOf
	posted   map[uint64]*receive // by tag
	kept     map[uint64]keptRTS  // by tag
	shared   [][4]uint64         // words, by sender
	sent     map[uint64]*message // by request
	open     int                 // regions
	counts   map[int]uint64
	wrote    int // chunks that it has written into its peers' memory
	bad      int // malformed messages
	gone     bool
	busy     bool // in step
	hostile  bool // what it sends is not counted upon
}

// operationOf is a get or a put that is under way, with a peer.
type operationOf struct {
	with int
	end  func(lost bool)
}

// packet is a message, or that its sender is gone.
type packet struct {
	id            hw.AMID
	header        uint64
	head, payload []byte
	lost          bool
}

// keptRTS is one that has come before its receive.
type keptRTS struct {
	m   Message
	rts wire.RTS
}

// message is one that is sent.
type message struct {
	to      int
	data    []byte   // as it was
	parts   [][]byte // the sender's memory
	status  fi.Errno
	ended   bool
	request uint64
}

// receive is one that is posted.
type receive struct {
	memory []byte   // all of it, with gaps between its parts
	parts  [][]byte // of it: the target
	vector []fi.IOVec
	target target.Target
	status fi.Errno
	done   uint64
	ended  bool
	after  []byte // memory when it ended
}

func address(b []byte) uint64 { return uint64(uintptr(unsafe.Pointer(unsafe.SliceData(b)))) }

func pointer(addr uint64) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&addr)) }

func bytesAt(addr, n uint64) []byte { return unsafe.Slice((*byte)(pointer(addr)), n) }

func viewOf(s hw.Segment) []byte { return unsafe.Slice((*byte)(s.Addr), s.Len) }

// newNetwork makes nodes.
func newNetwork(t testing.TB, seed uint64, w way) *network {
	t.Helper()
	net := &network{t: t, r: rand.New(rand.NewPCG(seed, 77)), now: 1, keys: map[uint64]*region{}, way: w}
	var err error
	if net.arena, err = mem.Map(64<<20, mem.NoReserve); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = mem.Unmap(net.arena) })
	for i := range w.host {
		n := &node{network: net, number: i, cfg: *config.Default(), inbox: make([][]packet, len(w.host)),
			heard: map[int]int{}, posted: map[uint64]*receive{}, kept: map[uint64]keptRTS{}, flow: map[int]*Flow{},
			shared: make([][4]uint64, len(w.host)), sent: map[uint64]*message{}, counts: map[int]uint64{}}
		n.cfg.AssistSize, n.cfg.HMEMMapSize, n.cfg.MaxPeers = 64<<10, 1, len(w.host)
		n.cfg.MinSegment, n.cfg.SegmentSize = 16<<10, 32<<10
		n.attr[0] = hw.Attr{Caps: hw.CapPeerMemory, MaxAMBcopy: 8 << 10}
		n.attr[1] = hw.Attr{
			Caps: hw.CapGetZcopy | hw.CapPutZcopy, MaxAMBcopy: 8 << 10, MaxIOV: 2, MaxGetZcopy: 100 << 10,
		}
		if w.software {
			n.attr[1].Caps |= hw.CapSoftware
		}
		n.device = rkey.Device{Domain: memories{n: n}}
		n.device.Cache = regcache.New(n.device.Domain, regcache.Config{})
		n.flows = flow.NewSet(func() congestion.Time { net.now++; return net.now })
		if n.requests, err = stripe.NewTable[dataplane.Request](1, 64); err != nil {
			t.Fatal(err)
		}
		if err := n.rx.Open(); err != nil {
			t.Fatal(err)
		}
		n.attach(uint32(i) + 7)
		net.nodes = append(net.nodes, n)
		t.Cleanup(func() {
			n.rx.Close()
			_ = n.requests.Close()
		})
	}
	return net
}

// buffer is memory of n bytes of the network's.
func (net *network) buffer(n int) []byte {
	b := net.arena[net.used:][:n:n]
	net.used += n
	return b
}

func (net *network) oneHost(a, b int) bool { return net.way.host[a] == net.way.host[b] }

// sourceOf is a sender's source at a node.
func (n *node) sourceOf(from int) hw.Source {
	if n.oneHost(n.number, from) {
		return hw.Source(from)
	}
	return hw.Source(from) | otherHosts
}

// post puts a message on its way.
func (n *node) post(to int, id hw.AMID, header uint64, head, payload []byte) {
	if d := n.nodes[to]; !d.gone && !n.gone {
		p := packet{id: id, header: header, head: bytes.Clone(head), payload: bytes.Clone(payload)}
		d.inbox[n.number] = append(d.inbox[n.number], p)
	}
}

// noRoom is chance's answer to a post.
func (n *node) noRoom() bool { return n.way.full != 0 && n.r.IntN(n.way.full) == 0 }

// send sends a message in pieces of some lengths, with a tag.
func (n *node) send(to int, tag uint64, lengths ...int) *message {
	n.t.Helper()
	req, id, ok := n.requests.Alloc(0)
	if !ok {
		n.t.Fatal("no request")
	}
	m := &message{to: to, request: id}
	var iov []fi.IOVec
	for _, k := range lengths {
		b := n.buffer(k)
		for i := 0; i < k; i += 8 {
			copy(b[i:], binary.LittleEndian.AppendUint64(nil, n.r.Uint64()))
		}
		m.parts, m.data = append(m.parts, b), append(m.data, b...)
		iov = append(iov, fi.IOVec{Base: uintptr(address(b)), Len: uint64(k)})
	}
	total := uint64(len(m.data))
	req.Begin(1, total, dataplane.RequestRTS, uint32(to))
	req.Count = uint32(copy(req.IOV[:], iov))
	n.sent[id] = m
	rts := wire.RTS{Request: id, Length: total, Count: req.Count}
	for i, v := range iov {
		rts.IOV[i] = hw.RemoteSegment{Addr: uint64(v.Base), Len: v.Len}
	}
	var payload []byte
	switch {
	case n.way.device && len(lengths) == 1:
		rts.Flags, rts.IOV[0].Addr = wire.FlagNoGet|wire.FlagShared, 0
		rts.Token, rts.PID = id, uint32(n.number+1)
	case n.way.nogets:
		rts.Flags = wire.FlagNoGet
	case !n.oneHost(n.number, to):
		keys := make([]byte, rkey.MaxKey*wire.IOVLimit)
		rts.Flags = wire.FlagNoGet
		if regions, k, ok := n.device.Expose(iov, &rts, keys); ok {
			n.exposed.Add(id, regions)
			payload = keys[:k]
		}
	}
	req.Live.Store(uint32(id >> 32))
	n.post(to, wire.AMRTS, tag, rts.Put(make([]byte, wire.RTSBytes)), payload)
	return m
}

// completeTx ends a request. Its memory is the program's again.
func (n *node) completeTx(id uint64, status fi.Errno) {
	m := n.sent[id]
	delete(n.sent, id)
	rkey.Close(n.exposed.Remove(id))
	n.protocol.Ended(id)
	n.requests.Free(id)
	m.ended, m.status = true, status
	for _, b := range m.parts {
		copy(b, bytes.Repeat([]byte{0xee}, len(b)))
	}
}

func (n *node) onAck(src hw.Source, header uint64, head, payload []byte) {
	status, ok := wire.ParseAck(head)
	req, known := n.requests.Lookup(header)
	if !ok || !known || int(req.Link) != int(src&(otherHosts-1)) || !req.Live.CompareAndSwap(uint32(header>>32), 0) {
		n.bad++
		return
	}
	n.completeTx(header, status)
}

// receive posts a receive for a message with a tag, in parts of some lengths.
func (n *node) receive(tag uint64, lengths ...int) *receive {
	n.t.Helper()
	rv := &receive{}
	total := 8
	for _, k := range lengths {
		total += k + 8
	}
	rv.memory = n.buffer(total)
	copy(rv.memory, bytes.Repeat([]byte{untouched}, total))
	at := 8
	for _, k := range lengths {
		rv.vector = append(rv.vector, fi.IOVec{Base: uintptr(address(rv.memory[at:])), Len: uint64(k)})
		rv.parts = append(rv.parts, rv.memory[at:][:k])
		at += k + 8
	}
	rv.target = target.Target{Buf: uint64(rv.vector[0].Base), Len: rv.vector[0].Len, Context: tag}
	if len(lengths) > 1 {
		rv.target.Flags = hot.RecvIOV
		rv.target.Buf, rv.target.Len = uint64(uintptr(unsafe.Pointer(&rv.vector[0]))), uint64(len(lengths))
	}
	n.posted[tag] = rv
	if k, ok := n.kept[tag]; ok {
		delete(n.kept, tag)
		n.start(rv, k.m, &k.rts)
	}
	return rv
}

func (n *node) start(rv *receive, m Message, rts *wire.RTS) {
	m.Target = rv.target
	if !n.protocol.Start(m, rts) {
		n.t.Error("no memory for an operation")
	}
}

// step makes progress at a node: copies end, a few messages arrive, what waits goes on.
func (n *node) step() {
	if n.gone || n.busy {
		return
	}
	n.busy = true
	defer func() { n.busy = false }()
	for len(n.flying) != 0 && n.r.IntN(2) == 0 {
		i := n.r.IntN(len(n.flying))
		op := n.flying[i]
		n.flying = slices.Delete(n.flying, i, i+1)
		op.end(false)
	}
	for range n.r.IntN(8) {
		from := n.r.IntN(len(n.nodes))
		if len(n.inbox[from]) == 0 {
			continue
		}
		p := n.inbox[from][0]
		n.inbox[from] = n.inbox[from][1:]
		if p.lost {
			n.hearsOfEnd(from)
		} else if h := n.handlers[p.id]; h != nil {
			h(n.sourceOf(from), p.header, p.head, p.payload)
		}
	}
	if n.rx.Active() {
		n.rx.Step()
	}
	if n.protocol.Busy() {
		n.protocol.Pump()
	}
	if n.flows.Busy() {
		n.flows.Pump()
	}
}

// hearsOfEnd has a node take in that another is gone.
func (n *node) hearsOfEnd(of int) {
	n.heard[of]++
	all := n.flying
	n.flying = nil
	for _, op := range all {
		if op.with == of {
			op.end(true)
		} else {
			n.flying = append(n.flying, op)
		}
	}
	n.protocol.SourceLost(n.sourceOf(of))
	for tag, k := range n.kept {
		if k.m.Sender == uint32(of) {
			delete(n.kept, tag)
		}
	}
	if f := n.flow[of]; f != nil {
		f.Drop(fi.ECONNRESET)
		delete(n.flow, of)
	}
	n.protocol.PeerLost(uint32(of), fi.ECONNRESET)
	n.requests.Range(func(id uint64, req *dataplane.Request) {
		if int(req.Link) == of && req.Live.CompareAndSwap(uint32(id>>32), 0) {
			n.completeTx(id, fi.ECONNRESET)
		}
	})
}

// die has a node be gone: what it has sent arrives, then the others hear of it.
func (n *node) die() {
	n.gone, n.lost = true, true
	for _, to := range n.nodes {
		if to != n {
			to.inbox[n.number] = append(to.inbox[n.number], packet{lost: true})
		}
	}
}

// restart has a node that is gone, and of whose end the others have heard, begin anew with the same number.
func (n *node) restart() {
	n.protocol.Detach()
	for _, op := range n.flying {
		op.end(true)
	}
	n.protocol.Close()
	for id := range n.sent {
		n.completeTx(id, fi.ECONNRESET)
	}
	for _, to := range n.nodes {
		to.heard[n.number], to.shared[n.number], n.shared[to.number] = 0, [4]uint64{}, [4]uint64{}
	}
	n.inbox, n.flying, n.flow = make([][]packet, len(n.nodes)), nil, map[int]*Flow{}
	n.protocol, n.gone = Protocol{}, false
	n.attach(uint32(n.number) + 70)
}

// attach opens the node's protocol.
func (n *node) attach(number uint32) {
	n.protocol.Init(host{n}, &n.cfg)
	n.protocol.Attach(&n.rx, number)
	n.handlers = n.protocol.Handlers()
	n.handlers[wire.AMAck] = n.onAck
}

// progress makes some at all nodes, in an order of chance.
func (net *network) progress() {
	net.now += congestion.Time(1 + net.r.IntN(20_000))
	for _, i := range net.r.Perm(len(net.nodes)) {
		net.nodes[i].step()
	}
}
