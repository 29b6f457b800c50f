package weft

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/hot"
)

// progressLease is the word of the endpoint's progress lease.
func (e *Endpoint) progressLease() *uint32 {
	list := atomic.LoadUintptr(&e.queue.Hot().EPs)
	ep := **(***hot.EP)(unsafe.Pointer(&list))
	at := atomic.LoadUintptr(&ep.Rx)
	return &(*(**hot.Rx)(unsafe.Pointer(&at))).Lease
}

// TestRecvTakenBackLater: a receive whose context ends is taken back before Recv returns, also where there is no room
// to ask for that, while another thread makes progress.
func TestRecvTakenBackLater(t *testing.T) {
	e, err := Open(Config{InFlight: 1 << 17})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	lease := e.progressLease()
	for !atomic.CompareAndSwapUint32(lease, 0, 1) {
		runtime.Gosched()
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		_, err := e.Recv(ctx, Match{Tag: 1}, make([]byte, 8))
		ended <- err
	}()
	for posted := 0; ; posted++ { // the ring of posts is full then
		if err = e.StartRecv(Match{Tag: 2}, make([]byte, 8), nil); err != nil {
			break
		}
		if posted == 0 {
			time.Sleep(100 * time.Millisecond) // Recv has posted by then
		}
	}
	if !errors.Is(err, fi.EAGAIN) {
		t.Fatal(err)
	}
	cancel()
	select {
	case err := <-ended:
		t.Errorf("Recv returns %v, and its buffer is in use", err)
	case <-time.After(100 * time.Millisecond):
	}
	atomic.StoreUint32(lease, 0)
	if t.Failed() {
		return
	}
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("Recv returns %v", err)
	}
}
