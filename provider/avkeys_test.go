package provider

import (
	"bytes"
	"errors"
	"net/netip"
	"runtime"
	"testing"
	"time"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/config"
	"github.com/weft-fabric/weft/provider/atomics"
	"github.com/weft-fabric/weft/provider/names"
)

// keyWorld is an endpoint with the keys of its address vector, and others with one of
// their own each, all of one process.
type keyWorld struct {
	t     testing.TB
	hub   *side
	rest  *bench // of the others
	keys  map[string]fi.Addr
	udp   bool
	hints *fi.Info
}

// forEachKeyWorld runs f on one host and over UDP, with a hub that has some keys.
func forEachKeyWorld(t *testing.T, caps uint64, keys []string, f func(t *testing.T, w *keyWorld)) {
	for _, udp := range []bool{false, true} {
		t.Run(map[bool]string{false: "local", true: "udp"}[udp], func(t *testing.T) {
			w := &keyWorld{t: t, udp: udp, keys: map[string]fi.Addr{}, hints: &fi.Info{Caps: caps}}
			w.rest = w.bench(w.hints)
			w.hub = w.keyed(keys...)
			f(t, w)
		})
	}
}

func (w *keyWorld) bench(hints *fi.Info) *bench {
	b := newBench(w.t, func(c *config.Config) {
		c.ConnectTimeout = time.Second
		if w.udp {
			c.UDP, c.SHMDir, c.SHMAcross = config.Yes, w.t.TempDir(), config.No
		}
	}, hints)
	w.remote(b.domain)
	return b
}

// remote has nothing be local to a domain from now on, over UDP.
func (w *keyWorld) remote(d *Domain) {
	if w.udp {
		d.local.Use(func() ([]names.Interface, error) { return nil, nil })
	}
}

// inserting runs f while addresses of this host may be inserted.
func (w *keyWorld) inserting(d *Domain, f func()) {
	d.local.Use(nil)
	f()
	w.remote(d)
}

// keyed makes an endpoint whose address vector has keys.
func (w *keyWorld) keyed(keys ...string) *side {
	w.t.Helper()
	hints := w.hints.Clone()
	hints.Domain = &fi.DomainAttr{AuthKeySize: fi.AVAuthKey}
	b := w.bench(hints)
	s := &side{t: w.t, bench: b, domain: b.domain, addr: map[*side]fi.Addr{}}
	s.av = openTestAV(w.t, b.domain, fi.AVAttr{})
	s.open(w.t, func() {
		for _, k := range keys {
			w.keys[k] = w.key(s, k)
		}
	})
	return s
}

// key enters a key into a side's address vector.
func (w *keyWorld) key(s *side, key string) fi.Addr {
	w.t.Helper()
	h, err := s.av.InsertAuthKey([]byte(key), 0)
	if err != nil {
		w.t.Fatal(err)
	}
	return h
}

// open opens and enables the endpoint of a side with an address vector.
func (s *side) open(t testing.TB, before func()) {
	t.Helper()
	var err error
	if s.cq, err = s.domain.OpenCQ(&fi.CQAttr{Format: fi.CQFormatTagged, Size: 256}, nil); err != nil {
		t.Fatal(err)
	}
	if s.ep, err = s.domain.OpenEndpoint(s.bench.info); err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{s.ep.BindCQ(s.cq, fi.Transmit|fi.Recv), s.ep.BindAV(s.av, 0)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	before()
	if err := s.ep.Enable(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, c := range []interface{ Close() error }{s.ep, s.cq} {
			if err := c.Close(); err != nil {
				t.Errorf("close %T: %v", c, err)
			}
		}
	})
}

// spoke makes an endpoint with one key that knows the hub.
func (w *keyWorld) spoke(key string) *side {
	w.t.Helper()
	w.rest.info.EP.AuthKey = []byte(key)
	s := w.rest.side(w.t)
	w.inserting(s.domain, func() { s.know(w.hub) })
	return s
}

// knows enters o into s's address vector under a key.
func (w *keyWorld) knows(s, o *side, handle fi.Addr) fi.Addr {
	w.t.Helper()
	raw, err := o.ep.Name()
	if err != nil {
		w.t.Fatal(err)
	}
	addrs := []fi.Addr{handle}
	w.inserting(s.domain, func() {
		if n, err := s.av.Insert(raw, 1, &Insertion{Addrs: addrs, Flags: fi.AuthKey}); n != 1 {
			w.t.Fatalf("insert: %d, %v", n, err)
		}
	})
	return addrs[0]
}

// passes sends from one side to an address of it that leads to another, and returns the
// source that the completion names.
func (w *keyWorld) passes(from *side, dest fi.Addr, to *side, n int) fi.Addr {
	w.t.Helper()
	out, in := pattern(n, 3), make([]byte, n)
	to.recv(RecvArgs{IOV: iovOf(in), Src: fi.AddrUnspec, Context: 1}, from)
	from.send(SendArgs{IOV: iovOf(out), Dest: dest, Context: 2}, to)
	e := to.completion(from)
	if e.Context != 1 || !bytes.Equal(in, out) {
		w.t.Fatalf("received %+v", e)
	}
	if e := from.completion(to); e.Context != 2 {
		w.t.Fatalf("sent %+v", e)
	}
	return e.Src
}

// barred reports whether sends to an address fail as those without the right key do.
func (w *keyWorld) barred(from *side, dest fi.Addr, to *side) bool {
	w.t.Helper()
	want := fi.EACCES
	if w.udp {
		want = fi.EHOSTUNREACH // nothing answers
	}
	b := []byte{1}
	for end := time.Now().Add(20 * time.Second); ; {
		err := from.ep.Send(&SendArgs{IOV: iovOf(b), Dest: dest})
		if !errors.Is(err, fi.EAGAIN) || time.Now().After(end) {
			return errors.Is(err, want) || errors.Is(err, fi.EACCES) // a key that this side does not have
		}
		from.ep.Progress()
		to.ep.Progress()
	}
}

// TestAVKeys sends both ways between an endpoint with several keys and others with one,
// of which some have none of its keys.
func TestAVKeys(t *testing.T) {
	forEachKeyWorld(t, fi.Msg|fi.Tagged|fi.Source|fi.RMA, []string{"one", "two"}, func(t *testing.T, w *keyWorld) {
		one, two, other := w.spoke("one"), w.spoke("two"), w.spoke("three")
		toOne, toTwo := w.knows(w.hub, one, w.keys["one"]), w.knows(w.hub, two, w.keys["two"])
		for _, n := range []int{1, 200, 5000, 300000} {
			if got := w.passes(one, one.addr[w.hub], w.hub, n); got != toOne {
				t.Errorf("%d bytes from the first: source %d, not %d", n, got, toOne)
			}
			if got := w.passes(two, two.addr[w.hub], w.hub, n); got != toTwo {
				t.Errorf("%d bytes from the second: source %d, not %d", n, got, toTwo)
			}
			w.passes(w.hub, toOne, one, n)
			w.passes(w.hub, toTwo, two, n)
		}
		if !w.barred(other, other.addr[w.hub], w.hub) {
			t.Error("an endpoint with a key that the hub does not have reaches it")
		}
		if !w.barred(w.hub, w.knows(w.hub, one, w.keys["two"]), one) {
			t.Error("the hub reaches an endpoint under a key that this does not have")
		}
		late := w.knows(w.hub, other, w.key(w.hub, "three"))
		if !w.barred(w.hub, late, other) {
			t.Error("the hub has a key that came after it was enabled")
		}
	})
}

// TestAVKeysBoth has two endpoints with the same two keys, in different orders: each is
// two sources for the other.
func TestAVKeysBoth(t *testing.T) {
	forEachKeyWorld(t, fi.Msg|fi.Source, []string{"one", "two"}, func(t *testing.T, w *keyWorld) {
		mine := map[string]fi.Addr{"one": w.keys["one"], "two": w.keys["two"]}
		peer := w.keyed("three", "two", "one")
		for _, key := range []string{"one", "two", "one"} {
			there, back := w.knows(w.hub, peer, mine[key]), w.knows(peer, w.hub, w.keys[key])
			if got := w.passes(w.hub, there, peer, 100); got != back {
				t.Errorf("%s: source %d, not %d", key, got, back)
			}
			if got := w.passes(peer, back, w.hub, 100); got != there {
				t.Errorf("%s, back: source %d, not %d", key, got, there)
			}
			for s, addr := range map[*side]fi.Addr{w.hub: there, peer: back} {
				b := make([]byte, 8)
				if n, err := s.av.LookupAuthKey(addr, b); err != nil || string(b[:n]) != key {
					t.Errorf("%s: look up: %q, %v", key, b[:n], err)
				}
				if err := s.av.Remove([]fi.Addr{addr}, 0); err != nil {
					t.Fatal(err)
				}
			}
		}
	})
}

// TestAVKeysUnknown: a sender that is not in the address vector is notified by its key.
func TestAVKeysUnknown(t *testing.T) {
	forEachKeyWorld(t, fi.Msg|fi.Source|fi.SourceErr, []string{"one", "two"}, func(t *testing.T, w *keyWorld) {
		s := w.spoke("two")
		b := make([]byte, 1)
		w.hub.recv(RecvArgs{IOV: iovOf(b), Src: fi.AddrUnspec}, s)
		s.send(SendArgs{IOV: iovOf([]byte{1}), Dest: s.addr[w.hub]}, w.hub)
		_, e, ok := settle(t, w.hub, s)
		raw, _ := s.ep.Name()
		if ok || e.Err != fi.EADDRNOTAVAIL || e.Src != w.keys["two"] || !bytes.Equal(e.ErrData, raw) {
			t.Errorf("completion %v %+v, want the key %#x", ok, e, w.keys["two"])
		}
	})
}

// TestAVKeysDirected: a receive takes messages from whatever has one of the keys.
func TestAVKeysDirected(t *testing.T) {
	forEachKeyWorld(t, fi.Msg|fi.Tagged|fi.Source|fi.DirectedRecv, []string{"one", "two"},
		func(t *testing.T, w *keyWorld) {
			one, two, twin := w.spoke("one"), w.spoke("two"), w.spoke("two")
			toTwin := w.knows(w.hub, twin, w.keys["two"])
			b := make([]byte, 4)
			post := func(tagged bool) {
				for i, a := range []RecvArgs{
					{Src: toTwin},
					{Src: w.keys["two"], Flags: fi.AuthKey},
					{Src: w.keys["one"], Flags: fi.AuthKey},
					{Src: fi.AddrUnspec},
				} {
					a.IOV, a.Context, a.Tagged = iovOf(b[i:i+1]), uint64(i), tagged
					w.hub.recv(a)
				}
			}
			send := func(s *side, tagged bool) {
				s.send(SendArgs{IOV: iovOf([]byte{7}), Dest: s.addr[w.hub], Tagged: tagged}, w.hub)
				s.completion(w.hub)
			}
			for _, early := range []bool{true, false} {
				for _, tagged := range []bool{true, false} {
					if early {
						post(tagged)
					}
					// one finds a receive for its key, two one for its; the twin's is
					// its own. What remains is anybody's.
					var got []uint64
					senders := []*side{one, two, twin, two}
					for _, s := range senders {
						send(s, tagged)
						for range 3 {
							w.hub.ep.Progress()
						}
					}
					if !early {
						post(tagged)
					}
					for range senders {
						got = append(got, w.hub.completion(one, two, twin).Context)
					}
					want := []uint64{2, 1, 0, 3}
					if !early {
						want = []uint64{0, 1, 2, 3} // in the order of the receives
					}
					for i := range want {
						if got[i] != want[i] {
							t.Fatalf("early %v, tagged %v: %d, want %d", early, tagged, got, want)
						}
					}
				}
			}
			wantErrno(t, one.ep.PostRecv(&RecvArgs{Src: 0, Flags: fi.AuthKey}), fi.EINVAL,
				"receive by key without keys")
		})
}

// TestAVKeysRegions: regions are open to all keys of an address vector, to one, or to one
// address.
func TestAVKeysRegions(t *testing.T) {
	forEachKeyWorld(t, fi.Msg|fi.RMA|fi.Atomic|fi.DirectedRecv, []string{"one", "two"},
		func(t *testing.T, w *keyWorld) {
			one, two, twin := w.spoke("one"), w.spoke("two"), w.spoke("two")
			toTwin := w.knows(w.hub, twin, w.keys["two"])
			memory, local := make([]byte, 3*80000), pattern(80000, 1)
			defer runtime.KeepAlive(memory) // the endpoints know the two by address only
			defer runtime.KeepAlive(local)
			for key, r := range []struct {
				src   fi.Addr
				flags uint64
			}{{fi.AddrUnspec, 0}, {w.keys["two"], fi.AuthKey}, {toTwin, 0}} {
				m, err := w.hub.domain.RegMR(&fi.MRAttr{
					IOV: iovOf(memory[key*80000:][:80000]), Access: fi.RemoteRead | fi.RemoteWrite,
					RequestedKey: uint64(key),
					AV:           w.hub.av, Src: r.src,
				}, r.flags)
				if err != nil {
					t.Fatal(err)
				}
				defer m.Close()
			}
			open := map[*side][3]bool{one: {true, false, false}, two: {true, true, false}, twin: {true, true, true}}
			for s, may := range open {
				for key, ok := range may {
					for _, n := range []uint64{8, 4000, 80000} {
						for _, read := range []bool{false, true} {
							a := RMAArgs{IOV: iovOf(local[:n]), Remote: []fi.RMAIOVec{{Len: n, Key: uint64(key)}},
								Dest: s.addr[w.hub], Read: read}
							post(t, func() error { return s.ep.RMA(&a) }, s, w.hub)
							w.ended(s, ok, "read %v of %d bytes, region %d", read, n, key)
						}
					}
					at := AtomicArgs{Kind: atomics.Fetch, Op: fi.OpSum, Datatype: fi.Uint64, Operand: iovOf(local[:8]),
						Result: iovOf(local[8:16]),
						Remote: []fi.RMAIOVec{{Len: 8, Key: uint64(key)}}, Dest: s.addr[w.hub]}
					post(t, func() error { return s.ep.Atomic(&at) }, s, w.hub)
					w.ended(s, ok, "atomic, region %d", key)
				}
			}
		})
}

// ended checks the end of a one-sided operation on the hub's memory.
func (w *keyWorld) ended(s *side, want bool, format string, args ...any) {
	w.t.Helper()
	if _, e, ok := settle(w.t, s, w.hub); ok != want || !ok && e.Err != fi.EACCES {
		w.t.Errorf(format+": completed %v, %+v", append(args, ok, e)...)
	}
}

// TestAVKeysCalls holds the calls to fi_av(3), fi_domain(3), fi_endpoint(3) and fi_mr(3).
func TestAVKeysCalls(t *testing.T) {
	i := testInfo()
	i.Caps |= fi.RMA | fi.AVUserID
	i.EP = &fi.EPAttr{Type: fi.EPRDM}
	i.Domain.AuthKeySize, i.Domain.MaxEPAuthKey, i.Domain.Caps = fi.AVAuthKey, 2, fi.AVUserID
	d := openTestDomain(t, i)
	a, named := openTestAV(t, d, fi.AVAttr{}), openTestAV(t, d, fi.AVAttr{Flags: fi.AVUserID})
	insert := func(key string, flags uint64, want fi.Errno) fi.Addr {
		t.Helper()
		h, err := a.InsertAuthKey([]byte(key), flags)
		wantErrno(t, err, want, "insert key "+key)
		return h
	}
	insert("", 0, fi.EINVAL)
	insert(string(make([]byte, 5000)), 0, fi.EINVAL)
	insert("k", fi.More, fi.EBADFLAGS)
	one, two := insert("one", 0, fi.Success), insert("two", 0, fi.Success)
	insert("three", 0, fi.ENOSPC)
	if again := insert("one", 0, fi.Success); again != one || one == two {
		t.Errorf("handles %#x %#x, again %#x", one, two, again)
	}
	var b [2]byte
	n, err := a.LookupAuthKey(two, b[:])
	if err != nil || n != 3 || string(b[:]) != "tw" {
		t.Errorf("look up: %d %q %v", n, b, err)
	}
	_, err = a.LookupAuthKey(0, b[:])
	wantErrno(t, err, fi.EINVAL, "look up an address that is not there")

	raw := names.New(netip.MustParseAddr("127.0.0.1"), 7).AppendSockaddr(nil)
	put := func(in Insertion, want fi.Errno) {
		t.Helper()
		_, err := a.Insert(raw, 1, &in)
		wantErrno(t, err, want, "insert")
	}
	addrs := []fi.Addr{one}
	put(Insertion{Addrs: []fi.Addr{0}}, fi.EINVAL) // without a key
	put(Insertion{Flags: fi.AuthKey}, fi.EINVAL)
	put(Insertion{Addrs: []fi.Addr{3}, Flags: fi.AuthKey}, fi.EINVAL)
	put(Insertion{Addrs: []fi.Addr{one}, Flags: fi.AuthKey | fi.AVUserID}, fi.EINVAL)
	put(Insertion{Addrs: addrs, Flags: fi.AuthKey}, fi.Success)
	wantErrno(t, a.Remove([]fi.Addr{one}, fi.AuthKey), fi.Success, "remove a key that was inserted twice")
	wantErrno(t, a.Remove([]fi.Addr{one}, fi.AuthKey), fi.EBUSY, "remove a key with an address")
	wantErrno(t, a.Remove(addrs, 0), fi.Success, "remove the address")
	wantErrno(t, a.Remove([]fi.Addr{one}, fi.AuthKey), fi.Success, "remove the key")
	wantErrno(t, a.Remove([]fi.Addr{one}, fi.AuthKey), fi.EINVAL, "remove the key again")
	wantErrno(t, a.SetUserID(two, 9, fi.AuthKey), fi.EINVAL, "id of a key in an address vector without")

	h, err := named.InsertAuthKey([]byte("k"), 0)
	wantErrno(t, err, fi.Success, "insert")
	if got := named.ReportedKey(1); got != fi.AddrNotAvail {
		t.Errorf("a key without an id is reported as %#x", got)
	}
	wantErrno(t, named.SetUserID(h, 9, fi.AuthKey), fi.Success, "id of a key")
	wantErrno(t, named.SetUserID(h+1, 9, fi.AuthKey), fi.EINVAL, "id of no key")
	if got := named.ReportedKey(1); got != 9 {
		t.Errorf("a key with id 9 is reported as %#x", got)
	}
	_, err = d.OpenAV(&fi.AVAttr{Name: "keys"})
	wantErrno(t, err, fi.EINVAL, "shared")
	own := i.Clone()
	own.EP.AuthKey = []byte("own")
	_, err = d.OpenEndpoint(own)
	wantErrno(t, err, fi.EINVAL, "endpoint with a key of its own")
	mr := fi.MRAttr{IOV: iovOf(make([]byte, 8)), Access: fi.RemoteRead}
	_, err = d.RegMR(&mr, 0)
	wantErrno(t, err, fi.EINVAL, "region without an address vector")
	mr.AV, mr.Src = a, two
	_, err = d.RegMR(&mr, fi.AuthKey)
	wantErrno(t, err, fi.EINVAL, "region of one key without FI_DIRECTED_RECV")
	plain := openTestAV(t, openTestDomain(t, testInfo()), fi.AVAttr{})
	_, err = plain.InsertAuthKey([]byte("k"), 0)
	wantErrno(t, err, fi.EINVAL, "key in a domain without")
	_, err = plain.Insert(raw, 1, &Insertion{Addrs: addrs, Flags: fi.AuthKey})
	wantErrno(t, err, fi.EINVAL, "address under a key in a domain without")
}

// TestAVKeysEndpointsHold: a key is in use while an endpoint is enabled with it, and an
// address vector without keys enables none.
func TestAVKeysEndpointsHold(t *testing.T) {
	w := &keyWorld{t: t, keys: map[string]fi.Addr{}, hints: &fi.Info{Caps: fi.Msg}}
	s := w.keyed("one")
	wantErrno(t, s.av.Remove([]fi.Addr{w.keys["one"]}, fi.AuthKey), fi.EBUSY, "remove")
	late := w.key(s, "late")
	wantErrno(t, s.av.Remove([]fi.Addr{late}, fi.AuthKey), fi.Success, "remove a key that came late")
	empty := openTestAV(t, s.domain, fi.AVAttr{})
	e, err := s.domain.OpenEndpoint(s.bench.info)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	for _, err := range []error{e.BindCQ(s.cq, fi.Transmit|fi.Recv), e.BindAV(empty, 0)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	wantErrno(t, e.Enable(), fi.EINVAL, "enable without a key")
}
