package dataplane

import (
	"testing"
	"unsafe"

	"github.com/weft-fabric/weft/internal/hot"
)

// vectors are those that TestSingle has addresses of: not on a stack, which may move.
var vectors struct {
	iov             [2][2]uint64
	remote          [2][3]uint64
	one, two, three [2]uint64
	there           [3]uint64
}

// TestSingle makes operations on vectors of one element those on that element, on both sides.
func TestSingle(t *testing.T) {
	v := &vectors
	v.iov = [2][2]uint64{{100, 8}, {200, 8}}
	v.remote = [2][3]uint64{{300, 8, 77}, {400, 8, 78}}
	vec, far := uintptr(unsafe.Pointer(&v.iov)), uintptr(unsafe.Pointer(&v.remote))
	for _, c := range []struct {
		local, remotes uint64
		ok             bool
	}{{1, 1, true}, {2, 1, false}, {1, 2, false}, {0, 0, false}} {
		p := hot.Post{Kind: hot.PostVector | hot.PostRemote, Buf: vec, Len: c.local, Remote: far, Remotes: c.remotes}
		ok := singleRMA(&p)
		if ok != c.ok || ok && (p.Kind != 0 || p.Buf != 100 || p.Len != 8 || p.Header != 300 || p.Key != 77) {
			t.Errorf("%+v: %t, %+v", c, ok, p)
		}
	}
	v.remote[0][1] = 9
	p := hot.Post{Kind: hot.PostVector | hot.PostRemote, Buf: vec, Len: 1, Remote: far, Remotes: 1}
	if singleRMA(&p) {
		t.Error("one side is longer than the other")
	}
	for _, c := range []struct {
		operand, compare, result, remote uint64 // elements
		ok                               bool
	}{{1, 1, 1, 1, true}, {2, 1, 1, 1, false}, {1, 2, 1, 1, false}, {1, 1, 2, 1, false}, {1, 1, 1, 3, false}} {
		v.one, v.two, v.three = [2]uint64{100, c.operand}, [2]uint64{200, c.compare}, [2]uint64{300, c.result}
		v.there = [3]uint64{400, c.remote, 77}
		p := hot.Post{
			Kind: hot.PostVector | hot.PostRemote, Atomic: hot.AtomicCompare,
			Buf: uintptr(unsafe.Pointer(&v.one)), Len: 1,
			Compare: uintptr(unsafe.Pointer(&v.two)), Compares: 1, Result: uintptr(unsafe.Pointer(&v.three)), Results: 1,
			Remote: uintptr(unsafe.Pointer(&v.there)), Remotes: 1,
		}
		ok := singleAtomic(&p)
		if ok != c.ok || ok && (p.Kind != 0 || p.Buf != 100 || p.Len != 1 || p.Compare != 200 || p.Result != 300 ||
			p.Header != 400 || p.Key != 77) {
			t.Errorf("%+v: %t, %+v", c, ok, p)
		}
		if !ok && (p.Len != 1 || p.Kind != hot.PostVector|hot.PostRemote) {
			t.Errorf("%+v: left as %+v", c, p)
		}
	}
}

// TestSingleAtomicReads has posts of less than all operands, whose shims set no more: what the others are is not read.
func TestSingleAtomicReads(t *testing.T) {
	const nowhere = 8
	v := new(struct {
		one, three [2]uint64
		there      [3]uint64
	})
	v.one, v.three, v.there = [2]uint64{100, 1}, [2]uint64{300, 1}, [3]uint64{400, 1, 77}
	for _, kind := range []uint32{hot.AtomicPlain, hot.AtomicFetch} {
		p := hot.Post{
			Kind: hot.PostVector | hot.PostRemote, Atomic: kind, Buf: uintptr(unsafe.Pointer(&v.one)), Len: 1,
			Compare: nowhere, Compares: 1, Result: nowhere, Results: 1,
			Remote: uintptr(unsafe.Pointer(&v.there)), Remotes: 1,
		}
		if kind == hot.AtomicFetch {
			p.Result = uintptr(unsafe.Pointer(&v.three))
		}
		if !singleAtomic(&p) || p.Buf != 100 || kind == hot.AtomicFetch && p.Result != 300 {
			t.Errorf("kind %d: %+v", kind, p)
		}
	}
}
