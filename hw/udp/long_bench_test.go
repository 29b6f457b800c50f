package udp

import (
	"net"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/nettest"
)

// longSize is the size of a long message, in bytes.
const longSize = 64 << 10

// longBurst is how many messages are posted at once.
const longBurst = 12

// BenchmarkLong is messages of 64 KiB from host to host, some under way at a time,
// both sides progressed by one thread, and the same over a TCP connection of the
// kernel's. The figure is processor time, the kernel's included.
func BenchmarkLong(b *testing.B) {
	b.Run("weft", benchmarkLong)
	b.Run("tcp", benchmarkLongTCP)
}

func benchmarkLong(b *testing.B) {
	hx, hy := nettest.New(b)
	c := Config{MaxBcopy: longSize}
	x, y := at(b, hx, false, c), at(b, hy, false, c)
	ep := pair(b, x, y)
	payload, place := make([]byte, longSize), make([]byte, longSize)
	got := 0
	y.SetHandler(1, func(_ hw.Source, _ uint64, _, b []byte) { copy(place, b); got++ })
	pack := func(d []byte) { copy(d, payload) }
	send := func(n int) {
		for sent := got; n > 0 || got < sent; {
			for ; n > 0 && sent-got < longBurst; n-- {
				if !bcopy(b, ep, 0, nil, longSize, pack) {
					break
				}
				sent++
			}
			y.Progress(64)
			x.Progress(64)
		}
	}
	measureLong(b, send)
}

// measureLong reports time and processor time of what send does so many times.
func measureLong(b *testing.B, send func(n int)) {
	send(1000)
	b.SetBytes(longSize)
	b.ResetTimer()
	begin := cpu()
	send(b.N)
	b.ReportMetric(float64(cpu()-begin)/float64(b.N), "cpu-ns/op")
}

func benchmarkLongTCP(b *testing.B) {
	hx, hy := nettest.New(b)
	from, to := tcpPair(b, hx, hy)
	payload, place := make([]byte, longSize), make([]byte, longSize)
	send := func(n int) {
		var written, read int
		for read < n*longSize {
			if written < n*longSize && written-read < longBurst*longSize {
				k, err := unix.SendmsgN(from, payload[written%longSize:], nil, nil, unix.MSG_DONTWAIT)
				if err != nil && err != unix.EAGAIN {
					b.Fatal(err)
				}
				written += max(k, 0)
			}
			k, _, err := unix.Recvfrom(to, place[read%longSize:], unix.MSG_DONTWAIT)
			if err != nil && err != unix.EAGAIN {
				b.Fatal(err)
			}
			read += max(k, 0)
		}
	}
	measureLong(b, send)
}

// tcpPair returns the descriptors of a TCP connection between two hosts, which
// do not block.
func tcpPair(b *testing.B, hx, hy *nettest.Host) (from, to int) {
	var l net.Listener
	var x, y net.Conn
	var err error
	hy.Do(func() { l, err = net.Listen("tcp4", hy.IPv4.String()+":0") })
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	hx.Do(func() { x, err = net.Dial("tcp4", l.Addr().String()) })
	if err == nil {
		y, err = l.Accept()
	}
	if err != nil {
		b.Fatal(err)
	}
	var fds [2]int
	for i, c := range []net.Conn{x, y} {
		f, err := c.(*net.TCPConn).File()
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { f.Close(); c.Close() })
		fds[i] = int(f.Fd())
		if err := unix.SetNonblock(fds[i], true); err != nil {
			b.Fatal(err)
		}
	}
	return fds[0], fds[1]
}
