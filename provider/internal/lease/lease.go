// Package lease puts state behind a lease: the right to use the state, which one thread has at a time.
//
// The state is reached through what taking the lease returns, and in no other way, so code that has not taken the lease
// does not compile. The lease itself is a word outside the Go heap, which C and the data plane take and give with one
// compare-and-swap and one store, too.
//
//	free (0) → Take, Wait, or C → taken (1) → Give, or C → free (0)
package lease

import (
	"runtime"
	"sync/atomic"

	"github.com/weft-fabric/weft/internal/order"
	"github.com/weft-fabric/weft/internal/race"
)

// Guarded is state of type T behind a lease. The zero Guarded has none: its methods return nil.
type Guarded[T any] struct {
	word  *uint32 // the lease, nil: one thread alone uses the state, by the application's word
	state *T
}

// Guard puts state behind the lease at word. With nil the state needs no lease. No other reference to state may be
// kept.
func Guard[T any](word *uint32, state *T) Guarded[T] { return Guarded[T]{word, state} }

// Beside puts more state behind the lease that g's state is behind.
func Beside[T, U any](g *Guarded[U], state *T) Guarded[T] { return Guarded[T]{g.word, state} }

// Take takes the lease and returns the state, nil if another thread has the lease. Acquire; pairs with Give.
func (g *Guarded[T]) Take() *T {
	if g.word != nil {
		if !atomic.CompareAndSwapUint32(g.word, 0, 1) {
			return nil
		}
		race.Acquire(g.word)
	}
	return g.state
}

// Wait takes the lease, waiting until it is free, and returns the state. For the control path.
func (g *Guarded[T]) Wait() *T {
	for {
		if state := g.Take(); state != nil {
			return state
		}
		runtime.Gosched()
	}
}

// Give gives the lease that Take or Wait has taken. The caller uses the state no more. Release; pairs with Take.
func (g *Guarded[T]) Give() {
	if g.word != nil {
		race.Release(g.word)
		order.Store32(g.word, 0)
	}
}

// Taken returns the state to a function that C, the data plane or a transport calls when the lease is taken: nothing
// that such a function gets proves it. What has the state then, and [Part]s of it, needs no Taken more. A program built
// with the race detector panics where the lease is free: the caller has none.
func (g *Guarded[T]) Taken() *T {
	if g.word != nil {
		mustBeTaken(g.word)
	}
	return g.state
}

// Alone returns the state while no other thread reaches it: before what has it is attached, and after it is detached.
func (g *Guarded[T]) Alone() *T { return g.state }
