package threads

import (
	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/dataplane"
	"github.com/weft-fabric/weft/internal/hot"
)

// Server is an endpoint that messages are delivered to. The caller of Deliver holds its progress lease.
type Server interface {
	// Serve does what a delivery asks of the runtime by a code (hot.Delivery*).
	Serve(d *hot.Delivery, code uintptr)
	// Act does what is left to do behind completions (hot.Todo*).
	Act(todo uint32)
}

// Deliver takes in what has arrived from this host for an endpoint, up to what is the runtime's: a part of it, behind
// posted receives for which a message may be unexpected, or all, and no receives before it. It reports whether that was
// anything, and whether nothing is left for the runtime. Where it panics at a program's own memory, its thread is
// discharged later.
func Deliver(ep *hot.EP, s Server, all bool) (worked, done bool) {
	t := Take()
	if t == nil {
		return false, false
	}
	d := &t.delivery
	begin := dataplane.Begin
	if all {
		begin = dataplane.BeginAll
	}
	begin(d, ep)
	code := dataplane.Deliver(d, &t.self)
	for code != hot.DeliveryDone && code != hot.DeliveryGo {
		if code == hot.DeliveryRead {
			readPeer(&d.Copy)
		} else if code != hot.DeliveryPause {
			s.Serve(d, code)
		}
		code = dataplane.Deliver(d, &t.self)
	}
	todo, worked := d.Todo, d.Worked != 0
	t.Give()
	if todo != 0 {
		s.Act(todo)
	}
	return worked, code == hot.DeliveryDone
}

// readPeer makes a copy from a peer's memory. One that is made in part is as one that is not made.
func readPeer(c *hot.Copy) {
	n, _, errno := unix.Syscall6(unix.SYS_PROCESS_VM_READV, uintptr(c.PID), c.Here, uintptr(c.Pieces), c.There,
		uintptr(c.Pieces), 0)
	switch {
	case errno != 0:
		c.Error = int32(errno)
	case uint64(n) != c.Len:
		c.Error = int32(fi.EFAULT)
	default:
		c.Error = 0
	}
}
