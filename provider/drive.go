package provider

import (
	"time"

	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/proxy"
)

// drive does the work of endpoints in C, nil where there is no C path. Set before
// any domain is opened.
var drive func(eps []*hot.EP, idle, most time.Duration) (worked bool)

// SetDrive sets what progress threads call to take in what has arrived at
// endpoints, behind which the slice has a nil, without Go: until there is work that needs Go or that another thread
// is at, nothing has come for the time idle, or the time most has passed. It tells
// whether it did any work, and is called by several threads at once. To be set
// before any domain is opened.
func SetDrive(f func(eps []*hot.EP, idle, most time.Duration) (worked bool)) { drive = f }

// driver returns what a progress thread drives its engines with; nil: each by
// its own methods.
func (d *Domain) driver() func([]proxy.Engine, time.Duration, time.Duration) bool {
	if drive == nil || d.hybrid() {
		return nil
	}
	var eps []*hot.EP // the thread's
	return func(engines []proxy.Engine, idle, most time.Duration) bool {
		eps = eps[:0]
		for _, e := range engines {
			eps = append(eps, e.(*background).hot)
		}
		eps = append(eps, nil)
		return drive(eps, idle, most)
	}
}
