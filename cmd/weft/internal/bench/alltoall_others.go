package bench

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// others is what happens in a network beside the all-to-alls.
type others interface {
	// stop ends it. What is asked for below is final then.
	stop()
	// spans are the times in which the port to a host had another rate for the all-to-all.
	spans(host int) []span
	// of returns figures of what happened during an operation, by their unit.
	of(o *operation) map[string]float64
}

// quiet is nothing.
type quiet struct{}

func (quiet) stop()                            {}
func (quiet) spans(int) []span                 { return nil }
func (quiet) of(*operation) map[string]float64 { return nil }

// monotonic is CLOCK_MONOTONIC in ns, which the measuring program reads too.
func monotonic() int64 {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &t) // cannot fail
	return t.Nano()
}

// background is goroutines that end together.
type background struct {
	quit chan struct{}
	once sync.Once
	all  sync.WaitGroup
}

func newBackground() *background { return &background{quit: make(chan struct{})} }

// sleep is false when it is time to end.
func (b *background) sleep(d time.Duration) bool {
	select {
	case <-b.quit:
		return false
	case <-time.After(d):
		return true
	}
}

func (b *background) halt(also ...io.Closer) {
	b.once.Do(func() {
		close(b.quit)
		for _, c := range also {
			_ = c.Close()
		}
		b.all.Wait()
	})
}

// turning has the rates of ports change: every turn another quarter of them has a tenth.
type turning struct {
	*background
	w    *labNetwork
	tc   *exec.Cmd
	in   io.WriteCloser
	slow [][]span // by host
}

const turn = 100 * time.Millisecond

// portsInTurn begins to change rates, by one process that is running already: a new one for each
// change would be late.
func portsInTurn(l *lab, w *labNetwork, sw string) (others, error) {
	t := &turning{background: newBackground(), w: w, slow: make([][]span, w.hosts)}
	t.tc = exec.CommandContext(l.ctx, "tc", "-n", sw, "-force", "-batch", "-")
	var err error
	if t.in, err = t.tc.StdinPipe(); err != nil {
		return nil, err
	}
	if err := t.tc.Start(); err != nil {
		return nil, fmt.Errorf("tc: %w", err)
	}
	t.all.Go(t.change)
	return t, nil
}

func (t *turning) change() {
	set := func(host int, mbit float64) {
		command := shaping("change", fmt.Sprintf("port%d", host), mbit, labQueue)
		_, _ = io.WriteString(t.in, strings.Join(command, " ")+"\n")
	}
	quarter := max(t.w.hosts/4, 1)
	for k := 0; ; k++ {
		first := k * quarter % t.w.hosts
		began := monotonic()
		for h := first; h < first+quarter; h++ {
			set(h, float64(t.w.in[h])/10)
		}
		more := t.sleep(turn)
		for h := first; h < first+quarter; h++ {
			set(h, float64(t.w.in[h]))
			t.slow[h] = append(t.slow[h], span{began, monotonic(), bytesPerNs(float64(t.w.in[h]) / 10)})
		}
		if !more {
			return
		}
	}
}

func (t *turning) stop() {
	t.halt()
	_ = t.in.Close()
	_ = t.tc.Wait()
}

func (t *turning) spans(host int) []span              { return t.slow[host] }
func (t *turning) of(o *operation) map[string]float64 { return nil }
func (b *bursting) spans(host int) []span             { return b.busy[host] }
func (f *flowing) of(o *operation) map[string]float64 {
	return map[string]float64{"stranger_mbps": f.rate(o)}
}

// bursting is strangers that send datagrams into every port, on and off at random.
type bursting struct {
	*background
	w     *labNetwork
	busy  [][]span // by host: what they leave of the port
	sent  [][]burst
	close []io.Closer
}

// burst is what a stranger sent to one host, and what of it arrived.
type burst struct {
	from, to      int64
	sent, arrived int64
}

// Of bursts: their share of the port, their length and the gap between two in the mean, and the
// bytes of a datagram.
const (
	burstShare = 0.9
	burstOn    = 50 * time.Millisecond
	burstOff   = 150 * time.Millisecond
	burstBytes = 1472
	burstPort  = 9999
)

// random is a time around a mean, half of it to one and a half.
func random(mean time.Duration) time.Duration {
	return time.Duration(float64(mean) * (0.5 + rand.Float64()))
}

// burstsIntoAll begins to send. Those that get it do not read: the kernel counts what
// arrives at a full socket, which costs no processor time of a reader.
func burstsIntoAll(l *lab, w *labNetwork, _ string) (others, error) {
	b := &bursting{background: newBackground(), w: w, busy: make([][]span, w.hosts), sent: make([][]burst, w.hosts)}
	for h := range w.hosts {
		var to *net.UDPConn
		var counts *os.File
		err := inNamespace(l.hosts[h], func() (err error) {
			if to, err = net.ListenUDP("udp4", &net.UDPAddr{Port: burstPort}); err != nil {
				return err
			}
			_ = to.SetReadBuffer(2048)
			counts, err = os.Open(fmt.Sprintf("/proc/self/task/%d/net/udp", unix.Gettid()))
			return err
		})
		if err != nil {
			b.stop()
			return nil, fmt.Errorf("strangers' socket: %w", err)
		}
		b.close = append(b.close, to, counts)
		var from net.Conn
		err = inNamespace(l.hosts[w.hosts], func() (err error) {
			from, err = net.Dial("udp4", fmt.Sprintf("10.98.0.%d:%d", h+1, burstPort))
			return err
		})
		if err != nil {
			b.stop()
			return nil, fmt.Errorf("stranger: %w", err)
		}
		b.close = append(b.close, from)
		b.all.Go(func() { b.send(h, from, counts) })
	}
	return b, nil
}

// send sends bursts to one host until it is to end.
func (b *bursting) send(host int, conn net.Conn, counts io.ReaderAt) {
	data := make([]byte, burstBytes)
	rate := burstShare * bytesPerNs(float64(b.w.in[host])) / (burstBytes + 42) // datagrams per ns
	for b.sleep(random(burstOff)) {
		before := dropped(counts)
		if n := len(b.sent[host]); n != 0 {
			last := &b.sent[host][n-1]
			last.arrived = before - last.arrived
		}
		from, length, sent := monotonic(), int64(random(burstOn)), int64(0)
		more := true
		for at := from; more && at < from+length; at = monotonic() {
			for ; sent < int64(float64(at-from)*rate); sent++ {
				_, _ = conn.Write(data) // what is lost counts
			}
			more = b.sleep(time.Millisecond)
		}
		to := monotonic()
		used := float64(sent*(burstBytes+42)) / float64(to-from)
		left := max(bytesPerNs(float64(b.w.in[host]))-used, 0)
		b.busy[host] = append(b.busy[host], span{from, to, left})
		b.sent[host] = append(b.sent[host], burst{from, to, sent, before})
		if !more {
			break
		}
	}
	if n := len(b.sent[host]); n != 0 { // what has become of the last is not known
		b.sent[host] = b.sent[host][:n-1]
	}
}

// dropped is how many datagrams came to the strangers' socket and found it full.
func dropped(counts io.ReaderAt) int64 {
	text := make([]byte, 64<<10)
	n, err := counts.ReadAt(text, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return 0
	}
	for line := range strings.Lines(string(text[:n])) {
		words := strings.Fields(line)
		if len(words) > 2 && strings.HasSuffix(words[1], fmt.Sprintf(":%04X", burstPort)) {
			count, _ := strconv.ParseInt(words[len(words)-1], 10, 64) // a number of the kernel's
			return count
		}
	}
	return 0
}

func (b *bursting) stop() { b.halt(b.close...) }

// of is the share of the strangers' datagrams that were lost, of bursts of which half or more was
// during the operation.
func (b *bursting) of(o *operation) map[string]float64 {
	sent, arrived := int64(0), int64(0)
	for _, list := range b.sent {
		for _, s := range list {
			if middle := (s.from + s.to) / 2; middle >= o.began && middle < o.end() {
				sent, arrived = sent+s.sent, arrived+s.arrived
			}
		}
	}
	if sent == 0 {
		return nil
	}
	return map[string]float64{"stranger_lost": max(1-float64(arrived)/float64(sent), 0)}
}

// flowing is strangers' TCP connections that last.
type flowing struct {
	*background
	quiet
	mu    sync.Mutex
	got   []arrival
	total int64
	close []io.Closer
}

// arrival is how much had come at a time.
type arrival struct{ at, bytes int64 }

// lastingFlows begins two flows, into two hosts.
func lastingFlows(l *lab, w *labNetwork, _ string) (others, error) {
	f := &flowing{background: newBackground()}
	for h := range 2 {
		var listener net.Listener
		var from, to net.Conn
		err := inNamespace(l.hosts[h], func() (err error) {
			listener, err = net.Listen("tcp4", ":0")
			return err
		})
		if err == nil {
			f.close = append(f.close, listener)
			err = inNamespace(l.hosts[w.hosts], func() (err error) {
				number := listener.Addr().(*net.TCPAddr).Port
				from, err = net.Dial("tcp4", fmt.Sprintf("10.98.0.%d:%d", h+1, number))
				return err
			})
		}
		if err == nil {
			f.close = append(f.close, from)
			to, err = listener.Accept()
		}
		if err != nil {
			f.stop()
			return nil, fmt.Errorf("strangers' connection: %w", err)
		}
		f.close = append(f.close, to)
		f.all.Go(func() { f.read(to) })
		f.all.Go(func() {
			data := make([]byte, 64<<10)
			for err := error(nil); err == nil; _, err = from.Write(data) {
			}
		})
	}
	return f, nil
}

// read counts what comes, not more often than each ms.
func (f *flowing) read(conn net.Conn) {
	data := make([]byte, 256<<10)
	for f.sleep(time.Millisecond) {
		n, err := conn.Read(data)
		f.mu.Lock()
		f.total += int64(n)
		f.got = append(f.got, arrival{monotonic(), f.total})
		f.mu.Unlock()
		if err != nil {
			return
		}
	}
}

func (f *flowing) stop() { f.halt(f.close...) }

// rate is what the strangers got during an operation, in Mbit/s of both.
func (f *flowing) rate(o *operation) float64 {
	until := func(at int64) (bytes int64) {
		for _, a := range f.got {
			if a.at > at {
				break
			}
			bytes = a.bytes
		}
		return bytes
	}
	return float64(until(o.end())-until(o.began)) * 8e3 / float64(o.took)
}
