package matched

import (
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/regcache"
)

// TestDirectAlone: a post of a thread that is alone goes to the device inside the gate, and one that does not get that
// far is outside. Inside no lock is waited for, of the table or of the cache; beside a sharer each is.
func TestDirectAlone(t *testing.T) {
	d, w, gate := &device{}, &still{covers: func() {}}, new(hot.Gate)
	var generation atomic.Uint64
	cache := regcache.New(placing{}, regcache.Config{Watch: w,
		Private: func(regcache.Range) bool { return true }})
	cache.Alone(gate.Word())
	e := Open(Options{Iface: d, Matcher: d, Limit: 2, Cache: cache, Generation: &generation, Gate: gate})
	buf := make([]byte, 8)
	receive := func(length uint64) *hot.Post {
		return &hot.Post{Buf: uintptr(unsafe.Pointer(&buf[0])), Len: length, Dest: uint64(fi.AddrUnspec),
			Flags: fi.More}
	}
	m, err := cache.Get(unsafe.Pointer(&buf[0]), 8, hw.LocalWrite)
	if err != nil {
		t.Fatal(err)
	}
	cache.Put(m)

	lease := &e.ops.stripes[0].lease
	lease.Take() // nothing gives it back
	p := receive(8)
	if code := e.DirectReceive(p); code != hot.PostMatch || gate.Inside != hot.GateAlone || !e.Left() {
		t.Fatalf("alone: %d, the gate in state %d, left %v", code, gate.Inside, e.Left())
	}
	ev, c := hot.MatchEvent{Context: p.Match.Context, Flags: hot.MatchReceive, Length: 8}, Completion{}
	if wanted, ok := e.DirectEnd(&ev, &c); !wanted || !ok {
		t.Errorf("an event, alone: %v, %v", wanted, ok)
	}
	gate.Leave()
	lease.Take()
	if lease.Try() {
		t.Error("a thread outside has a lease that is another's")
	}
	lease.Give()

	gate.Share()
	if code := e.DirectReceive(receive(8)); code != hot.PostMatch || gate.Inside != hot.GateOut {
		t.Errorf("beside a sharer: %d, the gate in state %d", code, gate.Inside)
	}
	gate.Unshare()
	if code := e.DirectReceive(receive(1 << 20)); code != hot.PostGo || gate.Inside != hot.GateOut {
		t.Errorf("memory that is not registered: %d, the gate in state %d", code, gate.Inside)
	}
	e.DirectReceive(receive(8))
	gate.Leave()
	if code := e.DirectReceive(receive(8)); code != hot.PostGo || gate.Inside != hot.GateOut {
		t.Errorf("no place: %d, the gate in state %d", code, gate.Inside)
	}
}
