package list

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/dataplane"
	"github.com/weft-fabric/weft/internal/mem"
)

// Elements in memory of processes on both sides that a device moves are operations of the transport, without requests
// of their own, where the device knows all local memory of the list and its key of the region is there. Those
// that it refuses are posted as operations of their own when all others have ended: then they go as messages, by which
// the owner says why. All other elements of a list are such operations from the beginning.

// piece is an element that a device is at. It is used again when that has ended.
type piece struct {
	done   hw.Completion
	op     *Op
	over   Path
	number uint32
	bytes  uint64
	next   *piece // of stream.refused
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

// stream is what a post has of the device of a path. All but refused is of the thread that runs the work queue, and of
// the one that ends the post.
type stream struct {
	over    Path          // nil: none was asked yet
	by      hw.OneSided   // nil: elements go as operations of their own
	longest uint64        // bytes of an element
	key     uint64        // of the region asked for last
	remote  hw.RemoteKey  // the device's of that region, where it is known
	known   bool          // it is
	asked   bool          // it was asked for since Pump began
	counted bool          // the post is counted as one that moves
	segment [1]hw.Segment // of the next element
	memory  known         // while elements are under way or to be posted
	// elements and bytes are what devices were given and have not refused, over any path
	elements, bytes uint64
	// refused are elements that a device has refused. Pushed by compare-and-swap as they end, taken when none is under
	// way; sequentially consistent.
	refused atomic.Pointer[piece]
}

// goes finds whether elements of a region go by the device of a path.
func (s *stream) goes(op *Op, to Peer, over Path, key uint64) bool {
	o := op.list.of
	if s.over != over {
		s.over, s.by, s.known, s.asked = over, nil, false, false
		if over.Device() != nil && o.cfg.TokenWays.RDMA && !o.ep.Ordered() && op.register(over) != nil {
			s.by, s.longest = over.OneSided(op.args.Read)
			s.longest = min(s.longest, o.ep.Message(over).Element) // longer ones go under a window
		}
	}
	if s.by == nil || s.refused.Load() != nil || !o.cfg.TokenWays.RDMA {
		return false
	}
	if s.key == key && (s.known || s.asked) {
		return s.known
	}
	s.key, s.asked = key, true
	s.remote, s.known = o.ep.DeviceKey(to, over, key)
	return s.known
}

// post gives the device of a path the next elements, and returns how many. None, without an error: the next is to be
// posted as an operation of its own. fi.EAGAIN: there is no room. corked becomes the path if the device may keep the
// last. The caller has counted one as pending.
func (s *stream) post(op *Op, to Peer, over Path, corked *Path) (count int, err error) {
	flags := op.places.flags(op)
	for op.next < op.sel.Len() && op.first.Load() == noFailure && !op.stopped() {
		el := op.sel.At(op.next)
		if !el.Direct || el.Len == 0 || !s.goes(op, to, over, el.Key) || el.Len > s.longest ||
			!s.memory.used.local.Has(el.Local, el.Len) {
			break
		}
		if !op.places.later(op, over, flags) && flags != 0 && !op.args.Read {
			break // the last has a flush behind it
		}
		if count != 0 {
			op.pending.Add(1)
		}
		more := op.next+1 < op.sel.Len() && op.pending.Load() <= window
		if err = s.move(op, &el, more); err != nil {
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
		s.elements++
		s.bytes += el.Len
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
		op.list.of.ep.KeyRefused(over, s.key)
		s.by = nil
	}
	return 0, nil
}

// move gives the device the next element.
func (s *stream) move(op *Op, el *dataplane.Element, more bool) (err error) {
	if !s.counted {
		s.counted = true
		op.list.of.moving.Add(1)
	}
	var status hw.Status
	p := takePiece(op, s.over, op.sel.Number(op.next), el.Len, more)
	s.segment[0] = hw.Segment{Addr: mem.Pointer(el.Local), Len: int(el.Len), Memory: s.memory.used.local.Memory()}
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
		refused := &op.stream.refused
		for p.next = refused.Load(); !refused.CompareAndSwap(p.next, p); p.next = refused.Load() {
		}
	}
	if op.pending.Add(-1) == 0 {
		end(op)
	}
}

// again makes the elements that a device has refused those that are left. False: there are none, or they do not
// begin. No element is under way.
func (s *stream) again(op *Op) bool {
	first := s.refused.Load()
	if first == nil {
		return false
	}
	var left []uint32
	for p := first; p != nil; {
		next := p.next
		left = append(left, p.number)
		s.elements--
		s.bytes -= p.bytes
		p.drop()
		p = next
	}
	slices.Sort(left)
	s.refused.Store(nil)
	s.by = nil // over the same path
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

// count counts the elements that devices have moved, of a post that ends.
func (s *stream) count(op *Op) {
	if s.counted {
		op.list.of.moving.Add(-1)
	}
	if s.elements != 0 {
		op.list.of.ep.CountDevice(op.to, op.args.Read, s.elements, s.bytes)
	}
}
