package provider

import (
	"errors"
	"runtime/debug"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/cq"
	"github.com/weft-fabric/weft/fi"
)

// TestFault posts what lies where no memory is, as a program does that recovers from it: messages of every length that
// are copied when they are posted, of one piece and of several, and receives. Other messages go on as if it were not.
func TestFault(t *testing.T) {
	s := newSide(t, fi.ThreadSafe)
	gone, err := unix.Mmap(-1, 0, 1<<16, unix.PROT_NONE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Munmap(gone) }()
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	passOne(t, s, 0)
	n := uint64(0)
	for range 300 { // more than a ring has slots, or an endpoint stripes
		for _, size := range []int{8, 500, 4096} {
			for _, iov := range [][]fi.IOVec{
				iovOf(gone[:size]), append(iovOf(make([]byte, 8)), iovOf(gone[:size])...),
				{{Base: 8, Len: uint64(size)}},
			} {
				if !faults(func() error {
					return s.ep.Send(&SendArgs{IOV: iov, Dest: s.addr[s], Tag: 1, Tagged: true})
				}) {
					t.Fatalf("%d bytes at %#x were sent", size, iov[len(iov)-1].Base)
				}
			}
		}
		if !faults(func() error {
			low := []fi.IOVec{{Base: 8, Len: 8}}
			return s.ep.PostRecv(&RecvArgs{IOV: low, Src: fi.AddrUnspec, Tag: 1, Tagged: true})
		}) {
			t.Fatal("a receive in the first page")
		}
		n++
		passOne(t, s, n)
	}
}

// TestFaultReceived receives where no memory is: the fault ends the read, and the message is for the next receive.
func TestFaultReceived(t *testing.T) {
	s := newSide(t, fi.ThreadSafe)
	gone, err := unix.Mmap(-1, 0, 1<<16, unix.PROT_NONE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Munmap(gone) }()
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	passOne(t, s, 0)
	for n := range uint64(20) {
		out := []byte{byte(n), 1, 2, 3, 4, 5, 6, 7}
		for _, in := range [][]byte{gone[:8], make([]byte, 8)} {
			a := &RecvArgs{IOV: iovOf(in), Src: fi.AddrUnspec, Tag: 1, Tagged: true}
			if err := s.ep.PostRecv(a); err != nil {
				t.Fatal(err)
			}
			if &in[0] == &gone[0] {
				if err := s.ep.Send(&SendArgs{IOV: iovOf(out), Dest: s.addr[s], Tag: 1, Tagged: true}); err != nil {
					t.Fatal(err)
				}
				drainFault(s)
				continue
			}
			for e := make([]cq.Entry, 1); ; {
				if k, _ := s.cq.Read(e); k == 1 && e[0].Flags&fi.Recv != 0 {
					break
				}
			}
			if in[0] != byte(n) || in[7] != 7 {
				t.Fatalf("message %d is %v", n, in)
			}
		}
	}
}

// drainFault reads until the fault.
func drainFault(s *side) {
	e := make([]cq.Entry, 1)
	for !faults(func() error { _, _ = s.cq.Read(e); return nil }) {
	}
}

// faults reports whether a call fails or panics.
func faults(call func() error) (failed bool) {
	defer func() {
		if recover() != nil {
			failed = true
		}
	}()
	return call() != nil
}

// passOne has an endpoint send itself a message.
func passOne(t *testing.T, s *side, n uint64) {
	t.Helper()
	in, out := make([]byte, 8), []byte{byte(n), 1, 2, 3, 4, 5, 6, 7}
	a := &RecvArgs{IOV: iovOf(in), Src: fi.AddrUnspec, Tag: 1, Tagged: true, Context: n}
	if err := s.ep.PostRecv(a); err != nil {
		t.Fatal(err)
	}
	for err := error(fi.EAGAIN); err != nil; {
		err = s.ep.Send(&SendArgs{IOV: iovOf(out), Dest: s.addr[s], Tag: 1, Tagged: true, Context: n})
		if err != nil && !errors.Is(err, fi.EAGAIN) {
			t.Fatal(err)
		}
	}
	e := make([]cq.Entry, 1)
	for got := 0; got < 2; {
		if k, err := s.cq.Read(e); err == nil {
			got += k
		}
	}
	if in[0] != byte(n) || in[7] != 7 {
		t.Fatalf("message %d is %v", n, in)
	}
}
