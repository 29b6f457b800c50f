package netsim

import (
	"time"

	"github.com/weft-fabric/weft/internal/congestion"
)

// ProbeHost drives a congestion.Prober on a host of a star: what a service
// thread does over a real backend. Every host of the star answers probes.
type ProbeHost struct {
	Prober *congestion.Prober
	Table  *congestion.Table

	// OnRTT, if set, sees every RTT measured.
	OnRTT func(now congestion.Time, peer int, rtt time.Duration)

	net  *Net
	star *Star
	self int
	wake congestion.Time
}

// probeOverhead is what Ethernet, IPv4 and UDP add to a probe on the wire.
const probeOverhead = 14 + 20 + 8 + 4 + 20

// responder answers a probe at its target.
type responder struct{ *ProbeHost }

// ProbeHost starts a prober of every host of the star on host self.
func (n *Net) ProbeHost(cfg congestion.ProbeConfig, star *Star, self int) *ProbeHost {
	table := congestion.NewTable(len(star.Up))
	p, err := congestion.NewProber(cfg, table, self, n.now, n.Rand)
	if err != nil {
		panic(err) // a test's mistake
	}
	h := &ProbeHost{Prober: p, Table: table, net: n, star: star, self: self}
	h.arm()
	return h
}

// arm makes an event for when the prober wants to be polled.
func (h *ProbeHost) arm() {
	next := h.Prober.Next()
	if h.wake > h.net.now && h.wake <= next {
		return
	}
	h.wake = max(next, h.net.now)
	h.net.at(h.wake, h, nil)
}

// handle polls the prober and sends its probes.
func (h *ProbeHost) handle(*Packet) {
	if h.net.now < h.wake {
		return // an earlier event took this one's place
	}
	for probe, ok := h.Prober.Poll(h.net.now); ok; probe, ok = h.Prober.Poll(h.net.now) {
		p := h.net.packet()
		p.Size = int64(probe.Message.Size + probeOverhead)
		p.Number = uint64(probe.Peer)
		probe.Message.Append(p.Data[:0])
		h.net.send(p, h.star.Route(h.self, probe.Peer), responder{h})
	}
	h.wake = 0
	h.arm()
}

// receive at the target parses the probe and answers it.
func (r responder) receive(in *Packet) {
	m, err := congestion.ParseProbe(in.Data[:in.Size-probeOverhead])
	if err != nil {
		panic(err) // the simulator corrupts nothing
	}
	reply := m.Reply(congestion.PTPTime{}, 0)
	out := r.net.packet()
	out.Size, out.Number = in.Size, in.Number
	reply.Append(out.Data[:0])
	r.net.send(out, r.star.Route(int(in.Number), r.self), r.ProbeHost)
}

// receive takes an echo in.
func (h *ProbeHost) receive(in *Packet) {
	m, err := congestion.ParseProbe(in.Data[:in.Size-probeOverhead])
	if err != nil {
		panic(err)
	}
	if rtt, ok := h.Prober.OnEcho(h.net.now, int(in.Number), m); ok && h.OnRTT != nil {
		h.OnRTT(h.net.now, int(in.Number), rtt)
	}
	h.arm()
}
