package mem

import (
	"runtime/debug"
	"testing"
	"unsafe"
)

// Under a fence what was unmapped faults, and no other mapping gets its addresses.
func TestFence(t *testing.T) {
	b, err := Map(1, 0)
	if err != nil {
		t.Fatal(err)
	}
	restore := Fence()
	err = Unmap(b)
	restore()
	if err != nil {
		t.Fatal(err)
	}
	for range 100 {
		o, err := Map(1, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = Unmap(o) }()
		if unsafe.SliceData(o) == unsafe.SliceData(b) {
			t.Error("memory behind the fence is mapped anew")
		}
	}
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if recover() == nil {
			t.Error("memory behind the fence can be read")
		}
		if err := Unmap(b); err != nil {
			t.Error(err)
		}
	}()
	_ = *(*byte)(unsafe.Pointer(unsafe.SliceData(b))) + b[0]
}
