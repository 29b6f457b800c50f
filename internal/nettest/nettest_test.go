package nettest

import (
	"errors"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/internal/cpuset"
)

// exchange sends count datagrams from a to b and returns what came: the number,
// those that were damaged, marked, and out of order.
func exchange(t *testing.T, a, b *Host, v6 bool, count int) (came, damaged, marked, late int) {
	t.Helper()
	from, to := a.UDP(v6), b.UDP(v6)
	defer unix.Close(from)
	defer unix.Close(to)
	_ = unix.SetsockoptInt(to, unix.SOL_SOCKET, unix.SO_RCVBUF, 4<<20)
	_ = unix.SetsockoptInt(to, unix.IPPROTO_IP, unix.IP_RECVTOS, 1)
	_ = unix.SetsockoptInt(from, unix.IPPROTO_IP, unix.IP_TOS, 2)
	if v6 {
		_ = unix.SetsockoptInt(to, unix.IPPROTO_IPV6, unix.IPV6_RECVTCLASS, 1)
		_ = unix.SetsockoptInt(from, unix.IPPROTO_IPV6, unix.IPV6_TCLASS, 2)
	}
	_ = unix.SetsockoptTimeval(to, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Usec: 300000})
	name, err := unix.Getsockname(to)
	if err != nil {
		t.Fatal(err)
	}
	var sent atomic.Bool // all: silence after it is the end
	go func() {
		defer sent.Store(true)
		stay(t)
		b := make([]byte, 100)
		for n := range count {
			b[98], b[99] = byte(n>>8), byte(n)
			_ = unix.Sendto(from, b, 0, name)
			if n%20 == 19 {
				time.Sleep(100 * time.Microsecond)
			}
		}
	}()
	last := -1
	buf, oob := make([]byte, 200), make([]byte, 100)
	for {
		all := sent.Load()
		n, k, _, _, err := unix.Recvmsg(to, buf, oob, 0)
		if errors.Is(err, unix.EINTR) || err != nil && !all {
			continue
		}
		if err != nil {
			return came, damaged, marked, late
		}
		came++
		for _, c := range buf[:n-2] {
			if c != 0 {
				damaged++
			}
		}
		if number := int(buf[98])<<8 | int(buf[99]); number < last {
			late++
		} else {
			last = number
		}
		if messages, err := unix.ParseSocketControlMessage(oob[:k]); err == nil {
			for _, m := range messages {
				if (m.Header.Type == unix.IP_TOS || m.Header.Type == unix.IPV6_TCLASS) && m.Data[0]&3 == 3 {
					marked++
				}
			}
		}
	}
}

// stay keeps the goroutine, whose thread ends with it, on one processor: datagrams that two processors have sent may
// overtake each other.
func stay(t *testing.T) {
	runtime.LockOSThread()
	all, err := cpuset.OfThread()
	one := all.Nth(0)
	if err = errors.Join(err, one.Bind()); err != nil {
		t.Errorf("stay on a processor: %v", err)
	}
}

// TestImpairments checks whether each happens about as often as asked.
func TestImpairments(t *testing.T) {
	const count = 2000
	about := func(t *testing.T, what string, got int, share float64) {
		t.Helper()
		if want := share * count; float64(got) < want*0.7-5 || float64(got) > want*1.3+5 {
			t.Errorf("%s: %d of %d", what, got, count)
		}
	}
	for _, v6 := range []bool{false, true} {
		for name, p := range map[string]Impairment{
			"none": {}, "loss": {Loss: 0.2}, "double": {Double: 0.2}, "mark": {Mark: 0.3}, "damage": {Damage: 0.2},
			"delay": {Delay: 0.05, Detour: 200},
		} {
			t.Run(name, func(t *testing.T) {
				a, b := New(t)
				b.Impair(p)
				came, damaged, marked, late := exchange(t, a, b, v6, count)
				about(t, "marked", marked, p.Mark)
				about(t, "came", came, 1-p.Loss+p.Double-p.Damage) // what is damaged the kernel throws away
				if damaged != 0 {
					t.Errorf("%d damaged datagrams got through", damaged)
				}
				if (late > 0) != (p.Delay > 0) {
					t.Errorf("%d came late", late)
				}
			})
		}
	}
}

// TestCarried: what goes over the cable counts at both ends, and not on the loopback interface.
func TestCarried(t *testing.T) {
	const count = 100
	a, b := New(t)
	_, before := a.Carried(a.Iface)
	own, _ := a.Carried("lo")
	exchange(t, a, b, false, count)
	_, gone := a.Carried(a.Iface)
	come, _ := b.Carried(b.Iface)
	if sent := gone - before; sent < count*100 || come < count*100 {
		t.Errorf("%d datagrams of 100 bytes: %d bytes have gone, %d have come", count, sent, come)
	}
	if after, _ := a.Carried("lo"); after-own >= count*100 {
		t.Errorf("%d bytes on the loopback interface", after-own)
	}
}
