package dataplane

import "github.com/weft-fabric/weft/internal/hot"

// Progress threads. They belong to package proxy, which starts, places and ends them, lets them sleep and runs their
// timers. What arrives while one is awake it takes in here, as a poll of the application would, and goes on to poll
// without returning to the runtime for each message: a fetching atomic is answered as fast as by a target that polls.

// passes is how many passes there are between two readings of the clock, which cost as much as three of them.
const passes = 16

// Values of Poll.Phase of a drive.
const (
	driveBegin = iota
	drivePass  // a pass over the endpoints
	driveTime  // the time is known
)

// Drive does the work of endpoints, which stay open meanwhile, until there is some that needs the runtime or that
// another thread does, nothing has come for Idle, or Most has passed. Found says whether there was any. at is the
// address of a hot.Poll with PollThread, the result one of its codes or of hot.Delivery.
func Drive(at, _, _, _ uintptr) uintptr {
	p := (*hot.Poll)(pointer(at))
	code := drive(p)
	if code == hot.DeliveryDone {
		p.Found = p.Worked
	}
	return code
}

func drive(p *hot.Poll) uintptr {
	switch p.Phase {
	case driveBegin:
		p.Phase, p.Passes, p.Worked, p.Fresh, p.Direct, p.Begin, p.Last = drivePass, 0, 0, 1, 0, 0, 0
		start(p, p.EPs)
	case driveTime:
		if p.Begin == 0 {
			p.Begin = p.Clock
		}
		if p.Fresh != 0 {
			p.Fresh, p.Last = 0, p.Clock
		}
		if p.Clock-p.Last >= p.Idle || p.Clock-p.Begin >= p.Most {
			return hot.DeliveryDone
		}
		p.Phase = drivePass
		start(p, p.EPs)
	}
	if code := progress(p); code != next {
		return code
	}
	p.Worked |= p.Found
	p.Fresh |= p.Found
	if p.Ended != 0 || p.Idle == 0 {
		return hot.DeliveryDone
	}
	if p.Passes++; p.Passes%passes != 1 {
		start(p, p.EPs)
		return hot.DeliveryPause
	}
	p.Phase = driveTime
	return hot.PollClock
}
