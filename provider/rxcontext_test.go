package provider

import (
	"errors"
	"testing"
	"time"

	"github.com/weft-fabric/weft/cq"
	"github.com/weft-fabric/weft/fi"
)

// TestPostsStay has timers and arrivals find posted receives on their ring. No
// more of them are taken off it than it takes to find the message's: the others
// stay where C delivers into them. They are taken in when a message is kept.
func TestPostsStay(t *testing.T) {
	b := newBench(t, nil, nil)
	s, from := b.pair(t)
	const receives = 5
	bufs := make([]byte, receives)
	for i := range receives {
		s.recv(RecvArgs{IOV: iovOf(bufs[i : i+1]), Src: fi.AddrUnspec, Tagged: true, Tag: uint64(i),
			Context: uint64(i)})
	}
	matched := func(when string, want int) {
		t.Helper()
		if got := leasedOf(s.ep).rx.matching.Posted(); got != want {
			t.Errorf("%s: matching holds %d receives, not %d", when, got, want)
		}
	}
	arrive := func(tag uint64) {
		t.Helper()
		from.send(SendArgs{IOV: iovOf([]byte{byte(tag)}), Dest: from.addr[s], Tagged: true, Tag: tag, Flags: fi.Inject},
			s)
	}
	deliver := func(tag uint64) {
		t.Helper()
		arrive(tag)
		if c := s.completion(from); c.Context != tag || bufs[tag] != byte(tag) {
			t.Errorf("message %d ended receive %d and left %d in its buffer", tag, c.Context, bufs[tag])
		}
	}
	s.housekeep()
	matched("timers", 0)
	deliver(0)
	matched("a message for the oldest receive", 0)
	deliver(2)
	matched("a message for the second of four", 1)
	deliver(1)
	matched("a message for the one that was passed over", 0)

	const unexpected = 99
	arrive(unexpected)
	for leasedOf(s.ep).rx.matching.UnexpectedMessages() == 0 {
		s.ep.Progress()
	}
	matched("a message that fits none", 2)
	s.recv(RecvArgs{Src: fi.AddrUnspec, Tagged: true, Tag: 100, Context: 100})
	s.ep.Progress()
	matched("a receive while a message is kept", 3)
	late := make([]byte, 1)
	s.recv(RecvArgs{IOV: iovOf(late), Src: fi.AddrUnspec, Tagged: true, Tag: unexpected, Context: unexpected})
	if c := s.completion(from); c.Context != unexpected || late[0] != unexpected {
		t.Errorf("the kept message ended receive %d and left %d in its buffer", c.Context, late[0])
	}
	for _, tag := range []uint64{4, 3} {
		deliver(tag)
	}
	matched("but one received", 1)
}

// TestPeekInHandler has an arrival find a search on the ring of posted receives:
// it is done after the message, which it finds, and not by the message's handler,
// in which nothing may search for more.
func TestPeekInHandler(t *testing.T) {
	b := newBench(t, nil, nil)
	s, from := b.pair(t)
	const messages, peek, late = 3, 7, 8
	for n := range uint64(messages) {
		from.send(SendArgs{IOV: iovOf([]byte{byte(n)}), Dest: from.addr[s], Tagged: true, Tag: n, Flags: fi.Inject})
	}
	r := leasedOf(s.ep).rx
	r.base.acquire() // as another thread's, so that the peek stays on the ring
	got := make([]byte, 1)
	for _, a := range []RecvArgs{
		{Src: fi.AddrUnspec, Tagged: true, Tag: 0, Context: peek, Flags: fi.Peek},
		{IOV: iovOf(got), Src: fi.AddrUnspec, Tagged: true, Tag: 2, Context: late},
	} {
		if err := s.ep.PostRecv(&a); err != nil {
			t.Fatal(err)
		}
	}
	r.proceed(true)
	kept := r.matching.UnexpectedMessages()
	r.give()
	if kept != messages {
		t.Fatalf("%d of %d messages are kept", kept, messages)
	}
	if c := s.completion(from); c.Context != peek || c.Len != 1 {
		t.Errorf("the peek ends with %+v", c)
	}
	if c := s.completion(from); c.Context != late || got[0] != 2 {
		t.Errorf("the receive ends with %+v and %d", c, got[0])
	}
	if n := r.matching.UnexpectedMessages(); n != messages-1 {
		t.Errorf("%d messages are kept in the end", n)
	}
}

// TestLostOnRing has a peer's end end the receives that name it, also those that are
// still on their ring.
func TestLostOnRing(t *testing.T) {
	b := newBench(t, nil, directed())
	s, peer := b.pair(t)
	oneMessage(t, peer, s, 8) // they have met
	s.recv(RecvArgs{IOV: iovOf(make([]byte, 1)), Src: s.addr[peer], Context: 1})
	s.recv(RecvArgs{IOV: iovOf(make([]byte, 1)), Src: fi.AddrUnspec, Context: 2})
	if n := leasedOf(s.ep).rx.matching.Posted(); n != 0 {
		t.Fatalf("%d receives are in matching", n)
	}
	peer.close()
	var buf [1]cq.Entry
	for end := time.Now().Add(time.Minute); ; s.housekeep() {
		if _, err := s.cq.Read(buf[:]); errors.Is(err, fi.EAVAIL) {
			break
		}
		if time.Now().After(end) {
			t.Fatal("no receive has ended")
		}
	}
	if e, err := s.cq.ReadErr(); err != nil || e.Context != 1 || e.Err != fi.ECONNRESET {
		t.Errorf("the receive from the peer ends with %+v, %v", e, err)
	}
	if n := leasedOf(s.ep).rx.matching.Posted(); n != 1 {
		t.Errorf("%d receives are left", n)
	}
}
