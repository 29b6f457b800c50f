package coll

import (
	"runtime"
	"testing"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/config"
	"github.com/weft-fabric/weft/internal/mem"
	"github.com/weft-fabric/weft/provider/collective"
)

// TestEarlyLost: a member has a rendezvous of an operation that it has not begun, and the sender leaves or is lost: the
// operation ends with fi.ECONNRESET when it begins, whether the payload were read or came in fragments.
func TestEarlyLost(t *testing.T) {
	const length = 20000
	for name, hosts := range map[string][]int{"read": onHost(2), "fragments": onHosts(2)} {
		for _, leaves := range []bool{false, true} {
			m := newMesh(t, hosts, func(c *config.Config) { c.Sched = config.No })
			groups := m.join()
			bufs := [][]byte{make([]byte, length), make([]byte, length)}
			post := func(rank int) {
				a := CollectiveArgs{Kind: collective.Broadcast, Buf: uintptr(mem.Address(bufs[rank])),
					Count: length, Datatype: fi.Uint8, Group: groups[rank].Addr()}
				if err := m.nodes[rank].groups.Collective(&a); err != nil {
					t.Fatal(err)
				}
			}
			post(0)
			m.until(name+": a rendezvous", func() bool { return groups[1].members[0].ahead != nil })
			other := &groups[1].members[0]
			if leaves {
				if err := groups[0].Close(); err != nil {
					t.Fatal(err)
				}
			} else {
				m.nodes[0].die()
			}
			m.until(name+": the loss", func() bool { return other.left || other.gone })
			post(1)
			if err := m.outcome(1); err != fi.ECONNRESET {
				t.Errorf("%s, leaves %v: ends with %v", name, leaves, err)
			}
			m.nodes[1].idle()
			runtime.KeepAlive(bufs)
		}
	}
}
