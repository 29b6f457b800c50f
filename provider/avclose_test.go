package provider

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weft-fabric/weft/fi"
)

// TestAVChangesBesideClose closes an endpoint that has met a stranger while another thread inserts addresses into its
// address vector and removes them: what these drop there is not freed yet, or they do not come there.
func TestAVChangesBesideClose(t *testing.T) {
	b := newBench(t, nil, nil)
	b.info.Caps &^= fi.SourceErr
	for range 5 {
		x, y := b.side(t), b.side(t)
		x.know(y)
		oneMessage(t, x, y, 8) // y has not inserted x
		var running sync.WaitGroup
		var changes, stop atomic.Uint64
		running.Go(func() {
			for stop.Load() == 0 {
				addrs := insertAll(t, y.av, testName(int(changes.Add(1)%50)))
				if err := y.av.Remove(addrs, 0); err != nil {
					t.Error(err)
				}
			}
		})
		for changes.Load() < 10 {
			time.Sleep(time.Millisecond)
		}
		if err := y.ep.Close(); err != nil {
			t.Error(err)
		}
		stop.Store(1)
		running.Wait()
		for _, c := range []interface{ Close() error }{y.cq, y.av} {
			if err := c.Close(); err != nil {
				t.Errorf("close %T: %v", c, err)
			}
		}
		y.ep = nil
		x.close()
	}
}
