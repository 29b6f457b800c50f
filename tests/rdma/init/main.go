// Program init is the first process of a virtual machine of tests/rdma/vm: it
// loads modules, shows the job the host's root under a throw-away layer, runs
// the job and leaves its exit status in the control folder.
package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// A status for a machine that failed before its job ran.
const statusBroken = 125

func main() {
	status := statusBroken
	if err := prepare(); err != nil {
		fmt.Fprintln(os.Stderr, "init:", err)
	} else {
		status = run()
	}
	if err := report(status); err != nil {
		fmt.Fprintln(os.Stderr, "init:", err)
	}
	unix.Sync()
	_ = unix.Reboot(unix.LINUX_REBOOT_CMD_RESTART) // the emulator was asked to end instead
}

// mount is one call of mount(2), with its folder.
type mount struct{ source, target, kind, data string }

func (m mount) do() error {
	if err := os.MkdirAll(m.target, 0o755); err != nil {
		return err
	}
	var flags uintptr
	data := m.data
	if rest, ok := strings.CutPrefix(data, "ro,"); ok {
		flags, data = unix.MS_RDONLY, rest
	}
	if m.kind == "bind" {
		flags |= unix.MS_BIND
	}
	if err := unix.Mount(m.source, m.target, m.kind, flags, data); err != nil {
		return fmt.Errorf("mount %s: %w", m.target, err)
	}
	return nil
}

const plan9 = "trans=virtio,version=9p2000.L,msize=524288,"

func prepare() error {
	for _, m := range []mount{
		{"proc", "/proc", "proc", ""},
		{"sys", "/sys", "sysfs", ""},
		{"dev", "/dev", "devtmpfs", ""},
	} {
		if err := m.do(); err != nil {
			return err
		}
	}
	if err := loadModules(); err != nil {
		return err
	}
	for _, m := range []mount{
		{"ctl", "/ctl", "9p", plan9 + "cache=none"},
		{"root", "/host", "9p", "ro," + plan9 + "cache=loose"},
		{"layer", "/layer", "tmpfs", "mode=755"},
	} {
		if err := m.do(); err != nil {
			return err
		}
	}
	if err := errors.Join(os.Mkdir("/layer/up", 0o755), os.Mkdir("/layer/work", 0o755)); err != nil {
		return err
	}
	for _, m := range []mount{
		{"root", "/new", "overlay", "lowerdir=/host,upperdir=/layer/up,workdir=/layer/work"},
		{"proc", "/new/proc", "proc", ""},
		{"sys", "/new/sys", "sysfs", ""},
		{"dev", "/new/dev", "devtmpfs", ""},
		{"pts", "/new/dev/pts", "devpts", "mode=620,ptmxmode=666"},
		{"shm", "/new/dev/shm", "tmpfs", "mode=1777"},
		{"run", "/new/run", "tmpfs", "mode=755"},
		{"/ctl", "/new/run/ctl", "bind", ""},
	} {
		if err := m.do(); err != nil {
			return err
		}
	}
	if err := hideSymbols(); err != nil {
		return err
	}
	return showFolder()
}

// hideSymbols shows the job no symbols of the kernel: libfabric's verbs provider reads all of them in each process that
// loads it, which takes seconds on an emulated processor.
func hideSymbols() error {
	const list = "/new/proc/kallsyms"
	if err := unix.Mount("/new/dev/null", list, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("hide %s: %w", list, err)
	}
	return nil
}

// showFolder shows the job its working folder, wherever that is: a folder below
// what was mounted above, or on a file system of its own, is not to be seen in
// the host's root.
func showFolder() error {
	name, err := os.ReadFile("/ctl/folder")
	if err != nil {
		return err
	}
	if err := errors.Join(os.Mkdir("/layer/folder", 0o755), os.Mkdir("/layer/folderwork", 0o755)); err != nil {
		return err
	}
	for _, m := range []mount{
		{"folder", "/folder", "9p", "ro," + plan9 + "cache=loose"},
		{"folder", "/new" + string(name), "overlay",
			"lowerdir=/folder,upperdir=/layer/folder,workdir=/layer/folderwork"},
	} {
		if err := m.do(); err != nil {
			return err
		}
	}
	return nil
}

// loadModules inserts what /modules lists, in its order.
func loadModules() error {
	list, err := os.ReadFile("/modules")
	if err != nil {
		return err
	}
	for _, name := range strings.Fields(string(list)) {
		f, err := os.Open(filepath.Join("/mod", name))
		if err != nil {
			return err
		}
		err = unix.FinitModule(int(f.Fd()), "", 0)
		_ = f.Close()
		if err != nil && !errors.Is(err, unix.EEXIST) {
			return fmt.Errorf("insert %s: %w", name, err)
		}
	}
	return nil
}

// port opens the virtio serial port called name.
func port(name string) (*os.File, error) {
	dirs, _ := filepath.Glob("/sys/class/virtio-ports/*")
	for _, d := range dirs {
		if b, err := os.ReadFile(filepath.Join(d, "name")); err == nil && strings.TrimSpace(string(b)) == name {
			return os.OpenFile(filepath.Join("/dev", filepath.Base(d)), os.O_WRONLY, 0)
		}
	}
	return nil, fmt.Errorf("no port %s", name)
}

// run runs the job and returns its exit status.
func run() int {
	out, err := port("out")
	if err != nil {
		fmt.Fprintln(os.Stderr, "init:", err)
		return statusBroken
	}
	cmd := exec.Command("/bin/bash", "/run/ctl/job")
	cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: "/new", Setsid: true}
	cmd.Dir = "/"
	cmd.Env = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/tmp"}
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Run(); err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			fmt.Fprintln(os.Stderr, "init:", err)
			return statusBroken
		}
		if exit.ExitCode() < 0 {
			return 128
		}
		return exit.ExitCode()
	}
	return 0
}

// report leaves the kernel's log and the status where the host polls.
func report(status int) error {
	log := make([]byte, 1<<18)
	n, err := unix.Klogctl(unix.SYSLOG_ACTION_READ_ALL, log)
	if err == nil {
		err = os.WriteFile("/ctl/dmesg", log[:n], 0o644)
	}
	return errors.Join(err, os.WriteFile("/ctl/status", []byte(strconv.Itoa(status)), 0o644))
}
