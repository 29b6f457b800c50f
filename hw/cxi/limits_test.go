package cxi

import (
	"errors"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/weft-fabric/weft/hw"
)

// TestLimits: a NIC that has no more of something says so by a named error, at once; what was open works on, and what
// is given back can be had again.
func TestLimits(t *testing.T) {
	for _, c := range []struct {
		settings string
		ifaces   int // that find room
		regions  int // likewise, of 40
	}{
		{"les=16", 1, 16},
		{"pids=2", 2, 40},
		{"eqs=5", 2, 40},
		{"tgqs=2", 2, 40},
		{"txqs=1", 1, 40},
		{"ptes=4", 1, 40},
		{"lacs=0", 0, 0},
		{"slots=64", 0, 0},
		{"eq_bytes=4096", 0, 0},
		{"lacs=1 lcids=1", 8, 40},
		{"cts=0 tles=0", 8, 40},
	} {
		t.Run(c.settings, func(t *testing.T) {
			if os.Getenv("WEFT_TEST_CXI_CHILD") == "" {
				alone(t, c.settings)
				return
			}
			limits(t, c.ifaces, c.regions)
		})
	}
}

// limits opens interfaces until there are 8 or one is refused, uses one, closes all, and the same again; and registers
// memory until there are 40 regions or one is refused.
func limits(t *testing.T, ifaces, room int) {
	d := domain(t)
	config := Config{RxBuffers: 8, RxBytes: 1 << 16, BounceBytes: 1024, ConnectWait: 1e9}
	for range 3 {
		var list []*Iface
		var err error
		for err == nil && len(list) < 8 {
			var i *Iface
			if i, err = d.Open(config); err == nil {
				list = append(list, i)
			}
		}
		if len(list) != ifaces || (ifaces < 8) != errors.Is(err, hw.ErrNoResource) {
			t.Fatalf("%d interfaces, %v", len(list), err)
		}
		t.Logf("%v", err)
		if ifaces == 0 {
			continue
		}
		got := 0
		list[0].SetHandler(1, func(hw.Source, uint64, []byte, []byte) { got++ })
		ep, err := list[0].Connect(list[0].Address())
		if err != nil {
			t.Fatal(err)
		}
		if err := ep.AMShort(1, 0, nil, nil); err != nil {
			t.Fatal(err)
		}
		for n := 0; got == 0 && n < 1e7; n++ {
			list[0].Progress(1)
		}
		for _, i := range slices.Backward(list) {
			err = errors.Join(err, i.Close())
		}
		if got != 1 || err != nil {
			t.Fatalf("%d messages, %v", got, err)
		}
	}
	var regions []hw.Memory
	var err error
	for err == nil && len(regions) < 40 {
		var m hw.Memory
		if m, err = d.Alloc(hw.Region{Len: 4096, Access: hw.RemoteWrite}); err == nil {
			regions = append(regions, m)
		}
	}
	if len(regions) != room || (room < 40) != errors.Is(err, hw.ErrNoResource) {
		t.Fatalf("%d regions, %v", len(regions), err)
	}
	for _, m := range regions {
		if err := m.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestTaken: that a PID is another's differs from a NIC without room, also where the PID is chosen in both cases.
func TestTaken(t *testing.T) {
	if os.Getenv("WEFT_TEST_CXI_CHILD") == "" {
		alone(t, "fabric=-1 txqs=2") // one interface has two
		return
	}
	const pid = uint32(0) // not the default, which is any
	newMatching(t, MatchConfig{PID: new(pid)}, 4096)
	for _, c := range []struct {
		what  string
		match MatchConfig
		taken bool
	}{
		{"a PID that is taken", MatchConfig{PID: new(pid)}, true},
		{"one that is taken in the second network", MatchConfig{PID: new(pid), VNIs: []uint16{10, domain(t).vni}},
			true},
		{"one that is free", MatchConfig{PID: new(pid + 1)}, false},
		{"any", MatchConfig{}, false},
	} {
		i, err := domain(t).Open(Config{Match: &c.match})
		if err == nil {
			err = i.Close()
			t.Errorf("%s: there is room, %v", c.what, err)
		} else if errors.Is(err, ErrTaken) != c.taken || !errors.Is(err, hw.ErrNoResource) {
			t.Errorf("%s: %v", c.what, err)
		}
	}
}

// TestBuffersRefused: buffers that the NIC has no entries for when an interface is opened are listed once it has some.
func TestBuffersRefused(t *testing.T) {
	if os.Getenv("WEFT_TEST_CXI_CHILD") == "" {
		t.Log(alone(t, "fabric=-1 les=95"))
		return
	}
	short := func(x *matching) int { return x.i.match.rx.early.spare.n + x.i.match.rx.requests.spare.n }
	var others []*matching
	c := MatchConfig{Mode: MatchHybrid, Buffers: 8, Requests: 8, Receives: 8}
	x := newMatching(t, c, 1)
	for ; short(x) == 0; x = newMatching(t, c, 1) {
		if others = append(others, x); len(others) == 20 {
			t.Fatal("there are entries for all buffers")
		}
	}
	if len(others) == 0 {
		t.Fatal("there are entries for no interface")
	}
	for _, o := range others {
		if err := o.i.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for end := time.Now().Add(30 * time.Second); short(x) > 0; x.i.Progress(8) {
		if time.Now().After(end) {
			t.Fatalf("%d buffers are not listed", short(x))
		}
	}
	if o := x.i.match.rx.requests.order; !slices.IsSorted(o) || len(o) != 8 {
		t.Errorf("buffers are listed as %v", o)
	}
}
