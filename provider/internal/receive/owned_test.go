package receive

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/provider/internal/vector"
	"github.com/weft-fabric/weft/provider/internal/wire"
)

// owner is another provider that has the receives of a context.
type owner struct {
	*world
	status  fi.Errno // of the next Get
	queues  fi.Errno // what Queue says
	entries map[uint64]Receive
	queued  map[uint64]uint64 // entries by id
	freed   map[uint64]int
	last    uint64
	newest  uint64 // message
	leases  int    // that are taken
}

func (o *owner) Get(_ bool, _ fi.Addr, _, _ uint64) (uint64, fi.Errno) {
	for n := range o.messages {
		o.newest = max(o.newest, n)
	}
	if o.status != fi.Success && o.status != fi.ENOENT {
		return 0, o.status
	}
	o.last++
	return o.last, o.status
}

func (o *owner) Queue(_ bool, entry, id, data, flags uint64) fi.Errno {
	if o.queues == fi.Success {
		o.queued[id] = entry
	}
	if m := o.messages[o.newest]; (flags&fi.RemoteCQData != 0) != m.hasData || m.hasData && data != m.number {
		o.t.Errorf("message %d is queued with flags %#x", data, flags)
	}
	return o.queues
}

func (o *owner) Receive(entry uint64) Receive { return o.entries[entry] }
func (o *owner) Free(entry uint64)            { o.freed[entry]++ }
func (o *owner) Inserted()                    {}

func (o *owner) Wait() *Context {
	o.leases++
	return &o.c
}

func (o *owner) Give() { o.leases-- }

func newOwner(t *testing.T) (*model, *owner) {
	w := &model{world: newWorld(t, 5, Bounds{Bytes: 1 << 20, Memory: 1 << 20}, 1)}
	o := &owner{
		world: w.world, entries: map[uint64]Receive{}, queued: map[uint64]uint64{}, freed: map[uint64]int{},
	}
	w.c.Own(o, o)
	return w, o
}

// receive has an entry be a receive into new memory of n bytes, in pieces.
func (o *owner) receive(entry, context uint64, n, pieces int) {
	p := &posted{context: context, buf: make([]byte, n)}
	o.receives[context] = p
	r := Receive{Context: context}
	for i := range pieces {
		r.IOV = append(r.IOV, vector.Of(p.buf[i*n/pieces:(i+1)*n/pieces]))
	}
	o.entries[entry] = r
}

// message has a message of a kind arrive, and returns it.
func (w *model) message(kind, n int) *sent {
	w.next++
	m := &sent{
		at: w.eps[0], from: strangers - 1, kind: kind, tagged: true, tag: 9, number: w.next,
		payload: bytes.Repeat([]byte{byte(w.next)}, n), hasData: kind == matched,
	}
	w.messages[m.number] = m
	w.send(m)
	return m
}

// TestOwned has messages of each kind arrive for receives of another provider: it has the receive, or names it later,
// or drops the message, or the endpoint closes before.
func TestOwned(t *testing.T) {
	w, o := newOwner(t)
	freed := map[uint64]int{}
	ended := func(m *sent, entry uint64, want outcome, acks ...fi.Errno) {
		t.Helper()
		p := o.receives[m.number]
		if len(p.got) != 1 || p.got[0] != want || !slices.Equal(m.acks, acks) {
			t.Errorf("message %d, kind %d: %+v with ACKs %v, not %+v with %v", m.number, m.kind, p.got, m.acks,
				want, acks)
		}
		if freed[entry]++; o.freed[entry] != 1 {
			t.Errorf("entry %d is freed %d times", entry, o.freed[entry])
		}
	}
	for kind := eager; kind <= long; kind++ {
		acks := []fi.Errno{fi.Success}
		if kind == eager {
			acks = nil
		}
		for _, n := range []int{0, 5, 100} {
			o.status = fi.Success // matched at once
			o.receive(o.last+1, w.next+1, 100, 1+n%3)
			m := w.message(kind, n)
			ended(m, o.last, outcomeOf(m, n), acks...)

			o.status = fi.ENOENT // later
			m = w.message(kind, n)
			if waits := kind >= matched || kind == eager; waits == (len(m.acks) == 1) {
				t.Errorf("a queued message of kind %d has ACKs %v", kind, m.acks)
			}
			id, entry := o.onlyQueued()
			if at := Addr(id); at != strangers-1 {
				t.Errorf("the message is from address %d", at)
			}
			o.receive(entry, m.number, 100, 1)
			if err := Start(entry, id); err != nil {
				t.Fatal(err)
			}
			ended(m, entry, outcomeOf(m, n), acks...)
			if !errors.Is(Start(entry, id), fi.ENOENT) || !errors.Is(Discard(id), fi.ENOENT) || Addr(id) != fi.AddrUnspec {
				t.Error("a message is there twice")
			}

			m = w.message(kind, n) // dropped
			id, entry = o.onlyQueued()
			if err := Discard(id); err != nil || o.freed[entry] != 0 || !slices.Equal(m.acks, acks) {
				t.Errorf("discard: %v, entry freed %d times, ACKs %v", err, o.freed[entry], m.acks)
			}
		}
	}
	if o.leases != 0 || w.c.UnexpectedBytes != 0 || w.c.Memory != 0 {
		t.Errorf("%d leases, %d bytes, %d of memory", o.leases, w.c.UnexpectedBytes, w.c.Memory)
	}
}

// onlyQueued takes the one message that is queued.
func (o *owner) onlyQueued() (id, entry uint64) {
	if len(o.queued) != 1 {
		o.t.Fatalf("%d messages are queued", len(o.queued))
	}
	for id, entry = range o.queued {
		delete(o.queued, id)
	}
	return id, entry
}

// TestOwnedRefused has owners that cannot take messages, and receives that are none. The sender is answered, and the
// owner's entry freed.
func TestOwnedRefused(t *testing.T) {
	w, o := newOwner(t)
	refused := func(m *sent, status fi.Errno, entries int) {
		t.Helper()
		want := []fi.Errno{status}
		if m.kind == eager {
			want = nil
		}
		if !slices.Equal(m.acks, want) || len(o.freed) != entries || len(o.receives) != 0 {
			t.Errorf("a message of kind %d: ACKs %v, not %v; %d entries are freed, not %d", m.kind, m.acks, want,
				len(o.freed), entries)
		}
	}
	for kind := eager; kind <= long; kind++ {
		clear(o.freed)
		o.status = fi.ENOMEM
		refused(w.message(kind, 20), fi.ENOMEM, 0)
		o.status, o.queues = fi.ENOENT, fi.EAGAIN
		refused(w.message(kind, 20), fi.EAGAIN, 1)
		o.status, o.queues = fi.Success, fi.Success
		o.entries[o.last+1] = Receive{IOV: make([]fi.IOVec, wire.IOVLimit+1)}
		refused(w.message(kind, 20), fi.EINVAL, 2)
		o.entries[o.last+1] = Receive{IOV: make([]fi.IOVec, 1), Descs: make([]uint64, 1)}
		refused(w.message(kind, 20), fi.EINVAL, 3)
	}
	o.status = fi.ENOENT
	w.message(long, 20)
	w.message(eager, 20)
	ids := slices.Collect(func(yield func(uint64) bool) {
		for id := range o.queued {
			yield(id)
		}
	})
	w.c.Detach(&w.eps[0].e)
	for _, id := range ids {
		if !errors.Is(Start(1, id), fi.ENOENT) {
			t.Error("a message of an endpoint that is closed is there")
		}
	}
	if w.c.UnexpectedBytes != 0 || w.c.Memory != 0 {
		t.Errorf("%d bytes, %d of memory", w.c.UnexpectedBytes, w.c.Memory)
	}
}

// TestNamed has the addresses of senders change while an owner has their messages.
func TestNamed(t *testing.T) {
	w, o := newOwner(t)
	o.status = fi.ENOENT
	m := &sent{at: w.eps[0], from: hw.Source(strangers), kind: long, number: 1, payload: []byte{1}}
	w.messages[1] = m
	w.send(m)
	id, _ := o.onlyQueued()
	if at := Addr(id); at != fi.AddrNotAvail {
		t.Errorf("a stranger has address %d", at)
	}
	w.eps[0].known = 1
	w.c.NameQueued(&w.eps[0].e)
	if at := Addr(id); at != strangers {
		t.Errorf("the sender has address %d", at)
	}
	if err := Discard(id); err != nil {
		t.Error(err)
	}
}
