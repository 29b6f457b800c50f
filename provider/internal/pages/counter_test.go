package pages

import (
	"slices"
	"testing"
)

// TestCounter: a place's owner is reported after so many bytes, and again after eight times as many;
// copies that cross a border count for both sides of it, short ones for none.
func TestCounter(t *testing.T) {
	const n = 64 << 10
	const least = 32 << 10
	c := &Counter{}
	c.Init(4*n, least)
	asks := func(times int, at, extra uint64) (reported []int) {
		for i := range times {
			if got, often := c.Copied(1, 2, at, n, extra); often {
				reported = append(reported, i)
				if got < at || got >= at+n {
					t.Errorf("address %#x of a copy at %#x", got, at)
				}
			}
		}
		return reported
	}
	if got := asks(100, 0, 0); !slices.Equal(got, []int{3, 35}) {
		t.Errorf("reported at copies %d", got)
	}
	// half of each is in the place that is counted already
	if got := asks(10, Size-n/2, 0); !slices.Equal(got, []int{7}) {
		t.Errorf("reported at copies across a border %d", got)
	}
	if got := asks(2, 4*Size, 2*n); !slices.Equal(got, []int{1}) {
		t.Errorf("reported at copies that stand for others %d", got)
	}
	for range 1000 {
		if _, often := c.Copied(1, 2, 8*Size, least-1, 0); often {
			t.Fatal("short copies count")
		}
	}
	for i := range uint64(3 * places) {
		c.Copied(1, 3, i*Size, n, 0)
	}
	if len(c.places) > places {
		t.Errorf("%d places are counted", len(c.places))
	}
	c = &Counter{}
	if got := asks(1000, 0, 1<<40); got != nil || c.Sample() != 1<<64-1 {
		t.Errorf("reported at copies %d, though nothing is to be", got)
	}
}

// TestPieces: the pieces of lists that are counted stand for all of them: over many posts each place counts for about
// the bytes that were copied there, whatever the lengths of the pieces.
func TestPieces(t *testing.T) {
	const after = 1 << 50
	c := &Counter{}
	c.Init(after, 32<<10)
	lengths := []uint64{4096, 16 << 10, 1 << 20, 0, 64 << 10} // each at the beginning of a place of its own
	total, posts := uint64(0), uint64(10000)
	for _, n := range lengths {
		total += n
	}
	for range posts {
		c.Pieces(len(lengths), total, 0, func(p Piece) {
			n := lengths[p.N]
			if at, _ := c.CopiedPiece(p, 1, 2, uint64(p.N)*Size, n); n != 0 && at/Size != uint64(p.N) {
				t.Fatalf("address %#x of piece %d", at, p.N)
			}
		})
	}
	for i, n := range lengths {
		got, want := float64(c.places[place{1, 2, uint64(i)}].bytes), float64(n*posts)
		if got < 0.95*want || got > 1.05*want {
			t.Errorf("%.0f bytes of pieces of %d are counted, %.0f were copied", got, n, want)
		}
	}
	c.Pieces(3*1024, 3*1024*4095, 0, func(Piece) { t.Error("short pieces count") })
	c.Pieces(0, 0, 0, func(Piece) { t.Error("no pieces count") })
}

// TestPiecesLong: every place of a piece that is longer than a place is counted.
func TestPiecesLong(t *testing.T) {
	c := &Counter{}
	c.Init(4*Size, 1)
	reported := map[uint64]bool{}
	for range 100 {
		c.Pieces(1, 8*Size, 0, func(p Piece) {
			if at, often := c.CopiedPiece(p, 0, 0, Size/2, 8*Size); often {
				reported[at/Size] = true
			}
		})
	}
	if len(reported) != 9 {
		t.Errorf("%d places of 9 are reported", len(reported))
	}
}
