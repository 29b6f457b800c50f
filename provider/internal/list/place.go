package list

import (
	"slices"

	"github.com/weft-fabric/weft/fi"
)

// When an element that a device writes has ended, the device there has it, and its memory may not. A flush of the path
// puts all in its place that was written before. A post that completes so (fi.DeliveryComplete), or that has a
// notification, needs one for all its elements: the last of them has it behind it, where it goes by the device, and the
// post flushes when all have ended, which takes nothing if the device has written nothing since.

// later reports whether the next element, posted over a path with flags, may leave it to the post that it is put in its
// place.
func (op *Op) later(over Path, flags uint64) bool {
	if op.args.Read || flags&fi.DeliveryComplete == 0 || over.Device() == nil || op.next+1 == op.sel.Len() {
		return false
	}
	if !slices.Contains(op.through, over) {
		op.through = append(op.through, over)
	}
	return true
}

// placement is how far what was written has got.
type placement int

const (
	placed    placement = iota
	placing             // end is called when it is
	placeFull           // there is no room for a flush
)

// place has what devices have written be put in its place. No element is under way.
func (op *Op) place() placement {
	for n := len(op.through) - 1; n >= 0; n-- {
		over := op.through[n]
		op.through = op.through[:n] // before another thread may be at it
		done, err := op.list.of.ep.Flush(over, op.flushed)
		switch {
		case fi.ErrnoOf(err) == fi.EAGAIN:
			op.through = op.through[:n+1]
			return placeFull
		case err != nil:
			op.misplace(err)
		case !done:
			return placing
		}
	}
	return placed
}

// flushed takes in that a flush has ended.
func (op *Op) flushed(err error) {
	if err != nil {
		op.misplace(err)
	}
	op.end()
}

// misplace notes that it is not known of any element whether it is in its place.
func (op *Op) misplace(err error) {
	op.done.Store(0)
	if op.first.Load() == noFailure {
		op.fail(op.sel.Number(0), fi.ErrnoOf(err))
	}
}
