package cxi

import (
	"errors"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/hw/cxi/internal/step"
	"github.com/weft-fabric/weft/hw/cxi/internal/wire"
)

// filled are two interfaces, of which one is sent more than its buffers hold.
type filled struct {
	t         *testing.T
	a, b      *Iface
	ep        hw.Endpoint
	sent, got uint64
}

// fillConfig has few small buffers.
var fillConfig = Config{RxBuffers: 4, RxBytes: 4096, BounceBytes: 256, Depth: 64}

func newFilled(t *testing.T) *filled {
	f := &filled{t: t, a: open(t, fillConfig), b: open(t, fillConfig)}
	t.Cleanup(func() { _ = errors.Join(f.a.Close(), f.b.Close()) })
	f.b.SetHandler(1, func(_ hw.Source, header uint64, _, payload []byte) {
		if header != f.got || len(payload) != 180 {
			t.Errorf("message %d of %d bytes came as number %d", header, len(payload), f.got)
		}
		f.got++
	})
	ep, err := f.a.Connect(f.b.Address())
	if err != nil {
		t.Fatal(err)
	}
	f.ep = ep
	f.exchange(10)
	return f
}

// send sends until there is no room.
func (f *filled) send(most uint64) {
	for f.sent < most {
		if err := f.ep.AMShort(1, f.sent, nil, make([]byte, 180)); err != nil {
			if !errors.Is(err, hw.ErrNoResource) {
				f.t.Fatal(err)
			}
			return
		}
		f.sent++
	}
}

// exchange sends and takes in more messages.
func (f *filled) exchange(more uint64) {
	f.t.Helper()
	goal := f.sent + more
	for end := time.Now().Add(time.Minute); f.got < goal; {
		f.send(goal)
		f.a.Progress(8)
		f.b.Progress(8)
		if time.Now().After(end) {
			f.t.Fatalf("%d of %d messages came", f.got, goal)
		}
	}
}

// fill has all buffers of the receiver used up.
func (f *filled) fill() {
	f.t.Helper()
	for end := time.Now().Add(time.Minute); f.ep.(*Endpoint).w.mode == flowing; {
		f.send(f.sent + 1)
		f.a.tx[0].tryPoll()
		if time.Now().After(end) {
			f.t.Fatal("the receiver refuses nothing")
		}
	}
}

// whole waits until all buffers are in the list.
func (f *filled) whole() {
	f.t.Helper()
	for end := time.Now().Add(time.Minute); f.b.rx.unlisted != 0; f.b.Progress(8) {
		if time.Now().After(end) {
			f.t.Fatalf("%d buffers are not in the list", f.b.rx.unlisted)
		}
	}
	for n := range f.b.rx.buffers {
		if !f.b.rx.buffers[n].listed {
			f.t.Fatalf("buffer %d is not in the list", n)
		}
	}
}

// TestBusyPeerIsThere: a peer whose event queue is full of messages is there, for who asks its NIC.
func TestBusyPeerIsThere(t *testing.T) {
	a := open(t, Config{KeepAlive: time.Nanosecond})
	b := open(t, Config{RxEvents: 64})
	t.Cleanup(func() { _ = errors.Join(a.Close(), b.Close()) })
	got := 0
	b.SetHandler(1, func(hw.Source, uint64, []byte, []byte) { got++ })
	ep, err := a.Connect(b.Address())
	if err != nil {
		t.Fatal(err)
	}
	sent := 0
	for e := ep.(*Endpoint); e.w.mode == flowing && sent < 1e4; a.tx[0].tryPoll() {
		if ep.AMShort(1, 0, nil, nil) == nil {
			sent++
		}
	}
	for end := time.Now().Add(100 * time.Millisecond); time.Now().Before(end); a.Progress(1) {
		a.CheckPeers()
		if err := errors.Join(ep.(*Endpoint).Check(), ep.(*Endpoint).Err()); err != nil {
			t.Fatal(err)
		}
	}
	for end := time.Now().Add(time.Minute); got < sent; a.Progress(1) {
		if b.Progress(64); time.Now().After(end) {
			t.Fatalf("%d of %d messages came", got, sent)
		}
	}
}

// TestRefusedBuffers: a receive buffer whose command the NIC refuses while messages come is appended again.
func TestRefusedBuffers(t *testing.T) {
	if os.Getenv("CASSINI") != "" {
		t.Skip("of the NIC that performs commands at once")
	}
	f, file := newFilled(t), library(t)
	t.Cleanup(func() { _ = step.Set(file, "fault_at", 0) })
	for n := range 30 {
		f.fill()
		done, err := step.Count(file, "commands")
		// What comes first is the command of one of the buffers.
		refused := done + 1 + uint64(n%3)
		if err = errors.Join(err, step.Set(file, "fault_rc", wire.RcCmdInvalidArg),
			step.Set(file, "fault_at", int(refused))); err != nil {
			t.Fatal(err)
		}
		for k := 0; done < refused; k++ {
			f.b.Progress(64)
			if done, err = step.Count(file, "commands"); err != nil || k > 1000 {
				t.Fatalf("round %d: nothing is refused: %v", n, err)
			}
		}
		if err := step.Set(file, "fault_at", 0); err != nil {
			t.Fatal(err)
		}
		f.exchange(20)
		f.whole()
	}
}

// entries is how many list entries the model has by itself.
const entries = 15725

// TestNoEntries: a receiver for whose buffers the NIC has no entries starves only as long as that lasts, also when it
// sleeps.
func TestNoEntries(t *testing.T) {
	if os.Getenv("CASSINI") != "" {
		t.Skip("of a NIC with entries enough")
	}
	f, file := newFilled(t), library(t)
	t.Cleanup(func() { _ = step.Set(file, "les", entries) })
	if err := f.b.EnableWait(); err != nil {
		t.Fatal(err)
	}
	for range 5 {
		f.fill()
		if err := step.Set(file, "les", 1); err != nil {
			t.Fatal(err)
		}
		for end := time.Now().Add(time.Minute); !f.b.rx.relists.Load(); f.b.Progress(64) {
			if time.Now().After(end) {
				t.Fatal("nothing is refused")
			}
		}
		if err := step.Set(file, "les", entries); err != nil {
			t.Fatal(err)
		}
		for end := time.Now().Add(time.Minute); f.b.rx.unlisted != 0; f.b.Progress(64) {
			f.b.Arm()
			if !f.b.Pending() {
				fds := []unix.PollFd{{Fd: int32(f.b.DoorbellFD()), Events: unix.POLLIN}}
				if n, err := unix.Poll(fds, 10000); n == 0 && err == nil {
					t.Fatal("a receiver with buffers to list sleeps on")
				}
			}
			if f.b.Disarm(); time.Now().After(end) {
				t.Fatalf("%d buffers are not in the list", f.b.rx.unlisted)
			}
		}
		f.exchange(20)
		f.whole()
	}
}
