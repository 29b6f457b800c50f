package onesided

import (
	"sync/atomic"

	"github.com/weft-fabric/weft/cq"
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/info"
	"github.com/weft-fabric/weft/internal/pending"
	"github.com/weft-fabric/weft/provider/atomics"
	"github.com/weft-fabric/weft/provider/internal/wire"
)

// Target is the target's side of an endpoint's one-sided operations, where its process performs them: everything is
// checked against the region of the key at the moment of access, and what is refused leaves the memory untouched. All
// is for the holder of the progress lease.
type Target[O any] struct {
	ep       TargetHost[O] // immutable
	counters Counters      // immutable

	replies      pending.List[reply] // to peers' reads and atomics, that wait for room
	helps        pending.List[help]  // reads and writes of others that this side helps with, one of a source
	elements     elements[O]
	atomicResult [atomics.MaxBytes]byte
	// scratch
	head      [max(wire.DoneBytes, wire.WordBytes)]byte
	regionIOV [info.MRIOVLimit]fi.IOVec
	local     [1]hw.Segment
	remote    [1]hw.RemoteSegment
	chunk     *chunk[O] // nil before there is one
}

// Counters count what peers do to this side's memory, beside those of the regions. They may be bound at any time.
type Counters struct{ Reads, Writes *atomic.Pointer[cq.Counter] }

// Counted reports whether there is one.
func (c *Counters) Counted() bool { return c.Reads.Load() != nil || c.Writes.Load() != nil }

// Init prepares the target of an endpoint.
func (t *Target[O]) Init(ep TargetHost[O], c Counters) { t.ep, t.counters = ep, c }

// Handlers are those of the messages of initiators.
func (t *Target[O]) Handlers() map[hw.AMID]hw.Handler {
	return map[hw.AMID]hw.Handler{
		wire.AMWrite:  t.onWrite,
		wire.AMRead:   t.onRead,
		wire.AMNotify: t.onNotify,
		wire.AMAtomic: t.onAtomic,
		wire.AMShare:  t.onShare,
	}
}

// Helps reports whether Help has something to do.
func (t *Target[O]) Helps() bool { return len(t.helps) != 0 }

// Help goes on with operations of others.
func (t *Target[O]) Help() { t.helps.Step(t.stepHelp) }

// Replying reports whether results wait for room.
func (t *Target[O]) Replying() bool { return len(t.replies) != 0 }

// Reply sends what waits for room.
func (t *Target[O]) Reply() { t.replies.Step(t.pumpReply) }

// Owed is how many bytes of results wait for room.
func (t *Target[O]) Owed() (n uint64) {
	for i := range t.replies {
		n += t.replies[i].length - t.replies[i].sent
	}
	return n
}

// SourceLost drops the help for a source's operations.
func (t *Target[O]) SourceLost(src hw.Source) {
	t.helps.Step(func(h *help) bool { return h.src == src })
}

// DropReplies drops the results for a source that is gone.
func (t *Target[O]) DropReplies(src hw.Source) {
	t.replies.Step(func(r *reply) bool {
		if r.src != src {
			return false
		}
		t.dropReply(r)
		return true
	})
}

// Done answers a source's request with success: the data plane has performed it.
func (t *Target[O]) Done(src hw.Source, request uint64) {
	t.answer(src, request, &wire.Done{Units: 1, At: wire.NoPlace})
	t.ep.FillBack(src)
}

// answer sends the initiator the outcome of an operation.
func (t *Target[O]) answer(src hw.Source, request uint64, d *wire.Done) {
	t.ep.Answer(src, t.ep.Sender(src), request, d.Put(t.head[:]))
}
