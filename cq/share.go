package cq

import (
	"runtime"
	"time"

	"github.com/weft-fabric/weft/internal/cqring"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/order"
)

// Share ends the exclusivity of queues, which may be nil. It returns when threads that are in the data plane, for other
// endpoints with these queues, have left it, or after a time.
func Share(limit time.Duration, queues ...*Queue) {
	shared := false
	for _, q := range queues {
		if q != nil && cqring.Exclusive(q.hot) {
			cqring.Share(q.hot)
			shared = true
		}
	}
	if !shared {
		return
	}
	order.Barrier()
	end := time.Now().Add(limit)
	for g := hot.NewGrace(); !g.Over() && time.Now().Before(end); {
		runtime.Gosched()
	}
}
