package provider

import (
	"testing"

	"github.com/weft-fabric/weft/fi"
)

// TestPeekFar: a peek finds what was sent before it, behind as many messages as a ring has room for, also where the
// data plane keeps them.
func TestPeekFar(t *testing.T) {
	s, from := newBench(t, nil, nil).pair(t)
	const messages, last, peek = 200, 7, 9
	buf := make([]byte, 1)
	for round := range 2 { // from the second one on there is memory to keep them
		for n := range messages {
			tag := uint64(1)
			if n == messages-1 {
				tag = last
			}
			from.send(SendArgs{IOV: iovOf(buf), Dest: from.addr[s], Tagged: true, Tag: tag, Flags: fi.Inject})
			from.completion()
		}
		s.recv(RecvArgs{Src: fi.AddrUnspec, Tagged: true, Tag: last, Context: peek, Flags: fi.Peek})
		if c := s.completion(); c.Context != peek || c.Len != 1 {
			t.Fatalf("round %d: the peek ends with %+v", round, c)
		}
		for range messages {
			s.recv(RecvArgs{IOV: iovOf(buf), Src: fi.AddrUnspec, Tagged: true, Ignore: ^uint64(0)})
			s.completion()
		}
	}
}

// TestPeekBeforeRecv: a peek finds a message that came before both, and that a receive behind the peek takes then,
// whether the message is taken in before or by the peek.
func TestPeekBeforeRecv(t *testing.T) {
	const messages, peek, late = 3, 7, 8
	for round := range 3 {
		s, from := newBench(t, nil, nil).pair(t)
		buf := make([]byte, 1)
		for range round { // memory to keep messages, and acquaintance
			from.send(SendArgs{IOV: iovOf(buf), Dest: from.addr[s], Tagged: true, Flags: fi.Inject})
			from.completion(s)
			s.recv(RecvArgs{IOV: iovOf(buf), Src: fi.AddrUnspec, Tagged: true})
			s.completion(from)
		}
		for n := range uint64(messages) {
			from.send(SendArgs{IOV: iovOf(buf), Dest: from.addr[s], Tagged: true, Tag: n, Flags: fi.Inject})
		}
		r := leasedOf(s.ep).rx
		r.base.acquire() // as another thread's, so that both stay on the ring
		for _, a := range []RecvArgs{
			{Src: fi.AddrUnspec, Tagged: true, Tag: 2, Context: peek, Flags: fi.Peek},
			{IOV: iovOf(buf), Src: fi.AddrUnspec, Tagged: true, Tag: 2, Context: late},
		} {
			if err := s.ep.PostRecv(&a); err != nil {
				t.Fatal(err)
			}
		}
		r.give()
		for _, context := range []uint64{peek, late} {
			if c := s.completion(from); c.Context != context || c.Len != 1 {
				t.Errorf("round %d: %+v, want context %d", round, c, context)
			}
		}
	}
}
