package provider

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/weft-fabric/weft/cq"
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/config"
	"github.com/weft-fabric/weft/internal/info"
	"github.com/weft-fabric/weft/provider/atomics"
	"github.com/weft-fabric/weft/provider/internal/ordering"
)

// orderedHints ask for all the order that there is.
func orderedHints() *fi.Info {
	h := rmaHints()
	h.Tx = &fi.TxAttr{MsgOrder: info.MsgOrder}
	h.Rx = &fi.RxAttr{MsgOrder: info.MsgOrder}
	return h
}

// tightRings make an operation find no room in the middle.
func tightRings(c *config.Config) {
	c.RingSlots, c.BounceCount, c.BounceSize, c.EagerSize = 16, 8, 4096, 4096
}

// TestOrderedProgram posts random reads, writes, atomics and sends to overlapping
// addresses without waiting for any, and compares with the same done one after
// the other.
func TestOrderedProgram(t *testing.T) {
	seeds := seedCount(t, 30)
	for name, use := range map[string]config.Tri{"memory": config.Auto, "messages": config.No} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, func(c *config.Config) { c.UseCMA = use; tightRings(c) }, orderedHints())
			x, y := b.pair(t)
			for seed := range seeds {
				newOrderedProgram(t, x, y, seed).run(400)
			}
		})
	}
	t.Run("udp", func(t *testing.T) {
		sides := overUDPWith(t, 2, orderedHints(), func(c *config.Config) { c.BounceSize, c.EagerSize = 4096, 4096 })
		for seed := range max(seeds/10, 1) {
			newOrderedProgram(t, sides[0], sides[1], seed).run(400)
		}
	})
}

// orderedProgram is a program of x's operations on y's memory.
type orderedProgram struct {
	*rand.Rand
	t      *testing.T
	x, y   *side
	seed   uint64
	memory []byte // y's, under key 7
	model  []byte
	begun  []orderedOp // by context
	ended  int

	// The second half of the memory is for stamps: each write of one fills it
	// with the next number. So what stands there says which writes are done.
	stamp     byte
	sentAt    [256]int // how many messages were sent before the write of a stamp
	sent      int
	stampSent []byte // the stamp at each send
	received  int
	inbox     [][]byte // of the receives, in their order
}

// orderedOp is an operation under way.
type orderedOp struct {
	buf  []byte // the local memory
	want []byte // what it holds at the end, nil: what it held
}

const (
	orderedBytes = 16 << 10
	mostReceives = 128
	lastStamp    = 250
)

func newOrderedProgram(t *testing.T, x, y *side, seed uint64) *orderedProgram {
	o := &orderedProgram{Rand: rand.New(rand.NewPCG(seed, 9)), t: t, x: x, y: y, seed: seed}
	x.ep.base.msgOrder = info.MsgOrder // nothing is under way
	if seed%2 != 0 {
		x.ep.base.msgOrder &^= uint64(ordering.AfterSend) // copies may overtake sends
	}
	o.memory, o.model = make([]byte, 2*orderedBytes), make([]byte, orderedBytes)
	return o
}

func (o *orderedProgram) run(count int) {
	o.t.Helper()
	region, err := o.y.domain.RegMR(&fi.MRAttr{IOV: iovOf(o.memory), Access: fi.RemoteRead | fi.RemoteWrite,
		RequestedKey: 7}, 0)
	if err != nil {
		o.t.Fatal(err)
	}
	for range mostReceives {
		in := make([]byte, 64)
		o.inbox = append(o.inbox, in)
		o.y.recv(RecvArgs{IOV: iovOf(in), Src: fi.AddrUnspec, Context: 1 << 32}, o.x)
	}
	for range count {
		o.step()
	}
	o.complete()
	if err := region.Close(); err != nil {
		o.t.Fatal(err)
	}
}

// step tries to post an operation, and lets the sides go on now and then, the
// target rarely.
func (o *orderedProgram) step() {
	o.t.Helper()
	switch n := o.IntN(20); {
	case n < 7:
		o.write(o.extent())
	case n < 11:
		o.read(o.extent())
	case n < 14:
		o.add(o.IntN(2) == 0)
	case n < 17:
		o.writeStamp()
	default:
		o.send()
	}
	if o.IntN(20) == 0 {
		o.calm()
	}
	if o.IntN(3) == 0 {
		o.x.ep.Progress()
		o.lookAtStamp()
	}
	if o.IntN(12) == 0 {
		o.y.ep.Progress()
		o.look()
	}
}

func (o *orderedProgram) extent() (at, n int) {
	n = 1 + o.IntN([...]int{8, 80, 1000, 5000, orderedBytes}[o.IntN(5)])
	return o.IntN(orderedBytes - n + 1), n
}

// posted says whether a post took effect.
func (o *orderedProgram) posted(err error, op orderedOp) bool {
	o.t.Helper()
	if err != nil && fi.ErrnoOf(err) != fi.EAGAIN {
		o.t.Fatalf("seed %d: %v", o.seed, err)
	}
	if err == nil {
		o.begun = append(o.begun, op)
	}
	return err == nil
}

func (o *orderedProgram) write(at, n int) {
	o.t.Helper()
	local := make([]byte, n)
	for i := range local {
		local[i] = byte(o.Uint32())
	}
	a := RMAArgs{IOV: randomParts(o.Rand, local), Remote: remotePieces(o.Rand, uint64(at), uint64(n), 7),
		Dest: o.x.addr[o.y], Context: uint64(len(o.begun))}
	inject := n <= 512 && o.IntN(2) == 0
	if inject {
		a.Flags = fi.Inject
	} else if o.IntN(4) == 0 {
		a.Flags = fi.DeliveryComplete
	}
	if !o.posted(o.x.ep.RMA(&a), orderedOp{buf: local}) {
		return
	}
	copy(o.model[at:], local)
	if inject {
		clear(local)
	}
}

func (o *orderedProgram) read(at, n int) {
	o.t.Helper()
	local := make([]byte, n)
	a := RMAArgs{IOV: randomParts(o.Rand, local), Remote: remotePieces(o.Rand, uint64(at), uint64(n), 7),
		Dest: o.x.addr[o.y], Read: true, Context: uint64(len(o.begun))}
	o.posted(o.x.ep.RMA(&a), orderedOp{local, bytes.Clone(o.model[at : at+n])})
}

func (o *orderedProgram) add(fetch bool) {
	o.t.Helper()
	at := 8 * o.IntN(orderedBytes/8)
	operand, result := binary.LittleEndian.AppendUint64(nil, o.Uint64()), make([]byte, 8)
	a := AtomicArgs{Op: fi.OpSum, Datatype: fi.Uint64, Operand: iovOf(operand),
		Remote: []fi.RMAIOVec{{Addr: uint64(at), Len: 8, Key: 7}}, Dest: o.x.addr[o.y], Context: uint64(len(o.begun))}
	op := orderedOp{buf: operand}
	if fetch {
		a.Kind, a.Result = atomics.Fetch, iovOf(result)
		op = orderedOp{result, bytes.Clone(o.model[at : at+8])}
	}
	if o.posted(o.x.ep.Atomic(&a), op) {
		word := o.model[at : at+8]
		binary.LittleEndian.PutUint64(word, binary.LittleEndian.Uint64(word)+binary.LittleEndian.Uint64(operand))
	}
}

func (o *orderedProgram) writeStamp() {
	o.t.Helper()
	if o.stamp == lastStamp {
		return
	}
	local := bytes.Repeat([]byte{o.stamp + 1}, orderedBytes)
	a := RMAArgs{IOV: iovOf(local), Remote: []fi.RMAIOVec{{Addr: orderedBytes, Len: orderedBytes, Key: 7}},
		Dest: o.x.addr[o.y], Context: uint64(len(o.begun))}
	if o.posted(o.x.ep.RMA(&a), orderedOp{buf: local}) {
		o.stamp++
		o.sentAt[o.stamp] = o.sent
		o.lookAtStamp()
	}
}

func (o *orderedProgram) send() {
	o.t.Helper()
	if o.sent == mostReceives {
		return
	}
	local := bytes.Repeat([]byte{1}, 1+o.IntN(64))
	a := SendArgs{IOV: iovOf(local), Dest: o.x.addr[o.y], Context: uint64(len(o.begun))}
	if o.posted(o.x.ep.Send(&a), orderedOp{buf: local}) {
		o.sent++
		o.stampSent = append(o.stampSent, o.stamp)
	}
}

// lookAtStamp compares the newest stamp in the memory with the messages that have
// come so far.
func (o *orderedProgram) lookAtStamp() {
	o.t.Helper()
	newest := byte(0)
	for _, v := range o.memory[orderedBytes:] {
		newest = max(newest, v)
	}
	if n := o.sentAt[newest]; n != 0 && o.inbox[n-1][0] == 0 && o.x.ep.base.msgOrder&fi.OrderWAS != 0 {
		o.t.Fatalf("seed %d: stamp %d came before message %d", o.seed, newest, n-1)
	}
}

// look takes completions in, by which both sides go on, and compares what is done
// so far.
func (o *orderedProgram) look() {
	o.t.Helper()
	o.x.meet()
	o.lookAtStamp()
	var got [1]cq.Entry
	for {
		n, err := o.y.cq.Read(got[:])
		if n == 0 {
			if fi.ErrnoOf(err) != fi.EAGAIN {
				o.t.Fatalf("seed %d: target: %v", o.seed, err)
			}
			break
		}
		want := o.stampSent[o.received]
		for i, v := range o.memory[orderedBytes:] {
			if v < want {
				o.t.Fatalf("seed %d: message %d came before stamp %d: byte %d is %d", o.seed, o.received, want, i, v)
			}
		}
		o.received++
	}
	for {
		n, err := o.x.cq.Read(got[:])
		if n == 0 {
			if fi.ErrnoOf(err) != fi.EAGAIN {
				e, _ := o.x.cq.ReadErr()
				o.t.Fatalf("seed %d: %v %+v", o.seed, err, e)
			}
			return
		}
		o.ended++
		op := &o.begun[got[0].Context]
		if op.want != nil && !bytes.Equal(op.buf, op.want) {
			o.t.Fatalf("seed %d: operation %d, flags %#x, got %.20x, want %.20x", o.seed, got[0].Context, got[0].Flags,
				op.buf, op.want)
		}
	}
}

// calm lets all end that is under way.
func (o *orderedProgram) calm() {
	o.t.Helper()
	for end := time.Now().Add(20 * time.Second); o.ended < len(o.begun) || o.received < o.sent; {
		if time.Now().After(end) {
			o.t.Fatalf("seed %d: %d of %d operations ended, %d of %d messages came", o.seed, o.ended, len(o.begun),
				o.received, o.sent)
		}
		o.x.ep.Progress()
		o.y.ep.Progress()
		o.look()
	}
}

func (o *orderedProgram) complete() {
	o.t.Helper()
	o.calm()
	for o.sent < mostReceives { // the receives that are left
		o.x.retry(func() error {
			err := o.x.ep.Send(&SendArgs{Dest: o.x.addr[o.y], Inject: true})
			return err
		}, []*side{o.y})
		o.sent++
		o.stampSent = append(o.stampSent, o.stamp)
	}
	o.calm()
	for end := time.Now().Add(20 * time.Second); !bytes.Equal(o.memory[:orderedBytes], o.model) &&
		time.Now().Before(end); {
		o.y.ep.Progress() // injected writes may be on their way
	}
	if !bytes.Equal(o.memory[:orderedBytes], o.model) {
		o.t.Fatalf("seed %d: memory differs", o.seed)
	}
}
