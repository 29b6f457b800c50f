package match

import (
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"

	"github.com/weft-fabric/weft/internal/mem"
)

// Engine matches the messages of one receive context, tagged or untagged. Its owner is the holder of the progress
// lease; it has no lock and no atomic field. It must not be copied.
type Engine struct {
	recent          uint32 // number of the class of the last receive that had one
	ready           uint32 // bit c: receives are posted in class c
	nClasses        uint32
	unexpectedLimit uint32 // with fewer unexpected messages, every class has room for one more
	unexpectedGrown bool   // a class has more than the first groups for messages
	posted          order  // all posted receives
	unexpected      order  // all unexpected messages that are not claimed
	extra           list   // posted receives that are in no class
	claimed         list   // claimed messages
	nodes           store
	classes         [MaxClasses]class // those below nClasses are in use
	clock           uint32            // counts changes of recent
	shrink          bool              // a table has become empty often enough to give memory back
	err             error             // why memory could not be had, last time
}

// New returns an engine with nothing queued. It takes memory, off the Go heap, when it is first used.
func New() (*Engine, error) {
	ns, err := mem.NewSlab[node]()
	if err != nil {
		return nil, fmt.Errorf("match: %w", err)
	}
	e := &Engine{nodes: store{Slab: *ns, secret: [2]uint64{rand.Uint64(), rand.Uint64()}}}
	for c := range e.classes {
		e.classes[c].no, e.classes[c].bit, e.classes[c].source = uint32(c), 1<<c, noSource
	}
	return e, nil
}

// Counts is how many nodes are queued.
type Counts struct {
	Posted     int // receives
	Unexpected int // unexpected messages, without claimed ones
	Claimed    int // claimed messages
	Out        int // nodes handed out and not released
}

// Counts returns how many nodes are queued.
func (e *Engine) Counts() Counts {
	c := Counts{Posted: int(e.posted.live), Unexpected: int(e.unexpected.live), Claimed: int(e.claimed.n)}
	c.Out = e.nodes.Live() - c.Posted - c.Unexpected - c.Claimed
	return c
}

// Posted returns how many receives are queued.
func (e *Engine) Posted() int { return int(e.posted.live) }

// Unexpected returns how many messages are unexpected, without claimed ones.
func (e *Engine) Unexpected() int { return int(e.unexpected.live) }

// Steps returns how many groups of tables and entries of lists were read beyond the first place of a key, ever.
func (e *Engine) Steps() uint64 { return e.nodes.steps }

// Err returns why the last call that returned nothing for lack of memory did so. It wraps an errno, ENOMEM as a rule.
func (e *Engine) Err() error { return e.err }

// fail remembers why a call returns nothing.
func (e *Engine) fail(step string, err error) {
	e.err = fmt.Errorf("match: %s: %w", step, err)
}

// Recvs walks the posted receives in the order they were posted. The loop may Remove and Release the receive it is
// at, and must change nothing else.
func (e *Engine) Recvs() iter.Seq[*Recv] {
	return func(yield func(*Recv) bool) {
		// Removal moves head forward or tail back, never beyond the present place.
		for pos := e.posted.head; int32(e.posted.tail-pos) > 0; pos++ {
			if idx := e.posted.at(pos); idx != 0 && !yield(recvOf(e.nodes.At(idx))) {
				return
			}
		}
	}
}

// Messages walks the unexpected messages in the order they arrived, then the claimed ones in the order they were
// claimed. The loop may remove (RemoveMessage) and release the message it is at, and must change nothing else.
func (e *Engine) Messages() iter.Seq[*Message] {
	return func(yield func(*Message) bool) {
		for pos := e.unexpected.head; int32(e.unexpected.tail-pos) > 0; pos++ {
			if idx := e.unexpected.at(pos); idx != 0 && !yield(messageOf(e.nodes.At(idx))) {
				return
			}
		}
		for idx := e.claimed.head; idx != 0; {
			n := e.nodes.At(idx)
			idx = e.claimed.next(n)
			if !yield(messageOf(n)) {
				return
			}
		}
	}
}

// Mapped returns the bytes of address space that the engine holds. Only pages that were used cost memory.
func (e *Engine) Mapped() int {
	n := e.nodes.Mapped() + 4*(e.posted.ring.Len()+e.unexpected.ring.Len())
	for c := range e.classes {
		n += 64 * (e.classes[c].recvs.groups.Len() + e.classes[c].msgs.groups.Len())
	}
	return n
}

// Reclaim gives memory back of what has grown and has become empty often since. The owner calls it now and then; no
// other call but Trim and Close unmaps anything.
func (e *Engine) Reclaim() {
	if e.shrink {
		e.shrink = false
		for c := range e.classes {
			e.classes[c].recvs.reclaim()
			e.classes[c].msgs.reclaim()
		}
		e.refit()
	}
	e.posted.reclaim()
	e.unexpected.reclaim()
	e.nodes.Reclaim()
}

// Trim gives memory back that is not in use now, for an owner that knows that the receive context has gone quiet.
func (e *Engine) Trim() error {
	e.posted.trim()
	e.unexpected.trim()
	for c := range e.classes {
		e.classes[c].recvs.trim()
		e.classes[c].msgs.trim()
	}
	e.refit()
	return e.nodes.Trim()
}

// Close gives all memory back. All nodes are gone, queued or not; the caller has completed what they stand for
// before. The engine is empty then, and may be used again.
func (e *Engine) Close() error {
	e.posted.drop()
	e.unexpected.drop()
	for c := range e.classes {
		e.classes[c].recvs.drop()
		e.classes[c].msgs.drop()
		e.classes[c].source = noSource
	}
	e.nClasses, e.ready, e.recent = 0, 0, 0
	e.extra, e.claimed, e.err = list{}, list{}, nil
	if err := e.nodes.Close(); err != nil {
		return fmt.Errorf("match: %w", err)
	}
	return nil
}

// errRelease is what Release panics with: going on would hand the same node to two operations.
var errRelease = errors.New("match: release of a node that is queued or free")

// release gives a node back to the slab.
func (e *Engine) release(h *head) {
	if h.state != stateOut {
		panic(errRelease)
	}
	e.put(h)
}

// put gives a node back that the caller knows to be out.
func (e *Engine) put(h *head) {
	h.state = stateFree
	e.nodes.Put(h.idx)
}
