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

// TestBuffersOfNothing: there may be buffers without bytes.
func TestBuffersOfNothing(t *testing.T) {
	var b Buffers
	if err := b.Open(5, 0); err != nil {
		t.Fatal(err)
	}
	if n := len(b.At(4)); n != 0 {
		t.Errorf("a buffer of %d bytes", n)
	}
	b.Close()
}
