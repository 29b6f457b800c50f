package udp

import (
	"testing"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/nettest"
)

// TestNear: a peer that messages go to one by one gets a socket of its own, with and without
// an inbox. Others are reached as before, what sleeps is woken by any of them, and the peer is
// reached again after it was restarted on the same port.
func TestNear(t *testing.T) {
	for name, plain := range map[string]bool{"inbox": false, "plain": true} {
		for _, v6 := range []bool{false, true} {
			t.Run(name+map[bool]string{false: " ipv4", true: " ipv6"}[v6], func(t *testing.T) {
				ha, hb := nettest.New(t)
				c := Config{NoInbox: plain}
				a, far := at(t, ha, v6, c), at(t, hb, v6, c)
				fd := hb.UDP(v6)
				name, err := unix.Getsockname(fd)
				if err != nil {
					t.Fatal(err)
				}
				var b *Iface
				hb.Do(func() { b, err = Open(fd, c) })
				if err != nil {
					t.Fatal(err)
				}
				got := map[*Iface]int{}
				counts := func(list ...*Iface) {
					for _, i := range list {
						i.SetHandler(1, func(hw.Source, uint64, []byte, []byte) { got[i]++ })
					}
				}
				counts(a, b, far)
				send := func(ep hw.Endpoint, to *Iface) {
					t.Helper()
					want := got[to] + 1
					if err := ep.AMShort(1, 0, nil, []byte("one")); err != nil {
						t.Fatal(err)
					}
					eventually(t, "a message", func() bool { a.Progress(1); to.Progress(1); return got[to] == want })
				}
				exchange := func(b *Iface, there, back hw.Endpoint) {
					for range 600 {
						send(there, b)
						send(back, a)
					}
				}
				there, back := pair(t, a, b), pair(t, b, a)
				there2, back2 := pair(t, a, far), pair(t, far, a)
				exchange(b, there, back)
				near := func(i *Iface) bool {
					s := i.stripes[0]
					s.lease.lock()
					defer s.leave()
					return len(s.socket.Files()) == 2
				}
				if !near(a) || !near(b) || near(far) {
					t.Fatalf("near: %v, %v, %v", near(a), near(b), near(far))
				}
				if err := a.EnableWait(); err != nil {
					t.Fatal(err)
				}
				for _, ep := range []hw.Endpoint{back, back2} {
					wakes(t, a, ep, func() int { return got[a] })
				}
				send(there2, far)
				b.Close()
				eventually(t, "the end", func() bool { a.Progress(1); a.CheckPeers(); return there.Err() != nil })
				hb.Do(func() {
					if fd, err = unix.Socket(map[bool]int{false: unix.AF_INET, true: unix.AF_INET6}[v6],
						unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0); err == nil {
						err = unix.Bind(fd, name)
					}
					if err == nil {
						b, err = Open(fd, c)
					}
				})
				if err != nil {
					t.Fatal(err)
				}
				defer b.Close()
				counts(b)
				there, back = pair(t, a, b), pair(t, b, a)
				exchange(b, there, back)
			})
		}
	}
}

// wakes has a sleep until a message of ep rings, and takes it in.
func wakes(t *testing.T, a *Iface, ep hw.Endpoint, got func() int) {
	t.Helper()
	want := got() + 1
	a.Arm()
	if a.Pending() {
		t.Fatal("pending before anything was sent")
	}
	if err := ep.AMShort(1, 0, nil, []byte("ring")); err != nil {
		t.Fatal(err)
	}
	if n, err := unix.Poll([]unix.PollFd{{Fd: int32(a.DoorbellFD()), Events: unix.POLLIN}}, 10000); n != 1 {
		t.Fatalf("nothing rang: %v", err)
	}
	a.Disarm()
	eventually(t, "the message", func() bool { a.Progress(1); return got() == want })
}
