package weft_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/weft-fabric/weft"
	"github.com/weft-fabric/weft/fi"
)

var local = weft.Config{Addr: netip.MustParseAddrPort("127.0.0.1:0")}

func open(t testing.TB) *weft.Endpoint {
	t.Helper()
	e, err := weft.Open(local)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() }) // some tests close it
	return e
}

func peer(t testing.TB, e, of *weft.Endpoint) weft.Peer {
	t.Helper()
	p, err := e.Peer(of.Addr())
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestOpenAnywhere opens an endpoint without an address.
func TestOpenAnywhere(t *testing.T) {
	e, err := weft.Open(weft.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if at := e.Addr(); !at.Addr().IsValid() || at.Addr().IsUnspecified() || at.Port() == 0 {
		t.Errorf("an endpoint at %v", at)
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
}

// limit ends a test that hangs.
func limit(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func pattern(n, seed int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i*7 + i>>8 + seed)
	}
	return b
}

// TestBlocking sends messages of every protocol between two endpoints, each used by a goroutine.
func TestBlocking(t *testing.T) {
	ctx := limit(t)
	a, b := open(t), open(t)
	toB, toA := peer(t, a, b), peer(t, b, a)
	sizes := []int{0, 1, 8, 4096, 100_000, 3 << 20}
	var wg sync.WaitGroup
	wg.Go(func() {
		for i, n := range sizes {
			if err := a.Send(ctx, toB, uint64(i), pattern(n, i)); err != nil {
				t.Error(err)
			}
		}
	})
	for i, n := range sizes {
		buf := make([]byte, n+1)
		m, err := b.Recv(ctx, weft.Match{From: toA, Tag: uint64(i)}, buf)
		want := weft.Message{From: toA, Tag: uint64(i), Len: n}
		if err != nil || m != want || !bytes.Equal(buf[:n], pattern(n, i)) {
			t.Fatal(n, m, err)
		}
	}
	wg.Wait()
}

// TestMany has more goroutines than processors in blocking calls on one endpoint; each gets its own messages.
func TestMany(t *testing.T) {
	ctx := limit(t)
	a, b := open(t), open(t)
	toB, toA := peer(t, a, b), peer(t, b, a)
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			buf := make([]byte, 64)
			for i := range 100 {
				if err := a.Send(ctx, toB, uint64(g), pattern(64, g*1000+i)); err != nil {
					t.Error(err)
					return
				}
				_, err := a.Recv(ctx, weft.Match{From: toB, Tag: uint64(g)}, buf)
				if err != nil || !bytes.Equal(buf, pattern(64, g*1000+i)) {
					t.Error("answer", g, i, err)
					return
				}
			}
		})
		wg.Go(func() {
			buf := make([]byte, 64)
			for range 100 {
				m, err := b.Recv(ctx, weft.Match{Tag: uint64(g)}, buf)
				if err != nil || m.From != toA {
					t.Error(m, err)
					return
				}
				if err := b.Send(ctx, m.From, m.Tag, buf[:m.Len]); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
}

// TestPark waits long enough to be parked: a call for a message, and a reader of completions.
func TestPark(t *testing.T) {
	ctx := limit(t)
	a, b := open(t), open(t)
	toB := peer(t, a, b)
	buf := make([]byte, 8)
	if err := b.StartRecv(weft.Match{Tag: 2}, buf, "two"); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		if m, err := b.Recv(ctx, weft.Match{Tag: 1}, make([]byte, 8)); err != nil || m.Len != 3 {
			t.Error(m, err)
		}
	})
	wg.Go(func() {
		for c, err := range b.Completions(ctx) {
			if err != nil || c.Op != weft.OpRecv || c.Value != "two" || string(c.Buf) != "2nd" || c.Tag != 2 {
				t.Error(c, err)
			}
			break
		}
	})
	for tag, text := range map[uint64]string{1: "1st", 2: "2nd"} {
		time.Sleep(20 * time.Millisecond)
		if err := a.Send(ctx, toB, tag, []byte(text)); err != nil {
			t.Error(err)
		}
	}
	wg.Wait()
}

// TestCompletions posts more than fits, and reads what completes, in batches.
func TestCompletions(t *testing.T) {
	ctx := limit(t)
	config := local
	config.InFlight = 64
	e, err := weft.Open(config)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	self := peer(t, e, e)
	posted, full := 0, false
	for ; posted < 40; posted++ {
		buf := make([]byte, 8)
		if err = e.StartRecv(weft.Match{Tag: uint64(posted)}, buf, posted); err == nil {
			err = e.StartSend(self, uint64(posted), pattern(8, posted), -1)
		}
		if errors.Is(err, fi.EAGAIN) {
			full = true
			break
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if !full || posted != 32 {
		t.Errorf("%d messages fit 64 requests", posted)
	}
	sent, received := 0, 0
	for c, err := range e.Completions(ctx) {
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case c.Op == weft.OpSend:
			sent++
		case !bytes.Equal(c.Buf, pattern(8, c.Value.(int))) || c.Peer != self:
			t.Error(c)
		default:
			received++
		}
		if sent == 32 && received == 32 {
			break
		}
	}
	if _, ok, err := e.Poll(); ok || err != nil {
		t.Error("something is left", err)
	}
}

// TestMemory writes and reads a region that only the endpoint keeps reachable.
func TestMemory(t *testing.T) {
	ctx := limit(t)
	owner, user := open(t), open(t)
	region, err := owner.Register(pattern(1<<20, 1), weft.RemoteRead|weft.RemoteWrite)
	if err != nil {
		t.Fatal(err)
	}
	runtime.GC()
	remote, err := user.OpenRemote(region.Token())
	if err != nil {
		t.Fatal(err)
	}
	stop := progress(owner)
	defer stop()
	got := make([]byte, remote.Len())
	if err := user.Read(ctx, remote, 0, got); err != nil || !bytes.Equal(got, pattern(1<<20, 1)) {
		t.Fatal(err)
	}
	if err := user.Write(ctx, remote, 100, []byte("here")); err != nil {
		t.Fatal(err)
	}
	if err := user.StartRead(remote, 99, got[:6], nil); err != nil {
		t.Fatal(err)
	}
	for c, err := range user.Completions(ctx) {
		if err != nil || c.Op != weft.OpRead || string(c.Buf[1:5]) != "here" || c.Peer != remote.Peer() {
			t.Error(c, err)
		}
		break
	}
	if err := user.Write(ctx, remote, 1<<20-3, []byte("here")); !errors.Is(err, fi.EINVAL) {
		t.Error("past the end:", err)
	}
	if err := region.Close(); err != nil {
		t.Error(err)
	}
	if err := user.Read(ctx, remote, 0, got); !errors.Is(err, fi.ENOKEY) && !errors.Is(err, fi.EACCES) {
		t.Error("closed:", err)
	}
	if err := remote.Close(); err != nil {
		t.Error(err)
	}
	if err := region.Close(); !errors.Is(err, fi.EINVAL) {
		t.Error("closed twice:", err)
	}
}

// progress makes an endpoint answer its peers until it is stopped.
func progress(e *weft.Endpoint) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		for range e.Completions(ctx) {
		}
	})
	return func() {
		cancel()
		wg.Wait()
	}
}

// TestErrors finds every kind of error by errors.Is.
func TestErrors(t *testing.T) {
	ctx := limit(t)
	a, b := open(t), open(t)
	toB := peer(t, a, b)

	if err := a.Send(ctx, toB, 1, make([]byte, 100)); err != nil {
		t.Fatal(err)
	}
	_, err := b.Recv(ctx, weft.Match{Tag: 1}, make([]byte, 10))
	if e := (*weft.Error)(nil); !errors.Is(err, fi.ETRUNC) || !errors.As(err, &e) || e.Op != weft.OpRecv {
		t.Error("truncated:", err)
	}
	if err := a.Send(ctx, weft.Peer{}, 1, nil); !errors.Is(err, fi.EINVAL) || !errors.Is(err, syscall.EINVAL) {
		t.Error("no peer:", err)
	}
	short, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
	defer cancel()
	if _, err := b.Recv(short, weft.Match{Tag: 9}, make([]byte, 10)); !errors.Is(err, context.DeadlineExceeded) {
		t.Error("deadline:", err)
	}
	for c, err := range b.Completions(short) {
		if c.Op != 0 || !errors.Is(err, context.DeadlineExceeded) {
			t.Error(c, err)
		}
	}
	// The receive that was taken back takes nothing.
	if err := a.Send(ctx, toB, 9, []byte("late")); err != nil {
		t.Fatal(err)
	}
	if m, err := b.Recv(ctx, weft.Match{Tag: 9}, make([]byte, 10)); err != nil || m.Len != 4 {
		t.Error(m, err)
	}
	if _, err := weft.Open(weft.Config{InFlight: -1}); !errors.Is(err, fi.EINVAL) {
		t.Error("InFlight -1:", err)
	}
	if _, err := weft.Open(weft.Config{Addr: a.Addr()}); !errors.Is(err, fi.EADDRINUSE) {
		t.Error("the address of another:", err)
	}
	if _, err := a.OpenRemote("no token"); !errors.Is(err, fi.EINVAL) {
		t.Error("no token:", err)
	}
	if _, err := a.Peer(netip.AddrPort{}); !errors.Is(err, fi.EINVAL) {
		t.Error("no address:", err)
	}
}

// TestClose closes an endpoint under goroutines that wait on it, parked or not.
func TestClose(t *testing.T) {
	ctx := limit(t)
	e := open(t)
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			if _, err := e.Recv(ctx, weft.Match{Tag: uint64(i)}, make([]byte, 8)); !errors.Is(err, net.ErrClosed) {
				t.Error(err)
			}
		})
		wg.Go(func() {
			for _, err := range e.Completions(ctx) {
				if !errors.Is(err, net.ErrClosed) {
					t.Error(err)
				}
			}
		})
	}
	time.Sleep(10 * time.Millisecond)
	if err := e.Close(); err != nil {
		t.Error(err)
	}
	wg.Wait()
	if err := e.Close(); !errors.Is(err, net.ErrClosed) {
		t.Error("second Close:", err)
	}
	if err := e.Send(ctx, weft.Peer{}, 0, nil); !errors.Is(err, net.ErrClosed) {
		t.Error("Send after Close:", err)
	}
}

// Two endpoints, which may as well be in two processes or on two hosts: examples/gopair.
func Example() {
	ctx := context.Background()
	server, err := weft.Open(local)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer server.Close()
	client, err := weft.Open(local)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()

	go func() {
		to, err := client.Peer(server.Addr())
		if err == nil {
			err = client.Send(ctx, to, 7, []byte("hello"))
		}
		if err != nil {
			fmt.Println(err)
		}
	}()
	buf := make([]byte, 64)
	m, err := server.Recv(ctx, weft.Match{Tag: 7}, buf)
	fmt.Printf("%s, tag %d, %v\n", buf[:m.Len], m.Tag, err)
	// Output: hello, tag 7, <nil>
}

// TestPeerGone has a peer go while a message of its is waited for.
func TestPeerGone(t *testing.T) {
	ctx := limit(t)
	a, b := open(t), open(t)
	toB, toA := peer(t, a, b), peer(t, b, a)
	if err := b.Send(ctx, toA, 1, []byte("here")); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 8)
	if _, err := a.Recv(ctx, weft.Match{From: toB, Tag: 1}, buf); err != nil {
		t.Fatal(err)
	}
	if err := a.StartRecv(weft.Match{From: toB, Tag: 2}, buf, 2); err != nil {
		t.Fatal(err)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Recv(ctx, weft.Match{From: toB, Tag: 1}, buf); !errors.Is(err, syscall.ECONNRESET) {
		t.Error(err)
	}
	for c, err := range a.Completions(ctx) {
		if c.Value != 2 || !errors.Is(err, fi.ECONNRESET) {
			t.Error(c, err)
		}
		break
	}
}
