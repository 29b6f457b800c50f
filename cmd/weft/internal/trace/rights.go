package trace

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// Capabilities that tracing needs; CAP_SYS_ADMIN has both of them.
var capabilities = []struct {
	bit  int
	name string
}{{unix.CAP_BPF, "CAP_BPF"}, {unix.CAP_PERFMON, "CAP_PERFMON"}}

// missing says why the kernel under root does not let this process trace: the
// reasons that can be known beforehand. effective are its capabilities.
func missing(root string, effective uint64) error {
	var list []error
	if _, err := os.Stat(filepath.Join(root, "sys/bus/event_source/devices/uprobe/type")); errors.Is(err,
		fs.ErrNotExist) {
		list = append(list, errors.New("the kernel has no uprobes, or /sys is not mounted (CONFIG_UPROBE_EVENTS)"))
	}
	if b, err := os.ReadFile(filepath.Join(root, "sys/kernel/security/lockdown")); err == nil &&
		strings.Contains(string(b), "[confidentiality]") {
		list = append(list, errors.New(
			"the kernel is locked down: /sys/kernel/security/lockdown is \"confidentiality\""))
	}
	if effective&(1<<unix.CAP_SYS_ADMIN) == 0 {
		for _, c := range capabilities {
			if effective&(1<<c.bit) == 0 {
				list = append(list, fmt.Errorf("%s is missing; run weft trace as root", c.name))
			}
		}
	}
	return errors.Join(list...)
}

// effective are the capabilities of this process.
func effective() (uint64, error) {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&header, &data[0]); err != nil {
		return 0, fmt.Errorf("capabilities: %w", err)
	}
	return uint64(data[1].Effective)<<32 | uint64(data[0].Effective), nil
}

// explain says what an error of the kernel most often means.
func explain(err error) error {
	switch {
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.EACCES):
		return fmt.Errorf("%w\nThe kernel refuses. In containers its system call filter may; "+
			"on the host /proc/sys/kernel/perf_event_paranoid and a security module may", err)
	case errors.Is(err, unix.ENOSYS):
		return fmt.Errorf("%w\nThe kernel has no eBPF (CONFIG_BPF_SYSCALL), or a system call filter hides it", err)
	}
	return err
}
