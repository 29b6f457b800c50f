package nettest

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Host is one end of the cable.
type Host struct {
	Name  string
	Iface string // its end of the cable
	Index int    // of Iface
	IPv4  netip.Addr
	IPv6  netip.Addr

	t     testing.TB
	peer  *Host
	calls chan func()
}

// New makes two hosts, 10.99.0.1 and 10.99.0.2 (fd99::1 and fd99::2), joined by
// an Ethernet of 1500 bytes.
func New(t testing.TB) (a, b *Host) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("network namespaces need root")
	}
	for _, program := range []string{"ip", "tc"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("the program %s is missing", program)
		}
	}
	a, b = newHost(t, "a", 1), newHost(t, "b", 2)
	a.peer, b.peer = b, a
	// Both ends are made in a; the other is pushed to b, which b's thread names.
	tid := make(chan int, 1)
	b.Do(func() { tid <- unix.Gettid() })
	a.Run("ip", "link", "add", a.Iface, "type", "veth", "peer", "name", b.Iface)
	a.Run("ip", "link", "set", b.Iface, "netns", fmt.Sprint(<-tid))
	for _, h := range []*Host{a, b} {
		h.Run("ip", "link", "set", "lo", "up")
		h.Do(func() { // IPv6 addresses are usable at once; without IPv6 there is no such file
			_ = os.WriteFile("/proc/sys/net/ipv6/conf/"+h.Iface+"/accept_dad", []byte("0"), 0)
		})
		h.Run("ip", "address", "add", h.IPv4.String()+"/24", "dev", h.Iface)
		h.Run("ip", "address", "add", h.IPv6.String()+"/64", "dev", h.Iface, "nodad")
		h.Run("ip", "link", "set", h.Iface, "up")
		h.Do(func() {
			i, err := net.InterfaceByName(h.Iface)
			if err != nil {
				t.Error(err)
				return
			}
			h.Index = i.Index
		})
	}
	a.awaitLink()
	return a, b
}

func newHost(t testing.TB, name string, n byte) *Host {
	h := &Host{
		Name: name, Iface: "cable" + name, t: t, calls: make(chan func()),
		IPv4: netip.AddrFrom4([4]byte{10, 99, 0, n}), IPv6: netip.AddrFrom16([16]byte{0: 0xfd, 1: 0x99, 15: n}),
	}
	ready := make(chan error)
	go h.live(ready)
	if err := <-ready; err != nil {
		t.Skipf("no network namespace: %v", err)
	}
	t.Cleanup(func() { close(h.calls) })
	return h
}

// live is the host's thread. It is never unlocked, so it ends with the goroutine.
func (h *Host) live(ready chan<- error) {
	runtime.LockOSThread()
	err := unix.Unshare(unix.CLONE_NEWNET)
	ready <- err
	if err != nil {
		return
	}
	for f := range h.calls {
		f()
	}
}

// Do runs f in the host's network. f must not end the test.
func (h *Host) Do(f func()) {
	done := make(chan struct{})
	h.calls <- func() {
		defer close(done)
		f()
	}
	<-done
}

// Run runs a program in the host's network and returns what it prints.
func (h *Host) Run(program string, args ...string) string {
	h.t.Helper()
	var out []byte
	var err error
	h.Do(func() { out, err = exec.Command(program, args...).CombinedOutput() })
	if err != nil {
		h.t.Fatalf("host %s: %s %s: %v: %s", h.Name, program, strings.Join(args, " "), err, out)
	}
	return string(out)
}

// awaitLink waits until the cable carries.
func (h *Host) awaitLink() {
	h.t.Helper()
	for range 500 {
		if strings.Contains(h.Run("ip", "link", "show", h.Iface), "LOWER_UP") {
			return
		}
		time.Sleep(time.Millisecond)
	}
	h.t.Fatal("the cable does not come up")
}

// UDP returns a UDP socket of the host's, bound to a port of its own.
func (h *Host) UDP(v6 bool) int {
	h.t.Helper()
	family, sa := unix.AF_INET, unix.Sockaddr(&unix.SockaddrInet4{Addr: h.IPv4.As4()})
	if v6 {
		family, sa = unix.AF_INET6, &unix.SockaddrInet6{Addr: h.IPv6.As16()}
	}
	fd, err := -1, error(nil)
	h.Do(func() {
		if fd, err = unix.Socket(family, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0); err == nil {
			err = unix.Bind(fd, sa)
		}
	})
	if err != nil {
		h.t.Fatalf("host %s: socket: %v", h.Name, err)
	}
	return fd
}

// Up has the host's end of the cable carry or not.
func (h *Host) Up(up bool) {
	h.t.Helper()
	word := map[bool]string{true: "up", false: "down"}[up]
	h.Run("ip", "link", "set", h.Iface, word)
	if up {
		// IPv6 addresses went with the link.
		h.Run("ip", "address", "replace", h.IPv6.String()+"/64", "dev", h.Iface, "nodad")
		h.awaitLink()
	}
}

// Carried returns the bytes that have come and gone over an interface of the host's: Iface or "lo".
func (h *Host) Carried(iface string) (in, out uint64) {
	h.t.Helper()
	for line := range strings.Lines(h.Run("cat", "/proc/net/dev")) {
		name, counts, _ := strings.Cut(strings.TrimSpace(line), ":")
		if f := strings.Fields(counts); name == iface && len(f) >= 9 {
			_, err := fmt.Sscan(f[0]+" "+f[8], &in, &out)
			if err != nil {
				h.t.Fatalf("counters of %s: %v", iface, err)
			}
			return in, out
		}
	}
	h.t.Fatalf("host %s has no interface %s", h.Name, iface)
	return 0, 0
}

// MTU sets the MTU of the host's end.
func (h *Host) MTU(bytes int) {
	h.t.Helper()
	h.Run("ip", "link", "set", h.Iface, "mtu", fmt.Sprint(bytes))
}

// Queues gives both ends of the cable so many queues, 1 or 2, in each direction.
func (h *Host) Queues(n int) {
	h.t.Helper()
	for _, end := range []*Host{h, h.peer} {
		var err error
		end.Do(func() { err = setChannels(end.Iface, uint32(n)) })
		if err != nil {
			h.t.Skipf("%d queues of a virtual interface: %v", n, err)
		}
	}
}

// Rate bounds what the host sends to mbit 10^6 bits per second, with a queue
// of that many bytes.
func (h *Host) Rate(mbit, queue int) {
	h.t.Helper()
	h.Run("tc", "qdisc", "replace", "dev", h.Iface, "root", "tbf", "rate", fmt.Sprintf("%dmbit", mbit),
		"burst", fmt.Sprint(max(16<<10, mbit*1000/8)), "limit", fmt.Sprint(queue))
}
