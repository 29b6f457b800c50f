package tables

import (
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/mem"
)

// openEP opens an endpoint's memory.
func openEP(t *testing.T, stripes int, ringLog2 uint32) EP {
	t.Helper()
	e, err := OpenEP(stripes, ringLog2, false)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// rx opens a context's memory.
func rx(t *testing.T, log uint32, exclusive bool) Rx {
	t.Helper()
	r, err := OpenRx(log, exclusive)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestHidden: an endpoint that is not enabled delivers to a context that is never free.
func TestHidden(t *testing.T) {
	e := openEP(t, 1, 6)
	defer e.Close()
	hidden := func() bool {
		none, err := noRx()
		return err == nil && atomic.LoadUintptr(&e.Table().Rx) == uintptr(unsafe.Pointer(none)) && none.Lease == 1
	}
	if !hidden() {
		t.Error("it is found before it is enabled")
	}
	r := rx(t, 6, false)
	defer r.Close()
	e.Table().Rx = uintptr(unsafe.Pointer(r.Table()))
	if e.Hide(); !hidden() {
		t.Error("it is found afterwards")
	}
}

// TestEPAgain: memory is used again for endpoints of the same kind only, with what late readers go by as it was, and
// nothing else.
func TestEPAgain(t *testing.T) {
	e := openEP(t, 3, 7)
	at := e.Table()
	stripe := (*hot.Stripe)(unsafe.Add(unsafe.Pointer(at), unsafe.Sizeof(hot.EP{})+2*unsafe.Sizeof(hot.Stripe{})))
	bytes := unsafe.Slice((*byte)(unsafe.Pointer(stripe)), unsafe.Sizeof(*stripe))
	at.Handle, at.RxRings, bytes[len(bytes)-1] = 7, 8, 9
	at.Inbound[0].Ring.Tail = 10
	e.Close()
	others := []EP{openEP(t, 3, 8), openEP(t, 300, 7)}
	for i := range others {
		if others[i].Table() == at {
			t.Error("used again for another kind")
		}
		others[i].Close()
	}
	again := openEP(t, 3, 7)
	defer again.Close()
	if again.Table() != at || at.RxRings != 8 || at.Inbound[0].Ring.Tail != 10 {
		t.Errorf("not used again, or what late readers go by is lost: rings %d, tail %d", at.RxRings,
			at.Inbound[0].Ring.Tail)
	}
	if at.Handle != 0 || bytes[len(bytes)-1] != 0 {
		t.Errorf("handle %d, stripe %d", at.Handle, bytes[len(bytes)-1])
	}
	at.RxRings, at.Inbound[0].Ring.Tail = 0, 0 // this memory is no endpoint's
}

// TestRxAgain: the same of receive contexts. The lease stays taken if a late reader has it.
func TestRxAgain(t *testing.T) {
	r := rx(t, 6, false)
	at := r.Table()
	head, first := r.Ring()
	if uintptr(first)-uintptr(head) != hot.CacheLine || head != unsafe.Add(unsafe.Pointer(at), unsafe.Sizeof(*at)) {
		t.Errorf("table %p, head %p, slots %p", at, head, first)
	}
	last := (*uint64)(unsafe.Add(first, hot.CacheLine<<6-8))
	at.Lease, at.Handle, at.Attention, at.PostsHead, at.Bell, at.Flags, *last = 1, 2, 3, 4, 5, hot.RxExact, 6
	r.Close()
	for _, o := range []Rx{rx(t, 7, false), rx(t, 6, true)} {
		if o.Table() == at {
			t.Error("used again for another kind")
		}
		o.Close()
	}
	again := rx(t, 6, false)
	defer again.Close()
	if again.Table() != at || at.Lease != 1 {
		t.Errorf("not used again, or the lease is %d", at.Lease)
	}
	if at.Handle != 0 || at.Attention != 0 || at.PostsHead != 0 || at.Bell != 0 || at.Flags != 0 || *last != 0 {
		t.Errorf("%+v, last post %d", at, *last)
	}
	at.Lease = 0
}

// TestLease: a table without a ring is a kind of its own.
func TestLease(t *testing.T) {
	l, err := OpenLease(false)
	if err != nil {
		t.Fatal(err)
	}
	at := l.Table()
	l.Close()
	r := rx(t, 6, false)
	defer r.Close()
	again, err := OpenLease(false)
	if err != nil || again.Table() != at || r.Table() == at {
		t.Errorf("%v: %p, then %p", err, at, again.Table())
	}
	again.Close()
}

func TestClearBlock(t *testing.T) {
	block, err := mem.Map(5*4096, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = mem.Unmap(block) }()
	for _, r := range [][2]int{
		{0, 5 * 4096}, {64, 128}, {64, 4096}, {64, 4160}, {4000, 9000}, {256, 5 * 4096}, {8192, 8192},
	} {
		for i := range block {
			block[i] = 1
		}
		clearBlock(block[r[0]:r[1]])
		for i, v := range block {
			if want := byte(1); (i >= r[0] && i < r[1]) != (v == 0) {
				t.Fatalf("%v: byte %d is %d, was %d", r, i, v, want)
			}
		}
	}
}
