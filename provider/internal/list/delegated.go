package list

import (
	"github.com/weft-fabric/weft/internal/dataplane"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/provider/internal/hmem"
	"github.com/weft-fabric/weft/provider/internal/wire"
)

// Elements with memory of a device here and of another process there. That process copies them, from or to a mapping of
// this one's allocation: its descriptor thread is asked to, and a goroutine there does it, without progress of the
// owner. What the owner does not do goes as messages.

// delegatedBytes bounds the bytes of one request: for as long the owner's region stays open, and other requests wait.
const delegatedBytes = 16 << 20

// delegation are elements that owners are asked to copy, of one post.
type delegation struct {
	op      *Op
	pid     int
	request wire.CopyRequest
	from    hmem.Exported // the allocation that the pieces are in
	bytes   uint64        // of the pieces
	numbers []uint32      // the elements that end with the request
	whole   uint64        // bytes of them
	left    []uint32      // elements that go as messages
	copied  uint64        // elements that are copied
	done    uint64        // bytes of them
}

// add has an element of a region copied by its owner, now or with the next request.
func (d *delegation) add(n uint32, el *dataplane.Element, to *Owner) {
	if d.pid != to.PID || d.request.Key != to.Key || !d.from.Has(el.Local, el.Len) {
		d.flush()
		from, ok := d.op.list.of.ep.Exported(el.Local, el.Len)
		if !ok {
			d.left = append(d.left, n)
			return
		}
		d.pid, d.from = to.PID, from
		d.request = wire.CopyRequest{
			Incarnation: to.Incarnation, Key: to.Key, Rights: to.Rights, Token: from.Token, Buffer: from.Buffer,
		}
	}
	whole := true
	for at := uint64(0); at < el.Len; {
		if len(d.request.Pieces) == batchElements || d.bytes == delegatedBytes {
			whole = d.flush() && whole
		}
		k := min(el.Len-at, delegatedBytes-d.bytes)
		piece := wire.CopyPiece{Offset: el.Local - d.from.Base + at, Addr: el.Remote + at, N: k}
		d.request.Pieces = append(d.request.Pieces, piece)
		d.bytes += k
		at += k
	}
	if !whole {
		d.left = append(d.left, n)
		return
	}
	d.numbers = append(d.numbers, n)
	d.whole += el.Len
}

// flush asks for what is entered, and reports whether it is copied. An element of which a piece is still to be entered
// is not among numbers.
func (d *delegation) flush() bool {
	var err error
	if len(d.request.Pieces) != 0 {
		err = d.op.list.of.ep.Ask(d.pid, &d.request)
	}
	if err != nil {
		log.Infof(log.EPData, "memory of a device goes as messages: %v", err)
		d.left = append(d.left, d.numbers...)
	} else {
		d.copied += uint64(len(d.numbers))
		d.done += d.whole
	}
	d.request.Pieces, d.bytes = d.request.Pieces[:0], 0
	d.numbers, d.whole = d.numbers[:0], 0
	return err == nil
}
