package shlib_test

import (
	"errors"
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/internal/shlib"
)

var errAbsent = errors.New("absent")

// symbol is struct weft_shlib_symbol.
type symbol struct {
	name, version, to uintptr
	optional          int32
}

// table is memory that is not Go's with an array of symbols, their slots and their names.
type table struct {
	memory  []byte
	used    uintptr
	symbols int
}

const mostSymbols = 4

func newTable(t *testing.T) *table {
	memory, err := unix.Mmap(-1, 0, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Munmap(memory) })
	return &table{memory: memory, used: mostSymbols * unsafe.Sizeof(symbol{})}
}

func (m *table) at() unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(m.memory)) }

// put places bytes behind what is there, and returns their address.
func (m *table) put(b []byte) uintptr {
	n := copy(m.memory[m.used:], b)
	at := uintptr(m.at()) + m.used
	m.used += uintptr(n+7) &^ 7
	return at
}

// add adds a function, and returns where its address will be.
func (m *table) add(name string, optional int32) *uintptr {
	version := "GLIBC_2.2.5"
	if runtime.GOARCH == "arm64" {
		version = "GLIBC_2.17"
	}
	slot := (*uintptr)(unsafe.Add(m.at(), m.used))
	to := m.put(make([]byte, 8))
	s := (*symbol)(unsafe.Add(m.at(), uintptr(m.symbols)*unsafe.Sizeof(symbol{})))
	*s = symbol{m.put([]byte(name + "\x00")), m.put([]byte(version + "\x00")), to, optional}
	m.symbols++
	return slot
}

func (m *table) library() *shlib.Library { return shlib.New(errAbsent, m.at(), m.symbols) }

// TestLoad: functions are found once, and what is to come first comes once.
func TestLoad(t *testing.T) {
	m := newTable(t)
	found, absent := m.add("getpid", 0), m.add("weft_no_function", 1)
	l, calls := m.library(), 0
	first := func() {
		calls++
		if *found == 0 {
			t.Error("called before the functions are there")
		}
	}
	if err := l.Load("libweft-no-library.so", first); !errors.Is(err, errAbsent) {
		t.Errorf("a library that is not there: %v", err)
	}
	for range 2 {
		if err := l.Load("libc.so.6", first); err != nil {
			t.Fatal(err)
		}
	}
	if calls != 1 || *found == 0 || *absent != 0 {
		t.Errorf("%d calls; getpid at %#x, an optional function that is not there at %#x", calls, *found, *absent)
	}
}

// TestMissing: a library without one of the functions is as good as none, and the error names the function.
func TestMissing(t *testing.T) {
	m := newTable(t)
	m.add("getpid", 0)
	m.add("weft_no_function", 0)
	err := m.library().Load("libc.so.6", func() { t.Error("called") })
	if !errors.Is(err, errAbsent) || !strings.Contains(err.Error(), "weft_no_function") {
		t.Errorf("a function that is not there: %v", err)
	}
}
