package hot

import (
	"testing"
	"unsafe"
)

// watched is a Watch of words and of queues, of which the last one is of what a device matches.
type watched struct {
	Watch
	words  [5]uint32
	queues [3][8]uint64
	next   [3]uint64
}

const watchedEvent = 1 << 7

func newWatched(t *testing.T) *watched {
	t.Helper()
	w := new(watched)
	ok := w.Words(unsafe.Pointer(&w.words[0]), unsafe.Pointer(&w.words[1]), unsafe.Pointer(&w.words[2]),
		unsafe.Pointer(&w.words[3]), unsafe.Pointer(&w.words[4]))
	for i := range w.queues {
		w.point(i, 1)
		ok = ok && w.Queue(&w.next[i], watchedEvent, i == len(w.queues)-1)
	}
	if !ok {
		t.Fatal("too many words or queues")
	}
	return w
}

// point has the reader of a queue have come to a word of it.
func (w *watched) point(queue, word int) {
	w.next[queue] = uint64(uintptr(unsafe.Pointer(&w.queues[queue][word])))
}

// check asks twice: Calm, which keeps what it finds, and behind that Found.
func (w *watched) check(t *testing.T, what string, want uint32) {
	t.Helper()
	polls := w.Polls
	if calm := w.Calm(); calm != (want == 0) || w.Polls-polls != 1 {
		t.Errorf("%s: calm is %v, counts %d", what, calm, w.Polls-polls)
	}
	for _, time := range []string{"first", "second"} {
		if found := w.Found(); found != want {
			t.Errorf("%s: found is %d the %s time, want %d", what, found, time, want)
		}
	}
}

// TestWatch: a watch finds each word that is not 0, and each event where a queue's reader has stopped, and nothing
// before it has a queue.
func TestWatch(t *testing.T) {
	if w := new(Watch); w.Calm() || w.Found() != WatchMatched|WatchOther {
		t.Error("the zero watch is calm")
	}
	w := newWatched(t)
	w.check(t, "with nothing there", 0)
	for i := range w.words {
		w.words[i] = 1 << i
		w.check(t, "with a word", WatchOther)
		w.words[i] = 0
	}
	for i := range w.queues {
		want := uint32(WatchOther)
		if i == len(w.queues)-1 {
			want = WatchMatched
		}
		w.queues[i][1] = ^uint64(watchedEvent)
		w.check(t, "with other bits", 0)
		w.queues[i][1], w.queues[i][5] = 0, watchedEvent
		w.check(t, "with an event elsewhere", 0)
		w.point(i, 5)
		w.check(t, "with an event", want)
		w.words[4] = 1
		w.check(t, "with an event and a word", want|WatchOther)
		w.words[4], w.queues[i][5] = 0, 0
		w.check(t, "behind it", 0)
	}
}

// TestWatchKept: what Calm has found is returned once, and what comes behind it the time after.
func TestWatchKept(t *testing.T) {
	w := newWatched(t)
	w.queues[2][1] = watchedEvent
	if w.Calm() {
		t.Fatal("calm with an event")
	}
	w.words[0] = 1
	if first, second := w.Found(), w.Found(); first != WatchMatched || second != WatchMatched|WatchOther {
		t.Errorf("found %d, then %d", first, second)
	}
}

// TestWatchExpects: what a backend expects is found once, without reading, and forgotten by the next poll.
func TestWatchExpects(t *testing.T) {
	w := newWatched(t)
	w.Expect()
	polls := w.Polls
	if !w.Expects() || w.Found() != WatchMatched|WatchNext || w.Polls != polls || w.Expects() || w.Found() != 0 {
		t.Errorf("after %d polls: %+v", w.Polls-polls, w.Watch)
	}
	if w.Expect(); !w.Calm() || w.Expects() {
		t.Error("a poll that has found nothing expects something")
	}
}

// TestWatchBounds: what does not fit is refused, and all that fits is read.
func TestWatchBounds(t *testing.T) {
	var w Watch
	words, list := make([]uint32, WatchWords), []unsafe.Pointer(nil)
	for i := range words {
		list = append(list, unsafe.Pointer(&words[i]))
	}
	if w.Words(append(list, list[0])...) || !w.Words(list...) {
		t.Error("more words are taken than fit, or not all that do")
	}
	var events [2][WatchQueues]uint64
	var next [2][WatchQueues]uint64
	for kind := range events {
		for i := range events[kind] {
			next[kind][i] = uint64(uintptr(unsafe.Pointer(&events[kind][i])))
			if !w.Queue(&next[kind][i], 1, kind == 1) {
				t.Fatal("refused")
			}
		}
		if w.Queue(&next[kind][0], 1, kind == 1) {
			t.Error("more queues are taken than fit")
		}
	}
	check := func(what string, i int, want uint32) {
		t.Helper()
		if found := w.Found(); found != want {
			t.Errorf("%s %d: found %d, want %d", what, i, found, want)
		}
	}
	check("nothing", 0, 0)
	for i := range words {
		words[i] = 1
		check("word", i, WatchOther)
		words[i] = 0
	}
	for kind := range events {
		for i := range events[kind] {
			events[kind][i] = 1
			check("queue", i, []uint32{WatchOther, WatchMatched}[kind])
			events[kind][i] = 0
		}
	}
}
