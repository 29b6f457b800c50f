package addrs

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/provider/names"
)

// openTest opens a shared vector of at most 64 names in a folder.
func openTest(t testing.TB, dir string) *Vector {
	t.Helper()
	v, err := Open(Options{Capacity: 64, Limit: 64, Name: "x", Domain: "d", Dir: dir, Timeout: 5 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// change makes changes to a vector.
func change(t testing.TB, v *Vector, what func()) {
	t.Helper()
	done, err := v.Change()
	if err != nil {
		t.Fatal(err)
	}
	defer done()
	what()
}

// insert inserts names.
func insert(t testing.TB, v *Vector, list ...int) {
	t.Helper()
	change(t, v, func() {
		for _, i := range list {
			if _, err := v.Insert(testName(i)); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// arrayOf is the array that a vector shows the application.
func arrayOf(v *Vector) (words []uint64) {
	for i := range v.file.capacity {
		words = append(words, binary.LittleEndian.Uint64(v.file.array[8*i:]))
	}
	return words
}

// TestFileArray: the array for the application holds the addresses, and that there is none where none was or none is
// any more, as far as an opener asked for and beyond the highest index.
func TestFileArray(t *testing.T) {
	const capacity = 3*arrayStep - 5
	dir, none := t.TempDir(), uint64(fi.AddrNotAvail)
	opened := func(count uint64) *Vector {
		v, err := Open(Options{
			Capacity: capacity, Limit: capacity, Name: "x", Domain: "d", Dir: dir, Count: count,
			Timeout: 5 * time.Second,
		})
		if err != nil || v.MapAddr() == 0 {
			t.Fatalf("array at %#x: %v", v.MapAddr(), err)
		}
		return v
	}
	v := opened(0)
	want := func(when string, list ...uint64) {
		t.Helper()
		if got := arrayOf(v)[:len(list)]; !slices.Equal(got, list) {
			t.Errorf("%s: array %v, not %v", when, got, list)
		}
	}
	want("empty", none, none)
	insert(t, v, 1, 2, 3)
	change(t, v, func() { v.Remove(1) })
	want("one removed", 0, none, 2, none, none)
	for i := 4; i < arrayStep+2; i++ { // a page is full
		insert(t, v, i)
	}
	if got := arrayOf(v)[arrayStep-1:][:2]; got[0] != arrayStep-1 || got[1] != none {
		t.Errorf("at the end of a page: %v", got)
	}
	other := opened(capacity)
	if got := arrayOf(v)[arrayStep:]; slices.ContainsFunc(got, func(w uint64) bool { return w != none }) {
		t.Errorf("as far as another asked for: %v", got)
	}
	want("after another has opened it", 0, 1, 2)
	_ = other.Close()
	if err := v.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestFileArrayRepaired: what a writer that dies has left in the array ends with the next change.
func TestFileArrayRepaired(t *testing.T) {
	v, none := openTest(t, t.TempDir()), uint64(fi.AddrNotAvail)
	defer v.Close()
	insert(t, v, 1, 2)
	if err := errors.Join(v.file.writeArray(1, none), v.file.writeArray(5, 5)); err != nil {
		t.Fatal(err)
	}
	v.file.header.dirty = 1
	insert(t, v, 3)
	if got := arrayOf(v)[:6]; !slices.Equal(got, []uint64{0, 1, 2, none, none, none}) {
		t.Errorf("array %v", got)
	}
}

// TestFileIndexes: an index has one name in all openers, of whatever family, and what is no name keeps its index until
// it is unset.
func TestFileIndexes(t *testing.T) {
	list := []names.Name{
		testName(1), names.New(netip.MustParseAddr("fe80::1"), 9), {Family: names.AFWord, IP: [16]byte{0: 7, 7: 1}},
		{Family: names.AFWord, Port: 1}, {Family: 77}, testName(2),
	}
	dir := t.TempDir()
	a, b := openTest(t, dir), openTest(t, dir)
	defer a.Close()
	defer b.Close()
	var gone []uint64
	b.removed = func(i uint64, _ names.Name) { gone = append(gone, i) }
	for _, n := range list {
		change(t, a, func() {
			if _, err := a.Insert(n); err != nil {
				t.Fatal(err)
			}
		})
	}
	for i, n := range list {
		got, ok := b.Name(uint64(i))
		if valid := pack(n).valid(); ok != valid || valid && got != n {
			t.Errorf("index %d is %v %v, not %v", i, got, ok, n)
		}
	}
	insert(t, b, 3)
	if i, ok := b.Find(testName(3)); i != uint64(len(list)) || !ok {
		t.Errorf("the second opener's name is at %d %v, where %v is", i, ok, list[i])
	}
	change(t, a, func() {
		for i := range list {
			a.Remove(uint64(i))
		}
	})
	insert(t, b, 4)
	if n, _ := a.Name(0); n != testName(4) || !slices.Equal(gone, []uint64{0, 1, 2, 5}) {
		t.Errorf("index 0 is %v, calls for %v", n, gone)
	}
}

// TestFileStopped: whatever a process that changes a vector has done when it is stopped, others find addresses at
// once, also while they wait to change it, and find each name at one index or at none.
func TestFileStopped(t *testing.T) {
	for name, stop := range map[string]func(v *Vector){
		"before a change": func(*Vector) {},
		"within an insertion": func(v *Vector) {
			if err := pwriteAll(v.file.fd, make([]byte, entryBytes-8), v.file.entryOffset(3)+8); err != nil {
				t.Error(err)
			}
			v.file.header.limit = 4
		},
		"after an insertion": func(v *Vector) { _, _ = v.Insert(testName(4)) },
		"after a removal":    func(v *Vector) { v.Remove(0) },
		"after a replacement": func(v *Vector) {
			v.Remove(0)
			_, _ = v.Insert(testName(4))
		},
	} {
		dir := t.TempDir()
		stopped, other := openTest(t, dir), openTest(t, dir)
		other.file.timeout = time.Minute
		insert(t, stopped, 1, 2, 3) // which other has not seen
		var waiting sync.WaitGroup
		change(t, stopped, func() {
			stop(stopped)
			waiting.Go(func() { insert(t, other, 9) })
			begin := time.Now()
			for range 100 {
				if n, ok := other.Name(1); !ok || n != testName(2) {
					t.Fatalf("%s: index 1 is %v %v", name, n, ok)
				}
				for i := 1; i < 5; i++ {
					if at, ok := other.Find(testName(i)); ok && int(at) != i-1 && i != 4 {
						t.Fatalf("%s: name %d is at %d", name, i, at)
					}
				}
				other.Generation()
			}
			if took := time.Since(begin); took > time.Minute/2 {
				t.Errorf("%s: lookups take %v", name, took)
			}
		})
		waiting.Wait()
		if at, _ := other.Find(testName(9)); !stopped.Has(1) || at > 4 {
			t.Errorf("%s: inserted at %d afterwards", name, at)
		}
		_, _ = stopped.Close(), other.Close()
	}
}

// bytesRead is how much this thread has read from files.
func bytesRead(t *testing.T) uint64 {
	t.Helper()
	text, err := os.ReadFile("/proc/thread-self/io")
	if err != nil {
		t.Skipf("the kernel does not count: %v", err)
	}
	var n uint64
	if _, err := fmt.Sscanf(string(text), "rchar: %d", &n); err != nil {
		t.Fatal(err)
	}
	return n
}

// TestFileReadOnce: entries are read once after a change that is over, by a lookup and by a change, and thrice while
// one is under way.
func TestFileReadOnce(t *testing.T) {
	const count = syncEntries + 100
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	dir := t.TempDir()
	var v [2]*Vector
	for i := range v {
		var err error
		v[i], err = Open(Options{Capacity: count, Limit: count, Name: "x", Dir: dir, Timeout: 5 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		defer v[i].Close()
	}
	change(t, v[0], func() {
		for i := range count - 10 {
			_, _ = v[0].Insert(testName(i))
		}
	})
	times := func(what func()) int {
		begin := bytesRead(t)
		what()
		return int((bytesRead(t) - begin + entryBytes*count/2) / (entryBytes * count))
	}
	for name, poll := range map[string]func(){
		"lookup": func() { v[1].Name(0) },
		"change": func() { change(t, v[1], func() {}) },
	} {
		insert(t, v[0], 9000)
		if n := times(poll); n != 1 {
			t.Errorf("%s: all entries read %d times", name, n)
		}
		if n := times(poll); n != 0 {
			t.Errorf("%s without a change: all entries read %d times", name, n)
		}
	}
	insert(t, v[0], 9001)
	change(t, v[0], func() {
		if n := times(func() { v[1].Name(0) }); n != 3 {
			t.Errorf("within a change: all entries read %d times", n)
		}
	})
}

// TestFileReadFails: changes of others that could not be read are taken over by the next that can, whatever was
// tried meanwhile.
func TestFileReadFails(t *testing.T) {
	for name, try := range map[string]func(v *Vector) error{
		"lookup": func(v *Vector) error { _, _ = v.Find(testName(1)); return unix.EBADF },
		"change": func(v *Vector) error { _, err := v.Change(); return err },
	} {
		dir := t.TempDir()
		a, b := openTest(t, dir), openTest(t, dir)
		insert(t, a, 1)
		writeOnly, err := unix.Open(b.file.path, unix.O_WRONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		fd := b.file.fd
		b.file.fd = writeOnly
		for range 2 {
			if err := try(b); !errors.Is(err, unix.EBADF) {
				t.Errorf("%s without the entries: %v", name, err)
			}
		}
		b.file.fd = fd
		if at, ok := b.Find(testName(1)); at != 0 || !ok {
			t.Errorf("%s: the other's name is at %d %v afterwards", name, at, ok)
		}
		insert(t, b, 2)
		if n, _ := a.Name(0); n != testName(1) {
			t.Errorf("%s: index 0 is %v afterwards", name, n)
		}
		unix.Close(writeOnly)
		_, _ = a.Close(), b.Close()
	}
}

// When the file cannot be written, the insertion fails and leaves no trace.
func TestFileWriteFails(t *testing.T) {
	v := openTest(t, t.TempDir())
	defer v.Close()
	insert(t, v, 1)
	readOnly, err := unix.Open(v.file.path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(readOnly)
	change(t, v, func() {
		fd := v.file.fd
		v.file.fd = readOnly
		_, err = v.Insert(testName(2))
		v.file.fd = fd
	})
	if !errors.Is(err, unix.EBADF) {
		t.Errorf("insert into a file that cannot be written: %v", err)
	}
	if _, found := v.Find(testName(2)); found {
		t.Error("the failed insertion left a trace")
	}
	insert(t, v, 3)
	if i, found := v.Find(testName(3)); i != 1 || !found {
		t.Errorf("inserted at %d %v", i, found)
	}
}

// Whatever a peer writes into entries and header words, what comes out is
// valid names at indexes within bounds, and taking over ends.
func FuzzFile(f *testing.F) {
	good := make([]byte, entryBytes)
	encodeEntry(good, 1, pack(testName(1)))
	f.Add(uint64(1), good)
	f.Add(uint64(1<<63), append(slices.Clone(good), good...))
	f.Add(uint64(5), []byte{1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 80})
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, limit uint64, entries []byte) {
		v := openTest(t, dir)
		defer v.Close()
		insert(t, v, 1, 2)
		s := v.file
		if err := pwriteAll(s.fd, entries[:min(len(entries), 64*entryBytes)], s.entryOffset(0)); err != nil {
			t.Fatal(err)
		}
		s.header.limit = limit
		s.header.generation += 2
		found := 0
		for i := range uint64(200) {
			n, ok := v.Name(i)
			if !ok {
				continue
			}
			found++
			if i >= 64 || !pack(n).valid() {
				t.Errorf("index %d is %v", i, n)
			}
			if at, ok := v.Find(n); !ok || at > i {
				t.Errorf("%v is at %d but found at %d %v", n, i, at, ok)
			}
		}
		// It still takes what there is room for, and removes it.
		change(t, v, func() {
			i, err := v.Insert(testName(9))
			if err != nil && (v.table.used < 64 || !errors.Is(err, fi.ENOMEM)) {
				t.Errorf("insert among %d: %v", found, err)
			}
			if err == nil {
				v.Remove(i)
			}
		})
	})
}

// FuzzHeader: a header that is accepted has a size that can be mapped.
func FuzzHeader(f *testing.F) {
	f.Add(encodeHeader(1)[:128])
	f.Add(encodeHeader(maxEntries)[:128])
	f.Add(encodeHeader(1 << 60)[:128])
	f.Fuzz(func(t *testing.T, b []byte) {
		page := make([]byte, headerPage)
		copy(page, b)
		capacity, err := decodeHeader(page)
		if err != nil {
			if !errors.Is(err, fi.EINVAL) {
				t.Errorf("refused header: %v", err)
			}
			return
		}
		if size := fileSize(capacity); capacity == 0 || size <= headerPage || size > 1<<33 {
			t.Errorf("%d entries, %d bytes", capacity, size)
		}
	})
}
