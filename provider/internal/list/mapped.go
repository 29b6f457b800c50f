package list

import (
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/provider/internal/pieces"
)

// Elements with memory of a device. Where the region is this process's or a device's, they are copied by this process:
// from and to a mapping of the owner's allocation (package hmem). Else the memory of the device is this process's, and
// the owner maps it and copies (delegated.go). That waits for the owner, and for copies, so a goroutine does it: it
// asks the owner once for each region what of its memory is where, which is how memory that is gone is found, begins
// all copies on one stream, and waits for the stream once for batchElements of them. What cannot be mapped goes as
// messages then.

// batchElements is how many copies are under way before they are waited for. If one fails, those before are known to be
// done.
const batchElements = 1024

// takeMapped takes the elements that may go by a mapping out of the selection, and returns them.
func (op *Op) takeMapped() (mapped []uint32) {
	if !op.list.mapped || !op.list.of.cfg.TokenWays.IPC {
		return nil
	}
	return op.sel.Mapped()
}

// copyMapped copies elements, and leaves those of regions that cannot be mapped in the selection. It is the goroutine
// of the operation, which no other thread is at.
func (op *Op) copyMapped(elements []uint32) {
	l := op.list
	m := l.of.ep.Map(l.regions, op.args.Read, l.near)
	sel := l.all()
	sel.Picks = elements
	i := 0
	for i < len(elements) && op.first.Load() == noFailure && !op.stopped() {
		i = op.copyBatch(m, &sel, i)
	}
	op.sel.Picks = append(op.sel.Picks, elements[i:]...) // of an operation that has failed, or is canceled
	m.End()
	l.of.ep.Enter(op)
}

// failure is the first element of a batch that has failed, and why.
type failure struct {
	at     int // in the selection
	err    error
	driver bool // err is of a copy
}

// copyBatch copies the next elements from the i-th on, and returns where it stopped.
func (op *Op) copyBatch(m Mapped, sel *pieces.Selection, i int) int {
	began, copied, bytes := i, uint64(0), uint64(0)
	var failed failure
	out := delegation{op: op}
	for ; i < sel.Len() && i < began+batchElements && failed.err == nil; i++ {
		el := sel.At(i)
		switch how := m.Reach(el.Key); how.By {
		case ByOwner:
			out.add(sel.Number(i), &el, &how.Owner)
		case ByCopy:
			if err := m.Copy(&el); err != nil {
				failed = failure{i, err, true}
				break
			}
			copied++
			bytes += el.Len
		case ByNone:
			failed = failure{i, how.Err, false}
		case ByMessage:
			op.sel.Picks = append(op.sel.Picks, sel.Number(i))
		}
	}
	// those that are begun may fail, too, and the driver does not say which
	if err := m.Wait(); err != nil {
		failed, copied, bytes = failure{began, err, true}, 0, 0
	}
	out.flush()
	op.sel.Picks = append(op.sel.Picks, out.left...)
	op.copied(copied+out.copied, bytes+out.done)
	if failed.err != nil {
		n := sel.Number(failed.at)
		log.Warnf(log.EPData, "element %d of a list, in memory of a device: %v", n, failed.err)
		op.fail(n, m.Failed(sel.At(failed.at).Key, failed.driver))
	}
	return i
}
