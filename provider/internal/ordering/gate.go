package ordering

import (
	"sync"
	"sync/atomic"

	"github.com/weft-fabric/weft/internal/hot"
)

// Gate opens the data plane of an endpoint's transmits (hot.EPFast): it is open while the endpoint is enabled and
// nothing holds it. The zero Gate is closed. Any thread may call its methods.
type Gate struct {
	mu    sync.Mutex // control operations, and posts and progress when a ring was full or a read goes as messages
	open  bool       // the endpoint is enabled
	holds int
}

// Open opens the gate when the endpoint is enabled, and closes it.
func (g *Gate) Open(ep *hot.EP, open bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.open = open
	g.update(ep)
}

// Hold keeps the data plane from posting, n times, or takes that back for n below 0.
func (g *Gate) Hold(ep *hot.EP, n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.holds += n
	g.update(ep)
}

// update writes the flag. The caller has mu.
func (g *Gate) update(ep *hot.EP) {
	flags := ep.Flags &^ hot.EPFast
	if g.open && g.holds == 0 {
		flags |= hot.EPFast
	}
	atomic.StoreUint32(&ep.Flags, flags)
}
