package outbound

import (
	"runtime"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/mem"
	"github.com/weft-fabric/weft/internal/order"
	"github.com/weft-fabric/weft/mpsc"
)

const log2 = 5

// memory maps n bytes for the length of the test.
func memory(t testing.TB, n int) unsafe.Pointer {
	b, err := mem.Map(n, mem.NoReserve)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = mem.Unmap(b) })
	return unsafe.Pointer(unsafe.SliceData(b))
}

func newRing(t testing.TB) mpsc.Ring {
	ring := (*hot.RxRing)(memory(t, int(unsafe.Sizeof(hot.RxRing{}))))
	return mpsc.NewView(memory(t, hot.SlotBytes<<log2), unsafe.Pointer(&ring.Tail), log2, hot.SlotBytes)
}

// TestOnlySender has one sender fill a ring while the consumer empties it: each message arrives once, whole, in order.
func TestOnlySender(t *testing.T) {
	const messages = 200000
	ring := newRing(t)
	go func() {
		for n := range uint64(messages) {
			var slot *hot.Slot
			var pos uint64
			for ok := false; !ok; {
				if slot, pos, ok = Claim(&ring, 9, true); !ok {
					runtime.Gosched()
				}
			}
			Put(slot, 3, 0, 0, 8, n)
			*(*uint64)(unsafe.Pointer(&slot.Body)) = ^n
			ring.Publish(unsafe.Pointer(slot), 9, pos)
		}
	}()
	for pos := range uint64(messages) {
		for !ring.Ready(pos) {
			runtime.Gosched()
		}
		slot := (*hot.Slot)(ring.Slot(pos))
		if slot.Header != pos || *(*uint64)(unsafe.Pointer(&slot.Body)) != ^pos || slot.AMID != 3 || slot.Length != 8 {
			t.Fatalf("position %d holds %+v", pos, slot)
		}
		ring.Release(pos)
	}
}

// TestFull fills a ring whose consumer does nothing: each claim succeeds once, and the first that cannot changes
// nothing.
func TestFull(t *testing.T) {
	for _, exclusive := range []bool{true, false} {
		ring := newRing(t)
		for n := range uint64(1 << log2) {
			if !Room(&ring, exclusive) {
				t.Fatalf("exclusive %v: no room for message %d", exclusive, n)
			}
			if _, pos, ok := Claim(&ring, 1, exclusive); !ok || pos != n {
				t.Fatalf("exclusive %v: claim %d: position %d, %v", exclusive, n, pos, ok)
			}
		}
		if _, _, ok := Claim(&ring, 1, exclusive); ok || Room(&ring, exclusive) || Sure(&ring, exclusive) {
			t.Errorf("exclusive %v: the ring is full", exclusive)
		}
		if tail := ring.Tail(); tail != 1<<log2 {
			t.Errorf("exclusive %v: tail %d", exclusive, tail)
		}
	}
}

// TestSureIsAPromise shows that what is sure claims, wherever in the ring it is, and that what shares a ring never is.
func TestSureIsAPromise(t *testing.T) {
	ring := newRing(t)
	released := uint64(0)
	for n := range uint64(20 << log2) {
		if Sure(&ring, false) {
			t.Fatal("sure of a ring that is shared")
		}
		sure := Sure(&ring, true)
		_, pos, ok := Claim(&ring, 1, true)
		if sure && !ok {
			t.Fatalf("message %d: sure, and refused", n)
		}
		if ok {
			ring.Publish(ring.Slot(pos), 1, pos)
		}
		for (n%7 < 3 || !ok) && ring.Ready(released) {
			ring.Release(released)
			released++
		}
	}
}

// newStripe has n bounce buffers of 64 bytes.
func newStripe(t testing.TB, n uint32) *hot.Stripe {
	const stride = 128
	return &hot.Stripe{Bounce: uintptr(memory(t, stride*int(n))), BounceFirst: 10, BounceCount: n, BounceStride: stride}
}

// TestBounces takes buffers round and round, each while it is free.
func TestBounces(t *testing.T) {
	s := newStripe(t, 3)
	for n := range uint32(3) {
		if next := NextBounce(s); next != s.Bounce+uintptr(n)*uintptr(s.BounceStride) {
			t.Errorf("the next buffer is at %#x", next)
		}
		b, index := FreeBounce(s)
		if b == nil || index != 10+n {
			t.Fatalf("buffer %d: %v, number %d", n, b, index)
		}
		Mark(b, 4, 7)
	}
	if b, _ := FreeBounce(s); b != nil {
		t.Error("a buffer that is in flight was taken")
	}
	order.Store32(&bounceAt(s, 1).State, 0)
	if b, index := FreeBounce(s); b == nil || index != 11 || Payload(b) != s.Bounce+128+64 {
		t.Errorf("buffer %d", index)
	}
}

// TestKeys finds, locates and claims, and does none of that for what is not there.
func TestKeys(t *testing.T) {
	const count = 16
	keys := Keys{At: uintptr(memory(t, count*int(unsafe.Sizeof(hot.Key{}))+hot.Claims*int(unsafe.Sizeof(hot.Claim{})))),
		Count: count}
	const name = 5
	place := hot.KeyPlace(name, count) ^ 1
	k := keys.Entry(place)
	*k = hot.Key{State: 3, Name: name, Addr: 0x1000, Base: 0x100, Len: 0x80, Access: hot.KeyRead}
	got, i, state := keys.Find(name)
	if got != k && hot.KeyPlace(name, count)&1 == 0 || got != nil && (state != 3 || keys.Entry(i) != k) {
		t.Fatalf("found %v at %d in state %d", got, i, state)
	}
	if found, _, _ := keys.Find(name + 1); found != nil || (Keys{}).Allowed(name, 0x100, 1, 0) {
		t.Error("a key that is not there is found")
	}
	for _, c := range []struct {
		addr, n uint64
		rights  uint32
		ok      bool
	}{
		{0x100, 0x80, hot.KeyRead, true}, {0x17f, 1, hot.KeyRead, true}, {0x180, 0, hot.KeyRead, true},
		{0x180, 1, hot.KeyRead, false}, {0xff, 1, hot.KeyRead, false}, {0x110, ^uint64(0), hot.KeyRead, false},
		{0x100, 1, hot.KeyWrite, false},
	} {
		claim, x, why := keys.ClaimEntry(&Claimant{PID: 7}, place, 3, c.rights)
		if ok := why == None && x.Has(c.addr, c.n); ok != c.ok || ok && c.addr+x.Shift != 0x1000+c.addr-0x100 {
			t.Errorf("%#x, %#x bytes, rights %d: %+v, %d", c.addr, c.n, c.rights, x, why)
		}
		if claim != nil {
			Release(claim)
		}
	}
	if claim, _, why := keys.ClaimEntry(&Claimant{PID: 7}, place, 5, hot.KeyRead); claim != nil || why != Refused {
		t.Error("an entry in another state is used")
	}
	*k = hot.Key{State: 3, Name: name, Addr: 0x1000, Base: 0x100, Len: 0x80, Access: hot.KeyDevice}
	if claim, _, why := keys.ClaimEntry(&Claimant{PID: 7}, place, 3, hot.KeyRead); claim != nil || why != Refused {
		t.Error("memory of a device is used")
	}
	for n := range uint32(hot.Claims) {
		c, at := keys.Claim(2, 7, 11, 60)
		if c == nil || at != (60+n)%hot.Claims || atomic.LoadUint64(&c.Word) != 7<<32|3 || c.StartTime != 11 {
			t.Fatalf("claim %d: %+v at %d", n, c, at)
		}
	}
	if c, _ := keys.Claim(2, 7, 11, 0); c != nil {
		t.Error("more claims than there are")
	}
}
