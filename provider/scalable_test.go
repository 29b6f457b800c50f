package provider

import (
	"bytes"
	"testing"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/config"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/provider/internal/av"
	"github.com/weft-fabric/weft/provider/internal/links"
	"github.com/weft-fabric/weft/provider/names"
)

const testCtxBits = 3

// rxAddr is fi_rx_addr.
func rxAddr(a fi.Addr, index int) fi.Addr { return a | fi.Addr(index)<<(64-testCtxBits) }

// scalable is a scalable endpoint with two contexts of each kind. Each is a
// side with the same address vector.
type scalable struct {
	sep    *Scalable
	av     *AV
	tx, rx [2]*side
}

func (b *bench) scalable(t *testing.T, src names.Name, attr fi.AVAttr) *scalable {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	full := b.info.Clone()
	full.EP.TxCtxCnt, full.EP.RxCtxCnt = 2, 2
	if !src.IsZero() {
		full.AddrFormat, full.SrcAddr = fi.Sockaddr, src.AppendSockaddr(nil)
	}
	s := &scalable{}
	var err error
	attr.RxCtxBits = testCtxBits
	s.av, err = b.domain.OpenAV(&attr)
	must(err)
	s.sep, err = b.domain.OpenScalable(full)
	must(err)
	must(s.sep.BindAV(s.av, 0))
	t.Cleanup(func() {
		for _, c := range []interface{ Close() error }{s.sep, s.av} {
			if err := c.Close(); err != nil {
				t.Errorf("close %T: %v", c, err)
			}
		}
	})
	for i := range 2 {
		tx, err := s.sep.OpenTx(i, nil)
		must(err)
		s.tx[i] = b.contextSide(t, s.av, tx, fi.Transmit)
		rx, err := s.sep.OpenRx(i, nil)
		must(err)
		s.rx[i] = b.contextSide(t, s.av, rx, fi.Recv)
	}
	must(s.sep.Enable())
	return s
}

func (b *bench) contextSide(t *testing.T, av *AV, ep *Endpoint, flags uint64) *side {
	t.Helper()
	q, err := b.domain.OpenCQ(&fi.CQAttr{Format: fi.CQFormatTagged, Size: 256}, nil)
	if err != nil {
		t.Fatal(err)
	}
	s := &side{t: t, bench: b, domain: b.domain, av: av, cq: q, ep: ep, addr: map[*side]fi.Addr{}}
	b.sides = append(b.sides, s)
	for _, err := range []error{ep.BindCQ(q, flags), ep.Enable()} {
		if err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		for _, err := range []error{ep.Close(), q.Close()} {
			if err != nil {
				t.Errorf("close: %v", err)
			}
		}
	})
	return s
}

// TestScalableExchange sends from two contexts to one at the same time, with
// and without access to the sender's memory, with acknowledgements, expected
// and kept. Answers must find the context that they are for.
func TestScalableExchange(t *testing.T) {
	for _, cma := range []config.Tri{config.Auto, config.No} {
		b := newBench(t, func(c *config.Config) { c.UseCMA = cma }, directed())
		from, to := b.scalable(t, names.Name{}, fi.AVAttr{}), b.scalable(t, names.Name{}, fi.AVAttr{})
		all := []*side{from.tx[0], from.tx[1], to.rx[0], to.rx[1]}
		toAddr := from.tx[0].insert(to.sep.name)
		fromAddr := to.rx[0].insert(from.sep.name)
		for _, early := range []bool{true, false} {
			for i, n := range sizes {
				for r, rx := range to.rx {
					var want, got [2][]byte
					post := func(k int) {
						rx.recv(RecvArgs{IOV: iovOf(got[k]), Src: rxAddr(fromAddr, k), Tag: uint64(k),
							Context: uint64(k), Tagged: true}, all...)
					}
					for k := range 2 {
						want[k], got[k] = pattern(n, byte(i+k)), make([]byte, n)
						if early {
							post(k)
						}
						from.tx[k].send(SendArgs{IOV: iovOf(want[k]), Dest: rxAddr(toAddr, r), Tag: uint64(k),
							Tagged: true,
							Flags:  fi.DeliveryComplete, Context: uint64(10 + k)}, all...)
					}
					rx.ep.Progress()
					for k := range 2 {
						if !early {
							post(k)
						}
						e := rx.completion(all...)
						if e.Src != fromAddr || e.Len != uint64(n) || !bytes.Equal(got[e.Context], want[e.Context]) {
							t.Fatalf("cma %v, early %v, %d bytes: %+v", cma, early, n, e)
						}
					}
					for k := range 2 {
						if e := from.tx[k].completion(all...); e.Context != uint64(10+k) {
							t.Fatalf("%d bytes: context %d completes %+v", n, k, e)
						}
					}
				}
			}
		}
	}
}

// TestScalableRMA writes through a context with data for its queue, and reads
// back through another.
func TestScalableRMA(t *testing.T) {
	forEachPath(t, func(t *testing.T, b *bench) {
		s := b.scalable(t, names.Name{}, fi.AVAttr{})
		at := s.tx[0].insert(s.sep.name)
		memory := make([]byte, 1<<20)
		s.rx[0].region(memory, 1, fi.RemoteRead|fi.RemoteWrite)
		for i, n := range []int{8, 5000, 1 << 20} {
			tx, rx, other := s.tx[i%2], s.rx[1-i%2], s.rx[i%2]
			local, back := pattern(n, byte(i)), make([]byte, n)
			a := RMAArgs{IOV: iovOf(local), Remote: []fi.RMAIOVec{{Len: uint64(n), Key: 1}}, Dest: rxAddr(at, 1-i%2),
				HasData: true, Data: uint64(i)}
			post(t, func() error { return tx.ep.RMA(&a) }, tx, rx)
			e, bad, ok := settle(t, rx, tx)
			if !ok || e.Data != uint64(i) || e.Src != at || !bytes.Equal(memory[:n], local) {
				t.Fatalf("%d bytes: %+v %+v", n, e, bad)
			}
			wantDone(t, tx, rx, 0, fi.RMA|fi.Write)
			a = RMAArgs{IOV: iovOf(back), Remote: a.Remote, Dest: rxAddr(at, i%2), Read: true, Context: 9}
			post(t, func() error { return tx.ep.RMA(&a) }, tx, other)
			wantDone(t, tx, other, 9, fi.RMA|fi.Read)
			if !bytes.Equal(back, local) {
				t.Fatalf("%d bytes read back differ", n)
			}
		}
	})
}

// TestScalableWildcard reaches the contexts of an endpoint that is bound to a
// wildcard by another address than its own, and knows it by that.
func TestScalableWildcard(t *testing.T) {
	b := newBench(t, nil, directed())
	s, peer := b.scalable(t, names.Any(names.AFInet, 0), fi.AVAttr{}), b.scalable(t, names.Name{}, fi.AVAttr{})
	alias := nameOf("127.0.0.3").WithPort(s.sep.name.Port)
	if s.sep.name == alias {
		t.Skip("this host has no other address")
	}
	at := peer.rx[0].insert(alias)
	back := s.tx[0].insert(peer.sep.name)
	out := pattern(100_000, 3)
	for i := range 2 {
		in := make([]byte, len(out))
		s.rx[i].recv(RecvArgs{IOV: iovOf(in), Src: back, Context: 1})
		peer.tx[1-i].send(SendArgs{IOV: iovOf(out), Dest: rxAddr(at, i), Context: 2}, s.rx[i])
		if e := s.rx[i].completion(peer.tx[1-i]); e.Src != back || !bytes.Equal(in, out) {
			t.Errorf("context %d: %+v", i, e)
		}
		peer.tx[1-i].completion(s.rx[i])
		clear(in)
		peer.rx[i].recv(RecvArgs{IOV: iovOf(in), Src: at, Context: 3})
		s.tx[i].send(SendArgs{IOV: iovOf(out), Dest: rxAddr(back, i), Context: 4}, peer.rx[i])
		if e := peer.rx[i].completion(s.tx[i]); e.Src != at || !bytes.Equal(in, out) {
			t.Errorf("from context %d: %+v", i, e)
		}
	}
}

// TestScalableSharedAV names contexts through a named address vector.
func TestScalableSharedAV(t *testing.T) {
	b := newBench(t, func(c *config.Config) { c.SHMDir = t.TempDir() }, directed())
	s := b.scalable(t, names.Name{}, fi.AVAttr{Name: "contexts"})
	at := s.tx[0].insert(s.sep.name)
	for i := range 2 {
		s.rx[i].recv(RecvArgs{Src: fi.AddrUnspec, Context: uint64(i)})
		s.tx[0].send(SendArgs{Dest: rxAddr(at, i), Context: 5}, s.rx[i])
		if e := s.rx[i].completion(s.tx[0]); e.Context != uint64(i) || e.Src != at {
			t.Errorf("context %d: %+v", i, e)
		}
	}
}

// TestScalableRemove removes the address of a peer whose contexts have lines.
func TestScalableRemove(t *testing.T) {
	b := newBench(t, nil, directed())
	s := b.scalable(t, names.Name{}, fi.AVAttr{})
	s.tx[0].insert(names.New(nameOf("127.0.0.1").Addr(), 9))
	at := s.tx[0].insert(s.sep.name)
	filled := func() (n int) {
		for i := range uint32(s.av.Lines() >> 10) {
			if line := s.tx[0].ep.base.links.LineAt(uint64(i)); line != nil && line.Slots != 0 {
				n++
			}
		}
		return n
	}
	for i := range 2 {
		s.tx[0].send(SendArgs{Dest: rxAddr(at, i), Inject: true})
	}
	if n := filled(); n != 2 {
		t.Errorf("%d lines are filled, want 2", n)
	}
	if s.tx[0].ep.base.hot.Flags>>hot.EPCtxShift != testCtxBits {
		t.Errorf("flags %#x", s.tx[0].ep.base.hot.Flags)
	}
	if err := s.av.Remove([]fi.Addr{at}, 0); err != nil {
		t.Fatal(err)
	}
	if n := filled(); n != 0 {
		t.Errorf("%d lines are filled after the removal", n)
	}
	for i := range 2 {
		if err := s.tx[0].ep.Send(&SendArgs{Dest: rxAddr(at, i), Inject: true}); fi.ErrnoOf(err) != fi.EINVAL {
			t.Errorf("send to context %d of a removed address: %v", i, err)
		}
	}
}

func TestReceiveContextBits(t *testing.T) {
	d := openTestDomain(t, testInfo())
	for bits := range av.MaxRxCtxBits + 1 {
		a := openTestAV(t, d, fi.AVAttr{RxCtxBits: bits})
		at := insertAll(t, a, testName(1), testName(2))[1]
		for index := range uint64(1) << bits {
			addr := at
			if bits != 0 {
				addr |= fi.Addr(index) << (64 - bits)
			}
			if base, i := a.Peer(addr); base != at || i != index {
				t.Errorf("%d bits: %#x is %d of %d, want %d of %d", bits, addr, i, base, index, at)
			}
			if l := a.Line(addr); l != uint64(at)<<bits+index || l >= a.Lines() {
				t.Errorf("%d bits: line %d of %#x", bits, l, addr)
			}
			if ok := links.Leads(a, addr); ok != (index < maxContexts) {
				t.Errorf("%d bits, index %d: leads to a peer: %v", bits, index, ok)
			}
		}
		if a.Line(fi.AddrUnspec) < a.Lines() || a.Line(fi.AddrNotAvail-1) < a.Lines() {
			t.Errorf("%d bits: no address has a line", bits)
		}
	}
}
