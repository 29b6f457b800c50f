package loopback

import (
	"fmt"
	"testing"

	"github.com/weft-fabric/weft/hw"
)

// BenchmarkShort is one AMShort and the Progress that delivers it, in one goroutine.
func BenchmarkShort(b *testing.B) {
	for _, n := range []int{0, 8, 40, 96} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			benchmarkPair(b, n, func(ep hw.Endpoint, p []byte) error { return ep.AMShort(1, 0, nil, p) })
		})
	}
}

// BenchmarkBcopy is the same through a bounce buffer.
func BenchmarkBcopy(b *testing.B) {
	for _, n := range []int{256, 1024, 8192} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			var src []byte
			pack := func(d []byte) { copy(d, src) }
			benchmarkPair(b, n, func(ep hw.Endpoint, p []byte) error {
				src = p
				return ep.AMBcopy(1, 0, nil, len(p), pack, 0)
			})
		})
	}
}

func benchmarkPair(b *testing.B, n int, send func(hw.Endpoint, []byte) error) {
	dir := shmDir(b)
	to, from := open(b, Config{Dir: dir}), open(b, Config{Dir: dir})
	got := make([]byte, n)
	to.SetHandler(1, func(_ hw.Source, _ uint64, _, p []byte) { copy(got, p) })
	ep, err := from.Connect(to.Address())
	if err != nil {
		b.Fatal(err)
	}
	p := make([]byte, n)
	b.SetBytes(int64(n))
	for b.Loop() {
		if err := send(ep, p); err != nil || to.Progress(1) != 1 {
			b.Fatal(err)
		}
	}
}

// BenchmarkEmpty is a Progress that finds nothing.
func BenchmarkEmpty(b *testing.B) {
	i := open(b, Config{Dir: shmDir(b)})
	for b.Loop() {
		i.Progress(1)
	}
}

// BenchmarkOpenClose is an interface's life.
func BenchmarkOpenClose(b *testing.B) {
	dir := shmDir(b)
	for b.Loop() {
		i, err := Open(testAddress(), Config{Dir: dir})
		if err != nil {
			b.Fatal(err)
		}
		i.Close()
	}
}

// BenchmarkConnect is a first Connect, with the peer's life.
func BenchmarkConnect(b *testing.B) {
	dir := shmDir(b)
	to := open(b, Config{Dir: dir})
	for b.Loop() {
		i, err := Open(testAddress(), Config{Dir: dir})
		if err != nil {
			b.Fatal(err)
		}
		if _, err := i.Connect(to.Address()); err != nil {
			b.Fatal(err)
		}
		i.Close()
		to.CheckPeers()
	}
}
