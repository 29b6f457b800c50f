package coll

import (
	"testing"
	"time"

	"github.com/weft-fabric/weft/hw"
)

// TestRow: an operation begins with what the connection's statistics say of a path, as long as that is new: younger
// than rowAge, and than the operation before. Nothing is known of a member that is gone.
func TestRow(t *testing.T) {
	m := newMesh(t, onHosts(2), nil)
	g := m.join()[0]
	m.now += 1 << 40
	for _, c := range []struct {
		age, ended time.Duration // 0: no operation has ended
		samples    uint64
		want       bool
	}{
		{time.Millisecond, 0, 3, true}, {rowAge - 1, 0, 3, true}, {rowAge, 0, 3, false}, {time.Hour, 0, 3, false},
		{time.Millisecond, time.Hour, 3, true}, {time.Millisecond, time.Millisecond, 3, false},
		{time.Millisecond, time.Millisecond + 1, 3, true}, {0, time.Nanosecond, 3, true},
		{time.Millisecond, 0, 0, false},
	} {
		m.nodes[1].measured = hw.PathInfo{RTT: 70, Min: 50, RTTVar: 5, Samples: c.samples, Age: c.age}
		x := &collExchange{c: m.nodes[0].protocol}
		if c.ended != 0 {
			x.ended = m.now.Add(-c.ended)
		}
		queue, dev, ok := x.row(g, g.peerOf(1))
		if ok != c.want || ok && (queue != 20 || dev != 5) {
			t.Errorf("%+v: queue of %d and deviation of %d, %v", c, queue, dev, ok)
		}
	}
	x := &collExchange{c: m.nodes[0].protocol}
	m.nodes[1].measured = hw.PathInfo{RTT: 70, Min: 50, Samples: 3}
	for _, what := range []*bool{&g.members[1].gone, &g.members[1].dead} {
		*what = true
		if _, _, ok := x.row(g, g.peerOf(1)); ok {
			t.Error("a member that is gone has a row")
		}
		*what = false
	}
}
