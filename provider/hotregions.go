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

// add enters a published region.
func (t *hotRegions) add(m *MR) {
	if t.first() == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	place := hot.KeyPlace(m.key, publishedKeys)
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
		r.Key, r.Addr, r.Base, r.Len = m.key, uint64(m.parts[0].Base), m.base, m.length
		atomic.StoreUint32(&r.Live, 1) // release: C loads it first
		m.entry = r
		return
	}
}

// remove takes a region out and waits until no thread is at it.
func (t *hotRegions) remove(m *MR) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if m.entry == nil {
		return
	}
	atomic.StoreUint32(&m.entry.Live, 0)
	m.entry = nil
	order.Barrier()
	for g := hot.NewGrace(); !g.Over(); {
		runtime.Gosched()
	}
}

func (t *hotRegions) close() { _ = t.table.Free() }
