package cxi

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/hw/cxi/internal/nic"
	"github.com/weft-fabric/weft/hw/cxi/internal/wire"
	"github.com/weft-fabric/weft/internal/libcxi"
)

// rxBuffer is a buffer of messages. It goes back to the list when the NIC has taken it off and all events of what is in
// it have been dealt with, whatever their order.
type rxBuffer struct {
	listed bool   // it is in the list, or about to be
	used   uint32 // bytes of the messages whose events have come
	end    uint32 // bytes of all messages, once it is off the list
}

// receiver is the consumer's state. It belongs to the lease holder, but for
// what is marked.
type receiver struct {
	i        *Iface
	handlers [hw.MaxAM]hw.Handler
	onPeer   func(hw.PeerEvent)

	events   eventQueue
	portal   portal
	messages *libcxi.PtlTE
	memory   pinned
	buffers  []rxBuffer
	appended []uint16  // by slot of the portal's queue, the buffer that its command appends
	unlisted uint32    // buffers that are to go to the list
	listAt   time.Time // not before, if the NIC has refused one
	// relists says that listAt is set: a sleeper wakes to list what was refused. Stored by the lease holder, read by
	// Arm.
	relists atomic.Bool

	// postponed says that the last message's handler has left it, and its event in the queue.
	postponed bool
	fresh     bool // this Progress has delivered messages, whose sources its caller may read
	empty     bool // nothing had arrived when that was last polled

	// What Stats counts: added to by the lease holder, loaded by any thread; relaxed.
	delivered, malformed, lost atomic.Uint64
}

func (r *receiver) init(i *Iface) {
	r.i = i
	r.onPeer = func(hw.PeerEvent) {}
}

// open makes the list of buffers and the presence entry.
func (r *receiver) open() (err error) {
	i, c := r.i, &r.i.cfg
	if r.memory, err = i.d.newPinned(c.RxBuffers*c.RxBytes, libcxi.MapRead|libcxi.MapWrite); err != nil {
		return err
	}
	// What was read is given back by quarters, and the NIC keeps some for itself.
	if err = r.events.open(i.d, c.RxEvents+c.RxEvents/4+31, true, i.wait, 0); err != nil {
		return err
	}
	if err = r.portal.open(i.d, max(64, 2*c.RxBuffers), &r.events); err != nil {
		return err
	}
	// Where a queue has no room for events the NIC answers as if there was no entry. That of what is sent always has
	// room: a peer that asks for the interface is not to take one with many messages for one that is gone.
	presence, err := r.portal.add(i.d, &i.tx[0].events, i.networks, indexPresence)
	if err != nil {
		return err
	}
	if r.messages, err = r.portal.add(i.d, &r.events, i.networks, indexMessages); err != nil {
		return err
	}
	r.buffers, r.appended = make([]rxBuffer, c.RxBuffers), make([]uint16, r.portal.cq.HalfSlots()/2)
	r.unlisted = uint32(len(r.buffers))
	r.list()
	id := uint16(len(r.buffers))
	if named, ok := i.named.entry(presence, id); ok {
		if !r.portal.q.Append(&named) {
			return fmt.Errorf("cxi: the target queue is full: %w", hw.ErrNoResource)
		}
		id++
	}
	// Last, because peers may send when it is there.
	here := nic.Entry{PtlTE: presence.Number(), ID: id, MatchBits: i.addr.nonce, MatchID: nic.AnyID(), Put: true,
		Silent: true}
	if !r.portal.q.Append(&here) {
		return fmt.Errorf("cxi: the target queue is full: %w", hw.ErrNoResource)
	}
	r.portal.q.Ring()
	code := uint32(0)
	err = i.tx[0].events.await("append the presence entry", func(e nic.Event) bool {
		if e.Type() == wire.EventLink && e.BufferID() < id && e.Code() != wire.RcOk {
			code = e.Code()
		}
		if e.Type() == wire.EventLink && e.BufferID() == id {
			code = max(code, e.Code())
			return true
		}
		return false
	}, &r.events)
	if err == nil && code != wire.RcOk {
		err = fmt.Errorf("cxi: no room for %d list entries (%s): %w", len(r.buffers)+1, codeText(code),
			hw.ErrNoResource)
	}
	return err
}

func (r *receiver) close() error {
	return errors.Join(r.portal.close(), r.events.close(), r.memory.close())
}

// list gives the NIC the buffers that are free.
func (r *receiver) list() {
	if r.unlisted == 0 || !r.listAt.IsZero() && time.Now().Before(r.listAt) {
		return
	}
	r.listAt = time.Time{}
	r.relists.Store(false)
	r.append()
	r.portal.q.Ring()
}

// append writes the commands that give the NIC the buffers that are free.
func (r *receiver) append() {
	c := &r.i.cfg
	for n := range r.buffers {
		b := &r.buffers[n]
		if b.listed {
			continue
		}
		e := nic.Entry{
			PtlTE: r.messages.Number(), ID: uint16(n), Memory: r.memory.at(n*c.RxBytes, 0), Length: uint64(c.RxBytes),
			MatchBits: r.i.addr.matchHigh(), Ignore: 1<<32 - 1, MatchID: nic.AnyID(), MinFree: uint32(c.longest()),
			Managed: true, Put: true, NoLink: true, NoUnlink: true,
		}
		if !r.portal.q.Append(&e) {
			break
		}
		r.appended[r.portal.q.LastSlot()] = uint16(n)
		b.listed, b.used, b.end = true, 0, 0
		r.unlisted--
	}
}

// settle finds whether a buffer that the NIC has taken off its list is free.
func (r *receiver) settle(n int) {
	b := &r.buffers[n]
	if b.listed && b.end != 0 && b.used == b.end {
		b.listed = false
		r.unlisted++
	}
}

// take deals with what has arrived, up to limit messages for handlers, and returns how many there were.
func (r *receiver) take(limit int) (n int) {
	for e := r.events.Peek(); e.There(); e = r.events.Peek() {
		if e.Type() == wire.EventPut && e.Code() == wire.RcOk {
			_, _, kind, _ := splitLow(uint32(e.MatchBits()))
			if kind == kindUser && n >= limit {
				r.empty = false
				r.events.Pause()
				r.list()
				return n
			}
			if r.arrive(e) {
				n++
			}
			if r.postponed {
				r.empty = false
				r.events.Pause()
				r.list()
				return n
			}
		} else if e.Type() == wire.EventLink && int(e.BufferID()) < len(r.buffers) && e.Code() != wire.RcOk {
			r.refusedBuffer(int(e.BufferID()))
		} else if e.Type() == wire.EventCommandFailure {
			r.refusedCommand(e)
		}
		r.events.Done(e)
	}
	r.empty = true
	r.list()
	return n
}

// refusedCommand appends the buffer of a command that the NIC refuses again.
func (r *receiver) refusedCommand(e nic.Event) {
	r.i.logf("a receive buffer: %v", errCommand(e.Code()))
	if slot := e.Slot(); slot < uint32(len(r.appended)) {
		r.refusedBuffer(int(r.appended[slot]))
	}
}

// refusedBuffer has a buffer that is not in the list appended again later.
func (r *receiver) refusedBuffer(n int) {
	b := &r.buffers[n]
	if !b.listed || b.used != 0 || b.end != 0 {
		return // messages have landed in it
	}
	b.listed = false
	r.unlisted++
	r.listAt = time.Now().Add(lastBackoff)
	r.relists.Store(true)
}

// arrive takes in one message, and reports whether a handler got it. Its bytes were written by the NIC before its
// event, so they do not change any more.
func (r *receiver) arrive(e nic.Event) (delivered bool) {
	r.postponed = false
	n, off, ok := r.place(e)
	length := e.Length()
	if !ok {
		if n < len(r.buffers) { // else of the presence entry
			r.refuse("%d bytes at %#x, outside of the buffer", length, e.Start())
		}
		return false
	}
	var data []byte
	if length > 0 {
		at := n*r.i.cfg.RxBytes + int(off)
		data = r.memory.memory[at : at+int(length) : at+int(length)]
	}
	if e.Wanted() > length {
		r.refuse("message of %d bytes, of which %d found room", e.Wanted(), length)
	} else {
		delivered = r.deliver(e.Initiator(), uint32(e.MatchBits()), e.HeaderData(), data)
	}
	if r.postponed {
		return false
	}
	r.account(e)
	return delivered
}

// place is the buffer of a message and where it begins there. False: it lies in none.
func (r *receiver) place(e nic.Event) (n int, off uint64, ok bool) {
	n, length, size := int(e.BufferID()), uint64(e.Length()), uint64(r.i.cfg.RxBytes)
	if n >= len(r.buffers) {
		return n, 0, false
	}
	off = e.Start() - r.memory.iova - uint64(n)*size
	return n, off, length == 0 || off <= size && length <= size-off
}

// account counts a message, which has been dealt with, in its buffer.
func (r *receiver) account(e nic.Event) {
	n, off, _ := r.place(e)
	b := &r.buffers[n]
	b.used += e.Length()
	if e.Last() {
		b.end = uint32(off) + e.Length()
	}
	r.settle(n)
}

// deliver gives a message to its handler, or acts on one of the backend's own, if it is the next of its sender.
func (r *receiver) deliver(id, low uint32, header uint64, data []byte) bool {
	am, head, kind, pos := splitLow(low)
	e := r.i.ids.Load().find(id)
	if kind == kindHello && pos == 0 {
		e = r.hello(e, id, header, data)
	}
	if kind == kindReset {
		if e != nil && e.addr.nonce == header && e.givenUp(data) {
			e.end(fmt.Errorf("peer %s has given up the connection: %w", e, hw.ErrPeerDead))
		}
		return false
	}
	if e == nil || e.failure.Load() != nil || pos != e.lease.next {
		return false // without a receiver, late, doubled, or behind one that was refused and will be sent again
	}
	if head > len(data) || kind != kindUser && head != 0 {
		r.refuse("message of %d bytes with a head of %d", len(data), head)
		return false
	}
	e.lease.next++
	e.hears()
	switch kind {
	case kindUser:
		if !r.handle(e, am, header, data[:head:head], data[head:]) {
			if r.postponed {
				e.lease.next--
			}
			return false
		}
		return true
	case kindHello:
		e.closedWindow.Store(uint32(header & 1))
	case kindWindow:
		e.closedWindow.Store(uint32(header & 1))
	case kindBye:
		e.lease.closed = true
		e.end(fmt.Errorf("peer %s has closed its interface: %w", e, hw.ErrPeerDead))
	}
	return false
}

// handle calls a message's handler.
func (r *receiver) handle(e *Endpoint, am uint32, header uint64, head, payload []byte) bool {
	e.lease.source = true
	h := r.handlers[am]
	if h == nil {
		r.refuse("message with id %d, which has no handler", am)
		return false
	}
	h(hw.Source(e.index), header, head, payload)
	if r.postponed {
		return false
	}
	r.delivered.Add(1)
	return true
}

// Postpone leaves the message of the handler that calls it in its buffer, and its event in the queue. What has come
// behind it, of all senders, waits.
func (i *Iface) Postpone() { i.rx.postponed = true }

// hello takes in the first message of a stream: the sender. It returns the sender, nil if it is refused. Another stream
// of the same interface has an endpoint of its own: the one before has ended at the peer, and may still be ending here.
func (r *receiver) hello(e *Endpoint, id uint32, header uint64, data []byte) *Endpoint {
	if len(data) <= addressBytes {
		r.refuse("greeting of %d bytes", len(data))
		return nil
	}
	a, err := parseAddress(data[:addressBytes])
	if err != nil || a.id() != id || a.vni != r.i.addr.vni || !r.i.named.greets(a, data[addressBytes:]) ||
		len(data) > addressBytes+max(maxNameBytes, addressBytes) {
		r.refuse("greeting % x of %#x", data, id)
		return nil
	}
	i := r.i
	i.named.learn(a)
	name, stream := append([]byte(nil), data[addressBytes:]...), uint32(header>>1)
	if e != nil && e.addr.nonce == a.nonce {
		if e.lease.stream == 0 && e.failure.Load() == nil {
			e.lease.stream = stream
			e.name.Store(&name)
			e.isThere()
			return e
		}
		if int32(stream-e.lease.stream) <= 0 {
			return e // doubled
		}
		e.end(fmt.Errorf("peer %s has begun another stream: %w", e, hw.ErrPeerDead))
	} else if e != nil {
		e.end(fmt.Errorf("another interface has the place of peer %s: %w", e, hw.ErrPeerDead))
	}
	i.mu.Lock()
	e, err = i.newEndpoint(a, name)
	i.mu.Unlock()
	if err != nil {
		r.refuse("%v", err)
		return nil
	}
	e.lease.stream = stream
	e.welcome()
	return e
}

func (r *receiver) refuse(format string, args ...any) {
	r.malformed.Add(1)
	r.i.logf(format, args...)
}

// Progress delivers up to limit arrived messages and completes operations.
func (i *Iface) Progress(limit int) int {
	r := &i.rx
	if i.closed.Load() {
		return 0
	}
	n := 0
	i.ringAll()
	for _, q := range i.tx {
		q.tryPoll()
		n += q.completeAll()
	}
	got := r.take(limit)
	r.fresh = got > 0
	n += got
	if i.match != nil {
		n += i.match.progress(limit)
	}
	if i.anyTodo.Load() {
		i.upkeep()
	}
	n += i.flushes.Complete()
	return n
}
