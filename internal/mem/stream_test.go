package mem

import (
	"bytes"
	"testing"
)

func TestStreamCopiesEveryLengthAndAlignment(t *testing.T) {
	from := make([]byte, 17*StreamMin)
	for i := range from {
		from[i] = byte(i*7 + 1)
	}
	for _, n := range []int{
		0, 1, 15, 64, 500, StreamMin - 1, StreamMin, 2*StreamMin + 1, 15*StreamMin + 9, 16*StreamMin - 1,
	} {
		for shift := range 17 {
			want, got := make([]byte, 17*StreamMin), make([]byte, 17*StreamMin)
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
	Stream(make([]byte, 2*StreamMin)[:StreamMin:StreamMin], make([]byte, 2*StreamMin))
}

func BenchmarkStream(b *testing.B) {
	dst, src := make([]byte, 16<<10), make([]byte, 16<<10)
	b.SetBytes(int64(len(src)))
	for b.Loop() {
		Stream(dst, src)
	}
}
