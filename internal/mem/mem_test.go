package mem

import (
	"errors"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

func TestMap(t *testing.T) {
	for _, n := range []int{1, 100, pageSize, pageSize + 1, HugeSize - 1, HugeSize + 1} {
		for _, flags := range []Flags{0, NoReserve, Huge, NoReserve | Huge} {
			b, err := Map(n, flags)
			if err != nil {
				t.Fatalf("Map(%d, %d): %v", n, flags, err)
			}
			if len(b) != Round(n) || len(b) < n || len(b)%pageSize != 0 {
				t.Errorf("Map(%d): %d bytes", n, len(b))
			}
			if flags&Huge != 0 && Address(b)%HugeSize != 0 {
				t.Errorf("Map(%d, Huge) at %#x", n, Address(b))
			}
			for i, v := range b {
				if v != 0 {
					t.Fatalf("byte %d is %d", i, v)
				}
				b[i] = 1
			}
			if err := Unmap(b); err != nil {
				t.Errorf("Unmap: %v", err)
			}
		}
	}
	if err := Unmap(nil); err != nil {
		t.Errorf("Unmap(nil): %v", err)
	}
}

func TestMapErrors(t *testing.T) {
	for _, n := range []int{0, -1, maxMap + 1} {
		if _, err := Map(n, 0); !errors.Is(err, ErrSize) {
			t.Errorf("Map(%d): %v, want ErrSize", n, err)
		}
	}
	// Without NoReserve the kernel refuses at once what can never fit; where it is asked to promise anything, it
	// maps.
	if b, err := Map(maxMap, 0); err == nil {
		if err := Unmap(b); err != nil {
			t.Error(err)
		}
	} else if !errors.Is(err, unix.ENOMEM) {
		t.Errorf("Map(2^38): %v, want ENOMEM", err)
	}
}

// mapped reports whether all pages of b are still mapped.
func mapped(t *testing.T, b []byte) bool {
	t.Helper()
	vec := make([]byte, (len(b)+pageSize-1)/pageSize)
	_, _, errno := unix.Syscall(unix.SYS_MINCORE, uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)),
		uintptr(unsafe.Pointer(unsafe.SliceData(vec))))
	if errno != 0 && errno != unix.ENOMEM {
		t.Fatalf("mincore: %v", errno)
	}
	return errno == 0
}

type plain struct {
	A uint64
	B [3]struct{ X, Y int32 }
	C float64
	D uintptr
}

func TestCheckElem(t *testing.T) {
	if err := checkElem[plain](); err != nil {
		t.Errorf("plain: %v", err)
	}
	bad := map[string]error{
		"pointer":   checkElem[*int](),
		"unsafe":    checkElem[unsafe.Pointer](),
		"string":    checkElem[string](),
		"slice":     checkElem[[]int](),
		"map":       checkElem[map[int]int](),
		"chan":      checkElem[chan int](),
		"func":      checkElem[func()](),
		"interface": checkElem[any](),
		"field":     checkElem[struct{ A [2]struct{ B *int } }](),
	}
	for name, err := range bad {
		if !errors.Is(err, ErrPointers) {
			t.Errorf("%s: %v, want ErrPointers", name, err)
		}
	}
	if err := checkElem[struct{}](); !errors.Is(err, ErrSize) {
		t.Errorf("empty: %v, want ErrSize", err)
	}
}

func TestArray(t *testing.T) {
	for _, n := range []int{1, 1000, 300000} {
		a, err := NewArray[plain](n)
		if err != nil {
			t.Fatal(err)
		}
		if a.Len() != n || len(a.Slice()) != n {
			t.Errorf("Len %d, Slice %d, want %d", a.Len(), len(a.Slice()), n)
		}
		for i := range uint32(n) {
			if *a.At(i) != (plain{}) {
				t.Fatalf("element %d not zero", i)
			}
			a.At(i).A = uint64(i)
		}
		for i, v := range a.Slice() {
			if v.A != uint64(i) {
				t.Fatalf("element %d is %d", i, v.A)
			}
		}
		b := unsafe.Slice((*byte)(a.p), pageSize)
		if err := a.Free(); err != nil || a.Len() != 0 {
			t.Errorf("Free: %v, Len %d", err, a.Len())
		}
		if mapped(t, b) {
			t.Error("array is still mapped after Free")
		}
		if err := a.Free(); err != nil {
			t.Errorf("second Free: %v", err)
		}
	}
}

func TestSparseArray(t *testing.T) {
	a, err := NewSparseArray[plain](4 * HugeSize / int(unsafe.Sizeof(plain{})))
	if err != nil {
		t.Fatal(err)
	}
	defer a.Free()
	for i := 0; i < a.Len(); i += HugeSize / int(unsafe.Sizeof(plain{})) {
		_ = *a.At(uint32(i)) // a page of zeros first, which a write replaces by one of its size
		a.At(uint32(i)).A = 1
	}
	vec := make([]byte, 4*HugeSize/pageSize)
	if _, _, errno := unix.Syscall(unix.SYS_MINCORE, uintptr(a.p), 4*HugeSize,
		uintptr(unsafe.Pointer(unsafe.SliceData(vec)))); errno != 0 {
		t.Fatalf("mincore: %v", errno)
	}
	resident := 0
	for _, v := range vec {
		resident += int(v & 1)
	}
	if resident > 8 {
		t.Errorf("4 elements take %d pages", resident)
	}
}

// TestLargeElements: an array is made and used without memory of the Go heap, however large its elements are.
func TestLargeElements(t *testing.T) {
	type large [1 << 20]byte
	var sum int
	if n := testing.AllocsPerRun(10, func() {
		a, err := NewSparseArray[large](2)
		if err != nil {
			t.Fatal(err)
		}
		a.At(1)[5] = 7
		sum += int(a.Slice()[1][5])
		if err := a.Free(); err != nil {
			t.Fatal(err)
		}
	}); n != 0 || sum != 11*7 {
		t.Errorf("%.0f allocations, sum %d", n, sum)
	}
}

func TestArrayErrors(t *testing.T) {
	for _, n := range []int{0, -1, maxMap} {
		if _, err := NewArray[plain](n); !errors.Is(err, ErrSize) {
			t.Errorf("NewArray(%d): %v, want ErrSize", n, err)
		}
	}
	if _, err := NewArray[string](1); !errors.Is(err, ErrPointers) {
		t.Errorf("NewArray[string]: %v, want ErrPointers", err)
	}
}
