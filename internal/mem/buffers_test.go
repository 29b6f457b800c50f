package mem

import "testing"

// TestBuffers: buffers have their length, none is part of another, and the memory can be given back twice.
func TestBuffers(t *testing.T) {
	const count, size = 5, 100
	var b Buffers
	b.Close()
	if err := b.Open(count, size); err != nil {
		t.Fatal(err)
	}
	for i := range count {
		for k := range b.At(i) {
			b.At(i)[k] = byte(i + 1)
		}
	}
	for i := range count {
		at := b.At(i)
		for k, v := range at {
			if len(at) != size || int(v) != i+1 {
				t.Fatalf("buffer %d of %d bytes has %d at %d", i, len(at), v, k)
			}
		}
	}
	b.Close()
	b.Close()
}
