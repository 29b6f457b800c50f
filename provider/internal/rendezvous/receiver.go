package rendezvous

import (
	"iter"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/mem"
	"github.com/weft-fabric/weft/provider/internal/wire"
)

// Receiver has the messages that a receive context is reading.
type Receiver struct {
	ops     *mem.Slab[operation]
	gen     uint32            // of the last operation
	active  list              // that progress steps
	waiting map[uint64]uint32 // for fragments, gets or the sender's help: id to index
	foreign map[uint64]Memory // by id, of those that read memory of the sender's device
	getters *getter           // that are free, linked
	turn    bool              // in this pass over the active list an operation with a helper was served
	all     []*Protocol       // of the endpoints that deliver into the context
	// scratch; cleared before an operation ends: the collector would take a pointer to freed memory for a fault
	local  [wire.IOVLimit]hw.Segment
	remote [wire.IOVLimit]hw.RemoteSegment
	head   [wire.RTSBytes]byte // of a message that is sent
}

// list is a queue of operations, linked by index.
type list struct{ head, tail uint32 }

// Open prepares a receiver. Errors: those of [mem.NewSlab].
func (r *Receiver) Open() (err error) {
	r.waiting, r.foreign = map[uint64]uint32{}, map[uint64]Memory{}
	r.ops, err = mem.NewSlab[operation]()
	return err
}

// Close gives the memory back. No operation is under way.
func (r *Receiver) Close() {
	if r.ops != nil {
		_ = r.ops.Close()
	}
}

// of returns the protocol of an endpoint, by its number.
func (r *Receiver) of(number uint32) *Protocol {
	for _, p := range r.all {
		if p.number == number {
			return p
		}
	}
	return nil
}

// Active reports whether Step has something to do.
func (r *Receiver) Active() bool { return r.active.head != 0 }

// Waiting reports whether operations wait for fragments, gets or the sender's help.
func (r *Receiver) Waiting() bool { return len(r.waiting) != 0 }

// Live is how many operations are under way.
func (r *Receiver) Live() int { return r.ops.Live() }

// Step steps every active operation once.
func (r *Receiver) Step() {
	i := r.active.head
	r.active, r.turn = list{}, false
	for i != 0 {
		op := r.ops.At(i)
		i = op.next
		if !r.of(op.endpoint).step(op, WaitPolls) {
			r.activate(op)
		}
	}
}

// activate puts an operation on the list that progress steps.
func (r *Receiver) activate(op *operation) {
	op.next = 0
	if r.active.tail != 0 {
		r.ops.At(r.active.tail).next = op.index
	} else {
		r.active.head = op.index
	}
	r.active.tail = op.index
}

// under are the operations under way. One with a helper may be there twice.
func (r *Receiver) under() iter.Seq[*operation] {
	return func(yield func(*operation) bool) {
		for i := r.active.head; i != 0; i = r.ops.At(i).next {
			if !yield(r.ops.At(i)) {
				return
			}
		}
		for _, i := range r.waiting {
			if !yield(r.ops.At(i)) {
				return
			}
		}
	}
}

// Messages are those under way. One may be there twice.
func (r *Receiver) Messages() iter.Seq[*Message] {
	return func(yield func(*Message) bool) {
		for op := range r.under() {
			if !yield(&op.Message) {
				return
			}
		}
	}
}
