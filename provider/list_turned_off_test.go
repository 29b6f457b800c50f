package provider

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/config"
	"github.com/weft-fabric/weft/internal/testseed"
)

// TestListWaysTurnedOff turns ways of an endpoint off and on again while random lists are posted and under way. What is
// left goes by messages, which stay on: each list ends well, memory is as a model has it, and each element is counted
// once.
func TestListWaysTurnedOff(t *testing.T) {
	listPaths(t, func(t *testing.T, x, y *side, way Way) {
		r := rand.New(rand.NewPCG(testseed.New(t), 0))
		m := newListModel(x, y, r)
		on := &x.domain.cfg.TokenWays
		turn := func() { *on = config.Ways{IPC: r.IntN(2) == 0, RDMA: r.IntN(2) == 0, Message: true} }
		elements := uint64(0)
		for n := range 12 {
			pieces := m.pieces(r, [...]int{3, 100, 3000}[n%3])
			if len(pieces) < 2 {
				continue
			}
			turn()
			l := x.list(pieces)
			for range 4 {
				turn()
				a := ListArgs{Read: r.IntN(2) == 0, Context: uint64(n) + 1, Flags: fi.DeliveryComplete}
				post(t, func() error { return l.Post(&a) }, x, y)
				for range r.IntN(4) {
					turn()
					x.ep.Progress()
					y.ep.Progress()
				}
				wantDone(t, x, y, a.Context, fi.RMA|map[bool]uint64{true: fi.Read, false: fi.Write}[a.Read])
				k, _ := m.apply(pieces, nil, a.Read)
				m.compare(t, fmt.Sprintf("list %d of %d pieces, read %t", n, len(pieces), a.Read))
				elements += uint64(k)
			}
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
		}
		ipc, rdma, message := x.counts("list_ipc"), x.counts("list_rdma"), x.counts("list_message")
		if ipc+rdma+message != elements || message == 0 || way != WayMessage && ipc+rdma == 0 {
			t.Errorf("of %d elements %d were copied, %d went by a device and %d as messages",
				elements, ipc, rdma, message)
		}
	})
}
