package target

import (
	"bytes"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/hot"
)

// vectors keeps what targets name by addresses only alive.
var vectors [][]fi.IOVec

// sides are a target of each kind over parts of memory, and where its bytes are in there.
func sides(r *rand.Rand, memory []byte) (all []Target, at [][]int) {
	first := r.IntN(8)
	one := Target{Buf: uint64(uintptr(unsafe.Pointer(&memory[first]))), Len: uint64(len(memory)/2 - first)}
	var places []int
	for i := range one.Len {
		places = append(places, first+int(i))
	}
	all, at = append(all, one), append(at, places)
	vector, places := make([]fi.IOVec, 1+r.IntN(4)), nil
	for i, next := 0, 0; i < len(vector); i++ {
		n := r.IntN(len(memory) / 8)
		vector[i] = fi.IOVec{Base: uintptr(unsafe.Pointer(&memory[next])), Len: uint64(n)}
		for k := range n {
			places = append(places, next+k)
		}
		next += n + 1 + r.IntN(len(memory)/8)
	}
	vectors = append(vectors, vector)
	return append(all, Target{Buf: uint64(uintptr(unsafe.Pointer(&vector[0]))), Len: uint64(len(vector)),
		Flags: hot.RecvIOV}), append(at, places)
}

// viewed are the bytes of segments.
func viewed(list []hw.Segment) (b []byte) {
	for _, s := range list {
		b = append(b, unsafe.Slice((*byte)(s.Addr), s.Len)...)
	}
	return b
}

// TestTarget compares buffers and vectors of chance with a list of their bytes: what is scattered lands there and
// nowhere else, and each range of the target is the bytes of the range.
func TestTarget(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 9))
	for range 500 {
		memory := make([]byte, 64+r.IntN(200))
		targets, places := sides(r, memory)
		for k, to := range targets {
			at := places[k]
			if int(to.Room()) != len(at) {
				t.Fatalf("room for %d bytes of %d", to.Room(), len(at))
			}
			payload := make([]byte, r.IntN(len(at)+20))
			for i := range payload {
				payload[i] = byte(1 + r.IntN(255))
			}
			want := make([]byte, len(memory))
			for i := range min(len(at), len(payload)) {
				want[at[i]] = payload[i]
			}
			clear(memory)
			n, err := to.Scatter(payload)
			if err != nil || n != uint64(min(len(at), len(payload))) || !bytes.Equal(memory, want) {
				t.Fatalf("%d bytes of %d are scattered to %d: %v", n, len(payload), len(at), err)
			}
			from := r.IntN(len(at) + 1)
			part := r.IntN(len(at) - from + 1)
			var bytesOf []byte
			for _, i := range at[from : from+part] {
				bytesOf = append(bytesOf, memory[i])
			}
			if got := viewed(to.Segments(nil, uint64(from), uint64(part))); !bytes.Equal(got, bytesOf) {
				t.Fatalf("%d bytes from %d of %d: %d bytes", part, from, len(at), len(got))
			}
		}
	}
}

// TestNamed: a completion names the first byte.
func TestNamed(t *testing.T) {
	b := make([]byte, 8)
	at := uintptr(unsafe.Pointer(&b[0]))
	v := []fi.IOVec{{Base: at + 1, Len: 3}}
	vectors = append(vectors, v)
	one := Target{Buf: uint64(at), Len: 8}
	vector := Target{Buf: uint64(uintptr(unsafe.Pointer(&v[0]))), Len: 1, Flags: hot.RecvIOV}
	if one.Named() != uint64(at) || vector.Named() != uint64(at)+1 {
		t.Errorf("named %#x and %#x of %#x", one.Named(), vector.Named(), at)
	}
}
