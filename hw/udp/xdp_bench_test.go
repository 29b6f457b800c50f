package udp

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/hw/udp/internal/xdp"
	"github.com/weft-fabric/weft/internal/nettest"
)

// cables are the ways between two hosts.
var cables = map[string]Config{
	"kernel": {}, "driver": {XDP: XDPMust, XDPWhere: xdp.InDriver},
	"behind": {XDP: XDPMust, XDPWhere: xdp.BehindDriver},
}

// cpu is the processor time of the process.
func cpu() time.Duration {
	var r unix.Rusage
	_ = unix.Getrusage(unix.RUSAGE_SELF, &r)
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// BenchmarkCable is messages there and back, and puts, between two hosts, both
// sides progressed by one thread. What the kernel does for them is in the
// processor time, which other programs do not change much.
func BenchmarkCable(b *testing.B) {
	for name, c := range cables {
		hx, hy := nettest.New(b)
		x, y := at(b, hx, false, c), at(b, hy, false, c)
		there, back := pair(b, x, y).(*Endpoint), pair(b, y, x)
		got := 0
		payload := make([]byte, 8)
		y.SetHandler(1, func(hw.Source, uint64, []byte, []byte) {
			if err := back.AMShort(2, 0, nil, payload); err != nil {
				b.Fatal(err)
			}
		})
		x.SetHandler(2, func(hw.Source, uint64, []byte, []byte) { got++ })
		ping := func(n int) {
			for range n {
				if err := there.AMShort(1, 0, nil, payload); err != nil {
					b.Fatal(err)
				}
				for want := got + 1; got < want; {
					y.Progress(1)
					x.Progress(1)
				}
			}
		}
		ping(100)
		time.Sleep(300 * time.Millisecond) // the timer loop has seen that neighbours are known
		ping(100)
		b.Run("pingpong/"+name, func(b *testing.B) {
			begin := cpu()
			ping(b.N)
			b.ReportMetric(float64(cpu()-begin)/float64(b.N), "cpu-ns/op")
		})
		for size, kind := range map[int]string{64 << 10: "64K", 1 << 20: "1M"} {
			mine, theirs := make([]byte, size), make([]byte, size)
			m, err := y.Memory().Register(regionOf(theirs))
			if err != nil {
				b.Fatal(err)
			}
			key, _ := x.Memory().UnpackKey(m.PackKey(nil))
			b.Run("put"+kind+"/"+name, func(b *testing.B) {
				b.SetBytes(int64(size))
				begin := cpu()
				for range b.N {
					run(b, x, y, func(c *hw.Completion) (hw.Status, error) {
						return there.PutZcopy([]hw.Segment{segment(mine)}, 0, key, c)
					})
				}
				b.ReportMetric(float64(cpu()-begin)/float64(b.N), "cpu-ns/op")
			})
			m.Close()
		}
		x.Close()
		y.Close()
	}
}
