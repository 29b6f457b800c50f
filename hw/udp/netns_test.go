package udp

import (
	"bytes"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/hw/hwtest"
	"github.com/weft-fabric/weft/internal/nettest"
	"github.com/weft-fabric/weft/internal/sock"
)

// at opens an interface on a host.
func at(t testing.TB, h *nettest.Host, v6 bool, c Config) *Iface {
	t.Helper()
	c.Logf = t.Logf
	if c.Memory == nil {
		c.Memory = NewMemoryDomain()
	}
	fd := h.UDP(v6)
	var i *Iface
	var err error
	h.Do(func() { i, err = Open(fd, c) })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { i.Close() })
	return i
}

// TestHosts runs the conformance suite between two hosts.
func TestHosts(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long")
	}
	for name, v6 := range map[string]bool{"ipv4": false, "ipv6": true} {
		t.Run(name, func(t *testing.T) {
			a, b := nettest.New(t)
			var n atomic.Uint32
			hwtest.Run(t, func(t testing.TB) hw.Iface {
				h := a
				if n.Add(1)%2 == 0 {
					h = b
				}
				return at(t, h, v6, Config{Stripes: 2})
			})
		})
	}
}

// TestBadCable sends messages over a cable that does to them what cables do.
func TestBadCable(t *testing.T) {
	count := 50000
	if testing.Short() {
		count = 5000
	}
	for name, p := range map[string]nettest.Impairment{
		"none": {}, "loss": {Loss: 0.02}, "double": {Double: 0.05}, "delay": {Delay: 0.02, Detour: 5000},
		"damage": {Damage: 0.01}, "marks": {Mark: 0.2},
		"all": {Loss: 0.01, Double: 0.01, Delay: 0.01, Detour: 5000, Damage: 0.01, Mark: 0.05},
	} {
		for _, v6 := range []bool{false, true} {
			t.Run(name+map[bool]string{false: " ipv4", true: " ipv6"}[v6], func(t *testing.T) {
				ha, hb := nettest.New(t)
				a, b := at(t, ha, v6, Config{}), at(t, hb, v6, Config{})
				ha.Impair(p)
				hb.Impair(p)
				stream(t, a, b, count)
				ep := pair(t, a, b).(*Endpoint)
				ep.s.lease.lock()
				marks := ep.rx.peerMarks
				ep.s.leave()
				if (marks > 0) != (p.Mark > 0) {
					t.Errorf("%d marks", marks)
				}
			})
		}
	}
}

// TestHeavyLoss is 10 % loss both ways, with a put and a get.
func TestHeavyLoss(t *testing.T) {
	for _, v6 := range []bool{false, true} {
		ha, hb := nettest.New(t)
		a, b := at(t, ha, v6, Config{Key: []byte("key")}), at(t, hb, v6, Config{Key: []byte("key")})
		ha.Impair(nettest.Impairment{Loss: 0.1})
		hb.Impair(nettest.Impairment{Loss: 0.1})
		stream(t, a, b, 5000)
		ep := pair(t, a, b).(*Endpoint)
		mine, theirs, back := bytes.Repeat([]byte("weft"), 1<<18), make([]byte, 1<<20), make([]byte, 1<<20)
		m, err := b.Memory().Register(regionOf(theirs))
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		key, _ := a.Memory().UnpackKey(m.PackKey(nil))
		run(t, a, b, func(c *hw.Completion) (hw.Status, error) {
			return ep.PutZcopy([]hw.Segment{segment(mine)}, 0, key,
				c)
		})
		run(t, a, b, func(c *hw.Completion) (hw.Status, error) { return ep.Flush(hw.FlushRemote, c) })
		if !bytes.Equal(mine, theirs) {
			t.Error("wrong bytes were put")
		}
		run(t, a, b, func(c *hw.Completion) (hw.Status, error) {
			return ep.GetZcopy([]hw.Segment{segment(back)}, 0, key,
				c)
		})
		if !bytes.Equal(mine, back) {
			t.Error("wrong bytes were got")
		}
	}
}

// counting counts b's messages, which must come in order.
func counting(t *testing.T, b *Iface) *uint64 {
	got := new(uint64)
	b.SetHandler(1, func(_ hw.Source, header uint64, _, _ []byte) {
		if header != *got {
			t.Errorf("message %d came as number %d", header, *got)
		}
		*got++
	})
	return got
}

// flow sends until b has got messages up to number upTo, or forever is over.
func flow(t *testing.T, a, b *Iface, ep hw.Endpoint, sent, got *uint64, upTo uint64, n int) {
	t.Helper()
	payload := bytes.Repeat([]byte("x"), n)
	eventually(t, "messages", func() bool {
		for *sent < upTo && ep.AMBcopy(1, *sent, nil, n, func(d []byte) { copy(d, payload) }, 0) == nil {
			*sent++
		}
		a.Progress(16)
		b.Progress(64)
		return *got >= upTo
	})
}

// TestUnplugged takes the cable away and plugs it in again.
func TestUnplugged(t *testing.T) {
	ha, hb := nettest.New(t)
	a, b := at(t, ha, false, Config{}), at(t, hb, false, Config{})
	ep := pair(t, a, b)
	got, sent := counting(t, b), new(uint64)
	flow(t, a, b, ep, sent, got, 1000, 1000)
	for _, h := range []*nettest.Host{ha, hb} {
		h.Up(false)
		payload := make([]byte, 1000)
		for end := time.Now().Add(200 * time.Millisecond); time.Now().Before(end); {
			if ep.AMBcopy(1, *sent, nil, 1000, func(d []byte) { copy(d, payload) }, 0) == nil {
				*sent++
			}
			a.Progress(1)
			b.Progress(64)
		}
		h.Up(true)
		flow(t, a, b, ep, sent, got, *sent+1000, 1000)
	}
	if ep.Err() != nil {
		t.Error(ep.Err())
	}
}

// TestUnpluggedForGood ends in an error within the time that is set.
func TestUnpluggedForGood(t *testing.T) {
	ha, hb := nettest.New(t)
	c := Config{PeerTimeout: 300 * time.Millisecond, KeepAlive: 50 * time.Millisecond}
	a, b := at(t, ha, false, c), at(t, hb, false, c)
	ep := pair(t, a, b)
	ha.Up(false)
	if took := gone(t, a, ep); took > 10*time.Second { // of the 15 that are the default
		t.Errorf("found after %v", took)
	}
}

// TestNothingThere connects to a host that does not exist.
func TestNothingThere(t *testing.T) {
	ha, hb := nettest.New(t)
	a := at(t, ha, false, Config{})
	other, _ := sock.Parse(at(t, hb, false, Config{}).Address())
	nobody := sock.FromAddrPort(other.AddrPort())
	raw := bytes.Clone(nobody.Bytes())
	raw[7] = 77
	for end := time.Now().Add(time.Second); time.Now().Before(end); a.Progress(1) {
		if _, err := a.Connect(raw); err == nil {
			t.Fatal("connected")
		}
	}
	if a.count.Load() != 1 {
		t.Errorf("%d connections", a.count.Load())
	}
}

// TestCableMTU shrinks the cable's MTU while messages flow.
func TestCableMTU(t *testing.T) {
	for _, v6 := range []bool{false, true} {
		ha, hb := nettest.New(t)
		ha.MTU(9000)
		hb.MTU(9000)
		a, b := at(t, ha, v6, Config{}), at(t, hb, v6, Config{})
		ep := pair(t, a, b)
		got, sent := counting(t, b), new(uint64)
		flow(t, a, b, ep, sent, got, 2000, 8000)
		t.Logf("packets of %d bytes", packetSize(ep))
		for _, mtu := range []int{1400, 1300} {
			ha.MTU(mtu)
			begin := time.Now()
			flow(t, a, b, ep, sent, got, *sent+500, 8000)
			t.Logf("MTU %d: 500 messages in %v, packets of %d bytes", mtu, time.Since(begin),
				packetSize(ep))
			if size := packetSize(ep); size > mtu {
				t.Errorf("packets of %d bytes over an MTU of %d", size, mtu)
			}
		}
	}
}
