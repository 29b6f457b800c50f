package udp

import (
	"encoding/binary"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/hw/udp/wire"
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
}

func newCapture(t testing.TB, h *nettest.Host, port uint16) *capture {
	t.Helper()
	c := &capture{t: t, port: port, sent: map[uint64]time.Duration{}, rtts: map[uint64]time.Duration{}}
	var err error
	h.Do(func() {
		const all = unix.ETH_P_ALL>>8 | unix.ETH_P_ALL&0xff<<8
		if c.fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, all); err != nil {
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
		at := time.Duration(binary.NativeEndian.Uint64(d))*time.Second + time.Duration(binary.NativeEndian.Uint64(d[8:]))
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
		return
	}
	var f wire.Frame
	for rest := payload[wire.HeaderSize:]; len(rest) > 0; {
		var err error
		if rest, err = f.Next(rest); err != nil {
			return
		}
		if f.Kind != wire.KindAck {
			continue
		}
		newest := f.Ack.Ranges[0].Last
		if sent, ok := c.sent[newest]; ok && c.rtts[newest] == 0 {
			c.rtts[newest] = at - sent - f.Ack.Delay
		}
	}
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
			var errors, truth []time.Duration
			for number, rtt := range samples {
				if seen := c.rtts[number]; seen > 0 {
					errors = append(errors, (rtt - seen).Abs())
					truth = append(truth, seen)
				}
			}
			if len(errors) == 0 {
				b.Fatal("nothing was captured")
			}
			slices.Sort(errors)
			slices.Sort(truth)
			us := func(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1000 }
			b.ReportMetric(us(errors[len(errors)/2]), "us-error-p50")
			b.ReportMetric(us(errors[len(errors)*9/10]), "us-error-p90")
			b.ReportMetric(us(truth[len(truth)/2]), "us-rtt-p50")
			b.ReportMetric(float64(len(errors)), "samples")
		})
	}
}
