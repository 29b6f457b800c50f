package cuda

import (
	"container/list"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Foreign names an allocation of another process of this host.
type Foreign struct {
	PID   int    // the process that has it
	Token uint64 // random: neither another allocation nor another process under that id has it
	// the driver's number of the memory, 0 where there is none: memory at the same address later has another
	Buffer uint64
}

// Mapping is what Mappings keep.
type Mapping interface {
	Size() uint64 // bytes
	Close() error // called once, when it is not used any more
}

// Limits bound what is kept of mappings that are not in use.
type Limits struct {
	Entries int
	Bytes   uint64
}

// Mappings are the allocations of other processes that this one has mapped. Each is opened once however many operations
// want it, and stays when the last of these has ended: until its owner recalls it, or is gone, or until there is no
// more room, where the one goes that was used least recently. The zero value is ready. Methods may be called by any
// thread; the mutex is locked for a few words, never while something is opened or closed.
//
// An entry is there before its owner is asked for the memory. So a recall that finds none may say that it is done:
// a later request to the owner is refused.
type Mappings struct {
	mu      sync.Mutex
	entries map[Foreign]*mapped
	idle    list.List // *mapped that are kept and unused, the most recently used first
	kept    Limits    // of all entries that are open
	limits  Limits
	onClose func(a Foreign, err error)
}

// mapped is an entry. All fields are under Mappings.mu but mapping, which is immutable from opened on.
type mapped struct {
	a       Foreign
	id      string // of the memory, as its owner names it; "": not known, or no other has it
	mapping Mapping
	opened  chan struct{} // closed when it is open, or could not be opened
	closed  chan struct{} // closed when it is gone
	err     error         // why it could not be opened
	users   int           // what a recall waits for
	holds   int           // what keeps it from being dropped for room, users among them
	leaving bool          // no new users
	idle    *list.Element // of Mappings.idle, nil: it is not there
}

// Use is a use of a mapping. Its methods are called by one thread at a time.
type Use struct {
	c      *Mappings
	e      *mapped
	paused bool
}

// ErrLeaving: the mapping is recalled or has failed, or its memory is still mapped under an older name.
var ErrLeaving = errors.New("cuda: the mapping is recalled")

// claimTime bounds the wait for an older mapping of the same memory to end, which the caller itself may use.
const claimTime = 2 * time.Second

// SetClosed has f called after each mapping that is closed, with the error of closing it. To be called before all else.
func (c *Mappings) SetClosed(f func(a Foreign, err error)) { c.onClose = f }

// Acquire returns a use of an allocation, which open maps if it is not mapped. open calls claim with the bytes by which
// the owner names the memory, if it has some, before it maps it: the error of claim, which says that it is mapped under
// another name still, is to be returned. limits are those from now on. Acquire may wait: for open, which another caller
// may be at, and for claimTime for the end of a mapping that is recalled or has failed, then the error is ErrLeaving. A
// mapping that could not be opened is tried again by the next call. Release ends the use.
func (c *Mappings) Acquire(a Foreign, limits Limits, open func(claim func(id string) error) (Mapping, error)) (*Use,
	error) {
	for limit := time.Now().Add(claimTime); ; {
		c.mu.Lock()
		c.limits = limits
		e := c.entries[a]
		switch {
		case e == nil:
			e = c.enter(a)
			c.mu.Unlock()
			return c.open(e, open)
		case e.leaving:
			c.mu.Unlock()
			select {
			case <-e.closed:
			case <-time.After(time.Until(limit)):
				return nil, ErrLeaving
			}
			continue
		}
		c.take(e)
		c.mu.Unlock()
		<-e.opened
		if e.err != nil {
			u := &Use{c: c, e: e}
			u.Release()
			return nil, e.err
		}
		return &Use{c: c, e: e}, nil
	}
}

// enter adds an entry with one user. The caller has c.mu.
func (c *Mappings) enter(a Foreign) *mapped {
	e := &mapped{a: a, opened: make(chan struct{}), closed: make(chan struct{}), users: 1, holds: 1}
	if c.entries == nil {
		c.entries = map[Foreign]*mapped{}
	}
	c.entries[a] = e
	return e
}

// take adds a user. The caller has c.mu.
func (c *Mappings) take(e *mapped) {
	e.users++
	e.holds++
	if e.idle != nil {
		c.idle.Remove(e.idle)
		e.idle = nil
	}
}

func (c *Mappings) open(e *mapped, open func(claim func(id string) error) (Mapping, error)) (*Use, error) {
	m, err := open(func(id string) error { return c.claim(e, id) })
	c.mu.Lock()
	if err != nil {
		e.err = err
		e.leaving = true
	} else {
		e.mapping = m
		c.kept.Entries++
		c.kept.Bytes += m.Size()
	}
	close(e.opened)
	c.mu.Unlock()
	u := &Use{c: c, e: e}
	if err != nil {
		u.Release()
		return nil, err
	}
	return u, nil
}

// claim notes how the owner names an entry's memory, and waits until no other entry has it: the driver maps
// an allocation once.
func (c *Mappings) claim(e *mapped, id string) error {
	for limit := time.After(claimTime); ; {
		c.mu.Lock()
		var other *mapped
		for _, o := range c.entries {
			if o != e && o.id == id && o.a.PID == e.a.PID {
				other = o
			}
		}
		if other == nil {
			e.id = id
			c.mu.Unlock()
			return nil
		}
		gone := c.dismiss(other)
		c.mu.Unlock()
		c.closeDetached(gone)
		select {
		case <-other.closed:
		case <-limit:
			return fmt.Errorf("it is in use under an older name: %w", ErrLeaving)
		}
	}
}

// dismiss lets an entry have no new users, and returns it if it has none, to be ended. The caller has c.mu.
func (c *Mappings) dismiss(e *mapped) *mapped {
	was := e.leaving
	e.leaving = true
	if was || e.users != 0 {
		return nil
	}
	return c.detach(e)
}

// detach takes an entry without users off the account. The caller has c.mu.
func (c *Mappings) detach(e *mapped) *mapped {
	if e.idle != nil {
		c.idle.Remove(e.idle)
		e.idle = nil
	}
	if e.mapping != nil {
		c.kept.Entries--
		c.kept.Bytes -= e.mapping.Size()
	}
	return e
}

// closeDetached closes entries that are detached, after which they may be opened anew.
func (c *Mappings) closeDetached(list ...*mapped) {
	for _, e := range list {
		if e == nil {
			continue
		}
		if e.mapping != nil {
			err := e.mapping.Close()
			if c.onClose != nil {
				c.onClose(e.a, err)
			}
		}
		c.mu.Lock()
		delete(c.entries, e.a)
		c.mu.Unlock()
		close(e.closed)
	}
}

// trim detaches what there is no room for. The caller has c.mu.
func (c *Mappings) trim() (gone []*mapped) {
	for back := c.idle.Back(); back != nil && (c.kept.Entries > c.limits.Entries ||
		c.kept.Bytes > c.limits.Bytes); back = c.idle.Back() {
		e := back.Value.(*mapped)
		e.leaving = true
		gone = append(gone, c.detach(e))
	}
	return gone
}

// Mapping is what is mapped. It is to be accessed between Acquire or a Resume that was granted, and Pause or Release.
func (u *Use) Mapping() Mapping { return u.e.mapping }

// Pause lets a recall go on, while the mapping is not dropped for room.
func (u *Use) Pause() {
	c := u.c
	c.mu.Lock()
	u.paused = true
	gone := c.less(u.e, 0)
	c.mu.Unlock()
	c.closeDetached(gone...)
}

// Resume ends Pause. False: the mapping was recalled; Release is to be called all the same.
func (u *Use) Resume() bool {
	u.c.mu.Lock()
	defer u.c.mu.Unlock()
	if u.e.leaving {
		return false
	}
	u.e.users++
	u.paused = false
	return true
}

// Fail says that the driver refused a copy: no further use of the mapping begins, and the next Acquire opens another. A
// mapping is gone with the context that it was made in, and nothing else says so.
func (u *Use) Fail() {
	u.c.mu.Lock()
	defer u.c.mu.Unlock()
	u.e.leaving = true
}

// Release ends the use.
func (u *Use) Release() {
	c := u.c
	c.mu.Lock()
	var gone []*mapped
	if u.paused {
		u.e.holds--
		gone = c.rest(u.e)
	} else {
		gone = c.less(u.e, 1)
	}
	c.mu.Unlock()
	c.closeDetached(gone...)
}

// less takes a user off, and holds. The caller has c.mu.
func (c *Mappings) less(e *mapped, holds int) []*mapped {
	e.users--
	e.holds -= holds
	if e.users == 0 && e.leaving {
		return []*mapped{c.detach(e)}
	}
	return c.rest(e)
}

// rest puts an entry that nothing holds among those that may be dropped for room. The caller has c.mu.
func (c *Mappings) rest(e *mapped) []*mapped {
	if e.holds == 0 && !e.leaving {
		e.idle = c.idle.PushFront(e)
	}
	return c.trim()
}

// Recall takes a mapping back: no new use begins, and when its users have ended it is closed. The
// channel is closed then, or at once if there is none.
func (c *Mappings) Recall(pid int, token uint64) <-chan struct{} {
	return c.all(func(a Foreign) bool { return a.PID == pid && a.Token == token })
}

// Gone takes all mappings of a process back, which has ended, as Recall does.
func (c *Mappings) Gone(pid int) <-chan struct{} {
	return c.all(func(a Foreign) bool { return a.PID == pid })
}

// Drop takes all mappings back, as Recall does.
func (c *Mappings) Drop() <-chan struct{} { return c.all(func(Foreign) bool { return true }) }

func (c *Mappings) all(which func(Foreign) bool) <-chan struct{} {
	c.mu.Lock()
	var waits, gone []*mapped
	for a, e := range c.entries {
		if which(a) {
			waits = append(waits, e)
			gone = append(gone, c.dismiss(e))
		}
	}
	c.mu.Unlock()
	return c.end(waits, gone)
}

// end ends what is not in use; the channel is closed when all is gone.
func (c *Mappings) end(waits, gone []*mapped) <-chan struct{} {
	done := make(chan struct{})
	c.closeDetached(gone...)
	pending := waits[:0]
	for _, e := range waits {
		select {
		case <-e.closed:
		default:
			pending = append(pending, e)
		}
	}
	if len(pending) == 0 {
		close(done)
		return done
	}
	go func() {
		for _, e := range pending {
			<-e.closed
		}
		close(done)
	}()
	return done
}

// Kept says how many mappings there are, and their bytes.
func (c *Mappings) Kept() Limits {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.kept
}
