package provider

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/weft-fabric/weft/cq"
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/config"
)

// takes waits for n notifications.
func (s *side) takes(n int, others ...*side) (list []Note) {
	s.t.Helper()
	for end := time.Now().Add(time.Minute); len(list) < n; {
		if time.Now().After(end) {
			s.t.Fatalf("%d notifications of %d within a minute", len(list), n)
		}
		for _, o := range others {
			o.ep.Progress()
		}
		l, err := s.ep.Notes()
		if err != nil {
			s.t.Fatal(err)
		}
		list = append(list, l...)
	}
	if len(list) > n {
		s.t.Fatalf("%d notifications, want %d", len(list), n)
	}
	return list
}

// A notification of any length comes once, with what sent it, after what its post has written.
func TestNote(t *testing.T) {
	listPaths(t, func(t *testing.T, x, y *side, _ Way) {
		if err := x.ep.SetAgent("the sender"); err != nil {
			t.Fatal(err)
		}
		there := make([]byte, 1<<20)
		r := x.opens(y.token(y.region(there, 5, fi.RemoteWrite|fi.RemoteRead)))
		addr := r.Info().Base
		for i, c := range []struct{ moved, note int }{{8, 0}, {4096, 32}, {1 << 20, 1}, {100, 5000}, {300000, MaxNote},
			{1, 16 << 10}} {
			here, note := pattern(c.moved, byte(i)), pattern(c.note, byte(i+1))
			l := x.list([]Piece{{Local: iovOf(here)[0].Base, Remote: r, Addr: addr, Len: uint64(c.moved)}})
			l.SetTag(uint64(1000 + i))
			post(t, func() error { return l.Post(&ListArgs{Note: append([]byte{}, note...), Context: uint64(i)}) }, y)
			got := y.takes(1, x)[0]
			if !bytes.Equal(there[:c.moved], here) {
				t.Fatalf("%+v: the notification came before the data", c)
			}
			if !bytes.Equal(got.Data, note) || got.Agent != "the sender" || got.Tag != uint64(1000+i) ||
				got.Op != NoteWrite || got.Err != fi.Success {
				t.Fatalf("%+v: got %d bytes, %+v", c, len(got.Data), got)
			}
			if name, err := x.ep.Name(); err != nil || !bytes.Equal(name, got.Name) {
				t.Fatalf("from %x, %v, want %x", got.Name, err, name)
			}
			wantDone(t, x, y, uint64(i), fi.RMA|fi.Write)
			post(t, func() error {
				return l.Post(&ListArgs{Read: true, Note: note[:min(9, len(note))], Flags: fi.DeliveryComplete})
			}, y)
			if got := y.takes(1, x)[0]; got.Op != NoteRead || !bytes.Equal(got.Data, note[:min(9, len(note))]) {
				t.Fatalf("of a read: %+v", got)
			}
			wantDone(t, x, y, 0, fi.RMA|fi.Read)
		}
		if l, err := y.ep.Notes(); err != nil || l != nil {
			t.Fatalf("%d more, %v", len(l), err)
		}
	})
}

// Notifications come in the order of the posts, whatever these move, and whether they succeed.
func TestNoteOrder(t *testing.T) {
	listPaths(t, func(t *testing.T, x, y *side, _ Way) {
		rnd := rand.New(rand.NewPCG(1, 2))
		there, here := make([]byte, 1<<20), make([]byte, 1<<20)
		m := y.region(there, 5, fi.RemoteWrite|fi.RemoteRead)
		r := x.opens(y.token(m))
		gone := y.region(make([]byte, 64), 6, fi.RemoteWrite)
		dead := x.opens(y.token(gone))
		if err := gone.Close(); err != nil {
			t.Fatal(err)
		}
		var lists []*List
		for _, n := range []uint64{1, 5000, 300000} {
			lists = append(lists, x.list([]Piece{{Local: iovOf(here)[0].Base, Remote: r, Len: n}}))
		}
		failing := x.list([]Piece{{Local: iovOf(here)[0].Base, Remote: dead, Len: 10}})
		const total = 300
		want, got := []int{}, []Note(nil)
		ended := 0
		poll := func() {
			l, err := y.ep.Notes()
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, l...)
			x.ep.Progress()
			var e [16]cq.Entry
			n, err := x.cq.Read(e[:])
			if err != nil && fi.ErrnoOf(err) == fi.EAVAIL {
				if _, err := x.cq.ReadErr(); err != nil {
					t.Fatal(err)
				}
				n = 1
			}
			ended += n
		}
		for i := range total {
			note := binary.LittleEndian.AppendUint32(nil, uint32(i))
			note = append(note, make([]byte, rnd.IntN(3000)*rnd.IntN(2))...)
			post, arrives := func() error { return x.ep.Notify(&NotifyArgs{Dest: r.Info().Addr, Note: note}) }, true
			if k := rnd.IntN(6); k < 3 {
				post = func() error { return lists[k].Post(&ListArgs{Note: note, Read: i%2 == 0}) }
			} else if k == 3 {
				arrives = i%2 == 0
				post = func() error { return failing.Post(&ListArgs{Note: note, NoteOnError: arrives}) }
			}
			for err := post(); err != nil; err = post() {
				if fi.ErrnoOf(err) != fi.EAGAIN {
					t.Fatal(err)
				}
				poll()
			}
			if arrives {
				want = append(want, i)
			}
		}
		until(t, "all notifications and completions", func() bool {
			poll()
			return len(got) >= len(want) &&
				ended >= total
		})
		if len(got) != len(want) || ended != total {
			t.Fatalf("%d notifications of %d, %d completions", len(got), len(want), ended)
		}
		for i, n := range got {
			if len(n.Data) < 4 {
				t.Fatalf("notification %d, want that of post %d: %+v", i, want[i], n)
			}
			if id := int(binary.LittleEndian.Uint32(n.Data)); id != want[i] {
				t.Fatalf("notification %d is that of post %d, want %d", i, id, want[i])
			}
		}
		runtime.KeepAlive(here)
		runtime.KeepAlive(there)
	})
}

// A target that takes none holds a bounded number, and its sender waits; another sender is not delayed.
func TestNoteBound(t *testing.T) {
	b := newBench(t, func(c *config.Config) { c.NoteBytes = 256 << 10 }, rmaHints())
	x, z, y := b.side(t), b.side(t), b.side(t)
	x.know(y)
	z.know(y)
	to, other := x.addr[y], z.addr[y]
	note := pattern(60<<10, 3)
	sent, ended := 0, 0
	poll := func() {
		y.ep.Progress()
		x.ep.Progress()
		var e [16]cq.Entry
		n, _ := x.cq.Read(e[:])
		ended += n
	}
	for fails := 0; fails < 3000; {
		if err := x.ep.Notify(&NotifyArgs{Dest: to, Note: note}); err == nil {
			sent++
			fails = 0
		} else {
			fails++
		}
		poll()
	}
	if ended >= sent || sent > 12 {
		t.Errorf("%d posts, %d completed", sent, ended)
	}
	post(t, func() error { return z.ep.Notify(&NotifyArgs{Dest: other, Note: []byte("from z")}) }, y)
	wantDone(t, z, y, 0, fi.Send|fi.Msg)
	if err := x.ep.Notify(&NotifyArgs{Dest: to, Note: note, Context: 99}); fi.ErrnoOf(err) != fi.EAGAIN {
		t.Errorf("one more: %v", err)
	}
	got := 0
	until(t, "all of them", func() bool {
		l, err := y.ep.Notes()
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range l {
			if string(n.Data) != "from z" {
				if !bytes.Equal(n.Data, note) {
					t.Fatal("another notification")
				}
				got++
			}
		}
		poll()
		return got == sent && ended == sent
	})
}

// What waits for room can be canceled, and ends when its receiver does.
func TestNoteEnds(t *testing.T) {
	b := newBench(t, func(c *config.Config) { c.NoteBytes = 128 << 10 }, rmaHints())
	x, y := b.side(t), b.side(t)
	x.know(y)
	to := x.addr[y]
	sent, ended := 0, 0
	for fails := 0; fails < 1000; {
		if x.ep.Notify(&NotifyArgs{Dest: to, Note: make([]byte, MaxNote), Context: uint64(sent)}) == nil {
			sent, fails = sent+1, 0
		} else {
			fails++
		}
		x.ep.Progress()
	}
	last := uint64(sent - 1)
	if err := x.ep.Cancel(last); err != nil {
		t.Fatal(err)
	}
	for canceled := false; !canceled; {
		e, bad, done := settle(t, x)
		if canceled = !done; !done && (bad.Context != last || bad.Err != fi.ECANCELED) {
			t.Fatalf("%+v, %+v, %t", e, bad, done)
		} else if done {
			ended++
		}
	}
	y.close()
	for ended++; ended < sent; ended++ {
		if e, bad, done := settle(t, x); done || bad.Err != fi.ECONNRESET {
			t.Fatalf("the receiver is gone: %+v, %+v", e, bad)
		}
	}
}

func TestNoteRefused(t *testing.T) {
	b := newBench(t, nil, rmaHints())
	x, y := b.side(t), b.side(t)
	x.know(y)
	to := x.addr[y]
	for want, err := range map[fi.Errno]error{
		fi.EMSGSIZE:    x.ep.Notify(&NotifyArgs{Dest: to, Note: make([]byte, MaxNote+1)}),
		fi.EBADFLAGS:   x.ep.Notify(&NotifyArgs{Dest: to, Flags: fi.Inject}),
		fi.EINVAL:      x.ep.Notify(&NotifyArgs{Dest: to + 1000}),
		fi.EOPBADSTATE: x.ep.BindNotes(x.cq),
	} {
		if fi.ErrnoOf(err) != want {
			t.Errorf("%v, want %v", err, want)
		}
	}
	if err := x.ep.SetAgent(string(make([]byte, MaxAgent+1))); fi.ErrnoOf(err) != fi.EINVAL {
		t.Errorf("a long name: %v", err)
	}
	here := make([]byte, 8)
	l := x.list([]Piece{{Local: iovOf(here)[0].Base,
		Remote: x.opens(y.token(y.region(make([]byte, 8), 1, fi.RemoteWrite))), Len: 8}})
	if err := l.Post(&ListArgs{Note: make([]byte, MaxNote+1)}); fi.ErrnoOf(err) != fi.EMSGSIZE {
		t.Errorf("a list: %v", err)
	}
}

// A queue that is bound gets an entry for each notification, a counter counts them, and does so alone if that is asked
// for.
func TestNoteQueue(t *testing.T) {
	b := newBench(t, nil, rmaHints())
	x := b.side(t)
	for _, only := range []bool{false, true} {
		y := &side{t: t, bench: b, domain: b.domain, addr: map[*side]fi.Addr{}}
		var errs [4]error
		var count *cq.Counter
		y.av, errs[0] = b.domain.OpenAV(&fi.AVAttr{Type: fi.AVTable})
		y.cq, errs[1] = b.domain.OpenCQ(&fi.CQAttr{Format: fi.CQFormatData, Size: 16}, nil)
		y.ep, errs[2] = b.domain.OpenEndpoint(b.info)
		count, errs[3] = b.domain.OpenCounter(&fi.CntrAttr{Events: fi.CntrEventsComp}, nil)
		for _, err := range append(errs[:], y.ep.BindCQ(y.cq, fi.Transmit|fi.Recv), y.ep.BindAV(y.av, 0),
			y.ep.BindNotes(y.cq), y.ep.CountNotes(count, only), y.ep.Enable()) {
			if err != nil {
				t.Fatal(err)
			}
		}
		wantErrno(t, y.ep.BindNotes(y.cq), fi.EINVAL, "a second queue")
		x.know(y)
		post(t, func() error { return x.ep.Notify(&NotifyArgs{Dest: x.addr[y], Tag: 12, Note: []byte("abc")}) }, y)
		if e := y.completion(x); e.Flags != fi.Recv|fi.Msg|fi.RemoteCQData || e.Len != 3 || e.Data != 12 {
			t.Errorf("%+v", e)
		}
		if n := count.Read(); n != 1 {
			t.Errorf("counted %d", n)
		}
		if list, err := y.ep.Notes(); err != nil || (len(list) == 0) != only {
			t.Errorf("only counted %t: %d, %v", only, len(list), err)
		}
		wantDone(t, x, y, 0, fi.Send|fi.Msg)
		y.close()
		if err := count.Close(); err != nil {
			t.Error(err)
		}
	}
}

// lostEndpoint is that of a peer that is gone, which is not reported.
type lostEndpoint struct{ hw.Endpoint }

func (lostEndpoint) Err() error     { return hw.ErrPeerDead }
func (lostEndpoint) Reported() bool { return false }

// TestNotedPeerGone: the peer is gone after the data plane has copied what a notification follows.
func TestNotedPeerGone(t *testing.T) {
	b := newBench(t, nil, rmaHints())
	x, y := b.side(t), b.side(t)
	memory := make([]byte, 64)
	to := x.opens(y.token(y.region(memory, 7, fi.RemoteWrite)))
	l := x.list([]Piece{{Local: iovOf(memory)[0].Base, Remote: to, Addr: to.Info().Base, Len: 64}})
	post(t, func() error { return l.Write(1) }, x, y)
	wantDone(t, x, y, 1, fi.RMA|fi.Write)
	link, err := x.ep.base.linkOf(l.Addr())
	if err != nil {
		t.Fatal(err)
	}
	p := link.Path()
	link.Set(instead(p, lostEndpoint{p.Endpoint}))
	l.Noted(&ListArgs{Note: []byte("done"), Context: 3}, 64)
	x.wantError(3, fi.ECONNRESET)
	link.Set(p)
	link.Release()
}
