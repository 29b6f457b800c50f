package provider

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/weft-fabric/weft/fi"
)

// directions are the capabilities by which sources count, and for which receives: untagged, tagged.
var directions = []struct {
	caps     uint64
	directed [2]bool
}{
	{0, [2]bool{}},
	{fi.DirectedRecv, [2]bool{true, true}},
	{fi.TaggedDirectedRecv, [2]bool{false, true}},
	{fi.ExactDirectedRecv, [2]bool{true, true}},
	{fi.DirectedRecv | fi.TaggedDirectedRecv, [2]bool{true, true}},
	{fi.DirectedRecv | fi.ExactDirectedRecv, [2]bool{true, true}},
	{fi.TaggedDirectedRecv | fi.ExactDirectedRecv, [2]bool{false, true}},
}

// TestSources has receives name their source, of every kind of message: where sources count they take
// what that source sends, and else what comes first.
func TestSources(t *testing.T) {
	for _, d := range directions {
		hints := &fi.Info{Caps: fi.Msg | fi.Tagged | d.caps}
		for _, udp := range []bool{false, true} {
			for _, early := range []bool{false, true} {
				t.Run(fmt.Sprintf("%#x/udp %v/early %v", d.caps, udp, early), func(t *testing.T) {
					var s []*side
					if udp {
						s = overUDPWith(t, 3, hints, nil)
					} else {
						bench := newBench(t, nil, hints)
						s = []*side{bench.side(t), bench.side(t), bench.side(t)}
						for _, one := range s {
							one.know(s...)
						}
					}
					for _, tagged := range []bool{false, true} {
						for _, size := range []int{8, 100000} {
							sources(t, s[0], s[1:], tagged, d.directed[map[bool]int{true: 1}[tagged]], size, early)
						}
					}
				})
			}
		}
	}
}

// sources has two sides send to a, the first first. a's receives name the second and then the first.
func sources(t *testing.T, a *side, from []*side, tagged, directed bool, size int, early bool) {
	t.Helper()
	all := append([]*side{a}, from...)
	in := [2][]byte{make([]byte, size), make([]byte, size)}
	out := [2][]byte{pattern(size, 1), pattern(size, 2)}
	receive := func() {
		for i := range in {
			a.recv(RecvArgs{IOV: iovOf(in[i]), Src: a.addr[from[1-i]], Tag: 5, Tagged: tagged, Context: uint64(i)},
				from...)
		}
	}
	if early {
		receive()
	}
	await := func() uint64 {
		e := a.completion(from...)
		if e.Len != uint64(size) {
			t.Fatalf("%+v", e)
		}
		return e.Context
	}
	var order [2]uint64
	for i, s := range from {
		s.send(SendArgs{IOV: iovOf(out[i]), Dest: s.addr[a], Tag: 5, Tagged: tagged, Context: 9}, all...)
		if early {
			order[i] = await()
		}
		for kept := 0; !early && kept <= i; { // the order of what comes is that of sending
			for _, one := range all {
				one.ep.Progress()
			}
			a.ep.base.rx.acquire()
			kept = leasedOf(a.ep).rx.matching.UnexpectedMessages()
			leasedOf(a.ep).rx.give()
		}
	}
	if !early {
		receive()
		order = [2]uint64{await(), await()}
		slices.Sort(order[:])
	}
	if early && (order[0] == 1) != directed {
		t.Errorf("tagged %v, %d bytes: the first message went to receive %d", tagged, size, order[0])
	}
	for _, s := range from {
		s.completion(all...)
	}
	for i := range in {
		want := out[i]
		if directed {
			want = out[1-i]
		}
		if !bytes.Equal(in[i], want) {
			t.Errorf("tagged %v, %d bytes: receive %d got the message of source %d", tagged, size, i, in[i][0])
		}
	}
}

// TestExactSources has receives from any source refused where FI_EXACT_DIRECTED_RECV is about them.
func TestExactSources(t *testing.T) {
	for _, d := range directions {
		bench := newBench(t, nil, &fi.Info{Caps: fi.Msg | fi.Tagged | d.caps})
		a := bench.side(t)
		for _, tagged := range []bool{false, true} {
			want := error(nil)
			if d.caps&fi.ExactDirectedRecv != 0 && d.directed[map[bool]int{true: 1}[tagged]] {
				want = fi.EINVAL
			}
			if err := a.ep.PostRecv(&RecvArgs{Src: fi.AddrUnspec, Tagged: tagged}); !errors.Is(err, want) {
				t.Errorf("%#x, tagged %v: %v, want %v", d.caps, tagged, err, want)
			}
		}
	}
}

// TestTaggedMultiRefused has tagged multi-receive buffers refused by endpoints that did not ask for them.
func TestTaggedMultiRefused(t *testing.T) {
	a := newBench(t, nil, &fi.Info{Caps: fi.Tagged}).side(t)
	err := a.ep.PostRecv(&RecvArgs{IOV: iovOf(make([]byte, 4096)), Src: fi.AddrUnspec, Tagged: true,
		Flags: fi.MultiRecv})
	if !errors.Is(err, fi.EINVAL) {
		t.Errorf("%v, want %v", err, fi.EINVAL)
	}
}
