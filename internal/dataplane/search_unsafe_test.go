package dataplane

import (
	"testing"
	"unsafe"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/stats"
)

// searcher is a world whose receive context searches may be posted to.
type searcher struct {
	*world
}

func newSearcher(t *testing.T) *searcher {
	s := &searcher{world: newWorld(t)}
	s.grow()
	s.recv.Endpoints = 1
	return s
}

// search posts a search for a tag and returns the code.
func (s *searcher) search(flags, tag, context uint64) uintptr {
	p := hot.Post{
		Kind: hot.PostTagged | hot.PostVector, Dest: uint64(fi.AddrUnspec), Header: tag, Flags: flags, Context: context,
	}
	return Recv(uintptr(unsafe.Pointer(&p)), uintptr(unsafe.Pointer(s.rx)), uintptr(unsafe.Pointer(s.ep)), 0)
}

// ends makes progress, and checks the one completion that there is: of a message of n bytes with a tag, or with n < 0
// an error.
func (s *searcher) ends(context, tag uint64, n int) {
	s.t.Helper()
	s.deliver()
	var e errorEntry
	code := ReadError(uintptr(unsafe.Pointer(s.cq)), uintptr(unsafe.Pointer(&e)), 0, 0)
	if n < 0 {
		if code != hot.DeliveryDone || e.context != context || e.tag != tag || e.err != int32(fi.ENOMSG) ||
			e.provErrno != e.err || e.flags != fi.Recv|fi.Tagged {
			s.t.Fatalf("code %d, %+v", code, e)
		}
	} else if c, ok := s.pop(); code != hot.DeliveryGo || !ok || c.Context != context ||
		c.Tag != tag || c.Len != uint64(n) {
		s.t.Fatalf("code %d, %t, %+v", code, ok, c)
	}
	if c, ok := s.pop(); ok {
		s.t.Fatalf("one completion too many: %+v", c)
	}
	if s.recv.Urgent.Load() != 0 {
		s.t.Fatalf("%d searches are left", s.recv.Urgent.Load())
	}
}

// TestSearch peeks for, reserves, receives and drops messages that are unexpected, or on the ring still.
func TestSearch(t *testing.T) {
	s := newSearcher(t)
	s.search(fi.Peek, 5, 1)
	s.ends(1, 5, -1)
	s.send(eager(hot.AMTag, 5, 0, []byte("on the ring")))
	s.search(fi.Peek, 5, 2)
	s.ends(2, 5, 11)
	s.search(fi.Peek|fi.Claim, 5, 3)
	s.ends(3, 5, 11)
	s.search(fi.Peek, 5, 4)
	s.ends(4, 5, -1)
	s.search(fi.Claim|fi.Discard, 5, 4)
	s.ends(4, 5, -1) // no message is reserved for it
	s.search(fi.Claim|fi.Discard, 5, 3)
	s.ends(3, 5, 11)
	s.send(eager(hot.AMTag, 6, 0, []byte("short")))
	s.search(fi.Peek|fi.Discard, 6, 5)
	s.ends(5, 6, 5)
	s.search(fi.Peek, 6, 6)
	s.ends(6, 6, -1)
	if n, c := s.recv.UnexpectedBytes, s.recv.Tagged.Counts(); n != 0 || c.Claimed+c.Unexpected+c.Out != 0 ||
		s.rx.WantPosts != 0 {
		t.Errorf("%d bytes, %+v are left, want %d", n, c, s.rx.WantPosts)
	}
}

// TestSearchOrder has a search come off the post ring behind the receives that were posted before it, and before those
// posted after it.
func TestSearchOrder(t *testing.T) {
	s := newSearcher(t)
	s.send(eager(hot.AMTag, 5, 0, []byte("first")))
	s.deliver()
	buf := unsafe.Slice((*byte)(s.memory(8)), 8)
	s.post(hot.RecvEntry{
		Flags: hot.RecvTagged, Buf: uint64(at(buf)), Len: 8, Src: uint64(fi.AddrUnspec), Tag: 5, Context: 1,
	})
	s.search(fi.Peek, 5, 2)
	s.post(hot.RecvEntry{
		Flags: hot.RecvTagged, Buf: uint64(at(buf)), Len: 8, Src: uint64(fi.AddrUnspec), Tag: 5, Context: 3,
	})
	s.send(eager(hot.AMTag, 5, 0, []byte("second")))
	for _, want := range []uint64{1, 2, 3} {
		s.deliver()
		if c, ok := s.pop(); !ok || c.Context != want || want > 1 && c.Len != 6 {
			t.Fatalf("%t %+v, want %d", ok, c, want)
		}
	}
	if string(buf[:6]) != "second" {
		t.Errorf("received %q", buf)
	}
}

// TestSearchCounts counts a search that finds nothing as a failure, at a full queue not at all.
func TestSearchCounts(t *testing.T) {
	s := newSearcher(t)
	s.ep.RxCntr = uintptr(unsafe.Pointer(s.cntr))
	s.search(fi.Peek, 5, 1)
	s.ends(1, 5, -1)
	if s.cntr.Errors != 1 || s.cntr.Value != 0 {
		t.Errorf("counter %d, %d errors", s.cntr.Value, s.cntr.Errors)
	}
	e := hot.CQE{Context: 9}
	for completeTo(s.cq, &e) {
	}
	s.search(fi.Peek, 5, 2)
	d := hot.Delivery{EP: uintptr(unsafe.Pointer(s.ep))}
	if code := deliver(&d); code != hot.DeliveryGo || s.recv.Urgent.Load() != 1 || s.cntr.Errors != 1 {
		t.Errorf("code %d, %d searches, %d errors", code, s.recv.Urgent.Load(), s.cntr.Errors)
	}
	if n := *(*uint64)(pointer(s.ep.StatsRx + stats.RxSearchesDirect*8)); n != 1 {
		t.Errorf("%d searches are counted", n)
	}
}

// TestSearchLeaves leaves a search to the runtime that finds nothing where messages may come by other ways, and one
// that the data plane does not make.
func TestSearchLeaves(t *testing.T) {
	for name, change := range map[string]func(*searcher){
		"endpoints":  func(s *searcher) { s.recv.Endpoints = 2 },
		"transports": func(s *searcher) { s.rx.Attention = hot.AttentionTransports },
		"ended":      func(s *searcher) { s.recv.Ended = true },
		"owned":      func(s *searcher) { s.ep.Flags = 0 },
	} {
		s := newSearcher(t)
		change(s)
		s.search(fi.Peek, 5, 1)
		d := hot.Delivery{EP: uintptr(unsafe.Pointer(s.ep))}
		if code := deliver(&d); code != hot.DeliveryGo || s.recv.Urgent.Load() != 1 || headPost(s.rx) == nil {
			t.Errorf("%s: code %d", name, code)
		}
	}
}

// TestPostSearch posts searches that are the data plane's, and some that are not, for the runtime to refuse or to make.
func TestPostSearch(t *testing.T) {
	for _, c := range []struct {
		name  string
		flags uint64
		kind  uint32
		len   uint64
		armed bool
		want  uintptr
	}{
		{"peek", fi.Peek, hot.PostTagged, 0, false, hot.PostDone},
		{"discard", fi.Peek | fi.Discard, hot.PostTagged, 0, false, hot.PostDone},
		{"slept for", fi.Peek, hot.PostTagged, 0, true, hot.PostBell},
		{"untagged", fi.Peek, 0, 0, false, hot.PostGo},
		{"claim without a buffer", fi.Claim, hot.PostTagged, 0, false, hot.PostGo},
		{"no pieces that matter", fi.Peek, hot.PostTagged | hot.PostDevice, 2, false, hot.PostDone},
		{"discard of a claim", fi.Claim | fi.Discard, hot.PostTagged, 1, false, hot.PostDone},
		{"two pieces", fi.Claim, hot.PostTagged, 2, false, hot.PostGo},
		{"all three", fi.Peek | fi.Claim | fi.Discard, hot.PostTagged, 0, false, hot.PostGo},
		{"multi", fi.Peek | fi.MultiRecv, hot.PostTagged, 0, false, hot.PostGo},
	} {
		s := newSearcher(t)
		if c.armed {
			s.cq.Flags, s.cq.Armed = hot.CQWaitable, 1
		}
		p := hot.Post{Kind: c.kind | hot.PostVector, Flags: c.flags, Len: c.len, Dest: uint64(fi.AddrUnspec)}
		code := Recv(uintptr(unsafe.Pointer(&p)), uintptr(unsafe.Pointer(s.rx)), uintptr(unsafe.Pointer(s.ep)), 0)
		urgent := s.recv.Urgent.Load()
		if code != c.want || (urgent == 1) != (c.want != hot.PostGo) || uint32(urgent) != s.rx.WantPosts {
			t.Errorf("%s: code %d, %d searches, want %d", c.name, code, urgent, s.rx.WantPosts)
		}
	}
}

// TestReadErrorLeaves leaves errors with more than an entry to the runtime, and gives err_data as fi_cq_readerr does.
func TestReadErrorLeaves(t *testing.T) {
	s := newSearcher(t)
	queue := uintptr(unsafe.Pointer(s.cq))
	e := errorEntry{errData: 7}
	if code := ReadError(queue, uintptr(unsafe.Pointer(&e)), 0, 0); code != hot.DeliveryGo {
		t.Fatalf("of an empty queue: %d", code)
	}
	for i, c := range []struct {
		more     uint64
		data, n  uint64
		wantData uint64
	}{{0, 7, 0, 0}, {0, 7, 8, 7}, {1, 7, 8, 7}} {
		var at spot
		if !at.take(s.cq, nil) {
			t.Fatal("the queue is full")
		}
		entry := (*hot.CQE)(pointer(at.slot))
		briefError(entry, 1, fi.Recv, 2, fi.ENOMSG)
		entry.Buf = c.more
		at.publish(s.cq, hot.CQMarkError)
		e = errorEntry{errData: c.data, errDataSize: c.n}
		code := ReadError(queue, uintptr(unsafe.Pointer(&e)), 0, 0)
		if (code == hot.DeliveryDone) != (c.more == 0) || e.errData != c.wantData {
			t.Errorf("%d: code %d, data %d of %d bytes", i, code, e.errData, e.errDataSize)
		}
	}
}
