package hot

import (
	"runtime"
	"structs"
	"sync/atomic"

	"github.com/weft-fabric/weft/internal/order"
)

// Values of [Gate].Inside.
//
//weft:enum weft_gate_state
const (
	GateOut      = 0
	GateEntering = 1
	GateAlone    = 2 // order.Alone
)

// Gate has one thread alone use an endpoint whose application serialises its calls (FI_THREAD_DOMAIN, COMPLETION),
// without an atomic read-modify-write: a call enters it, by plain stores, and finds no lock taken that another thread
// could want, so that it needs none (order.Word). The calls of control operations come from any thread: they have such
// calls take their locks (Share), as all threads do then, and end that (Unshare).
//
//	out → Enter → entering → alone → Leave, or C → out
//	                       → out: there are sharers, take the locks
//
// A thread that is alone waits for no other; the runtime, which may, leaves the gate first.
//
// The thread stores Inside, and then loads Sharers (G0); Share adds, has all threads pass a barrier, and then loads
// Inside (G1). So either the thread sees the sharer, or that sees the thread; without the barrier both might miss the
// other. Leave releases what the thread has done to Share, which acquires it, and Unshare to Enter.
//
//weft:name weft_gate
type Gate struct {
	_       structs.HostLayout
	Inside  uint32 `c:"_Atomic"` // Gate*; the thread inside stores (release), Share loads (acquire), and locks
	Sharers uint32 `c:"_Atomic"` // how many there are; Go adds (seq_cst), the thread loads (acquire)
	_       [56]byte
}

// Enter makes the caller the one thread that uses the endpoint, until Leave. False, and nothing has happened: there is
// no gate (nil), or there are sharers. It needs nothing of the runtime.
func (g *Gate) Enter() bool {
	if g == nil {
		return false
	}
	order.Store32(&g.Inside, GateEntering)
	if atomic.LoadUint32(&g.Sharers) != 0 { // G0
		order.Store32(&g.Inside, GateOut)
		return false
	}
	order.Store32(&g.Inside, GateAlone)
	return true
}

// Leave ends what Enter has begun. It needs nothing of the runtime.
func (g *Gate) Leave() { order.Store32(&g.Inside, GateOut) }

// Word is what the endpoint's locks read. g may be nil.
func (g *Gate) Word() order.Word {
	if g == nil {
		return order.Word{}
	}
	return order.WordAt(&g.Inside)
}

// Share has all threads take locks until Unshare, the caller's too, and returns when none is alone. g may be nil.
func (g *Gate) Share() {
	if g == nil {
		return
	}
	atomic.AddUint32(&g.Sharers, 1)
	order.Barrier()
	for atomic.LoadUint32(&g.Inside) != GateOut { // G1
		runtime.Gosched()
	}
}

// Unshare ends what Share has begun. The caller has no lock any more.
func (g *Gate) Unshare() {
	if g != nil {
		atomic.AddUint32(&g.Sharers, ^uint32(0))
	}
}

// Locks and C agree on what is alone.
var _ = [1]struct{}{}[GateAlone-order.Alone]
