package udp

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/congestion"
)

// heard collects echoes.
type heard struct {
	mu   sync.Mutex
	sent map[uint32]congestion.Time
	list []congestion.ProbeMessage
	rtts []time.Duration
}

func (h *heard) echoed(_ any, at congestion.Time, m congestion.ProbeMessage) time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	sent, ok := h.sent[m.Sequence]
	if !ok {
		return 0
	}
	delete(h.sent, m.Sequence)
	h.list, h.rtts = append(h.list, m), append(h.rtts, at.Sub(sent)-m.Residence)
	return at.Sub(sent) - m.Residence
}

func (h *heard) count() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.list)
}

// TestProbe sends probes of every size over open and authenticated connections;
// the peer answers though nothing polls it.
func TestProbe(t *testing.T) {
	for name, key := range map[string][]byte{"open": nil, "key": []byte("key")} {
		t.Run(name, func(t *testing.T) {
			a, b := open(t, false, Config{Key: key}), open(t, false, Config{Key: key})
			ep := pair(t, a, b).(*Endpoint)
			clock := congestion.PTPTime{Domain: 7, At: 12345}
			b.SetProbes(congestion.Probes{Clock: func(time.Duration) congestion.PTPTime { return clock }})
			h := &heard{sent: map[uint32]congestion.Time{}}
			a.SetProbes(congestion.Probes{Echoed: h.echoed})
			for n, size := range []int{congestion.ProbeHeader, 64, MaxProbe} {
				m := congestion.ProbeMessage{Size: size, Sequence: uint32(n), Token: uint64(1000 + n)}
				h.mu.Lock()
				h.sent[m.Sequence] = a.Now()
				h.mu.Unlock()
				if at, err := ep.Probe(m); err != nil || at == 0 {
					t.Fatal(err)
				}
				eventually(t, "an echo", func() bool { a.Progress(10); return h.count() == n+1 })
				got := h.list[n]
				if !got.Echo || got.Size != size || got.Token != m.Token || got.Arrived != clock.At ||
					got.Domain != clock.Domain {
					t.Errorf("echo %+v of %+v", got, m)
				}
				if rtt := h.rtts[n]; rtt <= 0 || rtt > 10*time.Second {
					t.Errorf("round trip of %v", rtt)
				}
			}
			if _, err := ep.Probe(congestion.ProbeMessage{Size: MaxProbe + 1}); !errors.Is(err, hw.ErrTooLong) {
				t.Errorf("a long probe: %v", err)
			}
			if s := ep.Stats().Read(); s.Lost != 0 {
				t.Errorf("%+v", s)
			}
		})
	}
}

// TestProbeVerdict has probes that are lost reduce the window of an idle path,
// and probes that come back leave it.
func TestProbeVerdict(t *testing.T) {
	a, ep := probed(t)
	// The first sample, which on a busy host takes the window down by itself.
	eventually(t, "a sample", func() bool { a.Progress(10); return ep.Stats().Read().Samples > 0 })
	before := windowOf(ep)
	h := &heard{sent: map[uint32]congestion.Time{}}
	a.SetProbes(congestion.Probes{Echoed: func(of any, at congestion.Time, m congestion.ProbeMessage) time.Duration {
		h.echoed(of, at, m)
		return ep.Stats().Read().Min // no host is busier than when the connection was made
	}})
	for n := range uint32(3) {
		h.sent[n] = a.Now()
		if _, err := ep.Probe(congestion.ProbeMessage{Size: 64, Sequence: n}); err != nil {
			t.Fatal(err)
		}
		eventually(t, "an echo", func() bool { a.Progress(10); return h.count() == int(n)+1 })
	}
	if after := windowOf(ep); after < before*3/4 {
		t.Errorf("the window went from %d to %d", before, after)
	}
	before = windowOf(ep)
	ep.ProbeLost()
	ep.ProbeLost()
	if w := windowOf(ep); w > before*3/4 || w < before/2 {
		t.Errorf("the window went from %d to %d after two probes were lost", before, w)
	}
}

// probed opens two interfaces, and one's endpoint to the other.
func probed(t *testing.T) (*Iface, *Endpoint) {
	a, b := open(t, false, Config{}), open(t, false, Config{})
	return a, pair(t, a, b).(*Endpoint)
}

// windowOf is an endpoint's congestion window in bytes.
func windowOf(ep *Endpoint) int64 {
	ep.s.lease.lock()
	defer ep.s.leave()
	return ep.tx.path.Control().Window()
}

// TestProbeHostile has frames that are no probes refused and counted, and the
// connection stay.
func TestProbeHostile(t *testing.T) {
	a, b := open(t, false, Config{}), open(t, false, Config{})
	ep := pair(t, a, b).(*Endpoint)
	good := (&congestion.ProbeMessage{Size: 64, Echo: true}).Append(nil)
	bad := map[string][]byte{"short": good[:20], "version": append([]byte{9}, good[1:]...),
		"kind": append([]byte{1, 3}, good[2:]...),
		"size": append([]byte{1, 1, 5, 0}, good[4:]...),
		"long": (&congestion.ProbeMessage{Size: MaxProbe + 1}).Append(nil)}
	ep.s.lease.lock()
	was := a.malformed.Load()
	for name, m := range bad {
		ep.handleProbe(a.now(), a.now(), m)
		if a.malformed.Load() != was+1 {
			t.Errorf("%s is not refused", name)
		}
		was = a.malformed.Load()
	}
	ep.handleProbe(a.now(), a.now(), good) // an echo that nothing waits for
	ep.s.leave()
	if ep.Err() != nil || a.malformed.Load() != was {
		t.Errorf("%v, %d malformed", ep.Err(), a.malformed.Load()-was)
	}
}
