package matched

import (
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/hot"
)

// TestShared: injected writes and atomic operations need no room in the table, are reported with their bytes or their
// error and without a context, and what is fenced waits for them.
func TestShared(t *testing.T) {
	d := new(atomicDevice)
	e, ended := openOn(d, d)
	b := []byte("weft")
	write := Transfer{IOV: vector(b), Remote: remoteOf(5, 9, 4), Dest: 1, Inject: true}
	sum := Atomic{Op: hw.MatchSum, Type: hw.MatchUint32, Size: 4, Operand: vector(b), Remote: remoteOf(5, 0, 4),
		Dest: 1, Inject: true}
	room := e.Room()
	for range 3 * room {
		if err := e.Transfer(&write); err != nil {
			t.Fatal(err)
		}
		if err := e.Atomic(&sum); err != nil {
			t.Fatal(err)
		}
	}
	if e.Room() != room {
		t.Errorf("room for %d, not %d", e.Room(), room)
	}
	d.shared = 1
	for to := range fi.Addr(2) {
		fenced := Transfer{Remote: remoteOf(5, 0, 0), Dest: to + 1, Flags: fi.Fence}
		if err := e.Transfer(&fenced); fi.ErrnoOf(err) != fi.EAGAIN {
			t.Errorf("behind an injected write: %v", err)
		}
	}
	d.shared = 0
	fenced := Transfer{Remote: remoteOf(5, 0, 0), Dest: 1, Flags: fi.Fence}
	if err := e.Transfer(&fenced); err != nil {
		t.Errorf("when they have ended: %v", err)
	}
	for _, c := range []struct {
		context, bits uint64
		err           error
		says          fi.Errno
	}{
		{d.transfers[0].Context, fi.RMA | fi.Write, nil, fi.Success},
		{d.ops[0].Context, fi.Atomic | fi.Write, nil, fi.Success},
		{d.transfers[0].Context, fi.RMA | fi.Write, hw.ErrKey, fi.EIO},
		{d.ops[0].Context, fi.Atomic | fi.Write, hw.ErrInvalid, fi.EIO},
	} {
		*ended = nil
		d.on(&hw.MatchEvent{Kind: hw.MatchTransferred, Context: c.context, Last: true, Shared: true, Length: 4,
			Err: c.err})
		if len(*ended) != 1 {
			t.Fatalf("%d are reported", len(*ended))
		}
		n := (*ended)[0]
		if n.Entry.Flags != c.bits || n.Entry.Context != 0 || !n.Inject || n.Bytes != 4 || n.Err != c.says {
			t.Errorf("%+v", n)
		}
	}
	waits := write
	waits.Flags = fi.Fence
	// the fenced one is under way
	if before := e.Room(); fi.ErrnoOf(e.Transfer(&waits)) != fi.EAGAIN || e.Room() != before {
		t.Error("an injected write that is fenced does not wait")
	}
}

// TestSharedFenced: injected operations that are posted while a fence waits have places, of Go and of threads of C, so
// that it waits for those to its peer alone; once it has passed they have none again.
func TestSharedFenced(t *testing.T) {
	d := new(atomicDevice)
	e, _ := openOn(d, d)
	e.o.Generation = new(atomic.Uint64)
	b := []byte("weft")
	write := Transfer{IOV: vector(b), Remote: remoteOf(5, 9, 4), Dest: 1, Inject: true}
	sum := Atomic{Op: hw.MatchSum, Type: hw.MatchUint32, Size: 4, Operand: vector(b), Remote: remoteOf(5, 0, 4),
		Dest: 1, Inject: true}
	room := e.Room()
	post := func(what string, err error, want fi.Errno, taken int) {
		t.Helper()
		if fi.ErrnoOf(err) != want || e.Room() != room-taken {
			t.Fatalf("%s: %v, %d places are taken", what, err, room-e.Room())
		}
	}
	post("a write", e.Transfer(&write), fi.Success, 0)
	d.shared = 1
	fenced := Transfer{Remote: remoteOf(5, 0, 0), Dest: 2, Flags: fi.Fence}
	post("a fence", e.Transfer(&fenced), fi.EAGAIN, 0)
	post("a write behind it", e.Transfer(&write), fi.Success, 1)
	post("a sum behind it", e.Atomic(&sum), fi.Success, 2)
	p := hot.Post{Buf: uintptr(unsafe.Pointer(&b[0])), Len: 4, Dest: 1, Key: 5, Kind: hot.PostInject}
	if code := e.DirectTransfer(&p); code != hot.PostMatch || p.Match.Kind&hot.MatchShared != 0 {
		t.Errorf("a thread of C behind it: %d, kind %#x", code, p.Match.Kind)
	}
	if d.transfers[1].Shared || d.ops[0].Shared || !d.transfers[0].Shared {
		t.Error("the device takes them for others")
	}
	d.shared = 0
	same := fenced
	same.Dest = 1
	post("a fence behind those with places", e.Transfer(&same), fi.EAGAIN, 3)
	post("the fence", e.Transfer(&fenced), fi.Success, 4)
	post("a write at last", e.Transfer(&write), fi.Success, 4)
	if last := d.transfers[len(d.transfers)-1]; !last.Shared {
		t.Errorf("%+v", last)
	}
}

// TestDirectShared is TestShared of threads of C.
func TestDirectShared(t *testing.T) {
	d := new(atomicDevice)
	e, _ := openOn(d, d)
	e.o.Generation = new(atomic.Uint64)
	if _, err := e.address(1, nil); err != nil {
		t.Fatal(err)
	}
	word := uint64(7)
	room := e.Room()
	post := func(what string, want uint32, post func(*hot.Post) uintptr, p hot.Post) uint64 {
		t.Helper()
		p.Buf, p.Dest, p.Key = uintptr(unsafe.Pointer(&word)), 1, 5
		if code := post(&p); code != hot.PostMatch || p.Match.Kind&hot.MatchShared != want {
			t.Fatalf("%s: %d, kind %#x", what, code, p.Match.Kind)
		}
		return p.Match.Context
	}
	sum := hot.Post{Len: 1, Kind: hot.PostInject, Datatype: uint32(fi.Uint64), Op: uint32(fi.OpSum)}
	sum.Atomic = hot.AtomicPlain
	written := post("a write", hot.MatchShared, e.DirectTransfer, hot.Post{Len: 8, Kind: hot.PostInject})
	summed := post("a sum", hot.MatchShared, e.DirectAtomic, sum)
	for context, bits := range map[uint64]uint64{written: fi.RMA | fi.Write, summed: fi.Atomic | fi.Write} {
		var c Completion
		ev := hot.MatchEvent{Context: context, Length: 8, Flags: hot.MatchShared}
		if wanted, ok := e.DirectEnd(&ev, &c); !wanted || !ok || !c.Inject || c.Entry.Flags != bits || c.Bytes != 8 ||
			c.Entry.Context != 0 {
			t.Errorf("%v, %v, %+v", wanted, ok, c)
		}
	}
	if e.Room() != room {
		t.Errorf("room for %d, not %d", e.Room(), room)
	}
	p := hot.Post{Buf: uintptr(unsafe.Pointer(&word)), Len: 8, Dest: 1, Flags: fi.Fence}
	e.o.Caps |= fi.Fence
	if code := e.DirectSend(&p); code != hot.PostMatch {
		t.Errorf("a fence behind those that have ended: %d", code)
	}
	if o, stripe := e.ops.at(p.Match.Context); o != nil {
		e.ops.end(o, stripe, p.Match.Context)
	}
	post("a write with a completion", 0, e.DirectTransfer, hot.Post{Len: 8, Flags: fi.Inject | fi.Completion})
	if e.Room() != room-1 {
		t.Errorf("room for %d, not %d", e.Room(), room-1)
	}
}

// TestSharedCount: what is fenced needs the runtime as long as an injected operation is under way, and no longer: also
// where some were refused, by the device or by its transport, and where one has failed.
func TestSharedCount(t *testing.T) {
	d := new(atomicDevice)
	e, _ := openOn(d, d)
	e.o.Generation = new(atomic.Uint64)
	e.o.Caps |= fi.Fence
	if _, err := e.address(1, nil); err != nil {
		t.Fatal(err)
	}
	word := uint64(7)
	write := Transfer{IOV: []fi.IOVec{{Base: uintptr(unsafe.Pointer(&word)), Len: 8}}, Remote: remoteOf(5, 0, 8),
		Dest: 1, Inject: true}
	inject := func() *hot.Post {
		p := &hot.Post{Buf: uintptr(unsafe.Pointer(&word)), Len: 8, Dest: 1, Key: 5, Kind: hot.PostInject}
		if code := e.DirectTransfer(p); code != hot.PostMatch || p.Match.Kind&hot.MatchShared == 0 {
			t.Fatalf("a write: %d, kind %#x", code, p.Match.Kind)
		}
		return p
	}
	fence := func(what string, want uintptr) {
		t.Helper()
		p := hot.Post{Buf: uintptr(unsafe.Pointer(&word)), Len: 8, Dest: 1, Flags: fi.Fence}
		code := e.DirectSend(&p)
		if code != want {
			t.Fatalf("a fence %s: %d, want %d", what, code, want)
		}
		if code == hot.PostMatch {
			o, stripe := e.ops.at(p.Match.Context)
			e.ops.end(o, stripe, p.Match.Context)
		}
	}
	end := func(direct bool, err error) {
		t.Helper()
		var c Completion
		ev := hot.MatchEvent{Length: 8, Flags: hot.MatchShared}
		if !direct {
			d.on(&hw.MatchEvent{Kind: hw.MatchTransferred, Last: true, Shared: true, Err: err})
		} else if wanted, ok := e.DirectEnd(&ev, &c); !wanted || !ok {
			t.Fatal("the end of a write is not taken in")
		}
	}
	fence("behind nothing", hot.PostMatch)
	for round := range 3 {
		inject()
		if err := e.Transfer(&write); err != nil {
			t.Fatal(err)
		}
		fence("behind two", hot.PostGo)
		end(round != 0, nil)
		fence("behind one", hot.PostGo)
		end(round == 0, hw.ErrKey)
		fence("behind those that have ended", hot.PostMatch)
	}
	for _, sent := range []uintptr{hot.PathFull, hot.PathGo} {
		p := inject()
		p.Sent = uint32(sent)
		if code := e.DirectRefused(p); (code == hot.PostAgain) != (sent == hot.PathFull) {
			t.Errorf("a write that is refused with %d: %d", sent, code)
		}
	}
	d.err = hw.ErrNoResource
	if err := e.Transfer(&write); fi.ErrnoOf(err) != fi.EAGAIN {
		t.Errorf("a write that is refused: %v", err)
	}
	d.err = nil
	fence("behind those that were refused", hot.PostMatch)
	inject()
	d.shared = 1
	fenced := Transfer{Remote: remoteOf(5, 0, 0), Dest: 2, Flags: fi.Fence}
	if err := e.Transfer(&fenced); fi.ErrnoOf(err) != fi.EAGAIN {
		t.Errorf("a fence that waits: %v", err)
	}
	d.shared = 0
	end(true, nil)
	fence("behind one that waits, for which injected ones have places", hot.PostGo)
	if err := e.Transfer(&fenced); err != nil {
		t.Errorf("the fence that has waited: %v", err)
	}
	fence("behind that", hot.PostMatch)
}
