package loopback

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/hw"
)

// The tests with several processes start this test binary again. The child
// finds its role in the environment, opens an interface, prints "ready" and
// plays; it ends when it is killed or its standard input is closed.

const childVariable = "WEFT_LOOPBACK_TEST_CHILD"

// acrossVariable has children reach other network namespaces, if it is set.
const acrossVariable = "WEFT_LOOPBACK_TEST_ACROSS"

var roles = map[string]func(i *Iface, peer []byte){
	"send":   sendRole,
	"echo":   echoRole,
	"middle": middleRole,
	"stream": streamRole,
	"hold":   holdRole,
	"memory": memoryRole,
	"hidden": hiddenRole,
	"get":    getRole,
	"fork":   forkRole,
	"notice": noticeRole,
}

func TestMain(m *testing.M) {
	if text, ok := os.LookupEnv(childVariable); ok {
		runChild(strings.Fields(text))
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func runChild(args []string) {
	role, dir, peer := roles[args[0]], args[1], []byte(nil)
	addr, err := hex.DecodeString(args[2])
	if err == nil && len(args) > 3 {
		peer, err = hex.DecodeString(args[3])
	}
	if err != nil {
		fatal(err)
	}
	go func() { // the parent has ended
		os.Stdin.Read(make([]byte, 1))
		os.Exit(0)
	}()
	i, err := Open(addr, Config{Dir: dir, RingLog2: 6, BounceCount: 8, Across: os.Getenv(acrossVariable) != ""})
	if err != nil {
		fatal(err)
	}
	role(i, peer)
}

func fatal(v ...any) {
	fmt.Println(v...)
	os.Exit(1)
}

// child is a started process.
type child struct {
	cmd  *exec.Cmd
	addr []byte
	out  *bufio.Reader
	once sync.Once
}

// childFlags are the namespaces in which children are started (clone(2)).
var childFlags uintptr

// inNamespaces runs a test with children in this pid namespace, and with each in one of its own.
func inNamespaces(t *testing.T, test func(*testing.T)) {
	t.Run("one pid namespace", test)
	t.Run("several", func(t *testing.T) {
		if os.Getuid() != 0 {
			t.Skip("needs root")
		}
		childFlags = unix.CLONE_NEWPID
		defer func() { childFlags = 0 }()
		test(t)
	})
}

// start starts a child with an address of its own and the given role.
// Credentials are the test's if cred is nil.
func start(t testing.TB, role, dir string, peer []byte, cred *syscall.Credential) *child {
	t.Helper()
	c := &child{cmd: exec.Command("/proc/self/exe"), addr: testAddress()}
	text := fmt.Sprintf("%s=%s %s %x", childVariable, role, dir, c.addr)
	if peer != nil {
		text += fmt.Sprintf(" %x", peer)
	}
	c.cmd.Env = append(os.Environ(), text)
	c.cmd.Stderr = os.Stderr
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Credential: cred, Cloneflags: childFlags}
	if _, err := c.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.kill)
	c.out = bufio.NewReader(out)
	return c
}

// line reads a line that the child prints.
func (c *child) line(t testing.TB) string {
	t.Helper()
	s, err := c.out.ReadString('\n')
	if err != nil {
		t.Fatalf("child: %q, %v", s, err)
	}
	return strings.TrimSpace(s)
}

func (c *child) kill() {
	c.once.Do(func() {
		c.cmd.Process.Kill()
		c.cmd.Wait()
	})
}

// sum is what the payload of message n consists of.
func sum(n uint64) byte { return byte(n*31 + n>>8) }

const maxTestPayload = 3000

// sendsFirst reports whether a sender says that it is ready behind its first message: about
// one in two does. The others may be killed before they have sent anything.
func sendsFirst(addr []byte) bool { return addr[3]&1 == 0 }

// sendRole sends numbered messages of changing sizes for ever.
func sendRole(i *Iface, peer []byte) {
	ep, err := i.Connect(peer)
	if err != nil {
		fatal(err)
	}
	ready := sync.OnceFunc(func() { fmt.Println("ready") })
	if !sendsFirst(i.Address()) {
		ready()
	}
	p := make([]byte, maxTestPayload)
	var n uint64
	pack := func(d []byte) { copy(d, p) }
	for {
		size := int(n * 7 % 100)
		if n%5 == 0 {
			size = int(n * 13 % maxTestPayload)
		}
		for k := range p[:size] {
			p[k] = sum(n)
		}
		if n%5 == 0 {
			err = ep.AMBcopy(1, n, p[:n%8], size, pack, 0)
		} else {
			err = ep.AMShort(1, n, nil, p[:size])
		}
		switch {
		case err == nil:
			n++
			ready()
		case errors.Is(err, hw.ErrNoResource):
			runtime.Gosched()
		default:
			fatal(err)
		}
	}
}

// echoRole sends every message back to the peer.
func echoRole(i *Iface, peer []byte) {
	ep, err := i.Connect(peer)
	if err != nil {
		fatal(err)
	}
	i.SetHandler(1, func(_ hw.Source, header uint64, _, p []byte) {
		for ep.AMShort(1, header, nil, p) != nil {
		}
	})
	fmt.Println("ready")
	pin(1)
	for {
		i.Progress(64)
	}
}

// streamRole sends 8 bytes for ever.
func streamRole(i *Iface, peer []byte) {
	ep, err := i.Connect(peer)
	if err != nil {
		fatal(err)
	}
	fmt.Println("ready")
	pin(1)
	var p [8]byte
	for {
		if err := ep.AMShort(1, 0, nil, p[:]); err != nil && !errors.Is(err, hw.ErrNoResource) {
			fatal(err)
		}
	}
}

// holdRole receives now and then.
func holdRole(i *Iface, _ []byte) {
	i.SetHandler(1, func(hw.Source, uint64, []byte, []byte) {})
	fmt.Println("ready")
	for {
		i.Progress(1 + rand.IntN(8))
		if rand.IntN(50) == 0 {
			time.Sleep(time.Millisecond)
		}
	}
}

// memoryRole offers a buffer to Get and prints its address.
func memoryRole(*Iface, []byte) {
	b, err := unix.Mmap(-1, 0, 4<<20, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		fatal(err)
	}
	for i := range b {
		b[i] = byte(i >> 12 * 7)
	}
	if err := unix.Mprotect(b[3<<20:], unix.PROT_NONE); err != nil {
		fatal(err)
	}
	fmt.Println("ready", uintptr(unsafe.Pointer(&b[0])))
	select {}
}

// hiddenRole is memoryRole in a process that others must not read.
func hiddenRole(i *Iface, peer []byte) {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		fatal(err)
	}
	memoryRole(i, peer)
}

// getRole tries Get on the peer, and a message, and prints what happens.
func getRole(i *Iface, peer []byte) {
	ep, err := i.Connect(peer)
	if err != nil {
		fatal(err)
	}
	b := make([]byte, 8)
	local := []hw.Segment{{Addr: unsafe.Pointer(&b[0]), Len: 8}}
	for range 2 {
		_, err := ep.(hw.PeerMemory).ReadPeer(local, []hw.RemoteSegment{{Addr: 1 << 20, Len: 8}})
		fmt.Println(errors.Is(err, hw.ErrPermission), ep.(*Endpoint).noCMA.Load(), ep.AMShort(1, 0, nil, nil), err)
	}
}

// messages checks what sendRole sends, by source.
type messages struct {
	t    testing.TB
	next map[hw.Source]uint64
	gone int
}

func (m *messages) install(i *Iface) {
	m.next = map[hw.Source]uint64{}
	i.SetHandler(1, func(src hw.Source, n uint64, head, p []byte) {
		if n != m.next[src] {
			m.t.Fatalf("source %d: message %d came as number %d", src, n, m.next[src])
		}
		m.next[src]++
		if len(bytes.Trim(p, string([]byte{sum(n)}))) != 0 || n%5 == 0 && (len(p) != int(n*13%maxTestPayload) ||
			len(head) != int(n%8)) {
			m.t.Fatalf("source %d: message %d of %d bytes is damaged", src, n, len(p))
		}
	})
	i.OnPeerEvent(func(e hw.PeerEvent) {
		if e.HasSource {
			delete(m.next, e.Source)
			m.gone++
		}
	})
}
