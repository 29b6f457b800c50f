package dataplane

import (
	"testing"
	"unsafe"

	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/matched"
)

// matchWorld is a thread at an endpoint with a match transport.
type matchWorld struct {
	*poller
	transport *hot.MatchTransport
	watch     *hot.Watch
	gate      *hot.Gate
	owner     *matched.Endpoint // of transport
}

func newMatchWorld(t testing.TB) *matchWorld {
	w := &matchWorld{poller: newPoller(t)}
	w.transport = (*hot.MatchTransport)(w.memory(int(unsafe.Sizeof(hot.MatchTransport{}))))
	w.watch = (*hot.Watch)(w.memory(int(unsafe.Sizeof(hot.Watch{}))))
	w.gate = (*hot.Gate)(w.memory(int(unsafe.Sizeof(hot.Gate{}))))
	w.transport.Watch, w.transport.Gate = uintptr(unsafe.Pointer(w.watch)), uintptr(unsafe.Pointer(w.gate))
	next := (*[2]uint64)(w.memory(16))
	next[0] = uint64(uintptr(unsafe.Pointer(&next[1])))
	w.watch.Queue(&next[0], 1, false)
	w.ep.Match, w.ep.Flags = uintptr(unsafe.Pointer(w.transport)), hot.EPGated
	w.rx.Attention = hot.AttentionTransports
	return w
}

// try is whether a poll finds work.
func (w *matchWorld) try() bool {
	return Try(0, threadAt(&w.self), w.cq.EPs, 0) == w.cq.EPs
}

// TestReadBesideClose: a thread is an epoch reader while it reads a match transport without the lease, so that closing
// may wait for it, and only then. One that cannot be does not read it, and takes the lease as several threads do.
func TestReadBesideClose(t *testing.T) {
	w := newMatchWorld(t)
	w.watch.Words(w.memory(4))
	if w.try() {
		t.Error("the quiet transport has work")
	}
	w.line.Posting = 0
	w.watch.Words(unsafe.Pointer(&w.line.Posting)) // 1 while the thread is a reader
	if !w.try() {
		t.Error("a poll reads the transport, and its thread is no epoch reader")
	}
	if w.line.Posting != 2 {
		t.Errorf("the thread's line has %d", w.line.Posting)
	}

	call := w.poll(1)
	call.At = call.EPs
	if !leaseShared(call, w.ep, w.rx) || call.Gated != 1 || w.gate.Inside != hot.GateAlone {
		t.Errorf("the lease: %+v, the gate %+v", call, w.gate)
	}
	unlease(call, w.rx)
	if call.Gated != 0 || w.gate.Inside != hot.GateOut || w.line.Posting != 4 {
		t.Errorf("given back: %+v, the gate %+v, the line %d", call, w.gate, w.line.Posting)
	}

	line := (*[32]uint32)(w.memory(128)) // Sharers of this gate is the word of this line
	gate, reader := (*hot.Gate)(unsafe.Pointer(&line[1])), (*hot.EpochReader)(unsafe.Pointer(&line[2]))
	w.transport.Gate, w.self.Line = uintptr(unsafe.Pointer(gate)), uintptr(unsafe.Pointer(reader))
	reader.Posting = ^uint64(1) // 0 when the thread has been a reader
	if !leaseShared(call, w.ep, w.rx) || call.Gated != 0 || reader.Posting != 0 {
		t.Errorf("the thread is no epoch reader while it enters the gate: %+v, the line %d", call, reader.Posting)
	}
	unlease(call, w.rx)

	const nowhere = 8
	w.self.Line, w.ep.Match = 0, nowhere
	if !w.try() {
		t.Error("a thread without a line finds nothing")
	}
	if !leaseShared(call, w.ep, w.rx) || call.Gated != 0 {
		t.Errorf("it has the lease: %+v", call)
	}
	unlease(call, w.rx)
}
