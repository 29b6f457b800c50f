package provider

import (
	"time"

	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/proxy"
)

// How a progress thread has the data plane work: package cabi sets a function that calls it (dataplane.Drive), so that
// arrivals are taken in without the runtime.

// drive is what SetDrive has set; nil: there is none, as in Go programs. Set before any domain is opened.
var drive func(eps []*hot.EP, idle, most time.Duration) (worked bool)

// SetDrive sets what progress threads call to take in what has arrived at a nil-terminated list of endpoints, which
// stay open meanwhile. f returns when there is work that needs the runtime or that another thread does, when nothing
// has come for the time idle, or when the time most has passed. It reports whether it did any work, and is called by
// several threads at once. SetDrive is called before any domain is opened.
func SetDrive(f func(eps []*hot.EP, idle, most time.Duration) (worked bool)) { drive = f }

// tabled is an engine with a table that C reads.
type tabled interface{ table() *hot.EP }

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
			eps = append(eps, e.(tabled).table())
		}
		eps = append(eps, nil)
		return drive(eps, idle, most)
	}
}
