package provider

import (
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/internal/mem"
	"github.com/weft-fabric/weft/internal/order"
)

// hotRegions are a domain's regions as C sees them (struct weft_hot_region):
// those that are published to peers too. What has no room here Go serves. The
// table is made when it is first asked for.
type hotRegions struct {
	mu    sync.Mutex // control operations only
	table mem.Array[hot.Region]
}

// first returns the table, nil when there is no memory for it.
func (t *hotRegions) first() *hot.Region {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.table.Len() == 0 {
		table, err := mem.NewArray[hot.Region](publishedKeys)
		if err != nil {
			log.Infof(log.MR, "no table of regions for C: %v", err)
			return nil
		}
		t.table = table
	}
	return t.table.At(0)
}

// add enters a published region under a key, and returns its entry, nil: there is no room.
func (t *hotRegions) add(m *MR, key uint64) *hot.Region {
	if t.first() == nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	place := hot.KeyPlace(key, publishedKeys)
	for n := range uint32(hot.KeyProbes) {
		r := t.table.At((place + n) & (publishedKeys - 1))
		if atomic.LoadUint32(&r.Live) != 0 {
			continue
		}
		r.Access = 0
		if m.access&fi.RemoteRead != 0 {
			r.Access |= hot.KeyRead
		}
		if m.access&fi.RemoteWrite != 0 {
			r.Access |= hot.KeyWrite
		}
		r.Key, r.Addr, r.Base, r.Len = key, uint64(m.parts[0].Base), m.base, m.length
		atomic.StoreUint32(&r.Live, 1) // release: C loads it first
		return r
	}
	return nil
}

// remove takes entries out, of which some may be nil, and waits until no thread is at them.
func (t *hotRegions) remove(entries ...*hot.Region) {
	t.mu.Lock()
	defer t.mu.Unlock()
	removed := false
	for _, r := range entries {
		if r != nil {
			atomic.StoreUint32(&r.Live, 0)
			removed = true
		}
	}
	if !removed {
		return
	}
	order.Barrier()
	for g := hot.NewGrace(); !g.Over(); {
		runtime.Gosched()
	}
}

func (t *hotRegions) close() { _ = t.table.Free() }
