package verbs

import (
	"testing"
	"unsafe"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/hw/verbs/internal/ibv"
	"github.com/weft-fabric/weft/hw/verbs/internal/transport"
	"github.com/weft-fabric/weft/internal/hot"
)

// otherThread is what a thread that polls hands to the data plane by its address, which a package's variable keeps.
var otherThread struct {
	message hot.TransportMessage
	call    ibv.Call
}

// polls has another thread poll. It has what has come when done is called, and nothing knows of it before.
func (b *bench) polls(t *testing.T) (done func()) {
	at := uintptr(unsafe.Pointer(b.HotTransport()))
	message, call := uintptr(unsafe.Pointer(&otherThread.message)), uintptr(unsafe.Pointer(&otherThread.call))
	otherThread.call = ibv.Call{}
	calls := b.rx.transport.Calls.Swap(0) // with which a thread without the lease has nothing to do
	found := transport.Next(at, message, call, 0)
	if b.rx.transport.Calls.Store(calls); found != hot.TransportEmpty {
		t.Fatalf("there is something before: %d", found)
	}
	return func() {
		otherThread.call.Perform()
		transport.Again(at, message, call, 0)
	}
}

// TestLastMessage: a peer that has failed is there until its last message is delivered, also where another thread is
// about to find that.
func TestLastMessage(t *testing.T) {
	b := newBench(t)
	b.svc = &service{wake: make(chan struct{}, 1)}
	b.gone = newGraveyard()
	b.e.name.Store(&[]byte{1})
	events := 0
	b.OnPeerEvent(func(hw.PeerEvent) { events++ })
	b.e.lease.phase = draining // its queue pair is stopped
	b.e.end(hw.ErrPeerDead)
	b.Progress(8)
	b.arrive(1, plain(1, 7))
	done := b.polls(t)
	for range 3 {
		b.Progress(8)
	}
	if events != 0 || b.e.lease.phase != draining {
		t.Errorf("%d events, phase %d while another thread polls", events, b.e.lease.phase)
	}
	done()
	for range 3 {
		b.Progress(8)
	}
	if len(b.got) != 1 || b.Stats().Malformed != 0 {
		t.Errorf("%v delivered, %d messages refused", b.got, b.Stats().Malformed)
	}
	if events != 1 || b.e.lease.phase != reclaimed {
		t.Errorf("then %d events, phase %d", events, b.e.lease.phase)
	}
}
