package cxi

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/weft-fabric/weft/hw"
)

// TestLimits: a NIC that has no more of something says so by a named error, at once; what was open works on, and what is given
// back can be had again.
func TestLimits(t *testing.T) {
	for _, c := range []struct {
		settings string
		ifaces   int // that find room
	}{
		{"les=16", 1},
		{"pids=2", 2},
		{"eqs=5", 2},
		{"tgqs=2", 2},
		{"txqs=1", 1},
		{"ptes=4", 1},
	} {
		t.Run(c.settings, func(t *testing.T) {
			if os.Getenv("WEFT_TEST_CXI_CHILD") == "" {
				out, err := child(t, "TestLimits/"+c.settings+"$", c.settings).CombinedOutput()
				if err != nil || !strings.Contains(string(out), "--- PASS: TestLimits/"+c.settings) {
					t.Fatalf("%v\n%s", err, out)
				}
				return
			}
			limits(t, c.ifaces)
		})
	}
}

func limits(t *testing.T, ifaces int) {
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
		if !errors.Is(err, hw.ErrNoResource) || len(list) != ifaces {
			t.Fatalf("%d interfaces, %v", len(list), err)
		}
		t.Logf("%v", err)
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
	if err != nil && !errors.Is(err, hw.ErrNoResource) {
		t.Fatalf("%d regions, %v", len(regions), err)
	}
	t.Logf("%d regions, %v", len(regions), err)
	for _, m := range regions {
		if err := m.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
