package weft

import (
	"sync"

	"github.com/weft-fabric/weft/internal/race"
)

// detector orders posts and progress for the race detector, which does not see the order that goes through rings off
// the Go heap: what a goroutine wrote into a buffer before it posted comes before what another's progress does with
// it. Only programs with the detector take it.
var detector sync.Mutex

func orderBegin() {
	if race.Enabled {
		detector.Lock()
	}
}

func orderEnd() {
	if race.Enabled {
		detector.Unlock()
	}
}
