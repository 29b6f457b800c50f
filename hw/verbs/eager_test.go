package verbs

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/hw/internal/drive"
	"github.com/weft-fabric/weft/hw/verbs/internal/ibv"
	"github.com/weft-fabric/weft/hw/verbs/internal/ibv/null"
	"github.com/weft-fabric/weft/hw/verbs/internal/transport"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/mem"
)

// ringBench is a bench whose peer has a ring and writes into it: itself, so that what it sends comes
// back. The test is the device between.
type ringBench struct {
	*bench
	carried uint64 // position up to which the device has done operations
	written int    // of which were writes
}

func newRingBench(t testing.TB) *ringBench {
	b := &ringBench{bench: newBench(t)}
	if err := b.rings.open(1); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.rings.close(); err != nil {
			t.Error(err)
		}
	})
	b.rings.owners[0].Store(b.e)
	b.e.ring = ring{0, b.rings.memory, &ibv.MR{RKey: 77}}
	b.rx.transport.GiveRing(0, b.e.c, b.rings.memory)
	b.e.msg.UseRing(transport.Ring{Addr: mem.Address(b.e.ring.memory), RKey: 77})
	b.e.msg.JoinBytes = joinBytes
	return b
}

// slotOf is where in the ring an operation writes.
func (b *ringBench) slotOf(t testing.TB, op *ibv.Op) []byte {
	at := op.RemoteAddr - mem.Address(b.e.ring.memory)
	if op.RKey != 77 || at%transport.RingSlotBytes != 0 || at >= transport.RingBytes ||
		op.SGE[0].Len > transport.RingSlotBytes {
		t.Fatalf("a write of %d bytes to %#x with key %d", op.SGE[0].Len, at, op.RKey)
	}
	return b.rings.memory[at:][:transport.RingSlotBytes]
}

// slotNext is where the next message comes to.
func (b *ringBench) slotNext() []byte {
	return b.rings.memory[b.e.c.Taken()%transport.RingSlots*transport.RingSlotBytes:][:transport.RingSlotBytes]
}

// carry has the device do the next operation, of a write only the bytes that part says; it is
// done when that is false.
func (b *ringBench) carry(t testing.TB, part func(from []byte) []int) {
	q := &b.e.msg
	op := q.op(b.carried)
	if op.Pieces == 0 {
		b.carried++
		return
	}
	from := q.slots[op.SGE[0].Addr-q.first:][:op.SGE[0].Len]
	switch op.Opcode {
	case ibv.OpSend:
		b.arrive(1, from)
	case ibv.OpWrite:
		to := b.slotOf(t, op)
		if part != nil {
			for _, n := range part(from) {
				store(to, from, n)
			}
			return
		}
		for n := 0; n < len(from); n += 8 {
			store(to, from, n)
		}
		b.written++
	}
	b.carried++
	q.Head.Store(b.carried)
}

// store stores a word as the device does: nothing sees half of it.
func store(to, from []byte, n int) {
	atomic.StoreUint64((*uint64)(unsafe.Pointer(&to[n])), binary.LittleEndian.Uint64(from[n:]))
}

// TestRingOrder: what is written and what is sent comes once each and in order, to C and to Go,
// however much of it the device has done and in whatever order it writes a message's words.
func TestRingOrder(t *testing.T) { onEachRoute(t, testRingOrder) }

func testRingOrder(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		b := newRingBench(t)
		var sent, got uint64
		check := func(header uint64, payload []byte) {
			if header != got || !bytes.Equal(payload, ringContent(header)) {
				t.Fatalf("seed %d: message %d of %d bytes comes as number %d", seed, header, len(payload), got)
			}
			got++
		}
		b.SetHandler(1, func(_ hw.Source, header uint64, _, payload []byte) { check(header, payload) })
		for range 400 {
			switch r.IntN(6) {
			case 0:
				if p := ringContent(sent); drive.SendHold(b.e.HotPath(), 1, sent, nil, p, r.IntN(3)) != hot.PathFull {
					sent++
				}
			case 1:
				if b.e.AMShort(1, sent, nil, ringContent(sent)) == nil {
					sent++
				}
			case 2, 3:
				if b.carried < b.e.msg.Posted && b.carried-got < 32 { // for more the device has no buffers
					b.carry(t, nil)
				}
			case 4:
				if b.carried < b.e.msg.Posted {
					b.carry(t, func(from []byte) []int { return someWords(r, len(from)) })
				}
			case 5:
				if r.IntN(3) == 0 {
					b.Progress(1 + r.IntN(4))
					break
				}
				poll := drive.Next
				if r.IntN(3) == 0 {
					poll = drive.Peek
				}
				if m, found := poll(b.HotTransport()); found == hot.TransportArrival {
					check(m.Header, m.Payload)
					drive.Take(b.HotTransport())
				}
			}
		}
		b.rx.transport.Flush()
		for b.carried < b.e.msg.Posted {
			b.carry(t, nil)
			b.Progress(64)
		}
		for b.Progress(64) > 0 {
		}
		if got != sent || b.Stats().Malformed != 0 || sent > 0 && b.Written() {
			t.Fatalf("seed %d: %d of %d came, %d are malformed", seed, got, sent, b.Stats().Malformed)
		}
		if sent > 20 && b.written == 0 {
			t.Errorf("seed %d: none of %d was written", seed, sent)
		}
	}
}

// ringContent is the payload of a message, too long for a slot at times.
func ringContent(n uint64) []byte {
	r := rand.New(rand.NewPCG(n, 9))
	b := make([]byte, r.IntN(maxShort))
	for k := range b {
		b[k] = byte(r.Uint32())
	}
	return b
}

// someWords are the offsets of some of n bytes' words, not all, in any order.
func someWords(r *rand.Rand, n int) (list []int) {
	for _, k := range r.Perm(n / 8)[:r.IntN(n/8)] {
		list = append(list, 8*k)
	}
	return list
}

// TestRingCredits: no more is written than there are slots, until a message says that some were taken.
func TestRingCredits(t *testing.T) {
	b := newRingBench(t)
	send := func(n int) {
		for range n {
			if got := drive.Send(b.e.HotPath(), 1, 0, nil, nil); got != hot.PathSent {
				t.Fatalf("a message: %d", got)
			}
		}
	}
	writes := func() (n int) {
		for pos := b.carried; pos < b.e.msg.Posted; pos++ {
			if b.e.msg.op(pos).Opcode == ibv.OpWrite {
				n++
			}
		}
		return n
	}
	send(1 + transport.RingSlots + 3)
	if n := writes(); n != transport.RingSlots || b.e.msg.op(0).Opcode != ibv.OpSend {
		t.Fatalf("%d are written, the first one is operation %d", n, b.e.msg.op(0).Opcode)
	}
	for range 1 + transport.RingSlots { // the first is sent, for whatever sleeps
		b.carry(t, nil)
		b.Progress(8)
	}
	if len(b.got) != 1+transport.RingSlots {
		t.Fatalf("%d came", len(b.got))
	}
	send(1)
	if n := writes(); n != 0 {
		t.Fatalf("%d are written before a message says that slots are free", n)
	}
	for b.carried < b.e.msg.Posted { // the last one's index says so
		b.carry(t, nil)
		b.Progress(8)
	}
	send(2)
	if n := writes(); n != 2 {
		t.Errorf("%d of 2 are written when slots are free", n)
	}
	for _, index := range []uint32{0xfff << transport.IndexBits, 5 << transport.IndexBits,
		(3*transport.RingSlots + 1) << transport.IndexBits} {
		b.e.msg.Heard(index)
	}
	send(2 * transport.RingSlots)
	if n := writes(); n != transport.RingSlots {
		t.Errorf("%d are written at a time after false and old counts", n)
	}
}

// TestRingAgain: a queue pair that follows another one sends what that one has written and nothing has
// taken, and goes on in the ring where the peer says.
func TestRingAgain(t *testing.T) {
	b := newRingBench(t)
	for n := range uint64(6) {
		if got := drive.Send(b.e.HotPath(), 1, n, nil, []byte("12345")); got != hot.PathSent {
			t.Fatalf("message %d: %d", n, got)
		}
	}
	for range 3 {
		b.carry(t, nil)
		b.Progress(8)
	}
	b.carry(t, func(from []byte) []int { return []int{0, 8} }) // torn by the end of the queue pair
	b.Progress(8)
	if len(b.got) != 3 || b.e.c.Taken() != 2 {
		t.Fatalf("%d messages came, %d in the ring", len(b.got), b.e.c.Taken())
	}
	b.e.msg.stop()
	b.e.clearRing()
	b.e.hello.peerRing = transport.Ring{Addr: mem.Address(b.e.ring.memory), RKey: 77, Taken: b.e.c.Taken()}
	b.e.resume(b.e.c.LastSeq)
	for pos := b.carried; pos < b.e.msg.Posted; pos++ {
		if op := b.e.msg.op(pos); op.Opcode == ibv.OpWrite {
			t.Errorf("message %d is written", pos)
		}
	}
	if got := drive.Send(b.e.HotPath(), 1, 6, nil, nil); got != hot.PathSent || b.e.msg.op(6).Opcode != ibv.OpWrite {
		t.Errorf("then a message is operation %d", b.e.msg.op(6).Opcode)
	}
	for b.carried < b.e.msg.Posted {
		b.carry(t, nil)
		b.Progress(8)
	}
	for n, h := range b.got {
		if h != uint64(n) {
			t.Fatalf("headers %v", b.got)
		}
	}
	if len(b.got) != 7 {
		t.Errorf("%d of 7 came", len(b.got))
	}
}

// TestRingWraps: counts go round, in the index of messages after 4096.
func TestRingWraps(t *testing.T) {
	b := newRingBench(t)
	const count = 10000
	for n := range uint64(count) {
		if got := drive.Send(b.e.HotPath(), 1, n, nil, nil); got != hot.PathSent {
			t.Fatalf("message %d: %d", n, got)
		}
		b.carry(t, nil)
		m, found := drive.Next(b.HotTransport())
		if found != hot.TransportArrival || m.Header != n {
			t.Fatalf("message %d: %d, %+v", n, found, m)
		}
		drive.Take(b.HotTransport())
	}
	if b.written < count/2 {
		t.Errorf("%d of %d are written", b.written, count)
	}
}

// ringProgress are the ways by which a message of rings is taken: by C, which leaves the rest to Go, and by Go.
var ringProgress = map[string]func(b *ringBench){
	"C": func(b *ringBench) {
		switch m, found := drive.Next(b.HotTransport()); found {
		case hot.TransportArrival:
			b.got = append(b.got, m.Header)
			drive.Take(b.HotTransport())
		case hot.TransportGo:
			b.Progress(1)
		}
	},
	"Go": func(b *ringBench) { b.Progress(1) },
}

// TestRingTurns: a ring that is never empty keeps nothing else from coming.
func TestRingTurns(t *testing.T) {
	for name, progress := range ringProgress {
		t.Run(name, func(t *testing.T) {
			b := newRingBench(t)
			for k := range 7 {
				for range 2 {
					drive.Send(b.e.HotPath(), 1, 0, nil, nil)
					b.carry(t, nil)
				}
				if k == 1 { // immediate data that nothing understands, by the queues
					null.Complete(0, ibv.Done{ID: 0, Opcode: ibv.DoneRecvImm, QP: 1})
				}
				progress(b)
			}
			if b.Stats().Malformed != 1 || len(b.got) < 5 || !b.Written() {
				t.Errorf("%d of 1 came by the queues, %d messages, more are there: %v", b.Stats().Malformed, len(b.got),
					b.Written())
			}
		})
	}
}

// TestRingPassedBy: what comes to a ring is seen by a peek, and nothing else is read.
func TestRingPassedBy(t *testing.T) {
	b := newRingBench(t)
	for range 3 {
		drive.Send(b.e.HotPath(), 1, 4, nil, nil)
	}
	b.carry(t, nil)
	if _, found := drive.Peek(b.HotTransport()); found != hot.TransportEmpty {
		t.Errorf("a poll of what was sent: %d", found)
	}
	b.Progress(8)
	b.carry(t, nil)
	if _, found := drive.Peek(b.HotTransport()); found != hot.TransportArrival || !b.Written() {
		t.Errorf("a poll of what was written: %d, %v", found, b.Written())
	}
	if drive.Take(b.HotTransport()) {
		t.Error("another one is at hand")
	}
	if b.HotTransport().Silent != 1 {
		t.Errorf("%d silent senders", b.HotTransport().Silent)
	}
	b.rings.owners[0].Store(nil)
	b.rx.transport.TakeRing(0, b.e.c)
	if b.HotTransport().Silent != 0 || b.Written() {
		t.Errorf("without its ring: %d silent senders", b.HotTransport().Silent)
	}
	b.carry(t, nil)
	if _, found := drive.Next(b.HotTransport()); found != hot.TransportEmpty {
		t.Errorf("a ring that was taken back: %d", found)
	}
}

// FuzzRing: whatever a peer writes, nothing comes of it but whole messages that come next from it.
func FuzzRing(f *testing.F) {
	b := newRingBench(f)
	for n := range uint64(3) {
		drive.Send(b.e.HotPath(), 1, n, nil, make([]byte, 5*n))
		op := b.e.msg.op(n)
		slot := b.e.msg.slots[op.SGE[0].Addr-b.e.msg.first:][:op.SGE[0].Len]
		f.Add(slot, n == 1)
		f.Add(slot[:len(slot)-8], n == 1)
	}
	f.Add(bytes.Repeat([]byte{0xff}, transport.RingSlotBytes), false)
	f.Fuzz(func(t *testing.T, data []byte, c bool) {
		b.e.clearRing()
		b.e.c.LastSeq = 1
		copy(b.slotNext(), data)
		for range 3 {
			if !c {
				b.Progress(8)
				continue
			}
			m, found := drive.Next(b.HotTransport())
			switch found {
			case hot.TransportArrival:
				if transport.HeaderBytes+len(m.Head)+len(m.Payload)+transport.RingEndBytes > transport.RingSlotBytes ||
					m.Source != 0 {
					t.Fatalf("C finds %+v", m)
				}
				drive.Take(b.HotTransport())
			case hot.TransportGo:
				b.Progress(8)
			}
		}
		if b.Written() {
			t.Errorf("a message stays: %x", data)
		}
	})
}
