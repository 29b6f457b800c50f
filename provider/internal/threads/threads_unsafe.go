// Package threads makes calls of the data plane for goroutines. It gives a goroutine, for the length of a call, what a
// thread of C has in storage of its own (hot.Thread): the line by which it is an epoch reader.
package threads

import (
	"runtime"
	"sync"
	"unsafe"

	"github.com/weft-fabric/weft/internal/dataplane"
	"github.com/weft-fabric/weft/internal/hot"
)

// Thread is what a call of the data plane uses. It stays where it is in memory, because the data plane has it by its
// address. Its fields are those of the goroutine that has taken it.
type Thread struct {
	Post     hot.Post     // of the call; Post.Self is of this thread
	delivery hot.Delivery // of the call
	self     hot.Thread
}

var pool = sync.Pool{New: func() any {
	t := new(Thread)
	t.Post.Self = uintptr(unsafe.Pointer(&t.self))
	if dataplane.EnrollGo(&t.self) {
		runtime.SetFinalizer(t, (*Thread).discharge)
	}
	return t
}}

// discharge gives the line to the next thread. A thread that is dropped in the middle of a call, by a panic that its
// goroutine recovers from, reads nothing any more.
func (t *Thread) discharge() { dataplane.DischargeGo(&t.self) }

// Take returns a thread that no other goroutine has, nil if all lines are taken.
func Take() *Thread {
	t := pool.Get().(*Thread)
	if t.self.Line == 0 {
		return nil
	}
	return t
}

// Give gives it back.
func (t *Thread) Give() { pool.Put(t) }
