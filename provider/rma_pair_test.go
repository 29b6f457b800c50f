package provider

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/config"
	"github.com/weft-fabric/weft/internal/testseed"
)

// The test of two machines runs in both at once. They meet over TCP, and reach
// each other over nothing but their RDMA devices.

// pairSide is this machine's half.
type pairSide struct {
	*side
	dir  string // of the page of counters
	in   *bufio.Reader
	conn net.Conn
	peer fi.Addr
}

// meetPair joins the two machines, or skips the test where there is one.
func meetPair(t *testing.T) *pairSide { return meetPairWith(t, func(*config.Config) {}) }

// netdev is the network interface that the machine's device stands on.
func netdev() string { return os.Getenv("NETDEV") }

// meetPairWith is meetPair with a configuration.
func meetPairWith(t *testing.T, change func(*config.Config)) *pairSide {
	t.Helper()
	if os.Getenv("WEFT_TEST_PAIR") == "" {
		t.Skip("this test is for two machines: make test-rdma runs it in two virtual ones")
	}
	p := &pairSide{dir: t.TempDir()}
	const port = 19177
	end := time.Now().Add(time.Minute)
	var err error
	if p.target() {
		var l net.Listener
		if l, err = net.Listen("tcp", fmt.Sprintf("%s:%d", os.Getenv("OWN"), port)); err == nil {
			_ = l.(*net.TCPListener).SetDeadline(end)
			p.conn, err = l.Accept()
			_ = l.Close()
		}
	} else {
		for p.conn == nil && time.Now().Before(end) {
			if p.conn, err = net.DialTimeout("tcp", fmt.Sprintf("%s:%d", os.Getenv("OTHER"), port),
				time.Second); err != nil {
				time.Sleep(50 * time.Millisecond)
			}
		}
	}
	if err != nil {
		t.Fatalf("the other machine: %v", err)
	}
	t.Cleanup(func() { _ = p.conn.Close() })
	p.in = bufio.NewReader(p.conn)
	p.open(t, change)
	return p
}

func (p *pairSide) target() bool { return os.Getenv("NODE") == "0" }

// open opens the endpoint, for which registered memory keeps its pages.
func (p *pairSide) open(t *testing.T, change func(*config.Config)) {
	t.Helper()
	hints := rmaHints()
	hints.Domain = &fi.DomainAttr{MRMode: fi.MRAllocated}
	b := newBenchAt(t, os.Getenv("OWN"), map[string]string{"FI_WEFT_VERBS": "yes", "FI_WEFT_UDP": "no"},
		func(c *config.Config) { c.SHMDir = p.dir; change(c) }, hints)
	p.side = b.side(t)
	addrs := make([]fi.Addr, 1)
	name, err := p.ep.Name()
	if err != nil {
		t.Fatal(err)
	}
	if n, err := p.av.Insert(p.swap(name), 1, &Insertion{Addrs: addrs}); n != 1 {
		t.Fatalf("insert: %d, %v", n, err)
	}
	p.peer = addrs[0]
}

// swap sends bytes and returns the other machine's. Nobody makes progress here.
func (p *pairSide) swap(b []byte) []byte {
	_ = p.conn.SetDeadline(time.Now().Add(2 * time.Minute))
	if _, err := fmt.Fprintf(p.conn, "%x\n", b); err != nil {
		p.t.Fatal(err)
	}
	line, err := p.in.ReadString('\n')
	if err != nil {
		p.t.Fatalf("the other machine: %v", err)
	}
	got, err := hex.DecodeString(strings.TrimSpace(line))
	if err != nil {
		p.t.Fatal(err)
	}
	return got
}

// serve makes progress until the other machine is here, too.
func (p *pairSide) serve() {
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = p.swap(nil)
	}()
	for {
		select {
		case <-done:
			return
		default:
			p.ep.Progress()
			time.Sleep(50 * time.Microsecond)
		}
	}
}

// do posts an operation and waits for its end.
func (p *pairSide) do(t *testing.T, a RMAArgs) fi.Errno {
	t.Helper()
	a.Dest = p.peer
	post(t, func() error { return p.ep.RMA(&a) }, p.side)
	e, bad, ok := settle(t, p.side)
	if !ok {
		return bad.Err
	}
	if e.Context != a.Context {
		t.Fatalf("completion of %d instead of %d", e.Context, a.Context)
	}
	return fi.Success
}

// byDevice is how many operations the device did.
func (p *pairSide) byDevice(t *testing.T) uint64 {
	return of(t, page(t, p.dir), p.side)("rma_device")
}

// warm writes under a key until the device does it.
func (p *pairSide) warm(t *testing.T, key uint64) {
	t.Helper()
	before := p.byDevice(t)
	for end := time.Now().Add(30 * time.Second); p.byDevice(t) == before; {
		a := RMAArgs{IOV: iovOf([]byte{1, 2, 3}), Remote: []fi.RMAIOVec{{Len: 3, Key: key}}}
		if err := p.do(t, a); err != fi.Success {
			t.Fatalf("key %d: %v", key, err)
		}
		if time.Now().After(end) {
			t.Fatalf("key %d: the device does nothing", key)
		}
	}
}

const pairBytes = 3 << 20

// TestPairRMA has node 1 work on the memory of node 0.
func TestPairRMA(t *testing.T) {
	p := meetPair(t)
	if p.target() {
		p.beTarget(t)
		return
	}
	p.serve() // the regions are there
	p.warm(t, 7)
	p.serve()
	p.againstModel(t)
	p.swap(nil)
	p.refused(t)
	p.serve()
	p.swap(nil) // region 7 is another
	p.changed(t)
	p.serve()
}

// beTarget is node 0's part. While the device works on its memory it makes no
// progress.
func (p *pairSide) beTarget(t *testing.T) {
	memory := make([]byte, pairBytes)
	m := p.region(memory, 7, fi.RemoteRead|fi.RemoteWrite)
	p.region(make([]byte, 10000), 8, fi.RemoteRead)
	counter := p.counter()
	counted, notes := make([]byte, 70000), make([]byte, 70000)
	if err := p.region(counted, 9, fi.RemoteWrite).BindCounter(counter, fi.RemoteWrite); err != nil {
		t.Fatal(err)
	}
	p.region(notes, 10, fi.RemoteWrite)
	p.serve()
	p.serve() // while node 1 learns the key
	p.housekeep()
	served := of(t, page(t, p.dir), p.side)
	writes, reads := served("served_writes"), served("served_reads")
	p.swap(nil) // while node 1 works
	served = of(t, page(t, p.dir), p.side)
	if w, r := served("served_writes"), served("served_reads"); w != writes || r != reads {
		t.Errorf("%d writes and %d reads were messages", w-writes, r-reads)
	}
	p.serve() // while node 1 is refused
	if counter.Read() != 3 || counted[69999] != 'c' {
		t.Errorf("%d writes were counted, the last byte is %d", counter.Read(), counted[69999])
	}
	if got, _, ok := settle(t, p.side); !ok || got.Flags&fi.RemoteCQData == 0 || got.Data != 99 || notes[69999] != 'n' {
		t.Errorf("%+v with data %d", got, notes[69999])
	}
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	before := bytes.Clone(memory)
	other := make([]byte, pairBytes)
	p.region(other, 7, fi.RemoteRead|fi.RemoteWrite)
	p.swap(nil)
	p.serve() // while node 1 writes
	if !bytes.Equal(memory, before) {
		t.Error("a region that is closed was written")
	}
	if !bytes.Equal(other, bytes.Repeat([]byte{0x5a}, pairBytes)) {
		t.Error("the region that has the key now was not written")
	}
}

// againstModel runs random reads and writes of all sizes and cuts, and compares
// what is read with a model.
func (p *pairSide) againstModel(t *testing.T) {
	r := rand.New(rand.NewPCG(testseed.New(t), 0))
	local, model := make([]byte, pairBytes), make([]byte, pairBytes)
	whole := RMAArgs{IOV: iovOf(local), Remote: []fi.RMAIOVec{{Len: pairBytes, Key: 7}}}
	for i := range local {
		local[i] = byte(r.Uint32())
	}
	copy(model, local)
	if err := p.do(t, whole); err != fi.Success {
		t.Fatal(err)
	}
	for n := range 60 {
		length := r.IntN([...]int{16, 200, 9000, 100000, 1 << 20}[r.IntN(5)]) + 1
		at, from := r.IntN(pairBytes-length+1), r.IntN(pairBytes-length+1)
		a := RMAArgs{
			IOV: randomParts(r, local[from:from+length]), Remote: remotePieces(r, uint64(at), uint64(length), 7),
			Context: uint64(n), Read: r.IntN(2) == 0,
		}
		a.Flags |= [...]uint64{0, fi.DeliveryComplete, fi.Fence, fi.InjectComplete}[r.IntN(4)]
		if err := p.do(t, a); err != fi.Success {
			t.Fatalf("operation %d, %d bytes: %v", n, length, err)
		}
		if !a.Read {
			copy(model[at:], local[from:from+length])
		} else if !bytes.Equal(local[from:from+length], model[at:at+length]) {
			t.Fatalf("operation %d: read of %d bytes at %d is wrong", n, length, at)
		}
	}
	whole.Read = true
	if err := p.do(t, whole); err != fi.Success || !bytes.Equal(local, model) {
		t.Fatalf("the target's memory differs from the model: %v", err)
	}
}

// refused: what the target does not allow fails with its reason, what it counts
// or is to be told of goes as messages.
func (p *pairSide) refused(t *testing.T) {
	b := bytes.Repeat([]byte{'c'}, 70000)
	for _, c := range []struct {
		what         string
		key, at, len uint64
		read         bool
		want         fi.Errno
	}{
		{"beyond the end", 7, pairBytes - 1, 2, false, fi.EACCES},
		{"no right to write", 8, 0, 10000, false, fi.EACCES},
		{"a right to read", 8, 0, 10000, true, fi.Success},
		{"a right to read, again", 8, 0, 10000, true, fi.Success},
		{"no right to write, again", 8, 0, 10000, false, fi.EACCES},
		{"no region", 77, 0, 10, true, fi.ENOKEY},
		{"a good one after them", 7, 0, 70000, false, fi.Success},
	} {
		a := RMAArgs{IOV: iovOf(b[:c.len]), Remote: []fi.RMAIOVec{{Addr: c.at, Len: c.len, Key: c.key}}, Read: c.read}
		if got := p.do(t, a); got != c.want {
			t.Errorf("%s: %v, want %v", c.what, got, c.want)
		}
	}
	for i := range b {
		b[i] = 'c'
	}
	for range 3 {
		if err := p.do(t, RMAArgs{IOV: iovOf(b), Remote: []fi.RMAIOVec{{Len: 70000, Key: 9}}}); err != fi.Success {
			t.Errorf("a region with a counter: %v", err)
		}
	}
	for i := range b {
		b[i] = 'n'
	}
	if err := p.do(t, RMAArgs{IOV: iovOf(b), Remote: []fi.RMAIOVec{{Len: 70000, Key: 10}}, HasData: true,
		Data: 99}); err != fi.Success {
		t.Errorf("a write with data: %v", err)
	}
}

// changed writes under a key whose region is another now.
func (p *pairSide) changed(t *testing.T) {
	a := RMAArgs{IOV: iovOf(bytes.Repeat([]byte{0x5a}, pairBytes)), Remote: []fi.RMAIOVec{{Len: pairBytes, Key: 7}}}
	if err := p.do(t, a); err != fi.Success {
		t.Errorf("the region that has the key now: %v", err)
	}
	p.warm(t, 7)
	if err := p.do(t, a); err != fi.Success {
		t.Errorf("the same by the device: %v", err)
	}
}
