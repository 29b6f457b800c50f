package udp

import (
	"testing"
	"time"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/nettest"
)

// portFlows are flows of one host to another, from an interface each, through one port.
type portFlows struct {
	from []*Iface
	to   *Iface
	eps  []*Endpoint
	sent []uint64
	got  []uint64 // messages, of each flow
}

const portMessage = 8000

// newPortFlows makes flows through a port of so many 10^6 bits per second, with a queue of so many bytes.
func newPortFlows(t *testing.T, flows int, mbit, queue int) *portFlows {
	t.Helper()
	ha, hb := nettest.New(t)
	p := &portFlows{to: at(t, hb, false, Config{}), sent: make([]uint64, flows), got: make([]uint64, flows)}
	p.to.SetHandler(1, func(_ hw.Source, header uint64, _, _ []byte) {
		flow, number := header>>32, header&(1<<32-1)
		if number != p.got[flow] {
			t.Errorf("message %d of flow %d came as number %d", number, flow, p.got[flow])
		}
		p.got[flow]++
	})
	for range flows {
		i := at(t, ha, false, Config{})
		p.from = append(p.from, i)
		p.eps = append(p.eps, pair(t, i, p.to).(*Endpoint))
	}
	ha.Rate(mbit, queue)
	return p
}

// run has all flows send until so many messages more have come, or all that were sent if that is 0.
func (p *portFlows) run(t *testing.T, messages uint64) {
	t.Helper()
	before, _, _ := p.counts()
	eventually(t, "messages", func() bool {
		all := true
		for k, i := range p.from {
			for messages != 0 && p.eps[k].AMBcopy(1, uint64(k)<<32|p.sent[k], nil, portMessage, clearBytes, 0) == nil {
				p.sent[k]++
			}
			i.Progress(16)
			p.to.Progress(64)
			all = all && p.got[k] == p.sent[k]
		}
		got, _, _ := p.counts()
		return messages == 0 && all || messages != 0 && got-before >= messages
	})
}

// counts returns how many messages have come, the fewest of a flow, and how many packets were taken for lost.
func (p *portFlows) counts() (all, least, lost uint64) {
	least = ^uint64(0)
	for k, ep := range p.eps {
		all, least = all+p.got[k], min(least, p.got[k])
		lost += ep.stats.Read().Lost
	}
	return all, least, lost
}

// TestManyFlows: of 7, 15 and 31 flows through one port of 100 Mbit/s none starves, all that they send comes in order,
// and they do not fill the port's queue all the time. It goes on until so many messages have come, however seldom the
// host runs. The bounds are those of such hosts: utilisation, shares and losses are logged, and TestIncastSlow of
// internal/netsim has them without processors.
func TestManyFlows(t *testing.T) {
	const mbit, queue, each = 100, 256 << 10, 100
	for _, flows := range []int{7, 15, 31} {
		p := newPortFlows(t, flows, mbit, queue)
		p.run(t, uint64(each/2*flows))
		all, least, lost := p.counts()
		begun := time.Now()
		p.run(t, uint64(each*flows))
		took := time.Since(begun).Seconds()
		a, l, lo := p.counts()
		all, least, lost = a-all, l-least, lo-lost
		packets := all * (portMessage/1472 + 1)
		share := float64(least) * float64(flows) / float64(all)
		t.Logf("%d flows: utilisation %.2f, least share %.2f, %d of %d packets lost",
			flows, float64(all*portMessage*8)/took/1e6/mbit, share, lost, packets)
		if share < 0.1 || lost > packets/5 {
			t.Errorf("%d flows: least share %.2f, %d of %d packets lost", flows, share, lost, packets)
		}
		p.run(t, 0)
	}
}

func clearBytes(b []byte) { clear(b) }
