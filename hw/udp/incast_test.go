package udp

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/nettest"
)

// portFlows are flows of one host to another, from an interface each, through one port.
type portFlows struct {
	host *nettest.Host // that sends
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
	p := &portFlows{host: ha, to: at(t, hb, false, Config{}), sent: make([]uint64, flows), got: make([]uint64, flows)}
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

// dropped returns how many packets the port's queue had no room for.
func (p *portFlows) dropped(t *testing.T) (packets uint64) {
	t.Helper()
	_, counts, _ := strings.Cut(p.host.Run("tc", "-s", "qdisc", "show", "dev", p.host.Iface), "dropped ")
	if _, err := fmt.Sscan(counts, &packets); err != nil {
		t.Fatalf("counters of the port: %v", err)
	}
	return packets
}

// readyTime is how long the calling thread has waited for a processor since it began.
func readyTime(t *testing.T) time.Duration {
	t.Helper()
	b, err := os.ReadFile("/proc/thread-self/schedstat")
	var ran, waited int64
	if err == nil {
		_, err = fmt.Sscan(string(b), &ran, &waited)
	}
	if err != nil {
		t.Fatalf("time without a processor: %v", err)
	}
	return time.Duration(waited)
}

// TestManyFlows: of 7, 15 and 31 flows through one port of 100 Mbit/s or 1 Gbit/s none starves, all that they send
// comes in order, and few packets are dropped by the port or taken for lost, which they are when they are late for want
// of a processor, too. It goes on until so many messages have come, however seldom the host runs. The port's
// utilisation is 0.9 at least where the test has had its processor; TestIncastSlow of internal/netsim holds it to 0.95,
// without processors.
func TestManyFlows(t *testing.T) {
	const queue, each = 256 << 10, 100
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for _, c := range []struct {
		mbit, flows int
		part        uint64 // of the packets that the port may drop
	}{{100, 7, 200}, {100, 15, 200}, {100, 31, 200}, {1000, 7, 50}, {1000, 15, 50}, {1000, 31, 50}} {
		mbit, flows := c.mbit, c.flows
		p := newPortFlows(t, flows, mbit, queue)
		p.run(t, uint64(each/2*flows))
		all, least, lost := p.counts()
		dropped := p.dropped(t)
		begun, waited := time.Now(), readyTime(t)
		p.run(t, uint64(each*flows))
		took := time.Since(begun).Seconds()
		waits := (readyTime(t) - waited).Seconds() / took
		a, l, lo := p.counts()
		all, least, lost, dropped = a-all, l-least, lo-lost, p.dropped(t)-dropped
		packets := all * (portMessage/1472 + 1)
		share := float64(least) * float64(flows) / float64(all)
		use := float64(all*portMessage*8) / took / 1e6 / float64(mbit)
		t.Logf("%d Mbit/s, %d flows: utilisation %.2f, %.3f of the time without a processor, least share %.2f, "+
			"of %d packets %d taken for lost, %d dropped", mbit, flows, use, waits, share, packets, lost, dropped)
		if use < 0.9 && waits < 0.2 {
			t.Errorf("%d Mbit/s, %d flows: utilisation %.2f", mbit, flows, use)
		}
		if share < 0.3 || lost > packets/20 || dropped > packets/c.part {
			t.Errorf("%d Mbit/s, %d flows: least share %.2f, of %d packets %d taken for lost, %d dropped", mbit, flows,
				share, packets, lost, dropped)
		}
		p.run(t, 0)
	}
}

func clearBytes(b []byte) { clear(b) }
