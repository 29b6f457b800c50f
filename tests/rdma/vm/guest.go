package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// options say how machines are made and what they run.
type options struct {
	accel   string
	memory  int // MiB
	cpus    int
	mtu     int
	timeout time.Duration
	env     []string
	command []string
	verbose bool
}

// guest is one virtual machine.
type guest struct {
	node   int
	dir    string // scratch
	cmd    *exec.Cmd
	out    *os.File // read end of its output
	copied chan struct{}
	killed bool
}

// Exit statuses that are not a job's.
const (
	statusTimeout = 124
	statusBroken  = 125
	statusKilled  = 137
)

// newGuest prepares a machine. wire is the emulator's description of its
// network, empty for none: then it has one dummy network interface.
func newGuest(o *options, img image, node int, wire string) (*guest, error) {
	dir, err := os.MkdirTemp("", "weft-rdma.")
	if err != nil {
		return nil, err
	}
	g := &guest{node: node, dir: dir, copied: make(chan struct{})}
	if err := os.Mkdir(g.control(""), 0o755); err != nil {
		return nil, err
	}
	folder, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	for name, text := range map[string]string{"folder": folder, "job": job(o, node, wire != "", folder)} {
		if err := os.WriteFile(g.control(name), []byte(text), 0o644); err != nil {
			return nil, err
		}
	}
	args := []string{
		"-nodefaults", "-no-user-config", "-no-reboot", "-display", "none", "-M", "q35",
		"-m", strconv.Itoa(o.memory), "-smp", strconv.Itoa(o.cpus),
		"-kernel", img.kernel, "-initrd", img.initrd,
		"-append", "console=ttyS0 panic=-1 tsc=reliable mitigations=off quiet",
		"-chardev", "file,id=console,path=" + filepath.Join(dir, "console"), "-serial", "chardev:console",
		"-device", "virtio-serial-pci", "-chardev", "file,id=out,path=/dev/fd/3",
		"-device", "virtserialport,chardev=out,name=out",
	}
	if o.accel == "kvm" {
		args = append(args, "-accel", "kvm", "-cpu", "host")
	} else {
		args = append(args, "-accel", "tcg,thread=multi,tb-size=256", "-cpu", "max")
	}
	args = append(args, share("root", "/", ",readonly=on")...)
	args = append(args, share("folder", folder, ",readonly=on")...)
	args = append(args, share("ctl", g.control(""), "")...)
	if wire != "" {
		args = append(args, "-netdev", wire, "-device",
			fmt.Sprintf("virtio-net-pci,netdev=wire,romfile=,mac=52:54:00:77:00:%02x", node+1))
	}
	g.cmd = exec.Command("qemu-system-x86_64", args...)
	return g, nil
}

// share describes a folder of the host for the emulator.
func share(tag, path, more string) []string {
	return []string{
		"-fsdev", "local,id=" + tag + ",path=" + path + ",security_model=none,multidevs=remap" + more,
		"-device", "virtio-9p-pci,fsdev=" + tag + ",mount_tag=" + tag,
	}
}

func (g *guest) control(name string) string { return filepath.Join(g.dir, "ctl", name) }

// job is the script that the machine runs in a folder: it makes the network interface and
// the soft-RoCE device on it, then runs the command.
func job(o *options, node int, wired bool, folder string) string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("set -e")
	line("ip link set lo up")
	if wired {
		line("dev=$(basename \"$(dirname \"$(ls -d /sys/class/net/*/device | head -n 1)\")\")")
	} else {
		line("[ -e /sys/class/net/dummy0 ] || ip link add dummy0 type dummy") // loading the module makes one
		line("dev=dummy0")
	}
	line("ip link set $dev mtu %d", o.mtu)
	line("ip addr add 10.77.0.%d/24 dev $dev", node+1)
	line("ip link set $dev up")
	line("rdma link add rxe0 type rxe netdev $dev")
	line("export NETDEV=$dev NODE=%d OWN=10.77.0.%d OTHER=10.77.0.%d", node, node+1, 2-node)
	line("hostname node%d", node)
	line("ulimit -l unlimited; ulimit -c 0")
	for _, e := range o.env {
		if name, value, ok := strings.Cut(e, "="); ok {
			line("export %s=%s", name, quote(value))
		}
	}
	line("cd %s", quote(folder))
	quoted := make([]string, len(o.command))
	for i, c := range o.command {
		quoted[i] = quote(c)
	}
	line("exec %s", strings.Join(quoted, " "))
	return b.String()
}

// quote makes a word of the shell.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// start boots the machine and copies its output to w, each line with prefix.
func (g *guest) start(w io.Writer, prefix string) error {
	r, out, err := os.Pipe()
	if err != nil {
		return err
	}
	g.out = r
	g.cmd.ExtraFiles = []*os.File{out}
	errors, err := os.Create(filepath.Join(g.dir, "errors"))
	if err != nil {
		return err
	}
	g.cmd.Stderr = errors
	err = g.cmd.Start()
	_ = out.Close()
	_ = errors.Close()
	if err != nil {
		return fmt.Errorf("start the emulator: %w", err)
	}
	go func() {
		defer close(g.copied)
		for s := bufio.NewScanner(r); s.Scan(); {
			fmt.Fprintf(w, "%s%s\n", prefix, s.Text())
		}
	}()
	return nil
}

// kill ends the machine as a power cut does.
func (g *guest) kill() {
	if g.cmd.Process != nil {
		_ = g.cmd.Process.Kill()
	}
}

// watch kills the machine when its job asks for it: it makes the file kill in
// the control folder. It ends with the machine.
func (g *guest) watch(stop <-chan struct{}) {
	for {
		select {
		case <-stop:
			return
		case <-time.After(5 * time.Millisecond):
		}
		if _, err := os.Stat(g.control("kill")); err == nil {
			g.killed = true
			g.kill()
			return
		}
	}
}

// wait waits for the machine's end, at most until the deadline, and returns the
// job's exit status.
func (g *guest) wait(deadline time.Time) int {
	ended := make(chan struct{})
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		g.watch(ended)
	}()
	timer := time.AfterFunc(time.Until(deadline), g.kill)
	_ = g.cmd.Wait()
	late := !timer.Stop()
	close(ended)
	<-watched
	<-g.copied
	_ = g.out.Close()
	b, err := os.ReadFile(g.control("status"))
	status, parse := strconv.Atoi(strings.TrimSpace(string(b)))
	switch {
	case g.killed:
		return statusKilled
	case err == nil && parse == nil:
		return status
	case late:
		return statusTimeout
	}
	return statusBroken
}

// faults are lines of a kernel's log that say that the kernel itself failed.
var faults = regexp.MustCompile(`WARNING: CPU|BUG:|Oops|general protection|Kernel panic|^init:`)

// explain writes what may say why a machine ended with status.
func (g *guest) explain(w io.Writer, status int, verbose bool) {
	read := func(name string) []string {
		b, err := os.ReadFile(filepath.Join(g.dir, name))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			fmt.Fprintln(w, err)
		}
		return strings.Split(strings.TrimSpace(string(b)), "\n")
	}
	all := append(read("console"), read("ctl/dmesg")...)
	broken := status == statusBroken || status == statusTimeout
	if broken || verbose {
		all = append(read("errors"), all...)
	}
	for n, l := range all {
		if faults.MatchString(l) || verbose || broken && n > len(all)-40 {
			fmt.Fprintf(w, "[kernel %d] %s\n", g.node, l)
		}
	}
}

// reportEnded notifies the machine's job that the other machine has ended, in the file ended of its control
// folder. The file is there at once or not at all.
func (g *guest) reportEnded(status int) {
	part := g.control("ended.part")
	if os.WriteFile(part, []byte(strconv.Itoa(status)), 0o644) == nil {
		_ = os.Rename(part, g.control("ended"))
	}
}

func (g *guest) discard() { _ = os.RemoveAll(g.dir) }
