package hot

import (
	"sync/atomic"
	"unsafe"

	"github.com/weft-fabric/weft/internal/order"
)

// Bounds of what a [Watch] reads: words by eights, queues by twos.
const (
	WatchWords  = 24
	WatchQueues = 12
)

// Watch is what of a transport is read to find that nothing has come, without a call of its backend. The backend says
// once what that is ([Watch.Words], [Watch.Queue]); [Watch.Calm] and [Watch.Found] read it. All of it belongs to the
// progress lease, but for Polls. The zero Watch is never calm. It lies off the Go heap.
type Watch struct {
	words   uint32 // eights of them
	others  uint32 // pairs of queues
	matched uint32 // pairs of queues of what a device matches
	kept    uint32 // what Calm has found, or Expect was called for, and Found has not returned; Watch*
	event   uint64
	word    [WatchWords]uintptr     // of uint32, by other threads; behind the last of none
	next    [2][WatchQueues]uintptr // of others and of matched: of uint64; behind the last of nothing
	// Polls is how many there were. Stored by the lease holder (release), read by threads that post (atomic).
	Polls uint32
	_     uint32
}

// What [Watch.Found] finds.
const (
	WatchMatched = 1 // events of what a device matches
	WatchOther   = 2 // anything else
	WatchNext    = 4 // with WatchMatched alone: an event behind the last one, which Expect was called for
)

// none is a word that is 0.
var none uint32

// nothing is the word of no event, and nowhere its address.
var (
	nothing uint64
	nowhere = uint64(uintptr(unsafe.Pointer(&nothing)))
)

// Words has a poll find nothing only while all these words are 0, which something else keeps alive. It is called once.
// False: too many.
func (w *Watch) Words(words ...unsafe.Pointer) bool {
	if len(words) > len(w.word) {
		return false
	}
	for n := range w.word {
		w.word[n] = uintptr(unsafe.Pointer(&none))
	}
	for n, p := range words {
		w.word[n] = uintptr(p)
	}
	w.words = uint32(len(words)+7) / 8
	return true
}

// Queue has it find nothing only while there is no event at the address that next, which something else keeps alive,
// holds: that of a word off the Go heap in which one of the bits of event is set in each event. matched says that the
// queue has the events of what a device matches. False: too many.
func (w *Watch) Queue(next *uint64, event uint64, matched bool) bool {
	list, pairs := &w.next[0], &w.others
	if matched {
		list, pairs = &w.next[1], &w.matched
	}
	n := *pairs * 2
	if n != 0 && list[n-1] == uintptr(unsafe.Pointer(&nowhere)) {
		n--
	}
	if n == WatchQueues {
		return false
	}
	list[n], w.event = uintptr(unsafe.Pointer(next)), event
	if n%2 == 0 {
		list[n+1] = uintptr(unsafe.Pointer(&nowhere))
		*pairs++
	}
	return true
}

// Calm counts a poll, and reports whether there is nothing at the queues, nor for what no event says. What there is it
// keeps for [Watch.Found]. It needs nothing of the runtime.
func (w *Watch) Calm() bool { return w.read() == 0 }

// Found returns what the last [Watch.Calm] has found, the second time what there is now, with another poll counted.
// What comes in between is found the time after: it stays until it is dealt with.
func (w *Watch) Found() uint32 {
	found := w.kept
	if found == 0 {
		found = w.read()
	}
	w.kept = 0
	return found
}

// Expect has the next [Watch.Found] return an event of what a device matches, without reading anything: the backend has
// seen it behind the last one, in the same queue.
func (w *Watch) Expect() { w.kept = WatchMatched | WatchNext }

// Expects reports whether something is known to be there that Found has not returned.
func (w *Watch) Expects() bool { return w.kept != 0 }

// read counts a poll, reads all that the Watch names, and keeps what it finds.
func (w *Watch) read() uint32 {
	order.Store32(&w.Polls, w.Polls+1)
	if w.others == 0 || w.words == 0 {
		return WatchMatched | WatchOther
	}
	other := events(unsafe.Pointer(&w.next[0]), w.others)
	matched := uint64(0)
	if w.matched != 0 {
		matched = events(unsafe.Pointer(&w.next[1]), w.matched)
	}
	set, at := uint32(0), unsafe.Pointer(&w.word)
	for n := w.words; ; at = unsafe.Add(at, 8*unsafe.Sizeof(uintptr(0))) {
		p := (*[8]uintptr)(at)
		set |= load(p[0]) | load(p[1]) | load(p[2]) | load(p[3])
		set |= load(p[4]) | load(p[5]) | load(p[6]) | load(p[7])
		if n--; n == 0 {
			break
		}
	}
	found := uint32(0)
	if matched&w.event != 0 {
		found = WatchMatched
	}
	if other&w.event != 0 || set != 0 {
		found |= WatchOther
	}
	w.kept = found
	return found
}

// events are the words of the events at pairs of queues, of which there is one at least.
func events(at unsafe.Pointer, pairs uint32) (words uint64) {
	for {
		p := (*[2]uintptr)(at)
		words |= eventAt(p[0]) | eventAt(p[1])
		if pairs--; pairs == 0 {
			return words
		}
		at = unsafe.Add(at, unsafe.Sizeof(*p))
	}
}

// eventAt is the word of the event to which next leads.
func eventAt(next uintptr) uint64 {
	return atomic.LoadUint64((*uint64)(pointer(uintptr(atomic.LoadUint64((*uint64)(pointer(next)))))))
}

func load(word uintptr) uint32 { return atomic.LoadUint32((*uint32)(pointer(word))) }

// pointer turns an address of memory that something else keeps alive into a pointer.
func pointer(address uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&address)) }
