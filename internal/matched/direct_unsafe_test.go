package matched

import (
	"bytes"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/regcache"
	"github.com/weft-fabric/weft/internal/stats"
)

// TestDirect posts and ends operations as threads of C do, beside those of Go: what needs Go is left as it was.
func TestDirect(t *testing.T) {
	d := &device{}
	var generation atomic.Uint64
	var ended []Ended
	e := Open(Options{Iface: d, Matcher: d, Limit: 4, Cache: regcache.New(nil, regcache.Config{}),
		Address:    func(a fi.Addr, _ []byte) (hw.MatchAddress, error) { return hw.MatchAddress(a + 10), nil },
		Source:     func(a hw.MatchAddress) fi.Addr { return fi.Addr(a - 10) },
		Generation: &generation, Ended: func(n *Ended) { ended = append(ended, *n) }})
	buf := make([]byte, 300)
	send := hot.Post{Buf: uintptr(unsafe.Pointer(&buf[0])), Len: 8, Dest: 3, Header: 7, Data: 9, Context: 5,
		Kind: hot.PostTagged | hot.PostData, Flags: fi.Completion | fi.MatchComplete}
	receive := hot.Post{Dest: 3, Header: 7, Data: 1 << 60, Context: 6, Kind: hot.PostTagged}
	code := func(what string, p hot.Post, post func(*hot.Post) uintptr, want uintptr) *hot.Post {
		t.Helper()
		if got := post(&p); got != want {
			t.Fatalf("%s: %d, want %d", what, got, want)
		}
		return &p
	}
	code("an address that is not known", send, e.DirectSend, hot.PostGo)
	if _, err := e.address(3, nil); err != nil {
		t.Fatal(err)
	}
	for what, change := range map[string]func(p *hot.Post){
		"a fence without capability":  func(p *hot.Post) { p.Flags = fi.Fence },
		"a long tag":                  func(p *hot.Post) { p.Header = 1 << 48 },
		"no buffer":                   func(p *hot.Post) { p.Buf = 0 },
		"a long inject":               func(p *hot.Post) { p.Len, p.Flags = 193, fi.Inject },
		"memory without registration": func(p *hot.Post) { p.Len = 300 },
	} {
		p := send
		change(&p)
		code(what, p, e.DirectSend, hot.PostGo)
	}
	s := code("a send", send, e.DirectSend, hot.PostMatch)
	want := hot.MatchPost{Peer: 13, Tag: 7, Data: 9, Buf: send.Buf, Context: s.Match.Context, Length: 8,
		Kind: hot.MatchTagged | hot.MatchData | hot.MatchAwaited}
	if s.Match != want {
		t.Errorf("%+v, want %+v", s.Match, want)
	}
	r := code("a receive", receive, e.DirectReceive, hot.PostMatch)
	want = hot.MatchPost{Peer: 13, Tag: 7, Context: r.Match.Context, Kind: hot.MatchReceive | hot.MatchTagged}
	if r.Match != want || e.Room() != 2 {
		t.Errorf("%+v, want %+v; room for %d", r.Match, want, e.Room())
	}
	full := code("a send that finds no room", send, e.DirectSend, hot.PostMatch)
	full.Sent = hot.PathFull
	if got := e.DirectRefused(full); got != hot.PostAgain || e.Room() != 2 {
		t.Errorf("refused: %d, room for %d", got, e.Room())
	}
	var c Completion
	ev := hot.MatchEvent{Context: s.Match.Context}
	end := func(wanted bool) bool {
		w, ok := e.DirectEnd(&ev, &c)
		return ok && w == wanted
	}
	if !end(true) || c.Receive || c.Entry.Context != 5 ||
		c.Entry.Flags != fi.Send|fi.Tagged || c.Bytes != 8 || c.Flags != send.Flags ||
		c.Entry.Src != uint64(fi.AddrNotAvail) {
		t.Errorf("a send has ended: %+v", c)
	}
	if !end(false) {
		t.Errorf("it has ended twice: %+v", c)
	}
	ev = hot.MatchEvent{Context: r.Match.Context, From: 13, Tag: 7, Data: 4,
		Flags: hot.MatchReceive | hot.MatchTagged | hot.MatchData}
	if _, ok := e.DirectEnd(&ev, &c); ok {
		t.Error("a sender that is not known is reported")
	}
	e.MatchedEvent(&ev)
	if len(ended) != 1 || ended[0].Entry.Src != 3 || ended[0].Entry.Context != 6 || e.Room() != 4 {
		t.Errorf("%+v, room for %d", ended, e.Room())
	}
	r = code("a receive", receive, e.DirectReceive, hot.PostMatch)
	ev.Context = r.Match.Context
	if !end(true) || !c.Receive || c.Entry.Src != 3 || c.Entry.Data != 4 || c.Entry.Tag != 7 ||
		c.Entry.Flags != fi.Recv|fi.Tagged|fi.RemoteCQData {
		t.Errorf("a receive has ended: %+v", c)
	}
	generation.Add(1)
	code("an address of another generation", send, e.DirectSend, hot.PostGo)
}

// placing is a device's memory, of which the device says where it is.
type placing struct {
	hw.MemoryDomain
	hw.Memory
}

func (d placing) Register(hw.Region) (hw.Memory, error) { return d, nil }
func (placing) Place() hw.Placed                        { return hw.Placed{Valid: true} }
func (placing) Close() error                            { return nil }

// still is a watch of memory that stays. It calls covers, which is called while the cache is locked.
type still struct {
	covers func()
	zero   uint64
}

func (w *still) Cover(uint64, uint64) error { w.covers(); return nil }
func (w *still) Uncover(uint64, uint64)     {}
func (w *still) Quiet(uint64) bool          { return true }
func (w *still) Stays(uint64, uint64) bool  { return true }
func (w *still) Fixed(uint64, uint64) bool  { return false }
func (w *still) Counts() regcache.Counts {
	return regcache.Counts{Begun: &w.zero, Ended: &w.zero, Published: &w.zero}
}
func (w *still) Changes(_ *uint64, to []regcache.Range) ([]regcache.Range, bool) {
	return to, true
}

// TestDirectKept: where another thread has a lock for long, the runtime takes back what the device has not taken, with
// its registration.
func TestDirectKept(t *testing.T) {
	d, w := &device{}, &still{covers: func() {}}
	var generation atomic.Uint64
	cache := regcache.New(placing{}, regcache.Config{Watch: w,
		Private: func(regcache.Range) bool { return true }})
	e := Open(Options{Iface: d, Matcher: d, Limit: 4, Cache: cache, Generation: &generation})
	buf := make([]byte, 8)
	receive := func() *hot.Post {
		return &hot.Post{Buf: uintptr(unsafe.Pointer(&buf[0])), Len: 8, Dest: uint64(fi.AddrUnspec)}
	}
	m, err := cache.Get(unsafe.Pointer(&buf[0]), 8, hw.LocalWrite)
	if err != nil {
		t.Fatal(err)
	}
	cache.Put(m)
	p := receive()
	post := func() {
		t.Helper()
		if p = receive(); e.DirectReceive(p) != hot.PostMatch || e.Room() != 3 {
			t.Fatalf("a receive is not entered, room for %d", e.Room())
		}
	}
	returned := func(what string) {
		t.Helper()
		if e.TakeBack(p); e.Room() != 4 {
			t.Fatalf("%s: room for %d", what, e.Room())
		}
		if number, _ := cache.Find(uint64(p.Buf), 8, hw.LocalWrite); number != m.Number() || !cache.Drop(number) {
			t.Errorf("%s: registration %d", what, number)
		}
	}
	post()
	e.ops.stripes[0].lease.Take()
	p.Sent = hot.PathFull
	if code := e.DirectRefused(p); code != hot.PostReturn || p.Sent != hot.PathFull {
		t.Errorf("the stripe is another's: %d", code)
	}
	if other := receive(); e.DirectReceive(other) != hot.PostGo {
		t.Error("a receive is entered into a stripe that is another's")
	}
	e.ops.stripes[0].lease.Give()
	returned("the stripe was another's")

	post()
	w.covers = func() { // the cache is locked
		if code := e.DirectRefused(p); code != hot.PostReturn || p.Match.Context != contextNone {
			t.Errorf("the cache is another's: %d, context %#x", code, p.Match.Context)
		}
	}
	other, err := cache.Get(unsafe.Pointer(new([1 << 16]byte)), 1<<16, 0)
	if err != nil {
		t.Fatal(err)
	}
	returned("the cache was another's")
	cache.Put(other)
}

// TestDirectAccess posts reads, writes and atomic operations as threads of C do; what needs Go is left to it.
func TestDirectAccess(t *testing.T) {
	d := new(atomicDevice)
	var generation atomic.Uint64
	e, _ := openOn(d, d)
	e.o.Generation, e.o.Cache = &generation, regcache.New(nil, regcache.Config{})
	if _, err := e.address(3, nil); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 300)
	at := uintptr(unsafe.Pointer(&buf[0]))
	write := hot.Post{Buf: at, Len: 8, Dest: 3, Header: 16, Key: 5, Context: 7, Flags: fi.DeliveryComplete}
	sum := write
	sum.Len, sum.Op, sum.Datatype, sum.Flags = 1, uint32(hw.MatchSum), uint32(hw.MatchUint32), fi.More
	read := hot.Post{Dest: 3, Header: 16, Key: 5, Kind: hot.PostRead}
	data := write
	data.Kind, data.Data, data.Flags = hot.PostData, 77, 0
	fetch := sum
	fetch.Atomic, fetch.Result, fetch.Flags = hot.AtomicFetch, at+100, 0
	swap := fetch
	swap.Atomic, swap.Compare, swap.Op = hot.AtomicCompare, at+50, uint32(hw.MatchSwap)
	const uint32Type = uint32(hw.MatchUint32) << hot.MatchTypeShift
	transfer := e.DirectTransfer
	for what, c := range map[string]struct {
		post   hot.Post
		change func(p *hot.Post)
		by     func(*hot.Post) uintptr
	}{
		"a fence without capability":      {write, func(p *hot.Post) { p.Flags = fi.Fence }, transfer},
		"a write of unregistered memory":  {write, func(p *hot.Post) { p.Len = 300 }, transfer},
		"a long inject":                   {write, func(p *hot.Post) { p.Len, p.Flags = 193, fi.Inject }, transfer},
		"an address that is not known":    {write, func(p *hot.Post) { p.Dest = 2 }, transfer},
		"a read into unregistered memory": {read, func(p *hot.Post) { p.Buf, p.Len = at, 8 }, transfer},
		"two elements":                    {sum, func(p *hot.Post) { p.Len = 2 }, e.DirectAtomic},
		"no element":                      {sum, func(p *hot.Post) { p.Len = 0 }, e.DirectAtomic},
		"no result":                       {fetch, func(p *hot.Post) { p.Result = 0 }, e.DirectAtomic},
		"no comparand":                    {swap, func(p *hot.Post) { p.Compare = 0 }, e.DirectAtomic},
		"a sum that compares":             {swap, func(p *hot.Post) { p.Op = uint32(hw.MatchSum) }, e.DirectAtomic},
		"a swap that does not compare":    {swap, func(p *hot.Post) { p.Atomic = hot.AtomicFetch }, e.DirectAtomic},
		"a type that is none":             {sum, func(p *hot.Post) { p.Datatype = 1 << 8 }, e.DirectAtomic},
		"an operation that is none":       {sum, func(p *hot.Post) { p.Op = 1 << 8 }, e.DirectAtomic},
		"no operand":                      {sum, func(p *hot.Post) { p.Buf = 0 }, e.DirectAtomic},
	} {
		p := c.post
		c.change(&p)
		if code := c.by(&p); code != hot.PostGo || e.Room() != 4 {
			t.Errorf("%s: %d, room for %d", what, code, e.Room())
		}
	}
	checkFenced(t, e, write)
	e.o.Order = fi.OrderRMAWAW
	for what, c := range map[string]struct {
		post hot.Post
		by   func(*hot.Post) uintptr
		want hot.MatchPost
		bits uint64
		word int
	}{
		"write": {write, e.DirectTransfer, hot.MatchPost{Buf: at, Length: 8,
			Kind: hot.MatchWrite | hot.MatchOrdered | hot.MatchDelivered}, fi.RMA | fi.Write, stats.RxMatchWritten},
		"read": {read, e.DirectTransfer, hot.MatchPost{Kind: hot.MatchRead | hot.MatchOrdered}, fi.RMA | fi.Read,
			stats.RxMatchRead},
		"sum": {sum, e.DirectAtomic, hot.MatchPost{Buf: at, Length: 4, Kind: hot.MatchAtomic | hot.MatchMore,
			Op: uint32(hw.MatchSum) | uint32Type}, fi.Atomic | fi.Write, stats.RxMatchAtomic},
		"data": {data, e.DirectTransfer, hot.MatchPost{Buf: at, Length: 8, Immediate: 77,
			Kind: hot.MatchWrite | hot.MatchData | hot.MatchOrdered}, fi.RMA | fi.Write, stats.RxMatchWritten},
		"fetch": {fetch, e.DirectAtomic, hot.MatchPost{Buf: at, Length: 4, Kind: hot.MatchAtomic | hot.MatchRead,
			Op: uint32(hw.MatchSum) | uint32Type}, fi.Atomic | fi.Read, stats.RxMatchAtomic},
		"swap": {swap, e.DirectAtomic, hot.MatchPost{Buf: at, Compare: at + 50, Length: 4,
			Kind: hot.MatchAtomic | hot.MatchRead, Op: uint32(hw.MatchSwap) | uint32Type}, fi.Atomic | fi.Read,
			stats.RxMatchAtomic},
	} {
		p := c.post
		if code := c.by(&p); code != hot.PostMatch || p.Len != c.post.Len {
			t.Errorf("%s: %d, length %d", what, code, p.Len)
		}
		c.want.Peer, c.want.Tag, c.want.Data, c.want.Context = 13, 5, 16, p.Match.Context
		if p.Match != c.want {
			t.Errorf("%s: %+v, want %+v", what, p.Match, c.want)
		}
		var done Completion
		ev := hot.MatchEvent{Context: p.Match.Context, Flags: hot.MatchRead}
		ev.Fetched = [hot.MatchElement]byte{1, 2, 3, 4, 5}
		clear(buf)
		if wanted, ok := e.DirectEnd(&ev, &done); !wanted || !ok || done.Entry.Flags != c.bits ||
			done.Entry.Context != p.Context || done.Counted() != c.word || done.Bytes != uint64(c.want.Length) {
			t.Errorf("%s has ended: %+v", what, done)
		}
		fetched := make([]byte, 8)
		if c.post.Result != 0 {
			copy(fetched, []byte{1, 2, 3, 4})
		}
		if !bytes.Equal(buf[100:108], fetched) {
			t.Errorf("%s has fetched %d", what, buf[100:108])
		}
	}
	e.o.Caps = 0
	for _, by := range []func(*hot.Post) uintptr{e.DirectTransfer, e.DirectAtomic} {
		if p := sum; by(&p) != hot.PostGo {
			t.Error("an operation without the capability is posted")
		}
	}
}

// checkFenced: a fenced write waits for what was posted before to its peer, without the runtime. Its endpoint, without
// fi.Fence, has nothing under way.
func checkFenced(t *testing.T, e *Endpoint, write hot.Post) {
	t.Helper()
	caps, room := e.o.Caps, e.Room()
	e.o.Caps |= fi.Fence
	write.Flags |= fi.Fence
	first, second := write, write
	if code := e.DirectTransfer(&first); code != hot.PostMatch {
		t.Errorf("a fence with nothing before it: %d", code)
	}
	if code := e.DirectTransfer(&second); code != hot.PostAgain || e.Room() != room-1 {
		t.Errorf("a fence behind a write: %d, room for %d", code, e.Room())
	}
	var c Completion
	for _, p := range []*hot.Post{&first, &second} {
		if wanted, ok := e.DirectEnd(&hot.MatchEvent{Context: p.Match.Context}, &c); !wanted || !ok {
			t.Errorf("a fenced write has ended: %v, %v", wanted, ok)
		}
		if p == &second {
			break
		}
		if code := e.DirectTransfer(&second); code != hot.PostMatch {
			t.Errorf("a fence behind a write that has ended: %d", code)
		}
	}
	e.o.Caps = caps
}
