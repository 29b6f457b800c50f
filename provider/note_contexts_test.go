package provider

import (
	"bytes"
	"runtime"
	"testing"

	"github.com/weft-fabric/weft/cq"
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/provider/names"
)

// TestScalableNotes: the token of a receive context leads there, from every transmit context, with elements and
// notifications of every length, alone or behind a list. The sender's address is the scalable endpoint's.
func TestScalableNotes(t *testing.T) {
	forEachPath(t, func(t *testing.T, b *bench) {
		from, to := b.scalable(t, names.Name{}, fi.AVAttr{}), b.scalable(t, names.Name{}, fi.AVAttr{})
		sender := to.rx[0].insert(from.sep.name)
		there := make([]byte, 1<<20)
		m := to.rx[0].region(there, 5, fi.RemoteRead|fi.RemoteWrite)
		for i, tx := range from.tx {
			for j, rx := range to.rx {
				all := []*side{from.tx[1-i], to.rx[1-j], rx}
				r := tx.opens(rx.token(m))
				for k, n := range []int{8, 70000, 1 << 20} {
					here, note := pattern(n, byte(10*i+k)), pattern([]int{0, MaxNote, 40}[k], byte(j+k))
					l := tx.list([]Piece{{Local: iovOf(here)[0].Base, Remote: r, Addr: r.Info().Base, Len: uint64(n)}})
					post(t, func() error { return l.Post(&ListArgs{Note: note, Context: 7}) }, all...)
					got := rx.takes(1, append(all, tx)...)[0]
					if !bytes.Equal(there[:n], here) || !bytes.Equal(got.Data, note) || got.Op != NoteWrite ||
						got.Src != sender {
						t.Fatalf("from %d to %d, %d bytes: %d of a note from %d, %+v", i, j, n, len(got.Data),
							got.Src, got)
					}
					wantDone(t, tx, rx, 7, fi.RMA|fi.Write)
					runtime.KeepAlive(here)
				}
				for k := range 40 { // more than the receiver has room for at once
					post(t, func() error {
						return tx.ep.Notify(&NotifyArgs{Dest: r.Info().Addr, Tag: uint64(k), Note: make([]byte, 3000),
							Context: 8})
					}, all...)
				}
				for k, got := range rx.takes(40, append(all, tx)...) {
					if got.Tag != uint64(k) || len(got.Data) != 3000 || got.Op != NoteAlone || got.Src != sender {
						t.Fatalf("from %d to %d, notification %d: %+v", i, j, k, got)
					}
				}
				for range 40 {
					wantDone(t, tx, rx, 8, fi.Send|fi.Msg)
				}
				if other, err := to.rx[1-j].ep.Notes(); err != nil || other != nil {
					t.Fatalf("the other context has %d, %v", len(other), err)
				}
			}
		}
		runtime.KeepAlive(there)
	})
}

// TestScalableNotesBound: a receive context has a queue and a counter of its notifications.
func TestScalableNotesBound(t *testing.T) {
	b := newBench(t, nil, rmaHints())
	from := b.scalable(t, names.Name{}, fi.AVAttr{})
	full := b.info.Clone()
	full.EP.RxCtxCnt = 1
	sep, err := b.domain.OpenScalable(full)
	if err != nil {
		t.Fatal(err)
	}
	ep, err := sep.OpenRx(0, nil)
	if err != nil {
		t.Fatal(err)
	}
	q, err := b.domain.OpenCQ(&fi.CQAttr{Format: fi.CQFormatData, Size: 16}, nil)
	if err != nil {
		t.Fatal(err)
	}
	count, err := b.domain.OpenCounter(&fi.CntrAttr{Events: fi.CntrEventsComp}, nil)
	if err != nil {
		t.Fatal(err)
	}
	to := &side{t: t, bench: b, domain: b.domain, av: from.av, cq: q, ep: ep, addr: map[*side]fi.Addr{}}
	for _, err := range []error{sep.BindAV(from.av, 0), ep.BindCQ(q, fi.Recv), ep.BindNotes(q),
		ep.CountNotes(count, false), ep.Enable()} {
		if err != nil {
			t.Fatal(err)
		}
	}
	x := from.tx[1]
	addr := x.insert(sep.name)
	post(t, func() error { return x.ep.Notify(&NotifyArgs{Dest: addr, Tag: 12, Note: []byte("abc")}) }, to)
	if e := to.completion(x); e.Flags != fi.Recv|fi.Msg|fi.RemoteCQData || e.Len != 3 || e.Data != 12 {
		t.Errorf("%+v", e)
	}
	if n, list := count.Read(), to.takes(1, x); n != 1 || string(list[0].Data) != "abc" {
		t.Errorf("counted %d, %q", n, list[0].Data)
	}
	wantDone(t, x, to, 0, fi.Send|fi.Msg)
	for _, c := range []interface{ Close() error }{ep, sep, q, count} {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestScalableNotesRefused: each kind of context has the calls of its direction only.
func TestScalableNotesRefused(t *testing.T) {
	b := newBench(t, nil, rmaHints())
	from, to := b.scalable(t, names.Name{}, fi.AVAttr{}), b.scalable(t, names.Name{}, fi.AVAttr{})
	tx, rx := from.tx[0], to.rx[1]
	m := rx.region(make([]byte, 64), 5, fi.RemoteWrite)
	tok := rx.token(m)
	_, err := tx.ep.Notes()
	wantErrno(t, err, fi.ENOSYS, "notes of a transmit context")
	wantErrno(t, rx.ep.Notify(&NotifyArgs{Dest: rx.insert(from.sep.name)}), fi.ENOSYS, "notify by a receive context")
	_, err = rx.ep.OpenToken(tok)
	wantErrno(t, err, fi.ENOSYS, "open a token by a receive context")
	_, err = m.Token(&TokenAttr{EP: tx.ep})
	wantErrno(t, err, fi.EINVAL, "a token that leads to a transmit context")
	full := b.info.Clone()
	full.EP.TxCtxCnt = 1
	sep, err := b.domain.OpenScalable(full)
	if err != nil {
		t.Fatal(err)
	}
	disabled, err := sep.OpenTx(0, nil)
	if err != nil {
		t.Fatal(err)
	}
	wantErrno(t, disabled.BindNotes(tx.cq), fi.ENOSYS, "a queue for notifications to a transmit context")
	var c *cq.Counter
	if c, err = b.domain.OpenCounter(&fi.CntrAttr{Events: fi.CntrEventsComp}, nil); err != nil {
		t.Fatal(err)
	}
	wantErrno(t, disabled.CountNotes(c, true), fi.ENOSYS, "a counter of notifications to a transmit context")
	plain := b.side(t) // its addresses have no bits for contexts
	_, err = plain.ep.OpenToken(tok)
	wantErrno(t, err, fi.EINVAL, "a context that the address vector has no bits for")
	plain.opens(to.rx[0].token(m))
	for _, o := range []interface{ Close() error }{disabled, sep, c} {
		if err := o.Close(); err != nil {
			t.Error(err)
		}
	}
}

// opens opens the token of a region of one side at another.
func (w *keyWorld) opens(s *side, t Token) (r *Remote, err error) {
	w.inserting(s.domain, func() { r, err = s.ep.OpenToken(t) })
	return r, err
}

// moves writes to a remote region and sends a notification behind it, and returns that. want is how the write ends.
func (w *keyWorld) moves(x *side, r *Remote, y *side, there []byte, n int, want fi.Errno) (got Note) {
	w.t.Helper()
	here, note := pattern(n, byte(n)), pattern(100, 3)
	l := x.list([]Piece{{Local: iovOf(here)[0].Base, Remote: r, Addr: r.Info().Base, Len: uint64(n)}})
	defer func() { wantErrno(w.t, l.Close(), fi.Success, "close a list") }()
	post(w.t, func() error { return l.Post(&ListArgs{Note: note, Context: 9}) }, x, y)
	if want == fi.Success {
		got = y.takes(1, x)[0]
		if !bytes.Equal(there[:n], here) || !bytes.Equal(got.Data, note) {
			w.t.Fatalf("%d bytes: %+v", n, got)
		}
	}
	if _, e, ok := settle(w.t, x, y); ok != (want == fi.Success) || !ok && e.Err != want {
		w.t.Fatalf("%d bytes: completed %t, %+v, want %v", n, ok, e, want)
	}
	runtime.KeepAlive(here)
	return got
}

// TestAVKeysTokens: a token of a region in a domain with keys in address vectors is for endpoints with one of the keys
// that both the region and its owner's endpoint have. The owner's address is under that key, and so is the sender's of
// a notification.
func TestAVKeysTokens(t *testing.T) {
	const caps = fi.Msg | fi.RMA | fi.DirectedRecv | fi.Source
	forEachKeyWorld(t, caps, []string{"one", "two", "five"}, func(t *testing.T, w *keyWorld) {
		one, two, twin, other := w.spoke("one"), w.spoke("two"), w.spoke("two"), w.spoke("three")
		fromOne, fromTwo := w.knows(w.hub, one, w.keys["one"]), w.knows(w.hub, two, w.keys["two"])
		toTwin := w.knows(w.hub, twin, w.keys["two"])
		there := make([]byte, 80000)
		defer runtime.KeepAlive(there)
		region := func(key uint64, src fi.Addr, flags uint64) *MR {
			m, err := w.hub.domain.RegMR(&fi.MRAttr{IOV: iovOf(there), Access: fi.RemoteRead | fi.RemoteWrite,
				RequestedKey: key, AV: w.hub.av, Src: src}, flags)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { m.Close() })
			return m
		}
		all, ofTwo, ofTwin := region(1, fi.AddrUnspec, 0), region(2, w.keys["two"], fi.AuthKey), region(3, toTwin, 0)
		for m, ends := range map[*MR]map[*side]fi.Errno{ // fi.EINVAL: the token is none for it
			all:    {one: fi.Success, two: fi.Success, twin: fi.Success, other: fi.EINVAL},
			ofTwo:  {one: fi.EINVAL, two: fi.Success, twin: fi.Success, other: fi.EINVAL},
			ofTwin: {one: fi.EINVAL, two: fi.EACCES, twin: fi.Success, other: fi.EINVAL},
		} {
			tok := w.hub.token(m)
			for s, want := range ends {
				r, err := w.opens(s, tok)
				if want == fi.EINVAL {
					wantErrno(t, err, want, "open without the key")
					continue
				}
				wantErrno(t, err, fi.Success, "open")
				for _, n := range []int{8, 5000, 80000} {
					got := w.moves(s, r, w.hub, there, n, want)
					src := map[*side]fi.Addr{one: fromOne, two: fromTwo, twin: toTwin}[s]
					if want == fi.Success && got.Src != src {
						t.Errorf("a notification from %d, want %d", got.Src, src)
					}
				}
				if i := r.Info(); i.Way != WayMessage || i.Why[WayIPC] == "" {
					t.Errorf("%+v", i)
				}
				wantErrno(t, r.Close(), fi.Success, "close a remote region")
			}
		}
		mine := make([]byte, 80000)
		defer runtime.KeepAlive(mine)
		owned := func(s *side, key string) Token {
			m, err := s.domain.RegMR(&fi.MRAttr{IOV: iovOf(mine), Access: fi.RemoteWrite,
				RequestedKey: uint64(len(key)) + 10, AuthKey: []byte(key), AuthKeySize: uint64(len(key))}, 0)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { m.Close() })
			return s.token(m)
		}
		r, err := w.opens(w.hub, owned(two, "two"))
		wantErrno(t, err, fi.Success, "open by the hub")
		if r.Info().Addr != fromTwo {
			t.Errorf("the owner is at %d, want %d", r.Info().Addr, fromTwo)
		}
		for _, n := range []int{8, 80000} {
			if got := w.moves(w.hub, r, two, mine, n, fi.Success); got.Src != two.addr[w.hub] {
				t.Errorf("a notification from %d, want %d", got.Src, two.addr[w.hub])
			}
		}
		wantErrno(t, r.Close(), fi.Success, "close a remote region")
		_, err = w.opens(w.hub, owned(other, "three"))
		wantErrno(t, err, fi.EINVAL, "a token under a key that the hub does not have")

		peer := w.keyed("five", "two") // keys in another order, and the numbers of others
		r, err = w.opens(peer, w.hub.token(all))
		wantErrno(t, err, fi.Success, "open with two of the keys")
		b := make([]byte, 8)
		if n, err := peer.av.LookupAuthKey(r.Info().Addr, b); err != nil || string(b[:n]) != "five" {
			t.Errorf("the owner is under the key %q, %v", b[:n], err)
		}
		w.moves(peer, r, w.hub, there, 5000, fi.Success)
		wantErrno(t, r.Close(), fi.Success, "close a remote region")
	})
}
