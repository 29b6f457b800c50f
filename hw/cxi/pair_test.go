package cxi

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/weft-fabric/weft/hw"
)

// pairConfig is that of both processes: little room, so that messages are refused and sent again.
var pairConfig = Config{RxBuffers: 4, RxBytes: 1 << 14, RxEvents: 64, BounceBytes: 2048, Depth: 32, Posted: 64,
	PathTimeout: 3 * time.Second, KeepAlive: 100 * time.Millisecond}

// content is the payload of message n.
func content(n uint64) []byte {
	r := rand.NewPCG(n, 5)
	b := make([]byte, [...]int{0, 8, 30, 192, 193, 1000, 2048}[r.Uint64()%7])
	for k := range b {
		b[k] = byte(r.Uint64() >> 8)
	}
	return b
}

// exchange sends messages over an endpoint and takes them in.
type exchange struct {
	t              testing.TB
	i              *Iface
	ep             hw.Endpoint
	sent, received uint64
	gone           error
}

func newExchange(t testing.TB, i *Iface) *exchange {
	x := &exchange{t: t, i: i}
	i.SetHandler(3, func(_ hw.Source, header uint64, head, payload []byte) {
		if header != x.received || !bytes.Equal(payload, content(header)) || len(head) != int(header%8) {
			t.Errorf("message %d of %d bytes came as number %d, or damaged", header, len(payload), x.received)
		}
		x.received++
	})
	i.OnPeerEvent(func(e hw.PeerEvent) { x.gone = e.Err })
	return x
}

// send sends the next message if there is room.
func (x *exchange) send() bool {
	p, head := content(x.sent), make([]byte, x.sent%8)
	var err error
	if len(p)+len(head) <= x.i.Attr().MaxAMShort {
		err = x.ep.AMShort(3, x.sent, head, p)
	} else {
		err = x.ep.AMBcopy(3, x.sent, head, len(p), func(d []byte) { copy(d, p) }, 0)
	}
	if err == nil {
		x.sent++
	} else if !errors.Is(err, hw.ErrNoResource) && !errors.Is(err, hw.ErrPeerDead) {
		x.t.Fatalf("message %d: %v", x.sent, err)
	}
	return err == nil
}

// run sends up to sent messages until as many came, or the peer is gone.
func (x *exchange) run(sent, received uint64) {
	for end := time.Now().Add(time.Minute); x.gone == nil && (x.sent < sent || x.received < received); {
		for n := 0; n < 12 && x.sent < sent && x.send(); n++ {
		}
		if x.i.Progress(5) == 0 {
			x.i.CheckPeers()
			time.Sleep(20 * time.Microsecond)
		}
		if time.Now().After(end) {
			x.t.Fatalf("%d of %d sent, %d of %d received", x.sent, sent, x.received, received)
		}
	}
}

// peerProcess is the other process of a test.
type peerProcess struct {
	t   testing.TB
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func startPeer(t *testing.T, settings string) *peerProcess {
	t.Helper()
	p := &peerProcess{t: t, cmd: child(t, "TestPairPeer$", settings, "WEFT_TEST_CXI_PEER=1")}
	p.cmd.Stderr = os.Stderr
	var err error
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.out = bufio.NewReader(out)
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		if said, _ := io.ReadAll(p.out); t.Failed() {
			t.Logf("the peer: %s", said)
		}
		_ = p.cmd.Wait()
	})
	return p
}

// read returns what the peer says under a name.
func (p *peerProcess) read(name string) []byte {
	p.t.Helper()
	for {
		line, err := p.out.ReadString('\n')
		if err != nil {
			p.t.Fatalf("the peer: %v", err)
		}
		if _, text, ok := strings.Cut(line, name+" "); ok {
			b, err := hex.DecodeString(strings.TrimSpace(text))
			if err != nil {
				p.t.Fatalf("the peer: %q", line)
			}
			return b
		}
	}
}

// say tells the peer something.
func (p *peerProcess) say(b []byte) {
	if _, err := fmt.Fprintf(p.in, "%x\n", b); err != nil {
		p.t.Fatal(err)
	}
}

const pairMemory = 1 << 20

// TestPairPeer is the other process: it sends and receives for ever.
func TestPairPeer(t *testing.T) {
	if os.Getenv("WEFT_TEST_CXI_PEER") == "" {
		t.Skip("this is a part of another test")
	}
	i := open(t, pairConfig)
	x := newExchange(t, i)
	m, err := i.Memory().Alloc(hw.Region{Len: pairMemory, Access: hw.LocalWrite | hw.RemoteRead | hw.RemoteWrite |
		hw.RemoteAtomic})
	if err != nil {
		t.Fatal(err)
	}
	fmt.Printf("address %x\nkey %x\n", i.Address(), m.PackKey(nil))
	line, err := bufio.NewReader(os.Stdin).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	address, err := hex.DecodeString(strings.TrimSpace(line))
	if err != nil {
		t.Fatal(err)
	}
	if x.ep, err = i.Connect(address); err != nil {
		t.Fatal(err)
	}
	x.run(1<<60, 1<<60)
	fmt.Printf("gone %016x\n", x.received)
	_ = errors.Join(m.Close(), i.Close())
}

// pair starts the other process and connects to it.
func pair(t *testing.T, settings string) (*peerProcess, *exchange, hw.RemoteKey) {
	t.Helper()
	p := startPeer(t, settings)
	x := newExchange(t, open(t, pairConfig))
	address := p.read("address")
	key, err := x.i.Memory().UnpackKey(p.read("key"))
	if err != nil {
		t.Fatal(err)
	}
	p.say(x.i.Address())
	if x.ep, err = x.i.Connect(address); err != nil {
		t.Fatal(err)
	}
	return p, x, key
}

// complete runs an operation to its end.
func (x *exchange) complete(start func(*hw.Completion) (hw.Status, error)) error {
	var c hw.Completion
	done := false
	c.Func = func(*hw.Completion) { done = true }
	c.Expect(1)
	for end := time.Now().Add(time.Minute); ; {
		status, err := start(&c)
		if err == nil && status == hw.InProgress {
			break
		}
		if !errors.Is(err, hw.ErrNoResource) {
			return err
		}
		if x.i.Progress(16); time.Now().After(end) {
			x.t.Fatal("an operation finds no room")
		}
	}
	for end := time.Now().Add(time.Minute); !done; {
		if x.i.Progress(16) == 0 {
			x.i.CheckPeers()
			time.Sleep(20 * time.Microsecond)
		}
		if time.Now().After(end) {
			x.t.Fatal("an operation does not end")
		}
	}
	return c.Err()
}

// TestPair exchanges messages with another process, and reaches its memory.
func TestPair(t *testing.T) {
	parent(t)
	p, x, key := pair(t, "")
	x.run(1000, 1000)
	e := x.ep.(*Endpoint)
	mine, err := x.i.Memory().Alloc(hw.Region{Len: pairMemory, Access: hw.LocalWrite})
	if err != nil {
		t.Fatal(err)
	}
	b := unsafe.Slice((*byte)(mine.Region().Addr), pairMemory)
	for n := range b {
		b[n] = byte(n * 31 >> 3)
	}
	want := bytes.Clone(b)
	whole := []hw.Segment{{Addr: mine.Region().Addr, Len: pairMemory - 64, Memory: mine}}
	put := func(c *hw.Completion) (hw.Status, error) { return e.PutZcopy(whole, 64, key, c) }
	flush := func(c *hw.Completion) (hw.Status, error) { return e.Flush(hw.FlushRemote, c) }
	get := func(c *hw.Completion) (hw.Status, error) { return e.GetZcopy(whole, 64, key, c) }
	if err := errors.Join(x.complete(put), x.complete(flush)); err != nil {
		t.Fatal(err)
	}
	clear(b[:pairMemory-64])
	if err := x.complete(get); err != nil || !bytes.Equal(b, want) {
		t.Fatalf("what was put and got back differs, %v", err)
	}
	if err := errors.Join(mine.Close(), x.i.Close()); err != nil {
		t.Fatal(err)
	}
	p.read("gone")
}

// kills is how often TestPairKilled kills. WEFT_TEST_CXI_KILLS says another number.
func kills() int {
	n := 12
	_, _ = fmt.Sscan(os.Getenv("WEFT_TEST_CXI_KILLS"), &n)
	return n
}

// TestPairKilled kills the other process in the middle of everything: all that waits for it ends, and the interface
// works on.
func TestPairKilled(t *testing.T) {
	parent(t)
	for n := range kills() {
		p, x, key := pair(t, "")
		e := x.ep.(*Endpoint)
		mine, err := x.i.Memory().Alloc(hw.Region{Len: pairMemory, Access: hw.LocalWrite})
		if err != nil {
			t.Fatal(err)
		}
		x.run(uint64(n*37), 0)
		posted, ended := 0, 0
		for k := range 8 {
			each := &hw.Completion{Func: func(*hw.Completion) { ended++ }}
			each.Expect(1)
			if _, err := e.PutZcopy([]hw.Segment{{Addr: mine.Region().Addr, Len: pairMemory >> k, Memory: mine}}, 0,
				key, each); err == nil {
				posted++
			}
			x.send()
		}
		if err := p.cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		for end := time.Now().Add(time.Minute); x.gone == nil || ended < posted; time.Sleep(20 * time.Microsecond) {
			x.send()
			x.i.Progress(16)
			x.i.CheckPeers()
			if time.Now().After(end) {
				t.Fatalf("kill %d: event %v, %d of %d operations have ended", n, x.gone, ended, posted)
			}
		}
		if !errors.Is(x.gone, hw.ErrPeerDead) || !errors.Is(x.ep.AMShort(3, 0, nil, nil), hw.ErrPeerDead) {
			t.Fatalf("kill %d: %v", n, x.gone)
		}
		self, err := x.i.Connect(x.i.Address())
		if err != nil || self.AMShort(3, x.received, make([]byte, x.received%8), content(x.received)) != nil &&
			len(content(x.received)) <= 180 {
			t.Fatalf("kill %d: the interface does not work on: %v", n, err)
		}
		if err := errors.Join(mine.Close(), x.i.Close()); err != nil {
			t.Fatalf("kill %d: %v", n, err)
		}
	}
}

// TestPairLossy loses packets on both sides: messages come once and in order all the same.
func TestPairLossy(t *testing.T) {
	const settings = "lose=40 timeout=20"
	if os.Getenv("WEFT_TEST_CXI_LOSSY") == "" {
		parent(t)
		out, err := child(t, "TestPairLossy$", settings, "WEFT_TEST_CXI_LOSSY=1").CombinedOutput()
		if err != nil || !strings.Contains(string(out), "--- PASS: TestPairLossy") {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}
	p, x, _ := pair(t, settings)
	x.run(200, 200)
	if err := x.i.Close(); err != nil {
		t.Fatal(err)
	}
	p.read("gone")
}
