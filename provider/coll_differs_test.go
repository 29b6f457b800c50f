package provider

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/config"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/internal/log/logtest"
)

// TestCountsDifferLogged: where members do not agree on a count, the log of the one that finds it names the other's
// rank and both lengths: by a plan, and where the order follows the network, in all forms.
func TestCountsDifferLogged(t *testing.T) {
	const room = 300_000
	for _, form := range []string{"step", "message", "put", "get"} {
		for _, n := range []struct{ sent, expected uint64 }{{103, 104}, {200_000, 199_999}} {
			t.Run(fmt.Sprintf("%s/%d", form, n.sent), func(t *testing.T) {
				warned := logtest.Capture(t, log.Warn)
				c := apartCircle(t, 2, func(c *config.Config) { c.AllToAll = form })
				groups := c.joinAll(everyRank(2))
				mem := make([]byte, 4*2*room)
				defer runtime.KeepAlive(mem)
				for i := range 2 {
					counts, expected := []uint64{0, 9}, []uint64{0, 9}
					counts[i], expected[i] = 0, 0
					if counts[1-i], expected[1-i] = 9, n.expected; i == 0 {
						counts[1-i], expected[1-i] = n.sent, 9
					}
					displs := []uint64{0, room}
					if err := c.sides[i].ep.AllToAllV(&AllToAllVArgs{
						Buf: baseOf(mem[2*i*2*room:]), Counts: counts, Displs: displs,
						Result: baseOf(mem[(2*i+1)*2*room:]), ResultCounts: expected, ResultDispls: displs,
						Elem: 1, Group: groups[i].Addr(), Context: 5,
					}); err != nil {
						t.Fatal(err)
					}
				}
				failed := 0
				for i := range 2 {
					switch err := c.outcome(i); err {
					case fi.ETRUNC:
						failed++
					case fi.Success:
					default:
						t.Errorf("rank %d ends with %v", i, err)
					}
				}
				lines := warned()
				named := false
				for _, l := range lines {
					other := strings.Contains(l, "rank 0 of 2: ") && strings.Contains(l, ": rank 1 ") ||
						strings.Contains(l, "rank 1 of 2: ") && strings.Contains(l, ": rank 0 ")
					named = named || other && strings.Contains(l, fmt.Sprintf(" %d ", n.sent)) &&
						strings.Contains(l+" ", fmt.Sprintf(" %d ", n.expected))
				}
				if failed == 0 || !named {
					t.Errorf("%d of 2 failed; %q", failed, lines)
				}
			})
		}
	}
}
