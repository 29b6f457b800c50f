package xdp

import (
	"bufio"
	"errors"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/internal/nettest"
	"github.com/weft-fabric/weft/internal/sock"
)

// open makes a device on a host, or says why not.
func open(h *nettest.Host, where Where) (d *Device, err error) {
	h.Do(func() {
		d, err = Open(Options{Name: sock.FromAddrPort(netip.AddrPortFrom(h.IPv4, 4711)), Stripes: 1, Where: where})
	})
	return d, err
}

// possible skips the test where a device is not.
func possible(t *testing.T, d *Device, err error) *Device {
	t.Helper()
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.EAFNOSUPPORT) || errors.Is(err, unix.EOPNOTSUPP) {
		t.Skipf("no AF_XDP here: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// attached reports whether the host's interface has a program.
func attached(h *nettest.Host) bool {
	return strings.Contains(h.Run("ip", "link", "show", h.Iface), "xdp")
}

// TestDevice opens and closes, where the program may run.
func TestDevice(t *testing.T) {
	for name, where := range map[string]Where{"best": Best, "driver": InDriver, "behind": BehindDriver} {
		t.Run(name, func(t *testing.T) {
			h, _ := nettest.New(t)
			for range 3 { // the kernel takes a queue back some time after its last user
				d, err := open(h, where)
				possible(t, d, err)
				if generic := where != InDriver; d.steering.generic != generic {
					t.Errorf("behind the driver: %v", d.steering.generic) // best is that for veth
				}
				if !attached(h) {
					t.Error("no program on the interface")
				}
				d.Close()
				if attached(h) {
					t.Error("the program is still on the interface")
				}
			}
		})
	}
}

// TestRefused: why there can be no device.
func TestRefused(t *testing.T) {
	h, _ := nettest.New(t)
	d, err := open(h, Best)
	possible(t, d, err)
	defer d.Close()
	if second, err := open(h, Best); !errors.Is(err, unix.EBUSY) {
		t.Errorf("a second device on the interface: %v", err)
		second.Close()
	}
	for _, ip := range []string{"127.0.0.1", "::1", "192.0.2.1", "fe80::77%99"} {
		h.Do(func() {
			_, err = Open(Options{Name: sock.FromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(ip), 1)), Stripes: 1})
		})
		if !errors.Is(err, ErrUnsupported) {
			t.Errorf("at %s: %v", ip, err)
		}
	}
}

// childHost is set in the process that TestKilled kills: the address.
const childHost = "WEFT_TEST_XDP_CHILD"

// TestKilled: the program goes with its process, however that ends.
func TestKilled(t *testing.T) {
	if ip := os.Getenv(childHost); ip != "" {
		d, err := Open(Options{Name: sock.FromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(ip), 4711)), Stripes: 1})
		if err != nil {
			os.Stdout.WriteString("refused: " + err.Error() + "\n")
			return
		}
		os.Stdout.WriteString("open\n")
		time.Sleep(time.Minute)
		d.Close()
		return
	}
	h, _ := nettest.New(t)
	d, err := open(h, Best)
	possible(t, d, err).Close()
	child := exec.Command(os.Args[0], "-test.run=^TestKilled$")
	child.Env = append(os.Environ(), childHost+"="+h.IPv4.String())
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	h.Do(func() { err = child.Start() })
	if err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "open\n" {
		t.Errorf("the process says %q: %v", line, err)
	}
	if !attached(h) {
		t.Error("no program on the interface")
	}
	_ = child.Process.Kill()
	_ = child.Wait()
	if attached(h) {
		t.Error("the program is still on the interface")
	}
	d, err = open(h, Best)
	possible(t, d, err).Close()
}

// TestWays: what the kernel says of the way to a peer, and what it says of changes.
func TestWays(t *testing.T) {
	h, peer := nettest.New(t)
	d, err := open(h, Best)
	possible(t, d, err)
	defer d.Close()
	to := sock.FromAddrPort(netip.AddrPortFrom(peer.IPv4, 815))
	h.Run("ip", "neigh", "flush", "dev", h.Iface)
	d.Tick(0)
	if w := d.routes.find(&to); w.most != 0 {
		t.Fatalf("a way to what is not known: %+v", w)
	}
	now := time.Hour
	wait := func(what string, is func(w *way) bool) {
		t.Helper()
		for end := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
			now += time.Millisecond
			d.Tick(now)
			if w := d.routes.find(&to); is(w) {
				return
			} else if time.Now().After(end) {
				t.Fatalf("%s: %+v", what, w)
			}
		}
	}
	set := func(mac string) {
		h.Run("ip", "neigh", "replace", peer.IPv4.String(), "lladdr", mac, "dev", h.Iface, "nud", "reachable")
	}
	set("02:00:00:00:00:02")
	wait("a neighbour", func(w *way) bool { return w.most == 1500-28 && w.headers[5] == 2 })
	set("02:00:00:00:00:03")
	wait("another hardware address", func(w *way) bool { return w.headers[5] == 3 })
	h.MTU(1400)
	wait("another MTU", func(w *way) bool { return w.most == 1400-28 })
	h.Run("ip", "neigh", "del", peer.IPv4.String(), "dev", h.Iface)
	wait("a neighbour that went", func(w *way) bool { return w.most == 0 })
	h.Run("ip", "route", "add", "198.51.100.0/24", "via", peer.IPv4.String())
	to = sock.FromAddrPort(netip.MustParseAddrPort("198.51.100.7:815"))
	set("02:00:00:00:00:04")
	wait("a router", func(w *way) bool { return w.most > 0 && w.headers[5] == 4 })
	h.Run("ip", "route", "replace", "198.51.100.0/24", "dev", "lo")
	wait("a route over another interface", func(w *way) bool {
		return w.most == 0 &&
			strings.Contains(w.why, "interface")
	})
	h.Run("ip", "route", "replace", "blackhole", "198.51.100.0/24")
	wait("no route", func(w *way) bool { return w.most == 0 && strings.Contains(w.why, "route") })
}
