package dataplane

import (
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/stats"
)

// modelRecv and modelMessage are receives and messages as libfabric's rules have them: the first of each that fits.
type modelRecv struct {
	context, tag, ignore uint64
	tagged, signals      bool
}

type modelMessage struct {
	tag, data uint64
	tagged    bool
	payload   []byte
}

func fits(r *modelRecv, m *modelMessage) bool {
	return r.tagged == m.tagged && (!r.tagged || (r.tag^m.tag)&^r.ignore == 0)
}

// TestAgainstModel posts and sends at random, and compares each completion and each buffer with a list of receives
// and a list of messages.
func TestAgainstModel(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 1))
		w := newWorld(t)
		if seed%2 == 0 {
			w.ep.Flags |= hot.EPRxSelective
		}
		if seed%3 == 0 {
			w.ep.RxCntr = uintptr(unsafe.Pointer(w.cntr))
		}
		play(t, w, rng, seed)
	}
}

// play runs one random program.
func play(t *testing.T, w *world, rng *rand.Rand, seed uint64) {
	const bufBytes = 96
	var recvs []modelRecv
	var messages []modelMessage
	bufs := (*[1 << 12][bufBytes]byte)(w.memory(bufBytes << 12))
	next, counted := uint64(1), uint64(0)
	settle := func() {
		for range 4 {
			w.deliver()
		}
		done := map[uint64]hot.CQE{} // held messages complete in the order of their receives, others in their own
		for e, ok := w.pop(); ok; e, ok = w.pop() {
			done[e.Context] = e
		}
		for i := 0; i < len(messages); {
			m := &messages[i]
			k := slices.IndexFunc(recvs, func(r modelRecv) bool { return fits(&r, m) })
			if k < 0 {
				i++
				continue
			}
			r := recvs[k]
			counted++
			if w.ep.Flags&hot.EPRxSelective == 0 || r.signals {
				e, ok := done[r.context]
				delete(done, r.context)
				if !ok || e.Context != r.context || e.Len != uint64(len(m.payload)) || e.Tag != m.tag ||
					e.Src != senderAddr {
					t.Fatalf("seed %d: completion %+v (%v), want context %d of %d bytes, tag %d", seed, e, ok,
						r.context, len(m.payload), m.tag)
				}
				if m.data != 0 && (e.Flags&fi.RemoteCQData == 0 || e.Data != m.data) {
					t.Fatalf("seed %d: data %d, want %d", seed, e.Data, m.data)
				}
			}
			if got := bufs[r.context][:len(m.payload)]; !slices.Equal(got, m.payload) {
				t.Fatalf("seed %d: buffer %d has %v, want %v", seed, r.context, got, m.payload)
			}
			recvs = slices.Delete(recvs, k, k+1)
			messages = slices.Delete(messages, i, i+1)
		}
		if len(done) != 0 {
			t.Fatalf("seed %d: completions %+v of nothing", seed, done)
		}
	}
	for range 400 {
		tag := uint64(rng.IntN(4))
		if rng.IntN(2) == 0 {
			r := modelRecv{context: next, tagged: rng.IntN(4) != 0, tag: tag, signals: rng.IntN(2) == 0}
			if r.tagged {
				r.ignore = []uint64{0, 0, 1, ^uint64(0)}[rng.IntN(4)]
			} else {
				r.tag = 0
			}
			flags := uint64(0)
			if r.tagged {
				flags |= hot.RecvTagged
			}
			if r.signals {
				flags |= fi.Completion
			}
			buf := uint64(uintptr(unsafe.Pointer(&bufs[next])))
			if w.post(hot.RecvEntry{Flags: flags, Buf: buf, Len: bufBytes, Src: uint64(fi.AddrUnspec), Tag: r.tag,
				Ignore: r.ignore, Context: next}) {
				recvs = append(recvs, r)
				next++
			}
		} else {
			m := modelMessage{tagged: rng.IntN(4) != 0, payload: make([]byte, rng.IntN(bufBytes))}
			id := byte(hot.AMMsg)
			if m.tagged {
				m.tag, id = tag, hot.AMTag
			}
			if rng.IntN(4) == 0 {
				m.data = rng.Uint64() | 1
				id++
			}
			for i := range m.payload {
				m.payload[i] = byte(rng.Uint32())
			}
			if w.send(eager(id, m.tag, m.data, m.payload)) {
				messages = append(messages, m)
			}
		}
		if rng.IntN(6) == 0 {
			settle()
		}
	}
	settle()
	if w.ep.RxCntr != 0 && w.cntr.Value != counted {
		t.Errorf("seed %d: the counter is at %d, want %d", seed, w.cntr.Value, counted)
	}
	if n := w.recv.UnexpectedMessages(); n != len(messages) {
		t.Errorf("seed %d: %d messages are held, want %d", seed, n, len(messages))
	}
}

// TestMultiReceive fills a buffer with messages, the last of which gives it back.
func TestMultiReceive(t *testing.T) {
	w := newWorld(t)
	buf := unsafe.Slice((*byte)(w.memory(4096)), 256)
	at := uint64(uintptr(unsafe.Pointer(&buf[0])))
	w.grow()
	w.post(hot.RecvEntry{Flags: fi.MultiRecv, Buf: at, Len: 256, Src: uint64(fi.AddrUnspec), Context: 9})
	for i := range byte(5) {
		w.send(eager(hot.AMMsg, 0, 0, slices.Repeat([]byte{i + 1}, 50)))
	}
	w.deliver()
	for i := range uint64(4) {
		e, ok := w.pop()
		last := i == 3
		if !ok || e.Buf != at+50*i || e.Len != 50 || e.Context != 9 || (e.Flags&fi.MultiRecv != 0) != last {
			t.Fatalf("completion %d: %+v, %v", i, e, ok)
		}
	}
	if e, ok := w.pop(); ok || w.recv.UnexpectedMessages() != 1 || w.recv.Posted() != 0 {
		t.Errorf("in the end %+v %v, %d held, %d posted", e, ok, w.recv.UnexpectedMessages(), w.recv.Posted())
	}
}

// TestFullQueue has a delivery say that a completion finds no room.
func TestFullQueue(t *testing.T) {
	w := newWorld(t)
	w.cq.Overflow = 1
	buf := w.memory(64)
	w.post(hot.RecvEntry{Buf: uint64(uintptr(buf)), Len: 8, Src: uint64(fi.AddrUnspec), Context: 5})
	w.send(eager(hot.AMMsg, 0, 0, []byte("12345678")))
	d := hot.Delivery{EP: uintptr(unsafe.Pointer(w.ep))}
	if code := deliver(&d); code != hot.DeliveryComplete || d.Entry.Context != 5 || d.Entry.Len != 8 {
		t.Fatalf("code %d, entry %+v", code, d.Entry)
	}
	if code := deliver(&d); code != hot.DeliveryDone {
		t.Errorf("then code %d", code)
	}
}

// TestSettle has truncation and receives that need the runtime handed over with their message.
func TestSettle(t *testing.T) {
	w := newWorld(t)
	buf := w.memory(64)
	w.grow()
	w.post(hot.RecvEntry{Buf: uint64(uintptr(buf)), Len: 4, Src: uint64(fi.AddrUnspec), Context: 5})
	w.send(eager(hot.AMMsg, 0, 0, []byte("12345678")))
	d := hot.Delivery{EP: uintptr(unsafe.Pointer(w.ep))}
	if code := deliver(&d); code != hot.DeliverySettle || d.Length != 8 || d.ID != senderID {
		t.Fatalf("code %d, %+v", code, d)
	}
	if w.ep.Inbound[0].Head != 0 {
		t.Error("the slot is free while its payload is used")
	}
	if code := deliver(&d); code != hot.DeliveryDone || w.ep.Inbound[0].Head != 1 {
		t.Errorf("then code %d, head %d", code, w.ep.Inbound[0].Head)
	}
}

// FuzzSlot delivers slots as a hostile sender may write them, to receives of every kind: nothing outside the buffers is
// written, and a delivery ends.
func FuzzSlot(f *testing.F) {
	f.Add(eager(hot.AMTag, 1, 0, []byte("payload")), uint64(1), false)
	f.Add(eager(hot.AMMsgData, 0, 5, make([]byte, 96)), uint64(0), true)
	bounced := eager(hot.AMTag, 1, 0, nil)
	bounced[1] = hot.SlotBounce
	binary.LittleEndian.PutUint32(bounced[4:], 500)
	f.Add(binary.LittleEndian.AppendUint32(bounced, 2), uint64(1), false)
	rts := eager(hot.AMRTS, 1, 0, nil)
	rts[2] = byte(unsafe.Sizeof(hot.RTSHead{}))
	f.Add(append(rts, make([]byte, 48)...), uint64(1), false)
	f.Fuzz(func(t *testing.T, slot []byte, tag uint64, multi bool) {
		w := newWorld(t)
		w.grow()
		guarded := unsafe.Slice((*byte)(w.memory(4096)), 4096)
		for i := range guarded {
			guarded[i] = 0xa5
		}
		for i := range bounceCount {
			*(*uint32)(unsafe.Pointer(&w.bounce[i*len(w.bounce)/bounceCount])) = 1
		}
		buf := uint64(uintptr(unsafe.Pointer(&guarded[1024])))
		e := hot.RecvEntry{Flags: hot.RecvTagged, Buf: buf, Len: 1024, Src: uint64(fi.AddrUnspec), Tag: tag, Context: 1}
		if multi {
			e.Flags, e.Tag = fi.MultiRecv, 0
		}
		w.post(e)
		w.send(slot)
		d := hot.Delivery{EP: uintptr(unsafe.Pointer(w.ep))}
		for range 10 {
			code := deliver(&d)
			if code == hot.DeliveryRead && (d.Copy.Len > 1024 || d.Copy.Buf != buf) {
				t.Errorf("a message of %d bytes is to be read to %#x", d.Copy.Len, d.Copy.Buf)
			}
			if code == hot.DeliveryDone || code == hot.DeliveryGo {
				break
			}
			d.Copy.Error = 0
			if code == hot.DeliveryAckReceived {
				break
			}
		}
		for i, b := range guarded {
			if b != 0xa5 && (i < 1024 || i >= 2048) {
				t.Fatalf("byte %d beside the buffer was written", i)
			}
		}
	})
}

// TestAllocations shows that a delivery allocates nothing.
func TestAllocations(t *testing.T) {
	w := newWorld(t)
	buf := uint64(uintptr(w.memory(64)))
	w.grow()
	msg := eager(hot.AMTag, 1, 0, []byte("12345678"))
	var d hot.Delivery
	n := testing.AllocsPerRun(200, func() {
		w.post(hot.RecvEntry{Flags: hot.RecvTagged, Buf: buf, Len: 8, Src: uint64(fi.AddrUnspec), Tag: 1})
		w.send(msg)
		d = hot.Delivery{EP: uintptr(unsafe.Pointer(w.ep))}
		if deliver(&d) != hot.DeliveryDone {
			t.Fatal("not delivered")
		}
		w.pop()
	})
	if n != 0 {
		t.Errorf("%v allocations a message", n)
	}
	if got := *(*uint64)(pointer(w.ep.StatsRx + stats.RxDirect*8)); got == 0 {
		t.Error("nothing was counted")
	}
}

// TestCountedBeforeGo: messages that are delivered before one that is the runtime's count as those before nothing do.
func TestCountedBeforeGo(t *testing.T) {
	w := newWorld(t)
	w.grow()
	buf := uint64(uintptr(w.memory(64)))
	const messages = 3
	for range messages {
		w.post(hot.RecvEntry{Flags: hot.RecvTagged, Buf: buf, Len: 8, Src: uint64(fi.AddrUnspec), Tag: 1})
		w.send(eager(hot.AMTag, 1, 0, []byte("12345678")))
	}
	w.send(eager(0xff, 1, 0, nil))
	d := hot.Delivery{EP: uintptr(unsafe.Pointer(w.ep))}
	if code := deliver(&d); code != hot.DeliveryGo || d.Worked == 0 {
		t.Fatalf("code %d, worked %d", code, d.Worked)
	}
	if got := *(*[2]uint64)(pointer(w.ep.StatsRx + stats.RxDirect*8)); got != [2]uint64{messages, 8 * messages} {
		t.Errorf("%d messages, %d bytes are counted, want %d and %d", got[0], got[1], messages, 8*messages)
	}
}
