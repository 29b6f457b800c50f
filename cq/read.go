package cq

import (
	"errors"
	"sync/atomic"
	"time"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/cqring"
)

// Reading a queue from Go. C threads read by the data plane (dataplane.Read), with the same steps on the rings
// (cqring.Batch).

// Read takes up to len(dst) completions (fi_cq_read(3)). EAGAIN: there is none;
// then it has made progress, so that the next call may find one. EAVAIL: an error
// is next; see ReadErr. With an empty dst it makes progress and takes nothing.
func (q *Queue) Read(dst []Entry) (int, error) {
	if len(dst) == 0 {
		return 0, q.readNone()
	}
	n, bad := q.pop(dst)
	if n > 0 {
		return n, nil
	}
	if bad {
		return 0, errAvail
	}
	worked := q.wait.Progress()
	if atomic.LoadUint64(&q.hot.Overflow) != 0 {
		q.FlushOverflow()
	} else if !worked {
		return 0, errAgain
	}
	n, bad = q.pop(dst)
	switch {
	case n > 0:
		return n, nil
	case bad:
		return 0, errAvail
	}
	return 0, errAgain
}

// ReadQuietly is Read without progress: it only takes what is there.
func (q *Queue) ReadQuietly(dst []Entry) (int, error) {
	n, bad := q.pop(dst)
	switch {
	case n > 0:
		return n, nil
	case bad:
		return 0, errAvail
	}
	return 0, errAgain
}

// pop takes completions off the queue, up to an error; bad says that it got none because an error is next.
func (q *Queue) pop(dst []Entry) (n int, bad bool) {
	if cqring.Empty(q.hot) {
		return 0, false
	}
	b := cqring.Begin(q.hot, uint64(len(dst)))
	for b.Next(q.hot) {
		for r := cqring.Of(q.hot, b.N); b.Head != b.End; b.Head++ {
			dst[n] = entryOf(r.At(b.Head))
			n++
			r.Release(b.Head)
		}
	}
	return n, b.Failed()
}

// readNone is a read of no entries. Programs make progress with such reads
// between tries to send, so it makes some even when an error is next.
func (q *Queue) readNone() error {
	q.wait.Progress()
	if atomic.LoadUint64(&q.hot.Overflow) != 0 {
		q.FlushOverflow()
	}
	for i := range q.rings {
		if q.rings[i].read.Failed() {
			return errAvail
		}
	}
	return errAgain
}

// ReadErr takes the error that is next (fi_cq_readerr(3)). EAGAIN: none is. Its data stay until the queue is read
// again.
func (q *Queue) ReadErr() (ErrEntry, error) { return q.ReadErrInto(q.last) }

// ReadErrInto is ReadErr that copies the error's data to data, as many as it has room for, so that several threads may
// read errors at a time.
func (q *Queue) ReadErrInto(data []byte) (ErrEntry, error) {
	for {
		r, ok := cqring.NextError(q.hot)
		if !ok {
			return ErrEntry{}, errAgain
		}
		if e, ok := popError(r, cqring.Exclusive(q.hot)); ok {
			return q.errors.take(e, data), nil
		} // else another reader was faster
	}
}

// SRead is Read that sleeps until there is something (fi_cq_sread(3)), or
// timeout milliseconds have passed (negative: never), or the queue is signaled:
// EAGAIN. With a queue opened for fi.CQCondThreshold it tries to return threshold
// entries, and returns fewer when the time is over. ENOSYS: the wait object is
// fi.WaitNone or fi.WaitSet.
func (q *Queue) SRead(dst []Entry, threshold uint64, timeout int) (int, error) {
	if !q.wait.sleeps() {
		return 0, errNoSys
	}
	if len(dst) == 0 {
		return q.Read(dst)
	}
	want := 1
	if q.cond == fi.CQCondThreshold {
		want = int(min(max(threshold, 1), uint64(len(dst))))
	}
	end := until(timeout)
	got := 0
	for {
		n, err := q.Read(dst[got:])
		got += n
		if err == nil || errors.Is(err, errAgain) {
			if got >= want {
				return got, nil
			}
			_, err = q.sleep(end)
		}
		switch {
		case err != nil && got > 0:
			return got, nil // what was read comes before why there is no more
		case err != nil:
			return 0, err
		}
	}
}

// Wait sleeps until another poll might find something: nil. EAGAIN: timeout
// milliseconds have passed (negative: never), the queue was signaled, or the calling thread got a Unix signal, which is
// what fi_cq_sread(3) says of C's threads. ENOSYS is as in SRead. It is SRead for callers that read on their own.
func (q *Queue) Wait(timeout int) error {
	if !q.wait.sleeps() {
		return errNoSys
	}
	signaled, err := q.sleep(until(timeout))
	if err == nil && signaled {
		return errAgain
	}
	return err
}

// sleep sleeps once. signaled: a Unix signal ended that, as signals of the Go runtime's do in Go programs.
func (q *Queue) sleep(end time.Time) (signaled bool, err error) {
	if q.takeSignal() || expired(end) {
		return false, errAgain
	}
	signaled = q.wait.sleep(nil, end)
	if q.takeSignal() {
		return false, errAgain
	}
	return signaled, nil
}

// takeSignal consumes one Signal, if there is one.
func (q *Queue) takeSignal() bool {
	for {
		n := atomic.LoadUint32(&q.hot.Signaled)
		if n == 0 {
			return false
		}
		if atomic.CompareAndSwapUint32(&q.hot.Signaled, n, n-1) {
			return true
		}
	}
}

// dropSignal forgets signals that a wait set or fi_trywait has reported.
func (q *Queue) dropSignal() { atomic.StoreUint32(&q.hot.Signaled, 0) }

// Signal makes every thread that sleeps in SRead or Wait return, or the next
// one that would (fi_cq_signal(3)). ENOSYS: there is no wait object.
func (q *Queue) Signal() error {
	if q.wait.Kind() == fi.WaitNone {
		return errNoSys
	}
	atomic.StoreUint32(&q.hot.Signaled, max(1, q.wait.sleepers()))
	q.wait.signal()
	return nil
}

// TryWait prepares for a wait on the queue's own wait object; see
// [Waiter.TryWait].
func (q *Queue) TryWait() error { return q.wait.TryWait() }
