package cq

import (
	"fmt"
	"testing"

	"github.com/weft-fabric/weft/fi"
)

// BenchmarkEmpty is a read of an empty queue.
func BenchmarkEmpty(b *testing.B) {
	for _, stripes := range []int{0, 2} {
		b.Run(fmt.Sprintf("rings=%d", stripes+1), func(b *testing.B) {
			q := open(b, fi.CQAttr{}, Options{Stripes: stripes})
			dst := make([]Entry, 1)
			for b.Loop() {
				if n, _ := q.Read(dst); n != 0 {
					b.Fatal("not empty")
				}
			}
		})
	}
}

// BenchmarkPair is a completion and its read.
func BenchmarkPair(b *testing.B) {
	for _, exclusive := range []bool{false, true} {
		b.Run(fmt.Sprintf("exclusive=%v", exclusive), func(b *testing.B) {
			q := open(b, fi.CQAttr{}, Options{Exclusive: exclusive})
			dst := make([]Entry, 1)
			for b.Loop() {
				q.Complete(Entry{Context: 1})
				if n, _ := q.Read(dst); n != 1 {
					b.Fatal("empty")
				}
			}
		})
	}
}
