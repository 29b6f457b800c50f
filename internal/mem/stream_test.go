package mem

import (
	"bytes"
	"testing"
)

func TestStreamCopiesEveryLengthAndAlignment(t *testing.T) {
	from := make([]byte, 1024)
	for i := range from {
		from[i] = byte(i*7 + 1)
	}
	for _, n := range []int{0, 1, 15, 63, 64, 65, 127, 128, 500, 896} {
		for shift := range 17 {
			want, got := make([]byte, 1024), make([]byte, 1024)
			copy(want[shift:], from[3:3+n])
			if moved := Stream(got[shift:], from[3:3+n]); moved != n || !bytes.Equal(got, want) {
				t.Fatalf("%d bytes to offset %d: moved %d, equal: %v", n, shift, moved, bytes.Equal(got, want))
			}
		}
	}
}

func TestStreamRefusesAShortDestination(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Fatal("a destination that is too short was written to")
		}
	}()
	Stream(make([]byte, 128)[:100:100], make([]byte, 128))
}

func BenchmarkStream(b *testing.B) {
	dst, src := make([]byte, 16<<10), make([]byte, 16<<10)
	b.SetBytes(int64(len(src)))
	for b.Loop() {
		Stream(dst, src)
	}
}
