package tables

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/weft-fabric/weft/internal/hot"
)

// TestHideMatch: an endpoint with a gate, whose transport is to be unmapped, waits for threads that may be reading it,
// and has none find it any more. One without, whose transport is read under the lease, does not wait.
func TestHideMatch(t *testing.T) {
	reader := hot.EpochReaderAt(hot.EpochReaders - 1)
	defer atomic.StoreUint64(&reader.Posting, 0)
	for _, gated := range []bool{false, true} {
		e, err := OpenEP(0, 0, gated)
		if err != nil {
			t.Fatal(err)
		}
		const somewhere = 64
		h, rx := e.Table(), e.Table().Rx
		atomic.StoreUintptr(&h.Match, somewhere)
		atomic.StoreUintptr(&h.Rx, somewhere)
		atomic.StoreUint64(&reader.Posting, 1)
		hidden := make(chan struct{})
		go func() {
			e.HideMatch()
			close(hidden)
		}()
		select {
		case <-hidden:
			if gated {
				t.Error("a thread is reading the transport")
			}
		case <-time.After(50 * time.Millisecond):
			if !gated {
				t.Error("without a gate no thread reads without the lease")
			}
		}
		if atomic.LoadUintptr(&h.Match) != 0 || atomic.LoadUintptr(&h.Rx) != rx {
			t.Error("the transport can be found, or the context")
		}
		atomic.StoreUint64(&reader.Posting, 2)
		<-hidden
		e.Close()
	}
}
