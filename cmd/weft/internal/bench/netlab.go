package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/internal/impair"
)

// lab is a network of hosts, which are network namespaces of this machine, and
// of virtual cables between them. All of it goes with close, and what a lab that
// was killed left behind goes when the next is made.
type lab struct {
	ctx      context.Context
	hosts    []string // namespaces, in the order in which they were made
	attached []io.Closer
}

// labPrefix begins the names of namespaces; the number of the process follows.
const labPrefix = "weft-bench-"

// linkMTU is the MTU of every cable, in bytes: Ethernet's.
const linkMTU = 1500

// errRoot is the reason why an ordinary user can measure no network.
var errRoot = errors.New("the benchmark of the network makes network namespaces, and only root may do that")

// labPossible says why there can be no lab.
func labPossible() error {
	if os.Geteuid() != 0 {
		return errRoot
	}
	for _, program := range []string{"ip", "tc"} {
		if _, err := exec.LookPath(program); err != nil {
			return fmt.Errorf("the benchmark of the network needs the program %s: %w", program, err)
		}
	}
	return nil
}

// newLab makes a lab without hosts, and removes those of dead processes.
func newLab(ctx context.Context) *lab {
	names, _ := filepath.Glob("/run/netns/" + labPrefix + "*")
	for _, n := range names {
		if name := filepath.Base(n); orphaned(name, "/proc") {
			_ = exec.Command("ip", "netns", "delete", name).Run()
		}
	}
	return &lab{ctx: ctx}
}

// orphaned reports whether a namespace is of a process that is not there any more.
func orphaned(name, proc string) bool {
	pid, _, ok := strings.Cut(strings.TrimPrefix(name, labPrefix), "-")
	if _, err := strconv.Atoi(pid); err != nil || !ok || !strings.HasPrefix(name, labPrefix) {
		return false
	}
	_, err := os.Stat(filepath.Join(proc, pid))
	return errors.Is(err, os.ErrNotExist)
}

// run runs a program of the system.
func (l *lab) run(program string, args ...string) error {
	out, err := exec.CommandContext(l.ctx, program, args...).CombinedOutput()
	if l.ctx.Err() != nil {
		return l.ctx.Err()
	}
	if err != nil {
		return fmt.Errorf("%s %s: %w: %s", program, strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}

// all runs commands until one fails.
func (l *lab) all(commands ...[]string) error {
	for _, c := range commands {
		if err := l.run(c[0], c[1:]...); err != nil {
			return err
		}
	}
	return nil
}

// host makes a namespace.
func (l *lab) host() (string, error) {
	name := fmt.Sprintf("%s%d-%d", labPrefix, os.Getpid(), len(l.hosts))
	if err := l.run("ip", "netns", "add", name); err != nil {
		return "", err
	}
	l.hosts = append(l.hosts, name)
	return name, l.run("ip", "-n", name, "link", "set", "lo", "up")
}

// close removes everything. It works after an interrupt, too.
func (l *lab) close() {
	for _, a := range l.attached {
		_ = a.Close()
	}
	for _, h := range l.hosts {
		_ = exec.Command("ip", "netns", "delete", h).Run()
	}
	l.attached, l.hosts = nil, nil
}

// cable joins interface of host a with that of host b, and brings both up.
func (l *lab) cable(a, ifaceA, b, ifaceB string) error {
	return l.all(
		[]string{"ip", "-n", a, "link", "add", ifaceA, "mtu", strconv.Itoa(linkMTU), "type", "veth", "peer", "name",
			ifaceB, "mtu", strconv.Itoa(linkMTU), "netns", b},
		[]string{"ip", "-n", a, "link", "set", ifaceA, "up"},
		[]string{"ip", "-n", b, "link", "set", ifaceB, "up"},
	)
}

// port is the interface of a host with an address.
const port = "eth0"

// pair makes two hosts, 10.98.0.1 and 10.98.0.2, joined by a cable.
func (l *lab) pair() ([2]string, error) {
	hosts, err := l.two()
	if err == nil {
		err = l.cable(hosts[0], port, hosts[1], port)
	}
	if err != nil {
		return hosts, err
	}
	return hosts, l.number(hosts[:])
}

// two makes two hosts.
func (l *lab) two() (hosts [2]string, err error) {
	for i := range hosts {
		if hosts[i], err = l.host(); err != nil {
			return hosts, err
		}
	}
	return hosts, nil
}

// number gives hosts their addresses.
func (l *lab) number(hosts []string) error {
	for i, h := range hosts {
		if err := l.run("ip", "-n", h, "address", "add", fmt.Sprintf("10.98.0.%d/24", i+1), "dev", port); err != nil {
			return err
		}
	}
	return nil
}

// switched makes two hosts that are joined by a switch. It sends mbit 10^6 bits
// per second to each, and keeps up to queue bytes. Hosts send packets as they are
// on a wire, not joined, so that what loses one loses no more.
func (l *lab) switched(mbit, queue int) (hosts [2]string, err error) {
	if hosts, err = l.two(); err != nil {
		return hosts, err
	}
	_, err = l.join(hosts[:], []int{mbit, mbit}, queue)
	return hosts, err
}

// join joins hosts by a switch that sends to each at its rate, in 10^6 bits per second or
// 0 for no limit, and keeps up to queue bytes for it. It returns the switch.
func (l *lab) join(hosts []string, mbit []int, queue int) (string, error) {
	sw, err := l.host()
	if err != nil {
		return "", err
	}
	if err = l.all(
		[]string{"ip", "-n", sw, "link", "add", "bridge", "type", "bridge"},
		[]string{"ip", "-n", sw, "link", "set", "bridge", "up"},
	); err != nil {
		return "", err
	}
	for i, h := range hosts {
		p := fmt.Sprintf("port%d", i)
		if err = l.cable(h, port, sw, p); err != nil {
			return "", err
		}
		if err = l.all(
			[]string{"ip", "-n", sw, "link", "set", p, "master", "bridge"},
			[]string{"ip", "-n", h, "link", "set", port, "gso_max_segs", "1"},
		); err != nil {
			return "", err
		}
		if mbit[i] == 0 {
			continue
		}
		if err = l.shape(sw, p, float64(mbit[i]), queue); err != nil {
			return "", err
		}
	}
	return sw, l.number(hosts)
}

// shape has an interface of a host send mbit 10^6 bits per second, and keep up to queue
// bytes.
func (l *lab) shape(host, iface string, mbit float64, queue int) error {
	return l.run("tc", append([]string{"-n", host}, shaping("replace", iface, mbit, queue)...)...)
}

// shaping are the arguments with which tc does that: command is replace, or change where it is
// shaped already.
func shaping(command, iface string, mbit float64, queue int) []string {
	return []string{"qdisc", command, "dev", iface, "root", "tbf", "rate", fmt.Sprintf("%.0fkbit", 1000*mbit),
		"burst", "16kb", "limit", strconv.Itoa(queue)}
}

// impair has what comes to both hosts impaired.
func (l *lab) impair(hosts [2]string, p impair.Impairment) error {
	for _, h := range hosts {
		if p.Delay > 0 {
			if err := l.detour(h, p.Detour); err != nil {
				return err
			}
		}
		if err := inNamespace(h, func() error {
			index, detour, err := indexes(p.Delay > 0)
			if err != nil {
				return err
			}
			c, err := impair.Attach(p, index, detour)
			if err == nil {
				l.attached = append(l.attached, c)
			}
			return err
		}); err != nil {
			return fmt.Errorf("impair %s: %w", h, err)
		}
	}
	return nil
}

// detour makes a slow way that leads back to the host: what goes into slow0
// comes out of slow1, which has the address of the host's port.
func (l *lab) detour(host string, kbit int) error {
	mac := ""
	err := inNamespace(host, func() error {
		i, err := net.InterfaceByName(port)
		if err == nil {
			mac = i.HardwareAddr.String()
		}
		return err
	})
	if err != nil {
		return err
	}
	return l.all(
		[]string{"ip", "-n", host, "link", "add", "slow0", "type", "veth", "peer", "name", "slow1"},
		[]string{"ip", "-n", host, "link", "set", "slow1", "address", mac},
		[]string{"ip", "-n", host, "link", "set", "slow0", "up"},
		[]string{"ip", "-n", host, "link", "set", "slow1", "up"},
		[]string{"tc", "-n", host, "qdisc", "replace", "dev", "slow0", "root", "tbf", "rate",
			fmt.Sprintf("%dkbit", kbit), "burst", "1600", "limit", "60000"},
	)
}

// indexes are those of the calling thread's host's port and, if there is one, of
// the way into its detour.
func indexes(detour bool) (int, int, error) {
	i, err := net.InterfaceByName(port)
	if err != nil || !detour {
		return indexOf(i), 0, err
	}
	slow, err := net.InterfaceByName("slow0")
	return i.Index, indexOf(slow), err
}

func indexOf(i *net.Interface) int {
	if i == nil {
		return 0
	}
	return i.Index
}

// inNamespace runs f on a thread that is in the network namespace and ends with it.
func inNamespace(name string, f func() error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread is in the namespace for good
		fd, err := unix.Open("/run/netns/"+name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err == nil {
			err = unix.Setns(fd, unix.CLONE_NEWNET)
			_ = unix.Close(fd)
		}
		if err == nil {
			err = f()
		}
		done <- err
	}()
	return <-done
}
