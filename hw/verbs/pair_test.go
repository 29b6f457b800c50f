package verbs

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/hw/internal/drive"
	"github.com/weft-fabric/weft/internal/hot"
)

// The tests of two machines run in both at once. They meet over TCP, which is
// how a program would exchange addresses.

// side is this machine's half of a pair.
type side struct {
	t     *testing.T
	first bool
	in    *bufio.Reader
	conn  net.Conn
}

// meet joins the two machines for one test, or skips it where there is one.
func meet(t *testing.T) *side {
	t.Helper()
	own, other := os.Getenv("OWN"), os.Getenv("OTHER")
	if os.Getenv("WEFT_TEST_PAIR") == "" {
		t.Skip("this test is for two machines: make test-rdma runs it in two virtual ones")
	}
	domain(t)
	s := &side{t: t, first: os.Getenv("NODE") == "0"}
	port := 20000 + int(crc32.ChecksumIEEE([]byte(t.Name()))%20000)
	end := time.Now().Add(60 * time.Second)
	var err error
	if s.first {
		var l net.Listener
		if l, err = net.Listen("tcp", fmt.Sprintf("%s:%d", own, port)); err == nil {
			_ = l.(*net.TCPListener).SetDeadline(end)
			s.conn, err = l.Accept()
			_ = l.Close()
		}
	} else {
		for s.conn == nil && time.Now().Before(end) {
			if s.conn, err = net.DialTimeout("tcp", fmt.Sprintf("%s:%d", other, port), time.Second); err != nil {
				time.Sleep(50 * time.Millisecond)
			}
		}
	}
	if err != nil {
		t.Fatalf("the other machine: %v", err)
	}
	s.in = bufio.NewReader(s.conn)
	t.Cleanup(func() { _ = s.conn.Close() })
	return s
}

// swap sends bytes and returns the other machine's.
func (s *side) swap(b []byte) []byte {
	s.t.Helper()
	_ = s.conn.SetDeadline(time.Now().Add(90 * time.Second))
	if _, err := fmt.Fprintf(s.conn, "%x\n", b); err != nil {
		s.t.Fatal(err)
	}
	line, err := s.in.ReadString('\n')
	if err != nil {
		s.t.Fatalf("the other machine: %v", err)
	}
	got, err := hex.DecodeString(strings.TrimSpace(line))
	if err != nil {
		s.t.Fatal(err)
	}
	return got
}

// barrier waits until both machines are here. Meanwhile i makes progress.
func (s *side) barrier(i *Iface) {
	s.t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = s.swap(nil)
	}()
	for {
		select {
		case <-done:
			return
		default:
			i.Progress(16)
			time.Sleep(100 * time.Microsecond)
		}
	}
}

// shell runs a command of the machine.
func shell(t *testing.T, line string) {
	t.Helper()
	if out, err := exec.Command("/bin/sh", "-c", line).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", line, err, out)
	}
}

// traffic sends count messages of random sizes to the peer, and checks that as
// many come, each once, in order and whole.
type traffic struct {
	s        *side
	i        *Iface
	ep       hw.Endpoint
	sent     uint64
	received uint64
	lost     error
}

func newTraffic(s *side, c Config) *traffic {
	s.t.Helper()
	c.ConnectWait = time.Minute
	c.ConnectTimeout = time.Minute
	c.EagerPeers = 1 // short messages are written
	i := open(s.t, c)
	s.t.Cleanup(func() { _ = i.Close() })
	x := &traffic{s: s, i: i}
	i.SetHandler(3, func(_ hw.Source, header uint64, head, payload []byte) {
		if header != x.received || !bytes.Equal(payload, content(header)) || len(head) != int(header%8) {
			s.t.Errorf("message %d of %d bytes came as number %d, or damaged", header, len(payload), x.received)
		}
		x.received++
	})
	i.OnPeerEvent(func(e hw.PeerEvent) { x.lost = e.Err })
	var err error
	if x.ep, err = i.Connect(s.swap(i.Address())); err != nil {
		s.t.Fatal(err)
	}
	return x
}

// content is the payload of message n.
func content(n uint64) []byte {
	r := rand.New(rand.NewPCG(n, 5))
	size := [...]int{0, 30, 96, 1000, 8192}[r.IntN(5)]
	b := make([]byte, size)
	for k := 0; k+8 <= size; k += 8 {
		binary.LittleEndian.PutUint64(b[k:], r.Uint64())
	}
	return b
}

// send tries to send the next message.
func (x *traffic) send() bool {
	p := content(x.sent)
	head := make([]byte, x.sent%8)
	if hold := int(x.sent % 4); hold <= hot.HoldMore && len(p)+len(head) <= maxShort {
		switch drive.SendHold(x.ep.(*Endpoint).HotPath(), 3, x.sent, head, p, hold) {
		case hot.PathSent, hot.PathCorked:
			x.sent++
			return true
		}
	}
	var err error
	if len(p)+len(head) <= x.i.Attr().MaxAMShort {
		err = x.ep.AMShort(3, x.sent, head, p)
	} else {
		err = x.ep.AMBcopy(3, x.sent, head, len(p), func(d []byte) { copy(d, p) }, 0)
	}
	if err == nil {
		x.sent++
		return true
	}
	if !errors.Is(err, hw.ErrNoResource) {
		x.s.t.Fatalf("message %d: %v", x.sent, err)
	}
	return false
}

// exchange sends count messages and receives as many.
func (x *traffic) exchange(count uint64, limit time.Duration) {
	x.s.t.Helper()
	want := x.received + count
	stop := x.sent + count
	end := time.Now().Add(limit)
	for x.sent < stop || x.received < want {
		for n := 0; n < 12 && x.sent < stop && x.send(); n++ {
		}
		if x.i.Progress(16) == 0 {
			x.i.CheckPeers()
		}
		if x.lost != nil || time.Now().After(end) {
			x.s.t.Fatalf("%d sent, %d received, %v", x.sent, x.received, x.lost)
		}
	}
}

// memory puts, gets and counts in the other machine's memory.
func (x *traffic) memory(size int) {
	t := x.s.t
	t.Helper()
	m, err := x.i.Memory().Alloc(hw.Region{Len: size + 64,
		Access: hw.LocalWrite | hw.RemoteRead | hw.RemoteWrite | hw.RemoteAtomic})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		x.s.barrier(x.i)
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	}()
	mine, err := x.i.Memory().Alloc(hw.Region{Len: size, Access: hw.LocalWrite})
	if err != nil {
		t.Fatal(err)
	}
	defer mine.Close()
	k, err := x.i.Memory().UnpackKey(x.s.swap(m.PackKey(nil)))
	if err != nil {
		t.Fatal(err)
	}
	b := unsafe.Slice((*byte)(mine.Region().Addr), size)
	r := rand.New(rand.NewPCG(11, 12))
	for n := range b {
		b[n] = byte(r.Uint32())
	}
	want := bytes.Clone(b)
	whole := []hw.Segment{{Addr: mine.Region().Addr, Len: size, Memory: mine}}
	e := x.ep.(*Endpoint)
	x.complete("put", func(c *hw.Completion) (hw.Status, error) { return e.PutZcopy(whole, 64, k, c) })
	x.complete("flush", func(c *hw.Completion) (hw.Status, error) { return e.Flush(hw.FlushRemote, c) })
	clear(b)
	x.complete("get", func(c *hw.Completion) (hw.Status, error) { return e.GetZcopy(whole, 64, k, c) })
	if !bytes.Equal(b, want) {
		t.Fatal("what was put and got back differs")
	}
}

// complete runs an operation to its end.
func (x *traffic) complete(what string, start func(*hw.Completion) (hw.Status, error)) {
	x.s.t.Helper()
	var c hw.Completion
	done := false
	c.Func = func(*hw.Completion) { done = true }
	c.Expect(1)
	end := time.Now().Add(60 * time.Second)
	for {
		status, err := start(&c)
		if err == nil {
			done = done || status == hw.Done
			break
		}
		if !errors.Is(err, hw.ErrNoResource) || time.Now().After(end) {
			x.s.t.Fatalf("%s: %v", what, err)
		}
		x.i.Progress(16)
	}
	for !done {
		x.i.Progress(16)
		if time.Now().After(end) {
			x.s.t.Fatalf("%s does not end", what)
		}
	}
	if err := c.Err(); err != nil {
		x.s.t.Fatalf("%s: %v", what, err)
	}
}

func TestPair(t *testing.T) {
	s := meet(t)
	x := newTraffic(s, Config{})
	x.exchange(1000, time.Minute)
	x.memory(1 << 20)
	s.barrier(x.i)
}

// TestPairLoss runs the same over wires that lose and delay packets.
func TestPairLoss(t *testing.T) {
	for _, c := range []struct {
		name, netem string
		count       uint64
	}{
		{"1 percent", "loss 1%", 500},
		{"10 percent", "loss 10%", 150},
		{"delay", "delay 2ms", 150}, // without jitter: soft-RoCE's reads do not end while packets overtake each other
	} {
		t.Run(c.name, func(t *testing.T) {
			s := meet(t)
			shell(t, "tc qdisc add dev $NETDEV root netem "+c.netem)
			t.Cleanup(func() { shell(t, "tc qdisc del dev $NETDEV root") })
			x := newTraffic(s, Config{PathTimeout: 30 * time.Second})
			x.exchange(c.count, 90*time.Second)
			x.memory(1 << 16)
			s.barrier(x.i)
			if n := x.i.Stats().Malformed; n != 0 {
				t.Errorf("%d malformed", n)
			}
		})
	}
}

// TestPairPortDown takes the wire away for longer than the queue pairs try, and
// gives it back: nothing is lost or doubled.
func TestPairPortDown(t *testing.T) {
	s := meet(t)
	x := newTraffic(s, Config{PathTimeout: 8 * time.Second, KeepAlive: 200 * time.Millisecond})
	x.exchange(200, time.Minute)
	s.barrier(x.i)
	var isUp atomic.Bool
	isUp.Store(!s.first)
	if s.first {
		cmd := exec.Command("sh", "-c", "sleep 0.2; ip link set $NETDEV down; sleep 3.5; ip link set $NETDEV up")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		go func() {
			_ = cmd.Wait() // what is wrong then the messages say
			isUp.Store(true)
		}()
	}
	for end := time.Now().Add(5 * time.Second); time.Now().Before(end) || !isUp.Load(); {
		if x.sent-min(x.sent, x.received) < 1000 {
			x.send()
		}
		if x.i.Progress(16) == 0 {
			x.i.CheckPeers()
		}
		if x.lost != nil {
			t.Fatal(x.lost)
		}
	}
	total := binary.BigEndian.Uint64(s.swap(binary.BigEndian.AppendUint64(nil, x.sent)))
	for end := time.Now().Add(30 * time.Second); x.received < total || !x.ep.(*Endpoint).msg.quiet(); {
		x.i.Progress(16)
		x.i.CheckPeers()
		if x.lost != nil || time.Now().After(end) {
			t.Fatalf("%d of %d received, %v, %s", x.received, total, x.lost, x.ep.(*Endpoint).msg.state())
		}
	}
	if x.received != total {
		t.Fatalf("%d messages instead of %d", x.received, total)
	}
	s.barrier(x.i)
	x.memory(1 << 16)
	s.barrier(x.i)
}

// TestPairZKilled has one machine end like a power cut in the middle of a
// transfer. It is the last test of a pair, as its name has it.
func TestPairZKilled(t *testing.T) {
	s := meet(t)
	const limit = 3 * time.Second
	x := newTraffic(s, Config{PathTimeout: limit, KeepAlive: 200 * time.Millisecond})
	x.exchange(100, time.Minute)
	m, err := x.i.Memory().Alloc(hw.Region{Len: 4 << 20, Access: hw.LocalWrite | hw.RemoteWrite | hw.RemoteRead})
	if err != nil {
		t.Fatal(err)
	}
	k, err := x.i.Memory().UnpackKey(s.swap(m.PackKey(nil)))
	if err != nil {
		t.Fatal(err)
	}
	e := x.ep.(*Endpoint)
	whole := []hw.Segment{{Addr: m.Region().Addr, Len: 4 << 20, Memory: m}}
	if !s.first {
		time.Sleep(300 * time.Millisecond)
		if err := os.WriteFile("/run/ctl/kill", nil, 0o644); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
	}
	var c hw.Completion
	done := false
	c.Func = func(*hw.Completion) { done = true }
	start := time.Now()
	for x.lost == nil {
		c.Expect(1)
		done = false
		if status, err := e.PutZcopy(whole, 0, k, &c); err == nil && status == hw.InProgress {
			for !done && time.Since(start) < time.Minute {
				x.i.Progress(16)
				x.i.CheckPeers()
			}
			if !done {
				t.Fatal("a put to a dead machine does not end")
			}
		}
		x.i.Progress(16)
		x.i.CheckPeers()
		if took := time.Since(start); took > 20*time.Second {
			t.Fatalf("nothing after %v", took)
		}
	}
	t.Logf("found after %v: %v", time.Since(start), x.lost)
	if !errors.Is(x.lost, hw.ErrPeerDead) || !strings.Contains(x.lost.Error(), os.Getenv("OTHER")) {
		t.Errorf("%v: not %v with the peer's name %s", x.lost, hw.ErrPeerDead, os.Getenv("OTHER"))
	}
	if err := e.AMShort(1, 0, nil, nil); !errors.Is(err, hw.ErrPeerDead) {
		t.Errorf("a message to a dead machine: %v", err)
	}
}

// state describes a queue.
func (q *queue) state() string {
	return fmt.Sprintf("run %d head %d posted %d tail %d signal %d broken %v gen %d", q.Run.Load(), q.Head.Load(),
		q.Posted, q.End(), q.LastSignal.Load(), q.Broken.Load(), q.Gen)
}
