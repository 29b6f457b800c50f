package verbs

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/hw"
)

// faults are run in processes of their own, as a user without privileges or in
// a control group of their own. Each returns what went wrong.
var faults = map[string]func() error{
	"no permission": func() error {
		_, err := OpenDomain(DomainConfig{GIDIndex: GIDAuto})
		return expect(err, hw.ErrPermission, "/dev/infiniband")
	},
	"locked memory": func() error {
		if err := unix.Setrlimit(unix.RLIMIT_MEMLOCK, &unix.Rlimit{Cur: 256 << 10, Max: 256 << 10}); err != nil {
			return err
		}
		d, err := OpenDomain(DomainConfig{GIDIndex: GIDAuto})
		if err != nil {
			return fmt.Errorf("open: %w", err)
		}
		_, err = d.Open(Config{})
		if err := expect(err, hw.ErrNoResource, "locked memory (262144 bytes)"); err != nil {
			return err
		}
		i, err := d.Open(Config{RxBuffers: 16, BounceCount: 4, BounceBytes: 256, Depth: 16})
		if err != nil {
			return fmt.Errorf("a small interface has room: %w", err)
		}
		return errors.Join(i.Close(), d.Close())
	},
	"queue pairs": func() error {
		d, err := OpenDomain(DomainConfig{GIDIndex: GIDAuto})
		if err != nil {
			return fmt.Errorf("open: %w", err)
		}
		small := Config{RxBuffers: 16, BounceCount: 4, BounceBytes: 256, Depth: 16, ConnectWait: 2 * time.Second}
		hub, err := d.Open(small)
		if err != nil {
			return err
		}
		ep, err := hub.Connect(hub.Address())
		if err != nil {
			return fmt.Errorf("the first connection: %w", err)
		}
		for range 100 {
			i, err := d.Open(small)
			if err == nil {
				if _, err = i.Connect(hub.Address()); err == nil {
					_, err = hub.Connect(i.Address())
				}
			}
			if err != nil {
				return errors.Join(expect(err, hw.ErrNoResource, "no room"), works(hub, ep))
			}
		}
		return errors.New("room for 100 interfaces with a limit of 60 objects")
	},
}

// works reports whether what was connected before room was short still works.
func works(i *Iface, ep hw.Endpoint) error {
	came := 0
	i.SetHandler(1, func(hw.Source, uint64, []byte, []byte) { came++ })
	if err := ep.AMShort(1, 0, nil, nil); err != nil {
		return err
	}
	for end := time.Now().Add(time.Minute); came == 0; i.Progress(1) {
		if time.Now().After(end) {
			return errors.New("no message comes any more")
		}
	}
	return nil
}

// expect wants an error that is want and says what.
func expect(err, want error, what string) error {
	if !errors.Is(err, want) || !strings.Contains(err.Error(), what) {
		return fmt.Errorf("%w: not %w with %q", err, want, what)
	}
	fmt.Println(err)
	return nil
}

func TestMain(m *testing.M) {
	if f := faults[os.Getenv("WEFT_TEST_FAULT")]; f != nil {
		if err := f(); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// faultChild runs a fault in a process of its own.
func faultChild(t *testing.T, fault string, attr *syscall.SysProcAttr) {
	t.Helper()
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), "WEFT_TEST_FAULT="+fault)
	cmd.SysProcAttr = attr
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%v: %s", err, out)
		return
	}
	t.Logf("%s", strings.TrimSpace(string(out)))
}

// machine skips a test that changes its machine where that is not a throw-away one.
func machine(t *testing.T) {
	t.Helper()
	if os.Getenv("WEFT_TEST_RDMA") == "" {
		t.Skip("this test changes the machine it runs on: make test-rdma runs it in a virtual one")
	}
	domain(t)
}

var nobody = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}

func TestNoPermission(t *testing.T) {
	machine(t)
	files, _ := filepath.Glob("/dev/infiniband/uverbs*")
	for _, f := range files {
		if err := os.Chmod(f, 0o600); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.Chmod(f, 0o666) })
	}
	faultChild(t, "no permission", nobody)
}

func TestLockedMemory(t *testing.T) {
	machine(t)
	faultChild(t, "locked memory", nobody)
}

// TestQPLimit limits the objects of a process by the kernel's control group
// for RDMA.
func TestQPLimit(t *testing.T) {
	machine(t)
	const root = "/tmp/cgroup"
	if err := errors.Join(os.MkdirAll(root, 0o755), unix.Mount("cgroup2", root, "cgroup2", 0, "")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(root, 0) })
	group := filepath.Join(root, "few")
	for _, step := range []func() error{
		func() error {
			return os.WriteFile(filepath.Join(root, "cgroup.subtree_control"), []byte("+rdma"), 0o644)
		},
		func() error { return os.Mkdir(group, 0o755) },
		func() error {
			return os.WriteFile(filepath.Join(group, "rdma.max"), []byte("rxe0 hca_handle=10 hca_object=60"), 0o644)
		},
	} {
		if err := step(); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { _ = os.Remove(group) })
	fd, err := unix.Open(group, unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	faultChild(t, "queue pairs", &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: fd})
}

// TestNoDevice takes the device away.
func TestNoDevice(t *testing.T) {
	machine(t)
	_, err := OpenDomain(DomainConfig{Device: "mlx5_99", GIDIndex: GIDAuto})
	if !errors.Is(err, hw.ErrUnreachable) || !strings.Contains(err.Error(), "mlx5_99") {
		t.Errorf("a device that does not exist: %v", err)
	}
	_, err = OpenDomain(DomainConfig{GIDIndex: 77})
	if !errors.Is(err, hw.ErrUnreachable) {
		t.Errorf("a GID that is not there: %v", err)
	}
}

// TestSilentPeer connects to an interface that does not answer.
func TestSilentPeer(t *testing.T) {
	a := open(t, Config{ConnectTimeout: 500 * time.Millisecond, ConnectWait: time.Nanosecond})
	defer func() { _ = a.Close() }()
	var events []hw.PeerEvent
	a.OnPeerEvent(func(e hw.PeerEvent) { events = append(events, e) })
	silent := a.addr
	silent.qp, silent.nonce = a.addr.qp^0x3ff00, 1
	if _, err := a.Connect(silent.appendTo(nil)); !errors.Is(err, hw.ErrUnreachable) {
		t.Errorf("connect: %v", err)
	}
	for end := time.Now().Add(time.Minute); len(events) == 0; {
		if a.Progress(1); time.Now().After(end) {
			t.Fatal("no event")
		}
	}
	if err := events[0].Err; !errors.Is(err, hw.ErrPeerDead) || !errors.Is(err, hw.ErrUnreachable) {
		t.Errorf("event %v", err)
	}
}

// TestStrangers sends packets and messages that no peer of ours would send.
func TestStrangers(t *testing.T) {
	a, b := open(t, Config{}), open(t, Config{})
	defer func() { _ = errors.Join(a.Close(), b.Close()) }()
	if _, err := a.Connect(b.Address()); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	a.svc.do(func() {
		defer close(done)
		wrong := b.addr
		wrong.nonce++
		a.svc.send(&wrong, &packet{kind: packetHello, epoch: 1, qp: 5})
		a.svc.send(&b.addr, &packet{kind: 77})
		a.svc.send(&b.addr, &packet{kind: packetHello, epoch: 1})
		a.svc.send(&b.addr, &packet{kind: packetPassive, epoch: 9, qp: 5})
		a.svc.send(&b.addr, &packet{kind: packetHello, epoch: 1, got: 1, qp: 5, flags: flagWant})
	})
	<-done
	for end := time.Now().Add(time.Minute); b.Stats().Malformed < 3; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d malformed", b.Stats().Malformed)
		}
	}
	got := 0
	b.SetHandler(1, func(hw.Source, uint64, []byte, []byte) { got++ })
	e := (*a.peers.Load())[0]
	e.c.Index.Store(1 << 19) // messages that name another
	if err := e.AMShort(1, 0, nil, nil); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(time.Minute); b.Stats().Malformed < 4; b.Progress(1) {
		if time.Now().After(end) {
			t.Fatalf("%d malformed", b.Stats().Malformed)
		}
	}
	if got != 0 {
		t.Error("a message for another is delivered")
	}
}

// TestLateHello sends a peer a hello again once messages flow: what it says of the window is older than what the queue
// pair has brought.
func TestLateHello(t *testing.T) {
	a, b := open(t, Config{}), open(t, Config{})
	defer func() { _ = errors.Join(a.Close(), b.Close()) }()
	e, err := a.Connect(b.Address())
	if err != nil {
		t.Fatal(err)
	}
	got := false
	b.SetHandler(1, func(hw.Source, uint64, []byte, []byte) { got = true })
	end := time.Now().Add(time.Minute)
	for sent := false; !got; b.Progress(1) {
		sent = sent || e.AMShort(1, 0, nil, nil) == nil
		if a.Progress(1); time.Now().After(end) {
			t.Fatal("no message")
		}
	}
	peer := (*a.peers.Load())[0]
	a.svc.do(func() {
		h := &peer.hello
		a.svc.sendTo(peer, &packet{kind: packetHello, flags: flagClosed, epoch: h.epoch, got: h.applied, qp: h.qp.Num,
			psn: h.psn, index: peer.index, seq: h.seq})
		a.svc.send(&b.addr, &packet{kind: 77})
	})
	for before := b.Stats().Malformed; b.Stats().Malformed == before; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the packet behind the hello has not come")
		}
	}
	if !(*b.peers.Load())[0].EagerOpen() {
		t.Error("a late hello closes the eager window")
	}
}

// TestNames has interfaces known by names.
func TestNames(t *testing.T) {
	book := map[string][]byte{}
	resolve := func(name []byte) ([]byte, error) {
		if a := book[string(name)]; a != nil {
			return a, nil
		}
		return nil, hw.ErrUnreachable
	}
	a := open(t, Config{Name: []byte("alpha"), Resolve: resolve})
	b := open(t, Config{Name: []byte("beta"), Resolve: resolve})
	defer func() { _ = errors.Join(a.Close(), b.Close()) }()
	if _, err := a.Connect([]byte("beta")); !errors.Is(err, hw.ErrUnreachable) {
		t.Errorf("connect to a name that nothing knows: %v", err)
	}
	book["alpha"], book["beta"] = a.DeviceAddress(), b.DeviceAddress()
	ep, err := a.Connect([]byte("beta"))
	if err != nil || string(ep.Address()) != "beta" {
		t.Fatalf("connect: %v", err)
	}
	var from []byte
	b.SetHandler(1, func(src hw.Source, _ uint64, _, _ []byte) { from = b.SourceAddress(src) })
	if err := ep.AMShort(1, 0, nil, nil); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(time.Minute); from == nil; b.Progress(1) {
		if time.Now().After(end) {
			t.Fatal("no message")
		}
	}
	if string(from) != "alpha" {
		t.Errorf("the source is %q", from)
	}
}

// TestAwaitPeer: no endpoint before the peer has answered, none at all to one
// that does not; and a peer is known by its own name, whichever it was found by.
func TestAwaitPeer(t *testing.T) {
	book := map[string][]byte{}
	forgotten := map[string]bool{}
	resolve := func(name []byte) ([]byte, error) {
		if a := book[string(name)]; a != nil {
			return a, nil
		}
		return nil, hw.ErrNoPath
	}
	c := Config{AwaitPeer: true, Resolve: resolve, ConnectWait: -1, ConnectTimeout: 200 * time.Millisecond,
		Name: []byte("alpha")}
	c.Forget = func(name []byte) { forgotten[string(name)] = true }
	a := open(t, c)
	c.Name = []byte("beta")
	b := open(t, c)
	defer func() { _ = errors.Join(a.Close(), b.Close()) }()
	book["alpha"], book["beta"], book["also beta"] = a.DeviceAddress(), b.DeviceAddress(), b.DeviceAddress()
	silent := b.addr
	silent.nonce++
	book["silent"] = silent.appendTo(nil)
	connect := func(name string) (hw.Endpoint, error) {
		for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
			a.Progress(1)
			a.CheckPeers()
			ep, err := a.Connect([]byte(name))
			if err == nil || errors.Is(err, hw.ErrNoPath) || time.Now().After(end) {
				return ep, err
			}
			if !errors.Is(err, hw.ErrUnreachable) {
				t.Fatal(err)
			}
		}
	}
	for name := range map[string]bool{"silent": true, "unknown": true} {
		if _, err := connect(name); !errors.Is(err, hw.ErrNoPath) {
			t.Errorf("connect to %s: %v", name, err)
		}
	}
	for end := time.Now().Add(time.Minute); !forgotten["silent"]; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the silent peer is not forgotten")
		}
		a.Progress(1)
		a.CheckPeers()
	}
	ep, err := connect("also beta")
	if err != nil || string(ep.Address()) != "beta" {
		t.Fatalf("connect by another name: %v", err)
	}
	if err := ep.AMShort(1, 0, nil, nil); err != nil {
		t.Errorf("an endpoint that was given out: %v", err)
	}
	if src := hw.Source(ep.(*Endpoint).index); !a.SourceReaches(src, []byte("also beta")) ||
		!a.SourceReaches(src, []byte("beta")) || a.SourceReaches(src, []byte("alpha")) {
		t.Error("the names of the source")
	}
}

// TestBusyPeer has a peer make no progress for longer than a path may be
// broken: it computes, and is not dead.
func TestBusyPeer(t *testing.T) {
	c := Config{RxBuffers: 16, BounceCount: 4, BounceBytes: 256, Depth: 16, PathTimeout: time.Second,
		KeepAlive: 100 * time.Millisecond, EagerPeers: 1}
	a, b := open(t, c), open(t, c)
	defer func() { _ = errors.Join(a.Close(), b.Close()) }()
	for _, i := range []*Iface{a, b} {
		i.OnPeerEvent(func(e hw.PeerEvent) { t.Errorf("%v", e.Err) })
	}
	next := uint64(0)
	b.SetHandler(1, func(_ hw.Source, header uint64, _, _ []byte) {
		if header != next {
			t.Errorf("message %d came as number %d", header, next)
		}
		next++
	})
	ep, err := a.Connect(b.Address())
	if err != nil {
		t.Fatal(err)
	}
	sent := uint64(0)
	for end := time.Now().Add(3 * time.Second); time.Now().Before(end); {
		if ep.AMShort(1, sent, nil, nil) == nil {
			sent++
		}
		a.Progress(1)
		a.CheckPeers()
	}
	for end := time.Now().Add(time.Minute); next < sent && time.Now().Before(end); {
		b.Progress(16)
		a.Progress(16)
		a.CheckPeers()
	}
	if next != sent || sent < 16 {
		t.Errorf("%d of %d messages came", next, sent)
	}
}

// TestIdleQueue posts a few operations whose completions nothing asks for, and
// then only listens: a peer to which nothing more is said is not a broken path.
func TestIdleQueue(t *testing.T) {
	var broken atomic.Uint64
	c := Config{PathTimeout: 500 * time.Millisecond, KeepAlive: time.Minute, ConnectWait: 2 * time.Second}
	c.Logf = func(format string, args ...any) {
		t.Logf(format, args...)
		broken.Add(1)
	}
	a, err := domain(t).Open(c)
	if err != nil {
		t.Fatal(err)
	}
	b := open(t, Config{})
	defer func() { _ = errors.Join(a.Close(), b.Close()) }()
	for _, i := range []*Iface{a, b} {
		i.SetHandler(1, func(hw.Source, uint64, []byte, []byte) {})
	}
	there, err := a.Connect(b.Address())
	if err != nil {
		t.Fatal(err)
	}
	back, err := b.Connect(a.Address())
	if err != nil {
		t.Fatal(err)
	}
	m, err := b.Memory().Alloc(hw.Region{Len: 64, Access: hw.RemoteWrite})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	key, err := a.Memory().UnpackKey(m.PackKey(nil))
	if err != nil {
		t.Fatal(err)
	}
	if err := there.AMShort(1, 0, nil, nil); err != nil {
		t.Fatal(err)
	}
	own, err := a.Memory().Alloc(hw.Region{Len: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer own.Close()
	from := []hw.Segment{{Addr: own.Region().Addr, Len: 1, Memory: own}}
	put := func() error { _, err := there.(hw.OneSided).PutZcopy(from, 0, key, nil); return err }
	for end := time.Now().Add(time.Minute); put() != nil; a.Progress(1) {
		if time.Now().After(end) {
			t.Fatal("no put is taken")
		}
	}
	for end := time.Now().Add(2 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if err := back.AMShort(1, 0, nil, nil); err != nil && !errors.Is(err, hw.ErrNoResource) {
			t.Fatal(err)
		}
		for _, i := range []*Iface{a, b} {
			i.Progress(16)
			i.CheckPeers()
		}
	}
	e := there.(*Endpoint)
	if broken.Load() != 0 || e.Err() != nil || e.msg.Gen != 0 || e.mem.queue.Gen != 0 {
		t.Errorf("%d faults, %v, queue pairs %d and %d", broken.Load(), e.Err(), e.msg.Gen, e.mem.queue.Gen)
	}
	if !e.msg.quiet() || !e.mem.queue.quiet() {
		t.Error("what was posted has not ended")
	}
}

// TestServiceBroken breaks service queue pairs, as a packet that is sent while the
// port is down does: peers are connected all the same.
func TestServiceBroken(t *testing.T) {
	c := Config{RxBuffers: 16, BounceCount: 4, BounceBytes: 256, Depth: 16, ConnectWait: 10 * time.Second}
	a, b := open(t, c), open(t, c)
	defer func() { _ = errors.Join(a.Close(), b.Close()) }()
	for round := range 3 {
		for _, i := range []*Iface{a, b} {
			broken := make(chan error)
			i.svc.do(func() { broken <- i.svc.qp.ToError() })
			if err := <-broken; err != nil {
				t.Fatal(err)
			}
		}
		x := open(t, c)
		if _, err := x.Connect(a.Address()); err != nil {
			t.Errorf("round %d: %v", round, err)
		}
		if _, err := b.Connect(x.Address()); err != nil {
			t.Errorf("round %d: %v", round, err)
		}
		if err := x.Close(); err != nil {
			t.Error(err)
		}
	}
}
