package cq

import (
	"encoding/binary"
	"errors"
	"slices"
	"testing"
	"unsafe"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/hot"
)

// open opens a queue as applications do and closes it with the test.
func open(t testing.TB, attr fi.CQAttr, opts Options) *Queue {
	t.Helper()
	q, err := Open(&attr, opts, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := q.Close(); err != nil {
			t.Error(err)
		}
	})
	return q
}

func entry(n uint64) Entry {
	return Entry{Context: n, Flags: fi.Recv | fi.Tagged, Len: n + 1, Buf: n + 2, Data: n + 3, Tag: n + 4,
		Src: fi.Addr(n + 5)}
}

func wantErr(t *testing.T, err error, want fi.Errno) {
	t.Helper()
	if fi.ErrnoOf(err) != want {
		t.Fatalf("error %v, want %v", err, want)
	}
}

// wantRead reads all there is and compares the contexts.
func wantRead(t *testing.T, q *Queue, want ...uint64) {
	t.Helper()
	dst := make([]Entry, len(want)+1)
	n, err := q.Read(dst)
	if len(want) == 0 {
		wantErr(t, err, fi.EAGAIN)
		return
	}
	if err != nil || n != len(want) {
		t.Fatalf("read %d %v, want %d", n, err, len(want))
	}
	for i, w := range want {
		if dst[i].Context != w {
			t.Fatalf("entry %d is %d, want %d", i, dst[i].Context, w)
		}
	}
}

func TestLayout(t *testing.T) {
	var s hot.CQE
	var e Entry
	if unsafe.Sizeof(e) != unsafe.Sizeof(s)-8 || unsafe.Offsetof(e.Src) != unsafe.Offsetof(s.Src)-8 ||
		unsafe.Offsetof(e.Buf) != unsafe.Offsetof(s.Buf)-8 {
		t.Error("Entry and hot.CQE differ")
	}
	if unsafe.Offsetof(record{}.CQError) != 0 {
		t.Error("C does not find the error record")
	}
	if uintptr(lastErrorAt) != unsafe.Sizeof(hot.CQ{}) || ringsAt%64 != 0 || ringsAt-lastErrorAt < MaxErrData {
		t.Error("parts of a queue's memory overlap")
	}
}

func TestOpen(t *testing.T) {
	for _, c := range []struct {
		attr  fi.CQAttr
		opts  Options
		size  uint64
		rings uint32
	}{
		{fi.CQAttr{}, Options{}, 1024, 1},
		{fi.CQAttr{Size: 1}, Options{Stripes: 1}, 1, 2},
		{fi.CQAttr{Size: 1000}, Options{Stripes: 3}, 1024, 5},
		{fi.CQAttr{Size: 4096}, Options{RingEntries: 100, Stripes: 4}, 128, 5},
		{fi.CQAttr{Size: 2, Flags: fi.Affinity, SignalingVector: 3}, Options{Stripes: 1000}, 2, 65},
	} {
		q := open(t, c.attr, c.opts)
		if q.Size() != c.size || q.hot.NRings != c.rings || 1<<q.hot.Log2Slots != c.size {
			t.Errorf("%+v %+v: size %d, %d rings", c.attr, c.opts, q.Size(), q.hot.NRings)
		}
		if q.Format() != fi.CQFormatContext {
			t.Errorf("default format is %d", q.Format())
		}
	}
	for _, c := range []struct {
		attr fi.CQAttr
		want fi.Errno
	}{
		{fi.CQAttr{Format: 5}, fi.EINVAL},
		{fi.CQAttr{Format: -1}, fi.EINVAL},
		{fi.CQAttr{WaitObj: 7}, fi.EINVAL},
		{fi.CQAttr{WaitObj: fi.WaitSet}, fi.EINVAL},
		{fi.CQAttr{WaitObj: fi.WaitFD, WaitCond: 2}, fi.EINVAL},
		{fi.CQAttr{Size: 1 << 40}, fi.EINVAL},
		{fi.CQAttr{Flags: fi.Peek}, fi.EBADFLAGS},
	} {
		_, err := Open(&c.attr, Options{}, nil)
		wantErr(t, err, c.want)
	}
	if _, err := Open(&fi.CQAttr{WaitCond: 2}, Options{}, nil); err != nil {
		t.Errorf("a wait condition without a wait object is not ignored: %v", err)
	}
}

func TestPut(t *testing.T) {
	e := entry(10)
	words := []uint64{e.Context, e.Flags, e.Len, e.Buf, e.Data, e.Tag}
	for format, n := range map[fi.CQFormat]int{fi.CQFormatContext: 1, fi.CQFormatMsg: 3, fi.CQFormatData: 5,
		fi.CQFormatTagged: 6} {
		if EntrySize(format) != 8*n {
			t.Errorf("format %d: size %d", format, EntrySize(format))
		}
		buf := make([]byte, 64)
		if rest := e.Put(buf, format); len(rest) != 64-8*n {
			t.Errorf("format %d: %d bytes left", format, len(rest))
		}
		for i := range 8 {
			var want uint64
			if i < n {
				want = words[i]
			}
			if got := binary.LittleEndian.Uint64(buf[8*i:]); got != want {
				t.Errorf("format %d word %d: %d, want %d", format, i, got, want)
			}
		}
	}
	if EntrySize(fi.CQFormatUnspec) != 0 {
		t.Error("an unspecified format has a size")
	}
}

// TestOrder pushes and pops through many laps, one ring and several, shared and
// exclusive.
func TestOrder(t *testing.T) {
	for _, exclusive := range []bool{false, true} {
		q := open(t, fi.CQAttr{Size: 4}, Options{Exclusive: exclusive, Stripes: 2})
		wantRead(t, q)
		for n := uint64(0); n < 100; n += 3 {
			for i := range uint64(3) {
				if !q.TryComplete(1, entry(n+i)) {
					t.Fatal("full")
				}
			}
			dst := make([]Entry, 2)
			if k, err := q.Read(dst); k != 2 || err != nil || dst[0] != entry(n) || dst[1] != entry(n+1) {
				t.Fatalf("read %d %v %+v", k, err, dst)
			}
			wantRead(t, q, n+2)
			wantRead(t, q)
		}
	}
}

func TestFull(t *testing.T) {
	q := open(t, fi.CQAttr{Size: 4}, Options{Stripes: 1})
	for n := range uint64(4) {
		if !q.TryComplete(1, entry(n)) {
			t.Fatal("full too early")
		}
	}
	if q.TryComplete(1, entry(4)) {
		t.Fatal("pushed to a full ring")
	}
	if _, ok := claim(q, 1); ok {
		t.Fatal("claimed in a full ring")
	}
	if !q.TryComplete(0, entry(9)) {
		t.Fatal("one ring fills another")
	}
	wantRead(t, q, 9, 0, 1, 2, 3)
	if !q.TryComplete(1, entry(5)) {
		t.Fatal("still full")
	}
	wantRead(t, q, 5)
}

func TestClaim(t *testing.T) {
	q := open(t, fi.CQAttr{Size: 4}, Options{Stripes: 1})
	for range 10 {
		a, okA := claim(q, 1)
		b, okB := claim(q, 1)
		if !okA || !okB {
			t.Fatal("full")
		}
		if !q.TryComplete(1, entry(3)) {
			t.Fatal("full")
		}
		wantRead(t, q) // both hold back what is behind them
		b.fill(q, entry(2))
		wantRead(t, q)
		a.fill(q, entry(1))
		wantRead(t, q, 1, 2, 3)
	}
}

// TestReadNothing reads no entries: that makes progress, takes nothing, and says
// of an error wherever it stands.
func TestReadNothing(t *testing.T) {
	q := open(t, fi.CQAttr{Size: 4}, Options{Stripes: 1})
	q.Complete(entry(1))
	_, err := q.Read(nil)
	wantErr(t, err, fi.EAGAIN)
	wantRead(t, q, 1)
	q.CompleteError(entry(2), ErrorInfo{Err: fi.ECANCELED})
	_, err = q.Read(nil)
	wantErr(t, err, fi.EAVAIL)
	if e, err := q.ReadErr(); err != nil || e.Context != 2 {
		t.Fatalf("error entry %d, %v", e.Context, err)
	}
}

// TestOverflow fills ring 0 several times over: everything arrives, once, in
// order, errors included.
func TestOverflow(t *testing.T) {
	q := open(t, fi.CQAttr{Size: 4}, Options{})
	for _, total := range []uint64{5, 100, 5000, 7} {
		for n := range total {
			if n%10 == 9 {
				q.CompleteError(entry(n), ErrorInfo{Err: fi.EIO})
			} else {
				q.Complete(entry(n))
			}
		}
		if kept := q.hot.Overflow; kept != total-4 {
			t.Fatalf("%d kept, want %d", kept, total-4)
		}
		for next := uint64(0); next < total; {
			dst := make([]Entry, 3)
			n, err := q.Read(dst)
			if errors.Is(err, fi.EAVAIL) {
				e, err := q.ReadErr()
				if err != nil || next%10 != 9 || e.Context != next || e.Err != fi.EIO {
					t.Fatalf("error %d: %+v %v", next, e, err)
				}
				next++
				continue
			}
			if err != nil {
				t.Fatalf("at %d: %v", next, err)
			}
			for _, e := range dst[:n] {
				if e != entry(next) || next%10 == 9 {
					t.Fatalf("got %+v, want %d", e, next)
				}
				next++
			}
			if next == total/2 {
				q.Complete(entry(total)) // while others are kept
				total++
			}
		}
		wantRead(t, q)
		if q.hot.Overflow != 0 {
			t.Fatalf("%d kept at the end", q.hot.Overflow)
		}
	}
	if len(q.overflow.ring) > keepRing {
		t.Errorf("an empty list keeps %d entries", len(q.overflow.ring))
	}
	if n := q.errors.slab.Live(); n != 0 {
		t.Errorf("%d records left", n)
	}
}

// TestPostsKept has completions of posts find their ring full: they are read in the order of the posts, also with
// rings of their own that have room again before, and later posts find no room until they are on their ring.
func TestPostsKept(t *testing.T) {
	for _, stripes := range []int{0, 1, 4} {
		q := open(t, fi.CQAttr{Size: 4}, Options{Stripes: stripes})
		next, posted, dst := uint64(0), uint64(0), make([]Entry, 1)
		for next < 100 {
			for q.TryComplete(2, entry(posted)) {
				posted++
			}
			if posted%3 == 0 {
				q.CompletePost(2, entry(posted)) // another thread took the room
				posted++
				if q.Room(2) || q.TryComplete(2, entry(posted)) {
					t.Fatalf("%d stripes: a post behind one that is kept", stripes)
				}
			}
			if n, err := q.Read(dst); err != nil || n != 1 || dst[0] != entry(next) {
				t.Fatalf("%d stripes: got %+v, %v, want %d", stripes, dst[0], err, next)
			}
			next++
		}
	}
}

// TestErrorWithoutMemory reads an error whose record could not be allocated.
// TestErrorTurn shows that entries of other rings do not keep an error away.
// TestTurns shows that a busy ring does not keep the others from being read.
func TestTurns(t *testing.T) {
	q := open(t, fi.CQAttr{Size: 8}, Options{Stripes: 2})
	seen := map[uint64]int{}
	dst := make([]Entry, 1)
	for range 30 {
		for r := range 3 {
			q.TryComplete(r, entry(uint64(r))) // until full
		}
		if _, err := q.Read(dst); err != nil {
			t.Fatal(err)
		}
		seen[dst[0].Context]++
	}
	for r := range uint64(3) {
		if seen[r] != 10 {
			t.Errorf("ring %d was read %d times of 30", r, seen[r])
		}
	}
}

func TestAttach(t *testing.T) {
	q, err := Open(&fi.CQAttr{}, Options{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	eps := make([]hot.EP, 20)
	var want []uintptr
	for i := range eps {
		if err := q.Attach(&eps[i]); err != nil {
			t.Fatal(err)
		}
		want = append(want, address(&eps[i]))
		if got := listed(q); !slices.Equal(got, want) {
			t.Fatalf("%d endpoints listed, want %d", len(got), len(want))
		}
	}
	if err := q.Attach(&eps[3]); err != nil {
		t.Fatal(err)
	}
	if err := q.Detach(&eps[3]); err != nil || len(listed(q)) != len(eps) {
		t.Fatal("detached with one use left")
	}
	wantErr(t, q.Detach(new(hot.EP)), fi.EINVAL)
	wantErr(t, q.Close(), fi.EBUSY)
	for i := range eps {
		if err := q.Detach(&eps[i]); err != nil {
			t.Fatal(err)
		}
		if got := listed(q); len(got) != len(eps)-1-i || slices.Contains(got, address(&eps[i])) {
			t.Fatalf("after detach %d: %d listed", i, len(got))
		}
	}
	for range 10000 { // endpoints that come and go leave no memory behind
		if err := errors.Join(q.Attach(&eps[0]), q.Detach(&eps[0])); err != nil {
			t.Fatal(err)
		}
	}
	if n := q.eps.pool.Mapped(); n > 1<<20 {
		t.Errorf("lists take %d bytes", n)
	}
	q.Retain()
	wantErr(t, q.Close(), fi.EBUSY)
	q.Release()
	if err := q.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestClearInPlace takes an endpoint out of the list as Detach does when there
// is no memory for a new one.
func TestClearInPlace(t *testing.T) {
	q := open(t, fi.CQAttr{}, Options{})
	eps := make([]hot.EP, 3)
	for i := range eps {
		if err := q.Attach(&eps[i]); err != nil {
			t.Fatal(err)
		}
	}
	q.eps.eps = q.eps.eps[1:]
	q.eps.clear(&eps[0])
	if got := listed(q); !slices.Equal(got, []uintptr{address(&eps[2]), address(&eps[1])}) {
		t.Errorf("%d listed", len(got))
	}
	q.eps.uses = 0
}

func TestNoAllocation(t *testing.T) {
	q := open(t, fi.CQAttr{Size: 16}, Options{Stripes: 1})
	dst := make([]Entry, 4)
	if n := testing.AllocsPerRun(1000, func() {
		q.Complete(entry(1))
		q.TryComplete(1, entry(2))
		q.CompleteError(entry(4), ErrorInfo{Err: fi.EIO})
		q.Read(dst)
		q.Read(dst)
		q.ReadErr()
		q.Read(dst)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
