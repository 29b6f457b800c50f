package udp

import (
	"encoding/binary"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/hw/udp/internal/wire"
	"github.com/weft-fabric/weft/internal/congestion"
	"github.com/weft-fabric/weft/internal/nettest"
)

// capture is a packet capture on a host's end of the cable, with the kernel's
// time stamps, that measures round trips by the acknowledgements that it sees.
type capture struct {
	t    testing.TB
	fd   int
	port uint16 // of the host's interface
	sent map[uint64]time.Duration
	rtts map[uint64]time.Duration // by the number of the packet that was acknowledged

	probes map[uint64]time.Duration // by token: when the probe left, then its round trip
}

func newCapture(t testing.TB, h *nettest.Host, port uint16) *capture {
	t.Helper()
	c := &capture{t: t, port: port, sent: map[uint64]time.Duration{}, rtts: map[uint64]time.Duration{},
		probes: map[uint64]time.Duration{}}
	var err error
	h.Do(func() {
		const all = unix.ETH_P_ALL>>8 | unix.ETH_P_ALL&0xff<<8
		if c.fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC,
			all); err != nil {
			return
		}
		err = unix.Bind(c.fd, &unix.SockaddrLinklayer{Protocol: all, Ifindex: h.Index})
	})
	if err == nil {
		err = unix.SetsockoptInt(c.fd, unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(c.fd) })
	return c
}

// read takes in what was captured.
func (c *capture) read() {
	var packet [65536]byte
	var control [128]byte
	for {
		n, cn, _, _, err := unix.Recvmsg(c.fd, packet[:], control[:], 0)
		if err != nil {
			return
		}
		messages, err := unix.ParseSocketControlMessage(control[:cn])
		if err != nil || len(messages) == 0 || len(messages[0].Data) < 16 {
			continue
		}
		d := messages[0].Data
		at := time.Duration(binary.NativeEndian.Uint64(d))*time.Second + time.Duration(
			binary.NativeEndian.Uint64(d[8:]))
		c.packet(packet[:n], at)
	}
}

// packet takes in one IPv4 packet.
func (c *capture) packet(b []byte, at time.Duration) {
	const ipv4, udp = 20, 8
	if len(b) < ipv4+udp || b[0] != 0x45 || b[9] != unix.IPPROTO_UDP {
		return
	}
	from := binary.BigEndian.Uint16(b[ipv4:])
	payload := b[ipv4+udp:]
	var h wire.Header
	if wire.TypeOf(payload) != wire.TypeData || h.Parse(payload) != nil {
		return
	}
	if from == c.port {
		c.sent[h.Number] = at
	}
	var f wire.Frame
	for rest := payload[wire.HeaderSize:]; len(rest) > 0; {
		var err error
		if rest, err = f.Next(rest); err != nil {
			return
		}
		if f.Kind == wire.KindProbe {
			c.probe(f.Data, at)
		}
		if f.Kind != wire.KindAck || from == c.port {
			continue
		}
		newest := f.Ack.Ranges[0].Last
		if sent, ok := c.sent[newest]; ok && c.rtts[newest] == 0 {
			c.rtts[newest] = at - sent - f.Ack.Delay
		}
	}
}

// probe takes in a probe or an echo.
func (c *capture) probe(b []byte, at time.Duration) {
	m, err := congestion.ParseProbe(b)
	switch {
	case err != nil:
	case !m.Echo:
		c.probes[m.Token] = at
	case c.probes[m.Token] != 0:
		c.probes[m.Token] = at - c.probes[m.Token] - m.Residence
	}
}

// report says how far samples are off what was captured, by the same keys.
func report(b *testing.B, samples, captured map[uint64]time.Duration) {
	b.Helper()
	var off, truth []time.Duration
	for key, rtt := range samples {
		if seen := captured[key]; seen > 0 && seen < time.Second {
			off = append(off, (rtt - seen).Abs())
			truth = append(truth, seen)
		}
	}
	if len(off) == 0 {
		b.Fatal("nothing was captured")
	}
	slices.Sort(off)
	slices.Sort(truth)
	us := func(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1000 }
	b.ReportMetric(us(off[len(off)/2]), "us-error-p50")
	b.ReportMetric(us(off[len(off)*9/10]), "us-error-p90")
	b.ReportMetric(us(truth[len(truth)/2]), "us-rtt-p50")
	b.ReportMetric(float64(len(off)), "samples")
}

// BenchmarkProbeError compares the round-trip times of probes with a packet
// capture.
func BenchmarkProbeError(b *testing.B) {
	ha, hb := nettest.New(b)
	x, y := at(b, ha, false, Config{}), at(b, hb, false, Config{})
	ep := pair(b, x, y).(*Endpoint)
	c := newCapture(b, ha, binary.BigEndian.Uint16(x.Address()[2:]))
	samples := map[uint64]time.Duration{}
	var sent atomic.Int64
	came := make(chan congestion.ProbeMessage, 1000)
	x.SetProbes(congestion.Probes{Echoed: func(_ any, at congestion.Time, m congestion.ProbeMessage) time.Duration {
		m.Residence = at.Sub(congestion.Time(sent.Load())) - m.Residence
		came <- m
		return 0
	}})
	for token := uint64(1); b.Loop(); token++ {
		ep.s.lease.lock() // so that no echo comes before the time is known
		ep.probe = probeStamps{token: token, left: x.now()}
		ep.sendProbe(congestion.ProbeMessage{Size: 64, Token: token})
		ep.probe.returned = ep.probe.left
		sent.Store(int64(ep.probe.returned))
		ep.s.leave()
		for len(came) == 0 {
			y.Progress(1)
			x.Progress(1)
		}
		m := <-came
		samples[m.Token] = m.Residence
		c.read()
	}
	c.read()
	report(b, samples, c.probes)
}

// BenchmarkRTTError compares the estimator's samples with a packet capture:
// messages of one packet, one after the other, between two hosts.
func BenchmarkRTTError(b *testing.B) {
	for name, size := range map[string]int{"64": 64, "1k": 1024} {
		b.Run(name, func(b *testing.B) {
			ha, hb := nettest.New(b)
			x, y := at(b, ha, false, Config{}), at(b, hb, false, Config{})
			ep := pair(b, x, y).(*Endpoint)
			y.SetHandler(1, func(hw.Source, uint64, []byte, []byte) {})
			c := newCapture(b, ha, binary.BigEndian.Uint16(x.Address()[2:]))
			samples := map[uint64]time.Duration{}
			payload := make([]byte, size)
			last := func() (number, count uint64, rtt time.Duration) {
				ep.s.lease.lock()
				defer ep.s.leave()
				e := ep.tx.path.RTT()
				return ep.tx.sent.Largest(), e.Samples(), e.Last()
			}
			for b.Loop() {
				_, before, _ := last()
				for ep.AMBcopy(1, 0, nil, size, func(d []byte) { copy(d, payload) }, 0) != nil {
					x.Progress(1)
					y.Progress(1)
				}
				for end := time.Now().Add(10 * time.Second); time.Now().Before(end); {
					y.Progress(1)
					x.Progress(1)
					if number, count, rtt := last(); count > before {
						if count == before+1 {
							samples[number] = rtt
						}
						break
					}
				}
				c.read()
			}
			c.read()
			report(b, samples, c.rtts)
		})
	}
}
