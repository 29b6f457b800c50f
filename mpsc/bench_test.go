package mpsc

import "testing"

func benchmarkPair(b *testing.B, exclusive bool) {
	r := heapRing(10, 128)
	var head uint64
	for b.Loop() {
		slot, pos, ok := r.Claim(1, exclusive)
		if !ok {
			b.Fatal("full")
		}
		r.Publish(slot, 1, pos)
		if !r.Ready(head) {
			b.Fatal("empty")
		}
		r.Release(head)
		head++
	}
}

// BenchmarkPair is one push and one pop, uncontended.
func BenchmarkPair(b *testing.B) { benchmarkPair(b, false) }

// BenchmarkPairExclusive is the same with a producer that knows it is alone.
func BenchmarkPairExclusive(b *testing.B) { benchmarkPair(b, true) }

// BenchmarkEmpty is a poll of an empty ring.
func BenchmarkEmpty(b *testing.B) {
	r := heapRing(10, 128)
	for b.Loop() {
		if r.Ready(0) {
			b.Fatal("ready")
		}
	}
}
