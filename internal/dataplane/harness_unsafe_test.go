package dataplane

import (
	"encoding/binary"
	"testing"
	"unsafe"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/cqring"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/match"
	"github.com/weft-fabric/weft/internal/mem"
	"github.com/weft-fabric/weft/internal/order"
	"github.com/weft-fabric/weft/internal/race"
	"github.com/weft-fabric/weft/mpsc"
)

const (
	ringLog2    = 6
	bounceCount = 4
	bounceBytes = 1024
	senderID    = 7 // identity of the one sender, whose attach number is 1 and whose address is 3
	senderAddr  = 3
)

// world is an endpoint in memory of its own, with one sender.
type world struct {
	t      testing.TB
	ep     *hot.EP
	rx     *hot.Rx
	cq     *hot.CQ
	cntr   *hot.Cntr
	recv   Receiver
	bounce []byte
	keep   [][]byte
}

// memory maps n bytes for the length of the test. The race detector sees only memory of the Go heap.
func (w *world) memory(n int) unsafe.Pointer {
	if race.Enabled {
		const line = 64
		b := make([]byte, n+line)
		w.keep = append(w.keep, b)
		return unsafe.Add(unsafe.Pointer(unsafe.SliceData(b)), -uintptr(unsafe.Pointer(unsafe.SliceData(b)))%line)
	}
	b, err := mem.Map(n, mem.NoReserve)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = mem.Unmap(b) })
	w.keep = append(w.keep, b)
	return unsafe.Pointer(unsafe.SliceData(b))
}

func newWorld(t testing.TB) *world {
	w := &world{t: t}
	w.ep = (*hot.EP)(w.memory(int(unsafe.Sizeof(hot.EP{}))))
	w.rx = (*hot.Rx)(w.memory(int(unsafe.Sizeof(hot.Rx{}))))
	w.cntr = (*hot.Cntr)(w.memory(int(unsafe.Sizeof(hot.Cntr{}))))
	w.openQueue()
	w.openReceiver()
	lanes := (*uint32)(w.memory(64))
	*lanes = 1
	in := &w.ep.Inbound[0]
	in.Ring = hot.Ring{
		Slots: uintptr(w.memory(hot.SlotBytes << ringLog2)), Tail: uintptr(w.memory(64)), Log2Slots: ringLog2,
		SlotBytes: hot.SlotBytes,
	}
	mpsc.SetHead(in, 0)
	w.rx.Posts = hot.Ring{
		Slots: uintptr(w.memory(64 << ringLog2)), Tail: uintptr(w.memory(64)), Log2Slots: ringLog2, SlotBytes: 64,
	}
	source := (*hot.Source)(w.memory(int(unsafe.Sizeof(hot.Source{}))))
	stride := int(unsafe.Sizeof(hot.Bounce{})) + bounceBytes
	base := w.memory(stride * bounceCount)
	w.bounce = unsafe.Slice((*byte)(base), stride*bounceCount)
	*source = hot.Source{
		Addr: hot.SenderAddr(senderAddr), ID: senderID, Bounce: uintptr(base), BounceCount: bounceCount,
		BounceStride: uint32(stride),
		BounceBytes:  bounceBytes,
	}
	w.ep.Sources, w.ep.SourceLimit = uintptr(unsafe.Pointer(source)), 1
	w.ep.RxRings = uintptr(unsafe.Pointer(lanes))
	w.ep.Flags = hot.EPMatches
	w.ep.ReadMax = 1 << 16
	w.ep.StatsRx = uintptr(w.memory(1024))
	w.ep.Rx = uintptr(unsafe.Pointer(w.rx))
	return w
}

func (w *world) openQueue() {
	w.cq = (*hot.CQ)(w.memory(int(unsafe.Sizeof(hot.CQ{}))))
	const log2 = 10
	w.cq.Rings, w.cq.NRings = uintptr(w.memory(128+64<<log2)), 1
	cqring.SetSlots(w.cq, log2)
	w.cq.Format = uint32(fi.CQFormatTagged)
	w.ep.RxCQ = uintptr(unsafe.Pointer(w.cq))
}

func (w *world) openReceiver() {
	var err error
	if w.recv.Tagged, err = match.New(); err != nil {
		w.t.Fatal(err)
	}
	if w.recv.Untagged, err = match.New(); err != nil {
		w.t.Fatal(err)
	}
	w.recv.Pool, w.recv.UnexpectedMax, w.recv.MemoryMax = mem.NewPool(1<<20), 1<<20, 1<<30
	w.t.Cleanup(func() {
		_, _, _ = w.recv.Tagged.Close(), w.recv.Untagged.Close(), w.recv.Pool.Close()
	})
	w.recv.MinMulti.Store(64)
	w.rx.Receiver = w.recv.Address()
}

// send puts a slot's bytes behind its sequence word into the ring; false: it is full.
func (w *world) send(body []byte) bool {
	ring := mpsc.View(&w.ep.Inbound[0].Ring)
	slot, pos, ok := ring.Claim(1, true)
	if !ok {
		return false
	}
	clear(unsafe.Slice((*byte)(unsafe.Add(slot, 8)), hot.SlotBytes-8))
	copy(unsafe.Slice((*byte)(unsafe.Add(slot, 8)), hot.SlotBytes-8), body)
	ring.Publish(slot, 1, pos)
	return true
}

// message is a slot's bytes for a complete message in the slot.
func eager(id byte, tag uint64, data uint64, payload []byte) []byte {
	head := 0
	if (id-hot.AMMsg)&1 != 0 {
		head = 8
	}
	b := make([]byte, 16+head+len(payload))
	b[0], b[2] = id, byte(head)
	binary.LittleEndian.PutUint32(b[4:], uint32(len(payload)))
	binary.LittleEndian.PutUint64(b[8:], tag)
	if head != 0 {
		binary.LittleEndian.PutUint64(b[16:], data)
	}
	copy(b[16+head:], payload)
	return b
}

// post posts a receive; false: the ring is full.
func (w *world) post(e hot.RecvEntry) bool {
	ring := mpsc.View(&w.rx.Posts)
	slot, pos, ok := ring.Claim(0, true)
	if !ok {
		return false
	}
	s := (*hot.RecvEntry)(slot)
	s.Flags, s.Buf, s.Len, s.Src, s.Tag, s.Ignore, s.Context = e.Flags, e.Buf, e.Len, e.Src, e.Tag, e.Ignore, e.Context
	ring.Publish(slot, 0, pos)
	return true
}

// pop takes a completion off the queue.
func (w *world) pop() (hot.CQE, bool) {
	view := cqring.SlotsOf(w.cq, 0)
	ring := mpsc.View(&view)
	head := (*uint64)(pointer(w.cq.Rings))
	if !ring.Ready(*head) {
		return hot.CQE{}, false
	}
	e := *(*hot.CQE)(ring.Slot(*head))
	ring.Release(*head)
	order.Store64(head, *head+1)
	return e, true
}

// deliver does what the shim and the runtime do, as far as a test needs it: what only the runtime can map is mapped.
func (w *world) deliver() {
	d := hot.Delivery{EP: uintptr(unsafe.Pointer(w.ep))}
	for range 1000 {
		switch code := deliver(&d); code {
		case hot.DeliveryDone:
			return
		case hot.DeliveryGo:
			if !w.grow() {
				return
			}
			d = hot.Delivery{EP: d.EP}
		default:
			w.t.Fatalf("code %d", code)
		}
	}
	w.t.Fatal("a delivery does not end")
}

// grow has matching and pool map memory, once.
func (w *world) grow() bool {
	if w.recv.Tagged.Mapped() != 0 {
		return false
	}
	for _, eng := range []*match.Engine{w.recv.Tagged, w.recv.Untagged} {
		for _, ignore := range []uint64{0, ^uint64(0), 1} {
			rv := eng.Queue(match.AnySource, 0, ignore)
			eng.Remove(rv)
			eng.Release(rv)
		}
		for range 100 {
			eng.Hold(1, 1)
		}
		for m := range eng.Messages() {
			eng.Discard(m)
		}
	}
	for n := 16; n < 2048; n *= 2 {
		addr, err := w.recv.Pool.Get(n)
		if err != nil {
			w.t.Fatal(err)
		}
		w.recv.Pool.Put(addr, n)
	}
	return true
}
