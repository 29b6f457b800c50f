package udp

import (
	"testing"

	"github.com/weft-fabric/weft/hw"
)

// BenchmarkPingPong is a message of 8 bytes there and back, both sides
// progressed by one thread: the CPU time of two messages.
func BenchmarkPingPong(b *testing.B) {
	x, y := open(b, false, Config{}), open(b, false, Config{})
	there, back := pair(b, x, y), pair(b, y, x)
	got := 0
	payload := make([]byte, 8)
	y.SetHandler(1, func(hw.Source, uint64, []byte, []byte) {
		if err := back.AMShort(2, 0, nil, payload); err != nil {
			b.Fatal(err)
		}
	})
	x.SetHandler(2, func(hw.Source, uint64, []byte, []byte) { got++ })
	n := 0
	for b.Loop() {
		if err := there.AMShort(1, 0, nil, payload); err != nil {
			b.Fatal(err)
		}
		for n++; got < n; {
			y.Progress(1)
			x.Progress(1)
		}
	}
}

// BenchmarkStream sends messages as fast as they go.
func BenchmarkStream(b *testing.B) {
	for name, size := range map[string]int{"8": 8, "1k": 1024, "8k": 8192} {
		for kind, packet := range map[string]int{"ethernet": 1472, "lo": maxPacket} {
			b.Run(name+" "+kind, func(b *testing.B) {
				c := Config{MaxPacket: packet, Window: 1 << 20}
				x, y := open(b, false, c), open(b, false, c)
				ep := pair(b, x, y)
				got, sent := 0, 0
				y.SetHandler(1, func(hw.Source, uint64, []byte, []byte) { got++ })
				payload := make([]byte, size)
				pack := func(d []byte) { copy(d, payload) }
				b.SetBytes(int64(size))
				for b.Loop() {
					for sent++; !bcopy(b, ep, 0, nil, size, pack); {
						y.Progress(64)
					}
				}
				for got < sent {
					x.Progress(1)
					y.Progress(64)
				}
			})
		}
	}
}

// BenchmarkPut puts a mebibyte.
func BenchmarkPut(b *testing.B) {
	for kind, packet := range map[string]int{"ethernet": 1472, "lo": maxPacket} {
		b.Run(kind, func(b *testing.B) {
			c := Config{MaxPacket: packet}
			x, y := open(b, false, c), open(b, false, c)
			ep := pair(b, x, y).(*Endpoint)
			const size = 1 << 20
			mine, theirs := make([]byte, size), make([]byte, size)
			m, err := y.Memory().Register(regionOf(theirs))
			if err != nil {
				b.Fatal(err)
			}
			defer m.Close()
			key, _ := x.Memory().UnpackKey(m.PackKey(nil))
			local := []hw.Segment{segment(mine)}
			b.SetBytes(size)
			for b.Loop() {
				var done hw.Completion
				ended := false
				done.Func = func(*hw.Completion) { ended = true }
				done.Expect(1)
				if _, err := ep.PutZcopy(local, 0, key, &done); err != nil {
					b.Fatal(err)
				}
				for !ended {
					y.Progress(64)
					x.Progress(64)
				}
			}
		})
	}
}

// BenchmarkIdle is a poll of nothing.
func BenchmarkIdle(b *testing.B) {
	x := open(b, false, Config{})
	for b.Loop() {
		x.Progress(1)
	}
}
