// Package eq holds event queues: the asynchronous events of control
// operations, and what applications write themselves (fi_eq(3)).
//
// Events and errors are two lists under one mutex: an event queue is not on
// the data path. While an error is pending, reads are refused with fi.EAVAIL
// until [Queue.ReadErr] has taken it. Events of the provider are never
// refused; an application's own are when the queue holds as many as it was
// opened for.
package eq

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weft-fabric/weft/cq"
	"github.com/weft-fabric/weft/fi"
)

// defaultSize and maxSize bound the number of events, in entries.
const (
	defaultSize = 1024
	maxSize     = 1 << 24
)

// Event is an event: its number (FI_NOTIFY, FI_AV_COMPLETE, …) and its entry,
// in the layout that fi_eq(3) gives for the number.
type Event struct {
	Number uint32
	Entry  []byte
	// Info describes a connection request (FI_CONNREQ), nil for other events.
	Info *fi.Info

	// shown: Entry has the address of what show made of Info. Under Queue.mu.
	shown bool
}

// Layout of struct fi_eq_cm_entry: the object's address, the info's address,
// and the peer's data, as much as there is.
const (
	cmInfo  = 8
	cmFixed = 16
)

// IsCM reports whether the event is one of a connection (struct fi_eq_cm_entry).
func (e *Event) IsCM() bool {
	switch fi.EQEvent(e.Number) {
	case fi.ConnReq, fi.Connected, fi.Shutdown:
		return len(e.Entry) >= cmFixed
	}
	return false
}

// CMEvent makes an event of the connection-oriented object fid with the peer's
// data.
func CMEvent(number fi.EQEvent, fid uintptr, info *fi.Info, data []byte) Event {
	b := make([]byte, cmFixed, cmFixed+len(data))
	binary.LittleEndian.PutUint64(b, uint64(fid))
	return Event{Number: uint32(number), Entry: append(b, data...), Info: info}
}

// ErrEntry is the fields of struct fi_eq_err_entry.
type ErrEntry struct {
	FID       uintptr
	Context   uint64
	Data      uint64
	Err       fi.Errno
	ProvErrno int32
	ErrData   []byte // a peer's data with which it rejected a connection
}

// Queue is an event queue. Its methods may be called from any thread.
type Queue struct {
	users    atomic.Int64 // of bound objects; changed by control operations
	writable bool
	size     int
	wait     *cq.Waiter
	armed    uint32 // the waiter's word

	mu     sync.Mutex // never taken by data transfers
	events []Event
	errs   []ErrEntry
	show   func(*fi.Info) (uintptr, error)
	unshow func(uintptr)
	peeked []uintptr // what show made for events that are gone unread
}

// Open makes an event queue; set is the wait set of fi.WaitSet. Errors:
// fi.EBADFLAGS, fi.EINVAL for a size or wait object that is out of range, and
// those of the system.
func Open(attr *fi.EQAttr, set *cq.WaitSet) (*Queue, error) {
	if attr.Flags&^(fi.Write|fi.Affinity) != 0 {
		return nil, fmt.Errorf("event queue flags %#x: %w", attr.Flags, fi.EBADFLAGS)
	}
	q := &Queue{writable: attr.Flags&fi.Write != 0, size: int(min(attr.Size, maxSize+1))}
	if q.size == 0 {
		q.size = defaultSize
	}
	if q.size > maxSize {
		return nil, fmt.Errorf("event queue of %d entries, at most %d: %w", attr.Size, maxSize, fi.EINVAL)
	}
	var err error
	q.wait, err = cq.NewWaiter(attr.WaitObj, set, &q.armed, q.pending, nil)
	if err != nil {
		return nil, fmt.Errorf("event queue: %w", err)
	}
	return q, nil
}

// Acquire counts a use of the queue by an object that is bound to it.
func (q *Queue) Acquire() error {
	q.users.Add(1)
	return nil
}

// Release ends a use that Acquire counted.
func (q *Queue) Release() { q.users.Add(-1) }

// Close frees the queue; events in it are lost, and with them what readers saw of their infos by fi.Peek.
// fi.EBUSY while it is bound.
func (q *Queue) Close() error {
	if q.users.Load() != 0 {
		return fi.EBUSY
	}
	q.wait.Close()
	q.mu.Lock()
	defer q.mu.Unlock()
	for i := range q.events {
		q.lose(&q.events[i])
	}
	for _, addr := range q.peeked {
		q.unshow(addr)
	}
	q.peeked = nil
	return nil
}

// lose is for an event that goes without a reader that takes the info over. A reader may use what it has peeked at
// until the queue is closed.
func (q *Queue) lose(e *Event) {
	if e.shown {
		q.peeked = append(q.peeked, uintptr(binary.LittleEndian.Uint64(e.Entry[cmInfo:])))
	}
}

// Waiter is the queue's wait object.
func (q *Queue) Waiter() *cq.Waiter { return q.wait }

// FD is the descriptor to poll for input, -1 if there is none.
func (q *Queue) FD() int { return q.wait.FD() }

// TryWait prepares for a wait on the queue's own wait object; see
// [cq.Waiter.TryWait].
func (q *Queue) TryWait() error { return q.wait.TryWait() }

func (q *Queue) pending() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.events) != 0 || len(q.errs) != 0
}

// Post adds an event of the provider.
func (q *Queue) Post(e Event) {
	q.mu.Lock()
	q.events = append(q.events, e)
	q.mu.Unlock()
	q.wait.Wake()
}

// PostError adds an error of the provider.
func (q *Queue) PostError(e ErrEntry) {
	q.mu.Lock()
	q.errs = append(q.errs, e)
	q.mu.Unlock()
	q.wait.Wake()
}

// ShowInfo sets the function that makes the object whose address readers of
// FI_CONNREQ find in the entry, and the one that frees it. show is called once for
// each event that is read or peeked at. The reader that takes the event out of the queue
// has to free the object; Close calls unshow for those that no reader took. Both are
// called under the queue's lock.
func (q *Queue) ShowInfo(show func(*fi.Info) (uintptr, error), unshow func(uintptr)) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.show, q.unshow = show, unshow
}

// Forget removes the connection events and the errors of an object that is
// closed.
func (q *Queue) Forget(fid uintptr) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.events = slices.DeleteFunc(q.events, func(e Event) bool {
		of := e.IsCM() && uintptr(binary.LittleEndian.Uint64(e.Entry)) == fid
		if of {
			q.lose(&e)
		}
		return of
	})
	q.errs = slices.DeleteFunc(q.errs, func(e ErrEntry) bool { return e.FID == fid })
}

// Write adds an application's event and returns the bytes written. Errors:
// fi.EINVAL when the queue was not opened with fi.Write, fi.EBADFLAGS,
// fi.EAGAIN when the queue is full.
func (q *Queue) Write(number uint32, entry []byte, flags uint64) (int, error) {
	if !q.writable {
		return 0, fi.EINVAL
	}
	if flags != 0 {
		return 0, fi.EBADFLAGS
	}
	q.mu.Lock()
	if len(q.events) >= q.size {
		q.mu.Unlock()
		return 0, fi.EAGAIN
	}
	q.events = append(q.events, Event{Number: number, Entry: append([]byte(nil), entry...)})
	q.mu.Unlock()
	q.wait.Wake()
	return len(entry), nil
}

// Read copies the next event's entry to buf, as much as there is room for, and
// removes the event unless flags has fi.Peek. n is the bytes copied, 0 for a buf
// without room, as libfabric's own event queues have it. A buf that has no room for
// the address of an info does not get the info. Errors: fi.EAGAIN, fi.EAVAIL when an
// error is pending, fi.EBADFLAGS, fi.ENOMEM.
func (q *Queue) Read(buf []byte, flags uint64) (number uint32, n int, err error) {
	if flags&^fi.Peek != 0 {
		return 0, 0, fi.EBADFLAGS
	}
	q.wait.Progress()
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case len(q.errs) != 0:
		return 0, 0, fi.EAVAIL
	case len(q.events) == 0:
		return 0, 0, fi.EAGAIN
	}
	e := &q.events[0]
	if e.Info != nil && !e.shown && q.show != nil && len(buf) >= cmFixed {
		addr, err := q.show(e.Info)
		if err != nil {
			return 0, 0, err
		}
		binary.LittleEndian.PutUint64(e.Entry[cmInfo:], uint64(addr))
		e.shown = true
	}
	number, n = e.Number, copy(buf, e.Entry)
	if flags&fi.Peek == 0 {
		if n < cmFixed {
			q.lose(e)
		}
		q.events = q.events[1:]
	}
	return number, n, nil
}

// Next removes and returns the next event, as Read does; fi.EAGAIN and
// fi.EAVAIL as there.
func (q *Queue) Next() (Event, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case len(q.errs) != 0:
		return Event{}, fi.EAVAIL
	case len(q.events) == 0:
		return Event{}, fi.EAGAIN
	}
	e := q.events[0]
	q.lose(&e)
	q.events = q.events[1:]
	return e, nil
}

// SRead is Read that sleeps until there is an event or timeout milliseconds
// have passed (negative: never), then fi.EAGAIN. fi.ENOSYS when the queue has
// no wait object of its own.
func (q *Queue) SRead(buf []byte, timeout int, flags uint64) (number uint32, n int, err error) {
	return q.sread(buf, timeout, flags, false)
}

// SReadSignaled is SRead for threads of C: a Unix signal to the calling thread ends it, too, with fi.EAGAIN
// (fi_eq_sread(3)). The runtime of a Go program sends signals of its own.
func (q *Queue) SReadSignaled(buf []byte, timeout int, flags uint64) (number uint32, n int, err error) {
	return q.sread(buf, timeout, flags, true)
}

func (q *Queue) sread(buf []byte, timeout int, flags uint64, ends bool) (number uint32, n int, err error) {
	var end time.Time
	if timeout >= 0 {
		end = time.Now().Add(time.Duration(timeout) * time.Millisecond)
	}
	for signaled := false; ; {
		number, n, err = q.Read(buf, flags)
		if !errors.Is(err, fi.EAGAIN) || signaled && ends || timeout >= 0 && !time.Now().Before(end) {
			return number, n, err
		}
		if signaled, err = q.wait.Sleep(nil, end); err != nil {
			return 0, 0, err
		}
	}
}

// ReadErr removes and returns the next error, or leaves it with fi.Peek.
// fi.EAGAIN when there is none.
func (q *Queue) ReadErr(flags uint64) (ErrEntry, error) {
	if flags&^fi.Peek != 0 {
		return ErrEntry{}, fi.EBADFLAGS
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.errs) == 0 {
		return ErrEntry{}, fi.EAGAIN
	}
	e := q.errs[0]
	if flags&fi.Peek == 0 {
		q.errs = q.errs[1:]
	}
	return e, nil
}
