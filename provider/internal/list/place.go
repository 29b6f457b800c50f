package list

import (
	"slices"

	"github.com/weft-fabric/weft/fi"
)

// When an element that a device writes has ended, the device there has it, and its memory may not. A flush of the path
// puts all in its place that was written before. A post that completes so (fi.DeliveryComplete), or that has a
// notification, needs one for all its elements: the last of them has it behind it, where it goes by the device, and the
// post flushes when all have ended, which takes nothing if the device has written nothing since.

// places are the paths by whose devices something of a post goes that is to be put in its place.
type places struct {
	through []Path
	least   uint32 // of the numbers of these elements
}

// flags are the flags of the operations of elements.
func (*places) flags(op *Op) uint64 {
	if op.note != nil && !op.args.Read {
		return fi.DeliveryComplete // they are done before it goes
	}
	return op.args.Flags & fi.DeliveryComplete
}

// later reports whether the next element, posted over a path with flags, may leave it to the post that it is put in its
// place.
func (p *places) later(op *Op, over Path, flags uint64) bool {
	if op.args.Read || flags&fi.DeliveryComplete == 0 || over.Device() == nil || op.next+1 == op.sel.Len() {
		return false
	}
	if n := op.sel.Number(op.next); len(p.through) == 0 || n < p.least {
		p.least = n
	}
	if !slices.Contains(p.through, over) {
		p.through = append(p.through, over)
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

// put has what devices have written be put in its place. No element is under way.
func (p *places) put(op *Op) placement {
	for n := len(p.through) - 1; n >= 0; n-- {
		over := p.through[n]
		p.through = p.through[:n] // before another thread may be at it
		done, err := op.list.of.ep.Flush(over, func(err error) {
			p.misplaced(op, err)
			end(op)
		})
		switch {
		case fi.ErrnoOf(err) == fi.EAGAIN:
			p.through = p.through[:n+1]
			return placeFull
		case err != nil:
			p.misplaced(op, err)
		case !done:
			return placing
		}
	}
	return placed
}

// misplaced takes in an error of a flush, nil for none: of no element is known whether it is in its place.
func (p *places) misplaced(op *Op, err error) {
	if err == nil {
		return
	}
	op.done.Store(0)
	if op.first.Load() == noFailure {
		op.fail(p.least, fi.ErrnoOf(err))
	}
}
