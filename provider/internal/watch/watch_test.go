package watch

import (
	"errors"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/hot"
)

// iface is an interface with a doorbell. got is what its next Progress returns.
type iface struct {
	hw.Iface
	hot     hot.Transport
	got     int
	polls   int
	written bool
	pending atomic.Bool
	bell    [2]int // the ends of a pipe
}

func (i *iface) Progress(int) int             { i.polls++; return i.got }
func (i *iface) HotTransport() *hot.Transport { return &i.hot }
func (i *iface) Written() bool                { return i.written }
func (i *iface) EnableWait() error            { return nil }
func (i *iface) DoorbellFD() int              { return i.bell[0] }
func (i *iface) Arm()                         {}
func (i *iface) Pending() bool                { return i.pending.Load() }

func (i *iface) Disarm() {
	i.pending.Store(false) // the test sets it for one Arm
	var b [16]byte
	_, _ = unix.Read(i.bell[0], b[:]) // it is empty, likely
}

func (i *iface) ring() { _, _ = unix.Write(i.bell[1], []byte{1}) }

// bare is one without a doorbell.
type bare struct{ hw.Iface }

func (bare) Progress(int) int { return 0 }

// owner counts its calls.
type owner struct{ attention, notified atomic.Uint32 }

func (o *owner) Attention(bits uint32) { o.attention.Or(bits) }
func (o *owner) Notify()               { o.notified.Add(1) }

// clock is set by the test.
type clock struct{ atomic.Int64 }

func (c *clock) now() time.Duration   { return time.Duration(c.Load()) }
func (c *clock) pass(d time.Duration) { c.Add(int64(d)) }

func yes() bool { return true }
func no() bool  { return false }

// transportOf returns a transport over an interface with a doorbell, with a clock that the test sets.
func transportOf(t *testing.T) (*Transport, *iface, *owner, *clock) {
	t.Helper()
	i, o, c := &iface{}, &owner{}, new(clock)
	if err := unix.Pipe2(i.bell[:], unix.O_CLOEXEC|unix.O_NONBLOCK); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = unix.Close(i.bell[0]), unix.Close(i.bell[1]) })
	return New(i, o, c.now), i, o, c
}

// TestPatience has something arrive soon after polls have left the transport out, and late.
func TestPatience(t *testing.T) {
	p, _, _, c := transportOf(t)
	c.pass(time.Hour)
	for range 10 {
		p.calmed.Store(int64(c.now()))
		p.learn()
	}
	if got := time.Duration(p.patience.Load()); got != mostPatience {
		t.Errorf("patience is %v, want %v", got, mostPatience)
	}
	p.calmed.Store(0)
	for range 10 {
		p.learn()
	}
	if got := time.Duration(p.patience.Load()); got != leastPatience {
		t.Errorf("patience is %v, want %v", got, leastPatience)
	}
}

// TestPoll: a transport is polled from Notify on until nothing has arrived for its patience, or for the most if an
// answer must come.
func TestPoll(t *testing.T) {
	p, i, o, c := transportOf(t)
	if p.Poll(8, no); i.polls != 0 || p.Busy() {
		t.Fatal("polled at first")
	}
	p.Notify()
	if i.got = 3; p.Poll(8, no) != 3 || !p.Busy() || o.attention.Load() != hot.AttentionGo {
		t.Fatalf("busy %v, attention %#x", p.Busy(), o.attention.Load())
	}
	i.got = 0
	quiet := func(awaited func() bool) (after time.Duration) {
		began := c.now()
		p.Notify()
		for p.Busy() {
			for range clockEvery {
				p.Poll(8, awaited)
			}
			c.pass(leastPatience / 4)
		}
		return c.now() - began
	}
	if after := quiet(no); after < leastPatience || after > 2*leastPatience {
		t.Errorf("left out after %v", after)
	}
	if after := quiet(yes); after < mostPatience || after > 2*mostPatience {
		t.Errorf("while an answer is to come: left out after %v", after)
	}
}

// TestDriven: of a transport that the data plane polls its messages count as traffic, and so does what rings no
// doorbell.
func TestDriven(t *testing.T) {
	p, i, o, c := transportOf(t)
	active := uint32(1)
	p.Drive(i, &active)
	if p.Driven() != &i.hot || active != 0 {
		t.Fatal("not driven, or active at first")
	}
	i.written = true
	if p.Poll(8, no); active != 1 || o.attention.Load() != hot.AttentionTransports {
		t.Errorf("written, not polled: active %d, attention %#x", active, o.attention.Load())
	}
	i.written = false
	for range 5 { // taken by the data plane
		i.hot.Taken++
		c.pass(time.Second)
		if p.Poll(8, no); active != 1 {
			t.Fatal("left out while messages come")
		}
	}
	p.Poll(8, no)
	c.pass(time.Second)
	if p.Poll(8, no); active != 0 {
		t.Error("polled though nothing comes")
	}
}

// TestWatch: the doorbell of a transport that is not polled has the owner notified, once until polls leave the
// transport out.
func TestWatch(t *testing.T) {
	p, i, o, c := transportOf(t)
	until := func(what string, n uint32) {
		t.Helper()
		for end := time.Now().Add(time.Minute); o.notified.Load() != n; time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%s: notified %d times, want %d", what, o.notified.Load(), n)
			}
		}
	}
	c.pass(time.Hour)
	if !p.Belled() {
		t.Error("no doorbell")
	}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	i.ring()
	until("a ring", 1)
	if !p.Busy() {
		t.Error("not polled after a ring")
	}
	i.pending.Store(true) // it has come before the watcher arms
	for p.Busy() {
		p.Poll(8, no)
		c.pass(time.Second)
	}
	until("something pending", 2)
	p.Close()
	p.Close()
	i.ring()
	if time.Sleep(10 * time.Millisecond); o.notified.Load() != 2 {
		t.Error("notified after close")
	}
}

// TestNoBell: a transport without a doorbell is polled for ever; one whose doorbell fails says why.
func TestNoBell(t *testing.T) {
	o := &owner{}
	p := New(bare{}, o, nil)
	if err := p.Start(); err != nil || p.Belled() || !p.Busy() {
		t.Errorf("%v, doorbell %v, busy %v", err, p.Belled(), p.Busy())
	}
	for range 10 * clockEvery {
		p.Poll(8, no)
	}
	if !p.Busy() {
		t.Error("left out")
	}
	p.Close()
	i := &iface{bell: [2]int{-1, -1}}
	if err := New(i, o, nil).Start(); !errors.Is(err, os.ErrInvalid) && !errors.Is(err, unix.EBADF) {
		t.Errorf("a doorbell that is not open: %v", err)
	}
}
