package list

import (
	"errors"
	"slices"
	"sync"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/dataplane"
	"github.com/weft-fabric/weft/internal/mem"
)

// Elements in memory of processes on both sides that a device moves are operations of the transport, without requests
// of their own, where the device knows all local memory of the list (known) and its key of the region is there. Those
// that it refuses are posted as operations of their own when all others have ended: then they go as messages, by which
// the owner says why. All other elements of a list are such operations from the beginning.

// piece is an element that a device is at. It is used again when that has ended.
type piece struct {
	done   hw.Completion
	op     *Op
	over   Path
	number uint32
	bytes  uint64
	next   *piece // of Op.refused
}

var sparePieces sync.Pool

// takePiece returns one for an element.
func takePiece(op *Op, over Path, number uint32, n uint64, more bool) *piece {
	p, _ := sparePieces.Get().(*piece)
	if p == nil {
		p = &piece{}
		p.done.Func = func(c *hw.Completion) { p.ended(c.Err()) }
	}
	p.op, p.over, p.number, p.bytes, p.done.More = op, over, number, n, more
	p.done.Expect(1)
	return p
}

func (p *piece) drop() {
	p.op, p.over, p.next = nil, nil, nil
	sparePieces.Put(p)
}

// stream is what a post has found out of the device of a path.
type stream struct {
	over    Path          // nil: none was asked yet
	by      hw.OneSided   // nil: elements go as operations of their own
	longest uint64        // bytes of an element
	key     uint64        // of the region asked for last
	remote  hw.RemoteKey  // the device's of that region, where it is known
	known   bool          // it is
	segment [1]hw.Segment // of the next element
	// elements and bytes are what devices were given and have not refused, over any path
	elements, bytes uint64
}

// streams finds whether elements of a region go by the device of a path.
func (op *Op) streams(to Peer, over Path, key uint64) bool {
	s, o := &op.stream, op.list.of
	if s.over != over {
		*s = stream{over: over, elements: s.elements, bytes: s.bytes}
		if over.Device() != nil && o.cfg.TokenWays.RDMA && !o.ep.Ordered() && op.register(over) != nil {
			s.by, s.longest = over.OneSided(op.args.Read)
		}
	}
	if s.by == nil || op.refused.Load() != nil {
		return false
	}
	if s.known && s.key == key {
		return true
	}
	s.key = key
	s.remote, s.known = o.ep.DeviceKey(to, over, key)
	return s.known
}

// postPieces gives the device of a path the next elements, and returns how many. None, without an error: the next is to
// be posted as an operation of its own. fi.EAGAIN: there is no room. corked becomes the path if the device may keep the
// last. The caller has counted one as pending.
func (op *Op) postPieces(to Peer, over Path, corked *Path) (count int, err error) {
	flags := op.elementFlags()
	for op.next < op.sel.Len() && op.first.Load() == noFailure && !op.stopped() {
		el := op.sel.At(op.next)
		if !el.Direct || el.Len == 0 || !op.streams(to, over, el.Key) || el.Len > op.stream.longest ||
			!op.known.registered.Has(el.Local, el.Len) {
			break
		}
		if !op.places.later(op, over, flags) && flags != 0 && !op.args.Read {
			break // the last has a flush behind it
		}
		if count != 0 {
			op.pending.Add(1)
		}
		more := op.next+1 < op.sel.Len() && op.pending.Load() <= window
		if err = op.postPiece(over, &el, more); err != nil {
			if count != 0 {
				op.pending.Add(-1)
			}
			break
		}
		if more {
			*corked = over
		}
		op.next++
		count++
		op.stream.elements++
		op.stream.bytes += el.Len
		if op.pending.Load() > window {
			break
		}
	}
	switch {
	case count != 0: // an error comes again
		return count, nil
	case errors.Is(err, hw.ErrNoResource):
		return 0, fi.EAGAIN
	case lost(err):
		return 0, fi.ECONNRESET
	case err != nil:
		op.list.of.ep.KeyRefused(over, op.stream.key)
		op.stream.by = nil
	}
	return 0, nil
}

// postPiece gives the device the next element.
func (op *Op) postPiece(over Path, el *dataplane.Element, more bool) error {
	s, status, err := &op.stream, hw.Done, error(nil)
	p := takePiece(op, over, op.sel.Number(op.next), el.Len, more)
	s.segment[0] = hw.Segment{Addr: mem.Pointer(el.Local), Len: int(el.Len), Memory: op.known.registered.Memory()}
	if op.args.Read {
		status, err = s.by.GetZcopy(s.segment[:], el.Remote, s.remote, &p.done)
	} else {
		status, err = s.by.PutZcopy(s.segment[:], el.Remote, s.remote, &p.done)
	}
	if err != nil || status == hw.Done { // else it may have ended, and be used again
		p.drop()
	}
	if err == nil && status == hw.Done {
		op.done.Add(el.Len)
		op.pending.Add(-1) // it is not the last: the post counts too
	}
	return err
}

// lost reports whether an operation has failed with its path.
func lost(err error) bool { return errors.Is(err, hw.ErrPeerDead) || errors.Is(err, hw.ErrCanceled) }

// ended takes in that an element has ended. The transport calls it under the progress lease, or while the endpoint
// closes, which drops the post.
func (p *piece) ended(err error) {
	op := p.op
	switch {
	case !op.list.of.ep.Enabled():
		p.drop()
		return
	case err == nil:
		op.done.Add(p.bytes)
		p.drop()
	case lost(err):
		op.fail(p.number, fi.ECONNRESET)
		p.drop()
	default:
		run := 0
		op.list.of.ep.KeyRefused(p.over, op.list.shape.At(p.number, &run).Key)
		for p.next = op.refused.Load(); !op.refused.CompareAndSwap(p.next, p); p.next = op.refused.Load() {
		}
	}
	if op.pending.Add(-1) == 0 {
		end(op)
	}
}

// again makes the elements that a device has refused those that are left. False: there are none, or they do not begin.
// No element is under way.
func (op *Op) again() bool {
	first := op.refused.Load()
	if first == nil {
		return false
	}
	var left []uint32
	for p := first; p != nil; {
		next := p.next
		left = append(left, p.number)
		op.stream.elements--
		op.stream.bytes -= p.bytes
		p.drop()
		p = next
	}
	slices.Sort(left)
	op.refused.Store(nil)
	op.stream.by = nil // over the same path
	if op.first.Load() == noFailure && op.stopped() {
		op.fail(left[0], fi.ECANCELED)
	}
	if op.first.Load() != noFailure {
		return false
	}
	op.keep(left)
	op.next, op.soon = 0, together{}
	return true
}
