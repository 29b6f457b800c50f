package hwtest

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/mem"
	"github.com/weft-fabric/weft/internal/race"
)

// Tests of puts, gets and remote flushes, and of the keys that lead to memory. Those run for which the backend
// has the capability bit; every form of put and get that it offers (verb) runs the same tests.

// segmentOf is the memory of b.
func segmentOf(b []byte) hw.Segment {
	return hw.Segment{Addr: unsafe.Pointer(unsafe.SliceData(b)), Len: len(b)}
}

// register registers b at the node, with addresses that count from base.
func (n *node) register(b []byte, base uint64, access hw.Access) hw.Memory {
	n.t.Helper()
	m, err := n.Memory().Register(hw.Region{Addr: unsafe.Pointer(&b[0]), Len: len(b), Access: access, Base: base})
	if err != nil {
		n.t.Fatalf("register %d bytes: %v", len(b), err)
	}
	n.t.Cleanup(func() { _ = m.Close() })
	return m
}

// target returns n bytes for peers to access, off the Go heap: a network interface may read them once more after an
// operation has ended, when it did not hear of the end, and the race detector does not watch there. They are never
// given back, since interfaces are closed late.
func target(t testing.TB, n int) []byte {
	t.Helper()
	b, err := mem.Map(n, 0)
	if err != nil {
		t.Fatalf("%d bytes: %v", n, err)
	}
	return b[:n:n]
}

// local is a segment of the node's own memory, registered where that is needed.
func (n *node) local(b []byte) hw.Segment {
	s := segmentOf(b)
	if n.Memory().Attr().Caps&hw.MDLocal != 0 && len(b) != 0 {
		s.Memory = n.register(b, 0, hw.LocalWrite)
	}
	return s
}

// key packs and unpacks a key, as an exchange does.
func (n *node) key(m hw.Memory) hw.RemoteKey {
	n.t.Helper()
	packed := m.PackKey(nil)
	if limit := n.Memory().Attr().MaxKey; len(packed) > limit {
		n.t.Errorf("a packed key of %d bytes, at most %d", len(packed), limit)
	}
	k, err := n.Memory().UnpackKey(packed)
	if err != nil {
		n.t.Fatalf("unpack key: %v", err)
	}
	return k
}

// posted starts an operation as soon as there is room, and returns what that has said.
func posted(
	t testing.TB, a, b *node, c *hw.Completion, start func(c *hw.Completion) (hw.Status, error),
) (status hw.Status, err error) {
	t.Helper()
	until(t, "start of an operation", func() bool {
		if status, err = start(c); errors.Is(err, hw.ErrNoResource) {
			a.Progress(16)
			b.Progress(16)
			return false
		}
		return true
	})
	return status, err
}

// end runs an operation to its end and returns how it ended.
func end(t testing.TB, a, b *node, start func(c *hw.Completion) (hw.Status, error)) error {
	t.Helper()
	var c hw.Completion
	done := false
	c.Func = func(*hw.Completion) { done = true }
	c.Expect(1)
	status, result := posted(t, a, b, &c, start)
	done = done || result != nil || status == hw.Done
	until(t, "end of the operation", func() bool {
		if !done {
			a.Progress(16)
			b.Progress(16)
		}
		return done
	})
	if result == nil {
		result = c.Err()
	}
	return result
}

// verb is put or get.
type verb struct {
	name  string
	need  hw.Cap
	limit func(a *hw.Attr) uint64
	put   bool
	run   func(ep hw.OneSided, local []hw.Segment, addr uint64, k hw.RemoteKey, c *hw.Completion) (hw.Status, error)
}

var verbs = []verb{
	{"put", hw.CapPutZcopy, func(a *hw.Attr) uint64 { return a.MaxPutZcopy }, true, hw.OneSided.PutZcopy},
	{"get", hw.CapGetZcopy, func(a *hw.Attr) uint64 { return a.MaxGetZcopy }, false, hw.OneSided.GetZcopy},
}

// offered are the verbs that a node has.
func (n *node) offered() []verb {
	caps := n.Attr().Caps
	return slices.DeleteFunc(slices.Clone(verbs), func(v verb) bool { return caps&v.need == 0 })
}

// flushed runs a flush, if the backend has one: with hw.FlushMemory what was put is there then.
func flushed(t testing.TB, a, b *node, ep hw.Endpoint, scope hw.FlushScope) {
	t.Helper()
	f, ok := ep.(hw.Flusher)
	if !ok {
		return
	}
	if err := end(t, a, b, func(c *hw.Completion) (hw.Status, error) { return f.Flush(scope, c) }); err != nil {
		t.Fatalf("flush: %v", err)
	}
}

// segmentsOf cuts a segment into n, or into as many as it has bytes.
func segmentsOf(s hw.Segment, n int) (list []hw.Segment) {
	n = max(1, min(n, s.Len))
	for k := range n {
		from, to := s.Len*k/n, s.Len*(k+1)/n
		list = append(list, hw.Segment{Addr: unsafe.Add(s.Addr, from), Len: to - from, Memory: s.Memory})
	}
	return list
}

const all = hw.LocalWrite | hw.RemoteRead | hw.RemoteWrite | hw.RemoteAtomic

// testPutGet moves every size around the limits with every verb, from one local segment and from as many as there may
// be. The bytes beside what is moved must stay as they are.
func testPutGet(t *testing.T, open Factory) {
	a, b := newNode(t, open), newNode(t, open)
	offered := a.offered()
	if len(offered) == 0 {
		t.Skip("the backend has no one-sided operations")
	}
	attr := a.Attr()
	if attr.MaxIOV < 1 {
		t.Fatalf("an operation has at most %d local segments", attr.MaxIOV)
	}
	ep := a.connect(b)
	const room = 1<<20 + 64
	const base = 0x1000
	remote := target(t, room)
	key := a.key(b.register(remote, base, all))
	for _, v := range offered {
		limit := min(v.limit(&attr), 1<<20)
		for k, n := range []uint64{0, 1, 1, 7, 8, 63, 63, 64, 4096, 4096, 65537, limit - 1, limit} {
			if n > limit {
				continue
			}
			segments := 1
			if k%2 != 0 {
				segments = attr.MaxIOV
			}
			from, to := patterned(int(n)+32, n), patterned(room, n+1)
			copy(remote, to)
			mine := bytes.Clone(from)
			err := end(t, a, b, func(c *hw.Completion) (hw.Status, error) {
				local := segmentsOf(a.local(mine[16:16+n:16+n]), segments)
				return v.run(ep.(hw.OneSided), local, base+24, key, c)
			})
			if err != nil {
				t.Fatalf("%s of %d bytes in %d segments: %v", v.name, n, segments, err)
			}
			flushed(t, a, b, ep, hw.FlushMemory)
			if v.put {
				copy(to[24:], from[16:16+n])
			} else {
				copy(from[16:], to[24:24+n])
			}
			if !bytes.Equal(remote, to) || !bytes.Equal(mine, from) {
				t.Fatalf("%s of %d bytes in %d segments: wrong bytes", v.name, n, segments)
			}
		}
	}
}

// testKeys uses keys that are unknown, closed, of other memory or without the right: the operation fails with
// hw.ErrKey, and the peer's memory stays as it is.
func testKeys(t *testing.T, open Factory) {
	a, b := newNode(t, open), newNode(t, open)
	offered := a.offered()
	if len(offered) == 0 {
		t.Skip("the backend has no one-sided operations")
	}
	remote := target(t, 4096)
	want := patterned(4096, 1)
	copy(remote, want)
	mine := make([]byte, 64)
	for _, v := range offered {
		wrong := hw.RemoteRead
		if !v.put {
			wrong = hw.RemoteWrite
		}
		closed := b.register(remote, 0, all)
		expired := a.key(closed)
		closeKept(t, b, closed, remote)
		whole := a.key(b.register(remote, 0, all))
		if r, ok := a.Memory().(hw.KeyReader); ok {
			if got := r.KeyRegion(whole); got != (hw.Region{Len: 4096, Access: all}) {
				t.Errorf("a key says of its region %+v", got)
			}
		}
		for name, c := range map[string]struct {
			key  hw.RemoteKey
			addr uint64
		}{
			"wrong right":       {a.key(b.register(remote, 0, wrong|hw.LocalWrite)), 0},
			"expired":           {expired, 0},
			"past the end":      {whole, 4096 - 63},
			"far past":          {whole, 1 << 40},
			"before the start":  {whole, ^uint64(0) - 63},
			"zero key":          {hw.RemoteKey{}, 0},
			"key of no meaning": {hw.RemoteKey{^uint64(0), ^uint64(0), ^uint64(0), ^uint64(0)}, 0},
		} {
			// A refused access may break the connection, as with real devices: a new one each time.
			ep := a.connect(b)
			err := end(t, a, b, func(done *hw.Completion) (hw.Status, error) {
				return v.run(ep.(hw.OneSided), []hw.Segment{a.local(mine)}, c.addr, c.key, done)
			})
			if err == nil {
				flushed(t, a, b, ep, hw.FlushMemory)
			}
			if !bytes.Equal(remote, want) {
				t.Fatalf("%s, %s: the memory was changed", v.name, name)
			}
			if !errors.Is(err, hw.ErrKey) {
				t.Errorf("%s, %s: %v, want %v", v.name, name, err, hw.ErrKey)
			}
		}
	}
	if _, err := a.Memory().UnpackKey(make([]byte, 300)); !errors.Is(err, hw.ErrInvalid) {
		t.Errorf("unpack 300 bytes: %v", err)
	}
}

// closeKept closes a region of memory of b's, and registers the memory again and again: devices give keys out again.
func closeKept(t *testing.T, b *node, m hw.Memory, memory []byte) {
	k, lasts := m.(hw.Lasting)
	if lasts && !k.Keep() {
		t.Error("a key cannot be kept")
	}
	for n := 0; ; n++ {
		if err := m.Close(); err != nil {
			t.Fatal(err)
		}
		if !lasts || n == 300 {
			return
		}
		m = b.register(memory, 0, all)
	}
}

// testDevice compares the address of an interface on its device with what its peers have, and has bytes refused that
// are none.
func testDevice(t *testing.T, open Factory) {
	a, b := newNode(t, open), newNode(t, open)
	d, ok := b.Iface.(hw.Device)
	if !ok {
		t.Skip("the backend's interfaces have no such addresses")
	}
	own, other := d.DeviceAddress(), a.Iface.(hw.Device).DeviceAddress()
	if got := a.connect(b).(hw.DevicePeer).DeviceAddress(); !bytes.Equal(got, own) || bytes.Equal(own, other) {
		t.Errorf("a peer is at %x, its own address is %x, another's %x", got, own, other)
	}
	if err := a.Iface.(hw.Device).CheckDevice(own); err != nil {
		t.Error(err)
	}
	for n := range own {
		if err := d.CheckDevice(own[:n]); !errors.Is(err, hw.ErrInvalid) {
			t.Errorf("%d of %d bytes: %v", n, len(own), err)
		}
	}
	if err := d.CheckDevice(append(own, 0)); !errors.Is(err, hw.ErrInvalid) {
		t.Errorf("a byte more: %v", err)
	}
}

// testPutPlaced compares the target's memory as soon as a put has completed.
func testPutPlaced(t *testing.T, open Factory) {
	a, b := newNode(t, open), newNode(t, open)
	ep := a.connect(b).(hw.OneSided)
	for _, n := range []int{1, 5000, 300000} {
		mine, remote := patterned(n, uint64(n)), target(t, n)
		local, key := a.local(mine), a.key(b.register(remote, 0, all))
		if err := end(t, a, b, func(c *hw.Completion) (hw.Status, error) {
			return ep.PutZcopy([]hw.Segment{local}, 0, key, c)
		}); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(remote, mine) {
			t.Errorf("a put of %d bytes has completed, and they are not there", n)
		}
	}
}

// testCloseRegion ends registrations while a peer writes: after Close nothing
// changes any more.
func testCloseRegion(t *testing.T, open Factory) {
	if race.Enabled {
		t.Skip("the order between peers' accesses and Close goes through memory that the race detector does not watch")
	}
	a, b := newNode(t, open), newNode(t, open)
	var stop atomic.Bool
	var key atomic.Pointer[hw.RemoteKey]
	key.Store(&hw.RemoteKey{})
	var wg sync.WaitGroup
	defer wg.Wait()
	defer stop.Store(true)
	ep := a.connect(b)
	mine := patterned(20000, 3)
	segment := a.local(mine)
	wg.Go(func() {
		for !stop.Load() {
			var c hw.Completion
			c.Expect(1)
			done := false
			c.Func = func(*hw.Completion) { done = true }
			status, err := ep.(hw.OneSided).PutZcopy([]hw.Segment{segment}, 0, *key.Load(), &c)
			if err == nil && status == hw.InProgress {
				for !done && !stop.Load() {
					a.Progress(16)
				}
			}
			a.Progress(1)
		}
	})
	for range 200 {
		remote := target(t, 20000)
		m := b.register(remote, 0, all)
		k := a.key(m)
		key.Store(&k)
		for n := 0; n < 2000 && remote[19999] != mine[19999]; n++ {
			b.Progress(16)
		}
		if err := m.Close(); err != nil {
			t.Fatal(err)
		}
		after := bytes.Clone(remote)
		for range 50 {
			b.Progress(16)
		}
		if !bytes.Equal(remote, after) {
			t.Fatal("the memory changed after its registration ended")
		}
	}
}

// testOneSidedRandom runs random programs of puts and gets between three nodes
// and compares the memory of each with a model.
func testOneSidedRandom(t *testing.T, open Factory) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 2))
	const count, size = 3, 1 << 16
	var nodes [count]*node
	var memory, model [count][]byte
	var keys [count]hw.RemoteKey
	for n := range nodes {
		nodes[n] = newNode(t, open)
		memory[n], model[n] = target(t, size), patterned(size, uint64(n))
		copy(memory[n], model[n])
		keys[n] = nodes[0].key(nodes[n].register(memory[n], 0, all))
	}
	for range 500 {
		from, to := r.IntN(count), r.IntN(count-1)
		if to >= from {
			to++
		}
		a, b := nodes[from], nodes[to]
		n := r.IntN([...]int{16, 3000, size / 2}[r.IntN(3)])
		at, mine := r.IntN(size-n), r.IntN(size-n)
		local := []hw.Segment{a.local(memory[from][mine : mine+n])}
		ep := a.connect(b)
		put := r.IntN(2) == 0
		err := end(t, a, b, func(c *hw.Completion) (hw.Status, error) {
			if put {
				return ep.(hw.OneSided).PutZcopy(local, uint64(at), keys[to], c)
			}
			return ep.(hw.OneSided).GetZcopy(local, uint64(at), keys[to], c)
		})
		if err != nil {
			t.Fatal(err)
		}
		if put {
			flushed(t, a, b, ep, hw.FlushMemory)
			copy(model[to][at:at+n], model[from][mine:mine+n])
		} else {
			copy(model[from][mine:mine+n], model[to][at:at+n])
		}
		if !bytes.Equal(memory[from], model[from]) || !bytes.Equal(memory[to], model[to]) {
			t.Fatalf("put %v of %d bytes from %d to %d: memory differs from the model", put, n, from, to)
		}
	}
}
