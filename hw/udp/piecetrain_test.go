package udp

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/hw/udp/internal/wire"
)

// TestPieceTrains does long puts and gets whose packets come joined, in any order, lost
// and doubled, to and from memory in several segments.
func TestPieceTrains(t *testing.T) {
	for name, j := range map[string]*joiner{
		"clean": {}, "loss": {loss: 0.01}, "double": {double: 0.02}, "reorder": {swap: 0.02},
		"all": {loss: 0.02, double: 0.02, swap: 0.02}, "key": {},
	} {
		t.Run(name, func(t *testing.T) {
			j.r = rand.New(rand.NewPCG(1, 2))
			c := Config{Impair: j.impair, MaxPacket: 1472}
			if name == "key" {
				c.Key = []byte("key")
			}
			a, b := open(t, false, c), open(t, false, c)
			there, back := pair(t, a, b).(hw.OneSided), pair(t, b, a).(hw.OneSided)
			if c := there.(*Endpoint); c.Train(true)+c.Train(false) != 0 {
				t.Error("the size of trains is known before the first operation")
			}
			j.between(a, b)
			for n := range 20 {
				size := 100_000 + n*n*331
				from, to := numbered(size, uint64(n)), make([]byte, size)
				ep, local, remote, at, other := there, from, to, b, a // a put by a
				if n%2 == 1 {
					ep, local, remote, at, other = back, to, from, a, b // a get by b: both have bytes go from a to b
				}
				m, err := at.Memory().Register(regionOf(remote))
				if err != nil {
					t.Fatal(err)
				}
				key, _ := other.Memory().UnpackKey(m.PackKey(nil))
				cut := size / 3 * (n % 3)
				segs := []hw.Segment{segment(local[:cut]), segment(local[cut:])}
				ended := false
				done := &hw.Completion{Func: func(d *hw.Completion) {
					ended = true
					if d.Err() != nil {
						t.Errorf("operation %d: %v", n, d.Err())
					}
				}}
				done.Expect(1)
				if n%2 == 0 {
					_, err = ep.PutZcopy(segs, 0, key, done)
				} else {
					_, err = ep.GetZcopy(segs, 0, key, done)
				}
				if err != nil {
					t.Fatal(err)
				}
				eventually(t, "the operation", func() bool {
					a.Progress(16)
					j.deliver()
					b.Progress(16)
					return ended || t.Failed()
				})
				if !bytes.Equal(from, to) {
					t.Fatalf("operation %d of %d bytes: wrong bytes", n, size)
				}
				if err := m.Close(); err != nil {
					t.Fatal(err)
				}
			}
			if name == "clean" && j.byTrains < j.others || name == "key" && j.byTrains != 0 || j.byTrains == 0 &&
				name != "key" {
				t.Errorf("%d bytes came by trains, %d otherwise", j.byTrains, j.others)
			}
			get, put := uint64(44*(1472-wire.HeaderSize-wire.DataHeader)),
				uint64(44*(1472-wire.HeaderSize-wire.PutHeader))
			if name == "key" {
				get, put = 0, 0
			}
			if c := there.(*Endpoint); c.Train(true) != get || c.Train(false) != put {
				t.Errorf("a train of a get has %d bytes, of a put %d", c.Train(true), c.Train(false))
			}
			if n := b.Stats().Malformed; n != 0 {
				t.Errorf("%d malformed packets", n)
			}
		})
	}
}

// TestForgedPieceTrains has strangers and a peer send what looks like the rest of a train of a
// put, and is none or is not allowed.
func TestForgedPieceTrains(t *testing.T) {
	j := &joiner{r: rand.New(rand.NewPCG(1, 2))}
	c := Config{Impair: j.impair, MaxPacket: 1472}
	a, b := open(t, false, c), open(t, false, c)
	ep := pair(t, a, b).(*Endpoint)
	j.between(a, b)
	from, to := numbered(10000, 1), make([]byte, 10000)
	m, err := b.Memory().Register(regionOf(to))
	if err != nil {
		t.Fatal(err)
	}
	key, _ := a.Memory().UnpackKey(m.PackKey(nil))
	if _, err := ep.PutZcopy([]hw.Segment{segment(from)}, 0, key, nil); err != nil {
		t.Fatal(err)
	}
	kept := j.take()
	const frame = wire.HeaderSize
	j.forge(t, kept, map[string]func(b []byte){
		"kind":      func(b []byte) { b[frame] = byte(wire.KindData) },
		"operation": func(b []byte) { b[frame+4]++ },
		"region":    func(b []byte) { b[frame+8]++ },
		"address":   func(b []byte) { b[frame+16]++ },
	})
	if n := 3 * (len(kept[0]) - frame - wire.PutHeader); !bytes.Equal(to[:n], from[:n]) ||
		bytes.Count(to[n:], []byte{0}) != len(to)-n {
		t.Error("other bytes are placed than those of the train itself")
	}
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	s := b.stripes[0]
	s.lease.lock()
	defer s.leave()
	placed, now := bytes.Clone(to), b.now()
	if n := s.handleTrain(now, now, &j.from, kept[2], kept[3]); n != 0 || !bytes.Equal(to, placed) {
		t.Errorf("%d bytes taken for a region that is closed", n)
	}
}
