package netsim

import (
	"slices"
	"time"

	"github.com/weft-fabric/weft/internal/congestion"
)

// PingPong sends one small packet forth and back, over and over: what a program
// that waits for each answer feels. A lost packet is sent again after Retry.
type PingPong struct {
	// Retry is how long a message may take before it is sent again.
	Retry time.Duration

	// Times are the round trips, retries included.
	Times []time.Duration

	net         *Net
	forth, back Route
	size        int64
	number      uint64
	began       congestion.Time
	far         pingEnd
}

type pingEnd struct{ *PingPong }

// PingPong starts a ping-pong of packets of size bytes.
func (n *Net) PingPong(forth, back Route, size int64) *PingPong {
	p := &PingPong{Retry: 10 * time.Millisecond, net: n, forth: forth, back: back, size: size}
	p.far = pingEnd{p}
	n.At(n.now, p.begin)
	return p
}

func (p *PingPong) begin() {
	p.number++
	p.began = p.net.now
	p.send()
}

// send sends the message and checks again after Retry.
func (p *PingPong) send() {
	number := p.number
	out := p.net.packet()
	out.Size, out.Number = p.size, number
	p.net.send(out, p.forth, p.far)
	p.net.At(p.net.now.Add(p.Retry), func() {
		if p.number == number {
			p.send()
		}
	})
}

// receive at the far end answers.
func (e pingEnd) receive(in *Packet) {
	out := e.net.packet()
	out.Size, out.Number = e.size, in.Number
	e.net.send(out, e.back, e.PingPong)
}

// receive at the near end starts the next round.
func (p *PingPong) receive(in *Packet) {
	if in.Number != p.number {
		return // of a message that was sent twice
	}
	p.Times = append(p.Times, p.net.now.Sub(p.began))
	p.begin()
}

// Quantile returns the round trip that a share q of all are not above, 0
// without any.
func (p *PingPong) Quantile(q float64) time.Duration { return Quantile(p.Times, q) }

// Quantile returns the value that a share q in [0, 1] of the values are not
// above, 0 without values.
func Quantile(values []time.Duration, q float64) time.Duration {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Clone(values)
	slices.Sort(sorted)
	return sorted[min(int(q*float64(len(sorted))), len(sorted)-1)]
}

// Jain returns Jain's fairness index of the shares: 1 if all are equal, 1/n if
// one has everything, 0 without any.
func Jain(shares []float64) float64 {
	var sum, squares float64
	for _, s := range shares {
		sum += s
		squares += s * s
	}
	if squares == 0 {
		return 0
	}
	return sum * sum / (float64(len(shares)) * squares)
}
