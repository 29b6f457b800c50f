package mpsc

import (
	"testing"
	"unsafe"

	"github.com/weft-fabric/weft/internal/hot"
)

func TestLayout(t *testing.T) {
	var r Ring
	var h hot.Ring
	if unsafe.Sizeof(r) != unsafe.Sizeof(h) ||
		unsafe.Offsetof(r.slots) != unsafe.Offsetof(h.Slots) ||
		unsafe.Offsetof(r.tail) != unsafe.Offsetof(h.Tail) ||
		unsafe.Offsetof(r.log2) != unsafe.Offsetof(h.Log2Slots) ||
		unsafe.Offsetof(r.slotBytes) != unsafe.Offsetof(h.SlotBytes) {
		t.Fatal("Ring and hot.Ring differ")
	}
	a := heapRing(3, 128)
	h = a.Hot()
	if *View(&h) != *a {
		t.Error("View(Hot()) is another ring")
	}
	if a.Slots() != 8 || a.SlotBytes() != 128 {
		t.Errorf("geometry %d x %d", a.Slots(), a.SlotBytes())
	}
	if d := uintptr(a.Slot(9)) - uintptr(a.Slot(0)); d != 128 {
		t.Errorf("slot 9 is %d bytes behind slot 0", d)
	}
}

func TestGeometry(t *testing.T) {
	for _, g := range [][2]uint32{{31, 64}, {4, 0}, {4, 63}, {4, 96}, {4, 1 << 21}} {
		if ValidGeometry(g[0], g[1]) {
			t.Errorf("geometry %v is accepted", g)
		}
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("NewView takes %v", g)
				}
			}()
			var w [2]uint64
			NewView(unsafe.Pointer(&w[0]), unsafe.Pointer(&w[1]), g[0], g[1])
		}()
	}
	if !ValidGeometry(0, 64) || !ValidGeometry(30, 128) {
		t.Error("good geometry is refused")
	}
}

// TestOneByOne walks every state of a slot through many laps of rings of every
// small size.
func TestOneByOne(t *testing.T) {
	for log2 := uint32(0); log2 <= 6; log2++ {
		for _, exclusive := range []bool{false, true} {
			r := heapRing(log2, 64)
			for want := range 5*r.Slots() + 3 {
				if r.Ready(want) {
					t.Fatalf("position %d is ready before its claim", want)
				}
				slot, pos, ok := r.Claim(7, exclusive)
				if !ok || pos != want || slot != r.Slot(pos) {
					t.Fatalf("claim gave %d %v, want %d", pos, ok, want)
				}
				if owner, state, lapOK := r.Load(pos); owner != 7 || state != hot.SlotTaken || !lapOK || r.Ready(pos) {
					t.Fatalf("after claim: %d %d %v", owner, state, lapOK)
				}
				fill(body(r, slot), 7, pos)
				r.Publish(slot, 7, pos)
				if owner, state, lapOK := r.Load(pos); owner != 7 || state != hot.SlotReady || !lapOK || !r.Ready(pos) {
					t.Fatalf("after publish: %d %d %v", owner, state, lapOK)
				}
				if r.Ready(pos + r.Slots()) {
					t.Fatal("ready in the next lap too")
				}
				if n, ok := check(body(r, r.Slot(pos)), 7); !ok || n != pos {
					t.Fatalf("message %d at %d", n, pos)
				}
				r.Release(pos)
				if _, state, lapOK := r.Load(pos); state != hot.SlotFree || lapOK {
					t.Fatalf("after release: %d %v", state, lapOK)
				}
			}
		}
	}
}

// TestFull shows that a failing claim changes no word of the ring.
func TestFull(t *testing.T) {
	for log2 := uint32(0); log2 <= 6; log2++ {
		for _, exclusive := range []bool{false, true} {
			r := heapRing(log2, 64)
			for i := range r.Slots() {
				slot, pos, ok := r.Claim(1, exclusive)
				if !ok || pos != i {
					t.Fatalf("slot %d: %d %v", i, pos, ok)
				}
				if i%2 == 0 { // full of taken slots is full as well
					r.Publish(slot, 1, pos)
				}
			}
			before := snapshot(r)
			for range 3 {
				if slot, _, ok := r.Claim(2, exclusive); ok || slot != nil {
					t.Fatal("a full ring gave a slot")
				}
			}
			for i, w := range snapshot(r) {
				if w != before[i] {
					t.Fatalf("a failed claim changed word %d", i)
				}
			}
			r.Release(0)
			if _, pos, ok := r.Claim(2, exclusive); !ok || pos != r.Slots() {
				t.Fatalf("after a release: %d %v", pos, ok)
			}
		}
	}
}

func snapshot(r *Ring) []uint64 {
	s := []uint64{r.Tail()}
	for pos := range r.Slots() {
		s = append(s, unsafe.Slice((*uint64)(r.Slot(pos)), r.SlotBytes()/8)...)
	}
	return s
}

// TestStaleTail puts the hint back to every position that a delayed or killed
// producer could leave there, and further.
func TestStaleTail(t *testing.T) {
	for log2 := uint32(0); log2 <= 4; log2++ {
		r := heapRing(log2, 64)
		for want := range 6 * r.Slots() {
			for stale := range want + 1 {
				setTail(r, stale)
				slot, pos, ok := r.Claim(1, false)
				if !ok || pos != want {
					t.Fatalf("tail %d of %d: claim gave %d %v", stale, want, pos, ok)
				}
				if stale < want { // undo, to try the next
					setWord(r, pos, r.seq(pos))
					continue
				}
				r.Publish(slot, 1, pos)
				r.Release(pos)
			}
		}
	}
}

func TestReclaim(t *testing.T) {
	r := heapRing(1, 64)
	a, posA, _ := r.Claim(1, false)
	_, posB, _ := r.Claim(2, false)
	if r.Reclaim(posB, 1) || r.Reclaim(posA, 2) {
		t.Fatal("reclaimed from another owner")
	}
	r.Publish(a, 1, posA)
	if r.Reclaim(posA, 1) {
		t.Fatal("reclaimed a published slot")
	}
	r.Release(posA)
	if !r.Reclaim(posB, 2) {
		t.Fatal("the dead producer's slot was not reclaimed")
	}
	if r.Reclaim(posB, 2) {
		t.Fatal("reclaimed twice")
	}
	for want := uint64(2); want < 9; want++ {
		slot, pos, ok := r.Claim(3, false)
		if !ok || pos != want {
			t.Fatalf("after reclaim: %d %v, want %d", pos, ok, want)
		}
		r.Publish(slot, 3, pos)
		r.Release(pos)
	}
}

// TestWrap crosses the end of the lap's 46 bits.
func TestWrap(t *testing.T) {
	r := heapRing(2, 64)
	start := uint64(1)<<48 - 8 // laps of 2^46 - 2
	for pos := start; pos < start+4; pos++ {
		setWord(r, pos, r.seq(pos))
	}
	setTail(r, start)
	for want := start; want < start+64; want++ {
		slot, pos, ok := r.Claim(5, false)
		if !ok || pos != want {
			t.Fatalf("%#x %v, want %#x", pos, ok, want)
		}
		r.Publish(slot, 5, pos)
		if !r.Ready(pos) {
			t.Fatalf("%#x is not ready", pos)
		}
		r.Release(pos)
	}
}

// FuzzHostile lets a peer write any two words: calls end, stay inside the ring
// and never call a slot ready that is not marked so.
func FuzzHostile(f *testing.F) {
	f.Add(uint64(0), uint64(0), uint64(0))
	f.Add(^uint64(0), uint64(1)<<63, uint64(3))
	f.Add(uint64(1)<<62, uint64(7)<<18|2, uint64(5))
	f.Fuzz(func(t *testing.T, tail, word, pos uint64) {
		r := heapRing(2, 64)
		setTail(r, tail)
		setWord(r, pos, word)
		lo, hi := uintptr(r.Slot(0)), uintptr(r.Slot(3))
		if slot, p, ok := r.Claim(1, false); ok {
			if a := uintptr(slot); a < lo || a > hi || slot != r.Slot(p) {
				t.Fatalf("slot outside the ring: %#x", a-lo)
			}
		}
		if a := uintptr(r.Slot(pos)); a < lo || a > hi {
			t.Fatalf("slot outside the ring: %#x", a-lo)
		}
		owner, state, lapOK := r.Load(pos)
		if owner > hot.SeqOwnerMask || state < 0 || state > 3 {
			t.Fatalf("load gave %d %d", owner, state)
		}
		if r.Ready(pos) != (state == hot.SlotReady && lapOK) {
			t.Fatal("Ready and Load differ")
		}
	})
}

func TestNoAllocation(t *testing.T) {
	r := heapRing(4, 64)
	var head uint64
	if n := testing.AllocsPerRun(1000, func() {
		slot, pos, _ := r.Claim(1, false)
		r.Publish(slot, 1, pos)
		r.Load(head)
		r.Release(head)
		head++
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
