package dataplane

import (
	"testing"
	"unsafe"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/hot"
)

// TestRecv posts receives of all kinds: those of one piece stand on the ring with all that they have, the others are
// the runtime's and leave it as it is.
func TestRecv(t *testing.T) {
	w := newWorld(t)
	rx := uintptr(unsafe.Pointer(w.rx))
	iov := [2][2]uint64{{100, 8}, {200, 8}}
	vec := uintptr(unsafe.Pointer(&iov))
	anyone := uint64(fi.AddrUnspec)
	head := uint64(0)
	w.recv.MinMulti.Store(8)
	for _, c := range []struct {
		name  string
		post  hot.Post
		exact bool // the context takes no receives from any source
		want  uintptr
	}{
		{"plain", hot.Post{Buf: 100, Len: 8, Dest: anyone}, false, hot.PostDone},
		{"tagged", hot.Post{
			Buf: 100, Len: 8, Dest: 3, Kind: hot.PostTagged, Header: 5, Data: 6, Context: 7, Flags: fi.Completion,
		}, true, hot.PostDone},
		{"one piece", hot.Post{Buf: vec, Len: 1, Dest: anyone, Kind: hot.PostVector}, false, hot.PostDone},
		{"nothing", hot.Post{Dest: anyone}, false, hot.PostDone},
		{"two pieces", hot.Post{Buf: vec, Len: 2, Dest: anyone, Kind: hot.PostVector}, false, hot.PostGo},
		{"no pieces", hot.Post{Buf: vec, Dest: anyone, Kind: hot.PostVector}, false, hot.PostGo},
		{"device", hot.Post{Buf: 100, Len: 8, Dest: anyone, Kind: hot.PostDevice}, false, hot.PostGo},
		{"no buffer", hot.Post{Len: 8, Dest: anyone}, false, hot.PostGo},
		{"multi", hot.Post{Buf: 100, Len: 8, Dest: anyone, Flags: fi.MultiRecv | fi.Completion}, false, hot.PostDone},
		{"short multi", hot.Post{Buf: 100, Len: 7, Dest: anyone, Flags: fi.MultiRecv}, false, hot.PostGo},
		{"tagged multi", hot.Post{
			Buf: 100, Len: 8, Dest: anyone, Kind: hot.PostTagged, Flags: fi.MultiRecv,
		}, false, hot.PostGo},
		{"multi search", hot.Post{Buf: 100, Len: 8, Dest: anyone, Flags: fi.MultiRecv | fi.Peek}, false, hot.PostGo},
		{"private flag", hot.Post{Buf: 100, Len: 8, Dest: anyone, Flags: hot.RecvCancel}, false, hot.PostGo},
		{"any source", hot.Post{Buf: 100, Len: 8, Dest: anyone}, true, hot.PostGo},
	} {
		w.rx.Flags = 0
		if c.exact {
			w.rx.Flags = hot.RxExact
		}
		p := c.post
		if code := Recv(uintptr(unsafe.Pointer(&p)), rx, 0, 0); code != c.want {
			t.Fatalf("%s: code %d, want %d", c.name, code, c.want)
		}
		w.rx.PostsHead = head
		e := headPost(w.rx)
		if (e != nil) != (c.want == hot.PostDone) {
			t.Fatalf("%s: on the ring %t", c.name, e != nil)
		}
		if e == nil {
			continue
		}
		want := hot.RecvEntry{
			Seq: e.Seq, Flags: c.post.Flags, Buf: uint64(p.Buf), Len: p.Len, Src: c.post.Dest, Tag: c.post.Header,
			Ignore: c.post.Data, Context: c.post.Context,
		}
		if c.post.Kind&hot.PostTagged != 0 {
			want.Flags |= hot.RecvTagged
		}
		if *e != want || c.post.Len != 0 && (e.Buf != 100 || e.Len != 8) {
			t.Errorf("%s: %+v, want %+v", c.name, *e, want)
		}
		dropPost(w.rx, headPost(w.rx))
		head = w.rx.PostsHead
	}
	p := hot.Post{Buf: 100, Len: 8, Dest: anyone}
	if code := Recv(uintptr(unsafe.Pointer(&p)), 0, 0, 0); code != hot.PostGo {
		t.Errorf("without a context: code %d", code)
	}
}

// TestRecvFull leaves a full ring as it is.
func TestRecvFull(t *testing.T) {
	for _, flags := range []uint32{0, hot.RxExclusive} {
		w := newWorld(t)
		w.rx.Flags = flags
		first, second := hot.Post{Buf: 100, Len: 8, Dest: 3}, hot.Post{Buf: 200, Len: 8, Dest: 3}
		for range 1 << ringLog2 {
			if code := push(w.rx, &first, 0); code != hot.PostDone {
				t.Fatalf("code %d", code)
			}
		}
		if code := push(w.rx, &second, 0); code != hot.PostGo {
			t.Errorf("a full ring: code %d", code)
		}
		if e := headPost(w.rx); e == nil || e.Buf != 100 {
			t.Errorf("its oldest entry is %+v", e)
		}
	}
}

// TestRecvBell asks for the bell only where the thread sleeps and the receive is work for it.
func TestRecvBell(t *testing.T) {
	for _, c := range []struct {
		want, bell uint32
		code       uintptr
	}{
		{0, hot.BellAsleep, hot.PostDone}, {1, hot.BellAwake, hot.PostDone}, {1, hot.BellAsleep, hot.PostBell},
	} {
		w := newWorld(t)
		bell := (*uint32)(w.memory(64))
		w.rx.Bell, w.rx.WantPosts, *bell = uintptr(unsafe.Pointer(bell)), c.want, c.bell
		if code := push(w.rx, &hot.Post{Buf: 100, Len: 8}, 0); code != c.code || headPost(w.rx) == nil {
			t.Errorf("%+v: code %d", c, code)
		}
	}
}
