package loopback

import (
	"fmt"
	"slices"
	"testing"
	"time"

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

// sampler finds the median time of an iteration, in runs of 64. On a machine
// that does other work the mean says more about that.
type sampler struct {
	n    int
	last time.Time
	runs []time.Duration
}

func (s *sampler) tick() {
	if s.n++; s.n%64 != 0 {
		return
	}
	now := time.Now()
	if !s.last.IsZero() {
		s.runs = append(s.runs, now.Sub(s.last))
	}
	s.last = now
}

func (s *sampler) report(b *testing.B) {
	if len(s.runs) > 0 {
		slices.Sort(s.runs)
		b.ReportMetric(float64(s.runs[len(s.runs)/2].Nanoseconds())/64, "median-ns/op")
		b.ReportMetric(float64(s.runs[len(s.runs)/20].Nanoseconds())/64, "p5-ns/op")
	}
}

// BenchmarkPingPong is a message to another process and back; the half of it
// is a one-way latency. Needs two cores.
func BenchmarkPingPong(b *testing.B) {
	dir := shmDir(b)
	i := open(b, Config{Dir: dir})
	c := start(b, "echo", dir, i.Address(), nil)
	c.line(b)
	ep, err := i.Connect(c.addr)
	if err != nil {
		b.Fatal(err)
	}
	i.SetHandler(1, func(hw.Source, uint64, []byte, []byte) {})
	defer pin(0)()
	var p [8]byte
	var s sampler
	for b.Loop() {
		s.tick()
		if err := ep.AMShort(1, 0, nil, p[:]); err != nil {
			b.Fatal(err)
		}
		for i.Progress(1) == 0 {
		}
	}
	b.StopTimer()
	s.report(b)
	c.kill()
	until(b, i, func() bool { return segments(b, dir) == 1 })
}

// BenchmarkStream is messages from another process.
func BenchmarkStream(b *testing.B) {
	dir := shmDir(b)
	i := open(b, Config{Dir: dir})
	i.SetHandler(1, func(hw.Source, uint64, []byte, []byte) {})
	c := start(b, "stream", dir, i.Address(), nil)
	c.line(b)
	defer pin(0)()
	for got := 0; got < 1000; {
		got += i.Progress(64)
	}
	got := 0
	var s sampler
	for b.Loop() {
		s.tick()
		for got <= 0 {
			got += i.Progress(64)
		}
		got--
	}
	b.StopTimer()
	s.report(b)
	c.kill()
	until(b, i, func() bool { return segments(b, dir) == 1 })
}

// BenchmarkGet reads from another process.
func BenchmarkGet(b *testing.B) {
	dir := shmDir(b)
	i := open(b, Config{Dir: dir})
	c := start(b, "memory", dir, nil, nil)
	var addr uint64
	if _, err := fmt.Sscanf(c.line(b), "ready %d", &addr); err != nil {
		b.Fatal(err)
	}
	ep, err := i.Connect(c.addr)
	if err != nil {
		b.Fatal(err)
	}
	for _, n := range []int{4096, 65536, 1 << 20} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			local := localTo(make([]byte, n))
			b.SetBytes(int64(n))
			for b.Loop() {
				if _, err := ep.(hw.PeerMemory).ReadPeer(local,
					[]hw.RemoteSegment{{Addr: addr, Len: uint64(n)}}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	c.kill()
	until(b, i, func() bool { return segments(b, dir) == 1 })
}
