package matched

import (
	"bytes"
	"errors"
	"testing"
	"unsafe"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
)

// copyDomain has memory for copies.
type copyDomain struct {
	hw.MemoryDomain
	hw.Memory
	region hw.Region
	err    error
	closed int
}

func (d *copyDomain) Alloc(r hw.Region) (hw.Memory, error) {
	if d.err != nil {
		return nil, d.err
	}
	r.Addr = unsafe.Pointer(unsafe.SliceData(make([]byte, r.Len)))
	d.region = r
	return d, nil
}

func (d *copyDomain) Region() hw.Region { return d.region }

func (d *copyDomain) Close() error {
	d.closed++
	return nil
}

// TestCopies: a short send goes from a copy, which is its own until the device is done with it.
func TestCopies(t *testing.T) {
	d, domain := &device{}, &copyDomain{}
	var ended int
	e := Open(Options{Iface: d, Matcher: d, Limit: copyCount - 1, Copies: domain,
		Address: func(fi.Addr, []byte) (hw.MatchAddress, error) { return 1, nil },
		Ended:   func(*Ended) { ended++ }})
	out := make([]byte, copyBytes)
	send := func(seed byte, length int) error {
		for k := range out {
			out[k] = seed + byte(k)
		}
		return e.Send(&Send{IOV: []fi.IOVec{{Base: uintptr(unsafe.Pointer(&out[0])), Len: uint64(length)}}})
	}
	for k := range copyCount - 1 {
		if err := send(byte(k), 193+k); err != nil {
			t.Fatal(err)
		}
	}
	for k, s := range d.sends {
		want := make([]byte, 193+k)
		for n := range want {
			want[n] = byte(k) + byte(n)
		}
		got := unsafe.Slice((*byte)(s.Local.Addr), s.Local.Len)
		if s.Local.Memory != domain || !bytes.Equal(got, want) {
			t.Errorf("send %d goes from %+v", k, s.Local)
		}
	}
	if err := send(0, 193); !errors.Is(err, fi.EAGAIN) || e.ops.stripes[0].copies.Len() != 1 {
		t.Errorf("a send that there is no room for: %v, %d buffers are free", err, e.ops.stripes[0].copies.Len())
	}
	d.on(&hw.MatchEvent{Kind: hw.MatchSent, Context: d.sends[7].Context, Last: true})
	if err := send(9, copyBytes); err != nil || ended != 1 {
		t.Fatalf("after %d ends: %v", ended, err)
	}
	for k, s := range d.sends[:copyCount-1] {
		if last := d.sends[len(d.sends)-1]; k != 7 && last.Local.Addr == s.Local.Addr {
			t.Errorf("%+v: the buffer of send %d, which is under way", last.Local, k)
		}
	}
	d.on(&hw.MatchEvent{Kind: hw.MatchSent, Context: d.sends[8].Context, Last: true})
	if d.err = hw.ErrNoResource; !errors.Is(send(9, copyBytes), fi.EAGAIN) || e.ops.stripes[0].copies.Len() != 2 {
		t.Errorf("the device has no room: %d buffers are free", e.ops.stripes[0].copies.Len())
	}
	if err := e.Close(); err != nil || domain.closed != 1 {
		t.Errorf("close: %v, memory closed %d times", err, domain.closed)
	}
}

// TestCopiesWithout: a device without memory for copies has none, and is closed as any.
func TestCopiesWithout(t *testing.T) {
	d := &device{}
	e := Open(Options{Iface: d, Matcher: d, Limit: 1, Copies: &copyDomain{err: hw.ErrNoResource}})
	if n := e.ops.copy(0); n != 0 {
		t.Errorf("buffer %d", n)
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
}
