package provider

import (
	"bytes"
	"errors"
	"slices"
	"testing"
	"time"
	"unsafe"

	"github.com/weft-fabric/weft/cq"
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/config"
	"github.com/weft-fabric/weft/provider/internal/flow"
	"github.com/weft-fabric/weft/provider/internal/links"
	"github.com/weft-fabric/weft/provider/internal/rkey"
	"github.com/weft-fabric/weft/provider/internal/wire"
)

// inSegments runs a test over every way that segments take: copies by the
// kernel, messages on one host, and UDP.
func inSegments(t *testing.T, f func(t *testing.T, x, y *side)) {
	for name, use := range map[string]config.Tri{"memory": config.Auto, "messages": config.No} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, func(c *config.Config) {
				flowsEverywhere(c)
				c.UseCMA, c.SHMDir = use, t.TempDir()
			}, rmaHints())
			x, y := b.pair(t)
			f(t, x, y)
		})
	}
	t.Run("udp", func(t *testing.T) {
		sides := overUDP(t, 2, flowsEverywhere)
		f(t, sides[0], sides[1])
	})
}

// TestSegmentsAgainstModel has reads and writes of all sizes and cuts go in
// segments.
func TestSegmentsAgainstModel(t *testing.T) {
	inSegments(t, func(t *testing.T, x, y *side) {
		rmaAgainstModel(t, x, y, 200)
		if n := x.peerCounter("peer_segments"); n < 50 {
			t.Errorf("%d segments in 200 operations", n)
		}
		if n := x.peerCounter("peer_segment_flight"); n != 0 {
			t.Errorf("%d bytes are under way", n)
		}
	})
}

// TestSegmentsOfMessages has long messages read in segments.
func TestSegmentsOfMessages(t *testing.T) {
	inSegments(t, func(t *testing.T, x, y *side) {
		swap(t, x, y, 0, true)
		swap(t, x, y, fi.DeliveryComplete, false)
		if t.Name() != "TestSegmentsOfMessages/messages" && y.peerCounter("peer_segments") < 10 {
			t.Errorf("%d segments", y.peerCounter("peer_segments"))
		}
	})
}

// holder is an endpoint that keeps reads until they are let go.
type holder struct {
	hw.Endpoint
	kept []func() error
}

func (h *holder) AMShort(id hw.AMID, header uint64, head, payload []byte) error {
	if id != wire.AMRead {
		return h.Endpoint.AMShort(id, header, head, payload)
	}
	head = append([]byte(nil), head...)
	h.kept = append(h.kept, func() error { return h.Endpoint.AMShort(id, header, head, nil) })
	return nil
}

// instead is a path like another, over another endpoint.
func instead(p *path, ep hw.Endpoint) *path {
	n := links.NewPath(ep, p.Via)
	n.Peer, n.Slots, n.Keys, n.Serial = p.Peer, p.Slots, p.Keys, p.Serial
	return n
}

// over has what x sends to y go over what wrap makes of their endpoint, until the returned function is called.
func over(t *testing.T, x, y *side, wrap func(hw.Endpoint) hw.Endpoint) (undo func()) {
	t.Helper()
	l, p := x.pathTo(y)
	to, answer := wrap(p.Endpoint), p.Via.Answer
	l.Set(instead(p, to))
	p.Via.Answer = func(src hw.Source) hw.Endpoint {
		if ep := answer(src); ep != p.Endpoint {
			return ep
		}
		return to
	}
	return func() { l.Set(p); p.Via.Answer = answer }
}

// hold puts a holder between a side and the peer.
func hold(t *testing.T, x, y *side) *holder {
	t.Helper()
	h := &holder{}
	over(t, x, y, func(e hw.Endpoint) hw.Endpoint {
		h.Endpoint = e
		return h
	})
	return h
}

// TestSegmentWindow has no more segments under way than the window lets out,
// and the next come as those before end.
func TestSegmentWindow(t *testing.T) {
	sides := overUDP(t, 2, func(c *config.Config) {
		flowsEverywhere(c)
		c.CC, c.InitialCwnd = "fixed", 3
	})
	x, y := sides[0], sides[1]
	remote, local := make([]byte, 320<<10), make([]byte, 320<<10)
	for i := range remote {
		remote[i] = byte(i * 7 >> 3)
	}
	y.region(remote, 7, fi.RemoteRead)
	read := func(n int) {
		a := RMAArgs{IOV: iovOf(local[:n]), Remote: []fi.RMAIOVec{{Len: uint64(n), Key: 7}}, Dest: x.addr[y],
			Context: 1, Read: true}
		post(t, func() error { return x.ep.RMA(&a) }, x, y)
	}
	read(8)
	wantDone(t, x, y, 1, fi.RMA|fi.Read)
	h := hold(t, x, y)
	read(len(local)) // ten segments of 32 KiB
	for answered := range 10 {
		for end := time.Now().Add(time.Minute); len(h.kept) < min(3, 10-answered); drain(x, y) {
			if time.Now().After(end) {
				t.Fatalf("%d segments under way after %d answers", len(h.kept), answered)
			}
		}
		drain(x, y)
		if len(h.kept) > 3 {
			t.Fatalf("%d segments under way in a window of 3", len(h.kept))
		}
		if err := h.kept[len(h.kept)-1](); err != nil { // answers in no order
			t.Fatal(err)
		}
		h.kept = h.kept[:len(h.kept)-1]
	}
	wantDone(t, x, y, 1, fi.RMA|fi.Read)
	for i := range local {
		if local[i] != remote[i] {
			t.Fatalf("byte %d is wrong", i)
		}
	}
}

// TestSegmentsPeerGone has the peer go while segments are under way and others
// wait for the window.
func TestSegmentsPeerGone(t *testing.T) {
	sides := overUDP(t, 2, flowsEverywhere)
	x, y := sides[0], sides[1]
	remote, local := make([]byte, 1<<20), make([]byte, 1<<20)
	y.region(remote, 7, fi.RemoteRead|fi.RemoteWrite)
	write := RMAArgs{IOV: iovOf(local[:8]), Remote: []fi.RMAIOVec{{Len: 8, Key: 7}}, Dest: x.addr[y], Context: 1}
	post(t, func() error { return x.ep.RMA(&write) }, x, y)
	wantDone(t, x, y, 1, fi.RMA|fi.Write)
	for i, read := range []bool{true, false} {
		a := RMAArgs{IOV: iovOf(local), Remote: []fi.RMAIOVec{{Len: 1 << 20, Key: 7}}, Dest: x.addr[y],
			Context: uint64(10 + i), Read: read}
		post(t, func() error { return x.ep.RMA(&a) }, x)
	}
	if err := y.ep.Close(); err != nil {
		t.Fatal(err)
	}
	y.ep = nil
	y.cq.Close()
	y.av.Close()
	ended := map[uint64]bool{}
	for range 2 {
		for end := time.Now().Add(time.Minute); ; {
			x.ep.Progress()
			x.housekeep()
			if _, err := x.cq.Read(nil); errors.Is(err, fi.EAVAIL) {
				break
			}
			if time.Now().After(end) {
				t.Fatalf("no error; ended %v", ended)
			}
		}
		e, err := x.cq.ReadErr()
		if err != nil || e.Err != fi.ECONNRESET {
			t.Fatal(e, err)
		}
		ended[e.Context] = true
	}
	if !ended[10] || !ended[11] || leasedOf(x.ep).initiated.Transfers() != 0 {
		t.Errorf("ended %v, %d transfers are left", ended, leasedOf(x.ep).initiated.Transfers())
	}
}

// TestSegmentsRefused has the target refuse segments.
func TestSegmentsRefused(t *testing.T) {
	inSegments(t, func(t *testing.T, x, y *side) {
		remote, local := make([]byte, 300<<10), make([]byte, 1<<20)
		y.region(remote, 7, fi.RemoteRead|fi.RemoteWrite)
		for i, read := range []bool{true, false, true, false} {
			a := RMAArgs{IOV: iovOf(local), Remote: []fi.RMAIOVec{{Len: 1 << 20, Key: 7}}, Dest: x.addr[y],
				Context: uint64(i), Read: read}
			want := fi.EACCES // beyond the end
			if i >= 2 {
				a.Remote[0].Key, want = 8, fi.ENOKEY
			}
			post(t, func() error { return x.ep.RMA(&a) }, x, y)
			if _, e, ok := settle(t, x, y); ok || e.Err != want || e.Context != uint64(i) {
				t.Errorf("operation %d: %v, %+v, want %v", i, ok, e, want)
			}
		}
	})
}

// TestSegmentsRefusedEarly has refusals of a read's later segments come before the data of
// its first, as where the data waits for room.
func TestSegmentsRefusedEarly(t *testing.T) {
	sides := overUDP(t, 2, func(c *config.Config) {
		flowsEverywhere(c)
		c.CC, c.InitialCwnd = "fixed", 3
	})
	x, y := sides[0], sides[1]
	remote, local := make([]byte, 40<<10), make([]byte, 96<<10)
	y.region(remote, 7, fi.RemoteRead)
	read := func(context uint64, n int) {
		a := RMAArgs{IOV: iovOf(local[:n]), Remote: []fi.RMAIOVec{{Len: uint64(n), Key: 7}}, Dest: x.addr[y],
			Context: context, Read: true}
		post(t, func() error { return x.ep.RMA(&a) }, x, y)
	}
	read(1, 8)
	wantDone(t, x, y, 1, fi.RMA|fi.Read)
	h := hold(t, x, y)
	read(2, len(local)) // three segments, of which the first is within
	until(t, "three segments under way", func() bool { return len(h.kept) == 3 }, x, y)
	for _, ask := range slices.Backward(h.kept) {
		if err := ask(); err != nil {
			t.Fatal(err)
		}
		drain(x, y)
	}
	if _, e, ok := settle(t, x, y); ok || e.Err != fi.EACCES || e.Context != 2 {
		t.Errorf("%v, %+v", ok, e)
	}
	if leasedOf(x.ep).initiated.Transfers() != 0 {
		t.Errorf("%d transfers are left", leasedOf(x.ep).initiated.Transfers())
	}
}

// crowded is an endpoint without room for short messages.
type crowded struct{ hw.Endpoint }

func (crowded) AMShort(hw.AMID, uint64, []byte, []byte) error { return hw.ErrNoResource }

// TestRefusalWaits has the refusals of reads and writes wait for room at the target.
func TestRefusalWaits(t *testing.T) {
	sides := overUDP(t, 2, nil)
	x, y := sides[0], sides[1]
	b := make([]byte, 8)
	y.region(b, 7, fi.RemoteRead|fi.RemoteWrite)
	for _, read := range []bool{false, true} { // both sides connect
		a := RMAArgs{IOV: iovOf(b), Remote: []fi.RMAIOVec{{Len: 8, Key: 7}}, Dest: x.addr[y], Context: 1, Read: read}
		post(t, func() error { return x.ep.RMA(&a) }, x, y)
		if _, e, ok := settle(t, x, y); !ok {
			t.Fatal(e)
		}
	}
	for _, read := range []bool{false, true} {
		room := over(t, y, x, func(e hw.Endpoint) hw.Endpoint { return crowded{e} })
		a := RMAArgs{IOV: iovOf(b), Remote: []fi.RMAIOVec{{Len: 8, Key: 8}}, Dest: x.addr[y], Context: 1, Read: read}
		post(t, func() error { return x.ep.RMA(&a) }, x, y)
		until(t, "an answer that waits", func() bool { return leasedOf(y.ep).rx.out.Len() > 0 }, x, y)
		drain(x, y)
		room()
		if _, e, ok := settle(t, x, y); ok || e.Err != fi.ENOKEY {
			t.Errorf("read %v: %v, %+v", read, ok, e)
		}
	}
}

// TestSegmentsInject has a write that is injected leave the caller's memory at
// once, however long it is.
func TestSegmentsInject(t *testing.T) {
	sides := overUDP(t, 2, func(c *config.Config) {
		flowsEverywhere(c)
		c.MinSegment = 4096
	})
	x, y := sides[0], sides[1]
	remote, local := make([]byte, 8192), make([]byte, 8192)
	y.region(remote, 7, fi.RemoteWrite)
	n := int(x.ep.base.hot.InjectMax)
	x.ep.base.domain.cfg.MinSegment = n - 1
	for i := range local {
		local[i] = 9
	}
	a := RMAArgs{IOV: iovOf(local[:n]), Remote: []fi.RMAIOVec{{Len: uint64(n), Key: 7}}, Dest: x.addr[y], Context: 1,
		Flags: fi.Inject | fi.Completion}
	post(t, func() error { return x.ep.RMA(&a) }, x, y)
	clear(local)
	wantDone(t, x, y, 1, fi.RMA|fi.Write)
	for i := range remote[:n] {
		if remote[i] != 9 {
			t.Fatalf("byte %d is %d", i, remote[i])
		}
	}
}

// byDevice starts an operation on memory of y whose segments the transport moves
// under a key of its own, as a device does.
func (x *side) byDevice(t *testing.T, y *side, read bool, local []byte, key hw.RemoteKey) {
	t.Helper()
	l, p := x.pathTo(y)
	if p.Keys == nil {
		p = instead(p, p.Endpoint)
		p.Keys = &rkey.Peer{}
		l.Set(p)
	}
	p.Keys.Forget(7)
	p.Keys.Find(7)
	p.Keys.Learn(7, key)
	n := uint64(len(local))
	a := RMAArgs{
		IOV: iovOf(local), Remote: []fi.RMAIOVec{{Len: 50000, Key: 7}, {Addr: 50000, Len: n - 50000, Key: 7}},
		Dest: x.addr[y], Context: 5, Read: read,
	}
	post(t, func() error { return x.ep.RMA(&a) }, x)
}

// TestSegmentsByDevice has the transport move segments, and messages move what it
// refuses.
func TestSegmentsByDevice(t *testing.T) {
	sides := overUDP(t, 2, flowsEverywhere)
	x, y := sides[0], sides[1]
	remote, local := make([]byte, 300<<10), make([]byte, 300<<10)
	y.region(remote, 7, fi.RemoteRead|fi.RemoteWrite)
	oneMessage(t, x, y, 64)
	memory := y.ep.base.links.Transports()[1].Memory()
	m, err := memory.Register(hw.Region{Addr: unsafe.Pointer(&remote[0]), Len: len(remote),
		Access: hw.RemoteRead | hw.RemoteWrite})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	good, err := x.ep.base.links.Transports()[1].Memory().UnpackKey(m.PackKey(nil))
	if err != nil {
		t.Fatal(err)
	}
	for i, key := range []hw.RemoteKey{good, {12345}} {
		for _, read := range []bool{false, true} {
			before := x.peerCounter("peer_segments")
			from, to := local, remote
			if read {
				from, to = remote, local
			}
			clear(to)
			for k := range from {
				from[k] = byte(k*13>>2) + byte(i)
			}
			x.byDevice(t, y, read, local, key)
			flags := fi.RMA | fi.Write
			if read {
				flags = fi.RMA | fi.Read
			}
			wantDone(t, x, y, 5, flags)
			drain(x, y)
			if !bytes.Equal(local, remote) {
				t.Errorf("key %d, read %v: wrong bytes", i, read)
			}
			if after := x.peerCounter("peer_segments"); after <= before || leasedOf(x.ep).initiated.Transfers() != 0 {
				t.Errorf("key %d, read %v: %d segments, %d before, %d transfers are left", i, read, after, before,
					leasedOf(x.ep).initiated.Transfers())
			}
		}
	}
}

// TestSegmentsOfLostSender: a message whose sender goes while it is copied in segments ends once.
func TestSegmentsOfLostSender(t *testing.T) {
	b := newBench(t, func(c *config.Config) { flowsEverywhere(c); c.SHMDir = t.TempDir() }, rmaHints())
	x, y := b.pair(t)
	const n = 3 * flow.Burst
	y.recv(RecvArgs{IOV: iovOf(make([]byte, n)), Src: fi.AddrUnspec, Context: 1})
	x.send(SendArgs{IOV: iovOf(make([]byte, n)), Dest: x.addr[y]})
	e := leasedOf(y.ep)
	for end := time.Now().Add(time.Minute); !e.rx.rendezvous.Waiting() && time.Now().Before(end); {
		y.ep.Progress()
	}
	y.ep.base.rx.acquire()
	for _, op := range e.rx.rendezvous.Operations() {
		e.rendezvous.SourceLost(op.Src)
	}
	busy := e.initiated.Flowing()
	e.rx.give()
	if !busy {
		t.Fatal("no segment was left")
	}
	y.wantErrorAmong(1, fi.ECONNRESET, x)
	for range 100 {
		y.ep.Progress()
	}
	if got, err := y.cq.Read(make([]cq.Entry, 1)); !errors.Is(err, fi.EAGAIN) {
		t.Errorf("the message ended again: %d completions, %v", got, err)
	}
	if e.initiated.Flowing() || e.rx.rendezvous.Waiting() {
		t.Error("it is still under way")
	}
}
