package mpsc

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"unsafe"
)

// memoryBytes is what a ring of 1<<log2 slots needs in a test: the tail's line,
// then the slots.
func memoryBytes(log2, slotBytes uint32) int { return 64 + int(slotBytes)<<log2 }

// heapRing returns an empty ring on the Go heap, where the race detector sees it.
func heapRing(log2, slotBytes uint32) *Ring {
	words := make([]uint64, memoryBytes(log2, slotBytes)/8+8)
	skip := (-uintptr(unsafe.Pointer(&words[0])) & 63) / 8
	base := unsafe.Pointer(&words[skip])
	r := NewView(unsafe.Add(base, 64), base, log2, slotBytes)
	return &r
}

// fileRing returns an empty ring in a file that another process can map, and
// the file's path.
func fileRing(t *testing.T, log2, slotBytes uint32) (*Ring, string) {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "ring"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	n := memoryBytes(log2, slotBytes)
	if err := f.Truncate(int64(n)); err != nil {
		t.Fatal(err)
	}
	m, err := syscall.Mmap(int(f.Fd()), 0, n, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { syscall.Munmap(m) })
	base := unsafe.Pointer(&m[0])
	r := NewView(unsafe.Add(base, 64), base, log2, slotBytes)
	return &r, f.Name()
}

// body returns the words of a slot behind its sequence word.
func body(r *Ring, slot unsafe.Pointer) []uint64 {
	return unsafe.Slice((*uint64)(slot), r.SlotBytes()/8)[1:]
}

// setTail stores the hint as a delayed producer would.
func setTail(r *Ring, v uint64) { *r.tail = v }

// setWord stores a sequence word as a hostile peer would.
func setWord(r *Ring, pos, v uint64) { *r.word(pos) = v }

// fill writes message n of a producer into every word of the slot.
func fill(b []uint64, owner uint32, n uint64) {
	for i := range b {
		b[i] = message(owner, n, i)
	}
}

func message(owner uint32, n uint64, word int) uint64 {
	return (n<<16 | uint64(owner)) ^ uint64(word)*0x9e3779b97f4a7c15
}

// check reports whether every word belongs to one message of owner, and which.
func check(b []uint64, owner uint32) (n uint64, ok bool) {
	n = b[0] >> 16
	for i := range b {
		if b[i] != message(owner, n, i) {
			return n, false
		}
	}
	return n, true
}
