package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/Mellanox/rdmamap"
	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/features"
	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/internal/config"
	"github.com/weft-fabric/weft/internal/nic"
)

// read returns a file's text without the space around it, empty if there is none.
func read(parts ...string) string {
	b, err := os.ReadFile(filepath.Join(parts...))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// checkCores finds what disturbs measurements and busy polling.
func checkCores(_ context.Context, h *host) []Finding {
	var set unix.CPUSet
	usable := runtime.NumCPU()
	if err := unix.SchedGetaffinity(0, &set); err == nil {
		usable = set.Count()
	}
	what := fmt.Sprintf("%d cores for this process", usable)
	cpu := filepath.Join(h.sys, "devices/system/cpu")
	isolated := read(cpu, "isolated")
	if isolated == "" {
		what += ", none isolated"
	} else {
		what += ", isolated: " + isolated
	}
	var list []Finding
	if usable == 1 {
		list = append(list, Finding{"cores", Warn, what + ": ranks that poll take turns on one",
			"give the program one core for each rank (mpirun --bind-to core; containers: --cpuset-cpus)"})
	} else {
		list = good("cores", "%s", what)
	}
	if g := read(cpu, "cpu0/cpufreq/scaling_governor"); g == "powersave" || g == "ondemand" || g == "conservative" {
		list = append(list, Finding{"frequency", Warn, "the governor is " + g + ": latency varies with the clock",
			"cpupower frequency-set -g performance"})
	} else if g != "" {
		list = append(list, good("frequency", "the governor is %s", g)...)
	}
	return list
}

// checkRDMA finds the RDMA devices, and whether they can be opened.
func checkRDMA(_ context.Context, h *host) []Finding {
	var list []Finding
	for _, name := range rdmamap.GetRdmaDeviceList() {
		list = append(list, charDevices("rdma", name, rdmamap.GetRdmaCharDevices(name))...)
	}
	if cxi, _ := filepath.Glob(filepath.Join(h.dev, "cxi[0-9]*")); len(cxi) != 0 { // the pattern is well formed
		list = append(list, charDevices("rdma", "cxi", cxi)...)
	}
	if len(list) == 0 {
		return note("rdma", "no RDMA devices")
	}
	where := nic.ThisHost()
	where.Sys, where.Dev = h.sys, h.dev
	if err := where.Verbs(h.cfg.VerbsDevice); err != nil && !errors.Is(err, nic.ErrNoRDMA) {
		list = append(list, Finding{"rdma", Warn, "programs reach other hosts over UDP: " + err.Error(),
			"install libibverbs (Debian: libibverbs1 ibverbs-providers); in containers pass /dev/infiniband"})
	}
	return list
}

// checkSlingshot checks what a program would find of the NICs of Slingshot: the library and the file of one, its
// link, and the service and VNI that the launcher of the job has given.
func checkSlingshot(_ context.Context, h *host) (list []Finding) {
	if h.cfg.CXI == config.No {
		return note("slingshot", "FI_WEFT_CXI is no")
	}
	where := nic.ThisHost()
	where.Sys, where.Dev = h.sys, h.dev
	env := func(name string) string {
		v, _ := h.lookup(name)
		return v
	}
	for _, d := range where.CXIDevices(env) {
		if h.cfg.CXIDevice != "" && d.Name != h.cfg.CXIDevice {
			continue
		}
		service := "service: " + d.Why
		if d.Service != 0 {
			service = fmt.Sprintf("service %d, VNI %d: %s", d.Service, d.VNI, d.Why)
		}
		switch {
		case d.Problem != "" && d.Why == "":
			list = append(list, Finding{"slingshot", Warn, d.Name + ": " + d.Problem,
				"let the job's launcher set SLINGSHOT_VNIS, SLINGSHOT_DEVICES and SLINGSHOT_SVC_IDS, or none of them"})
		case d.Problem != "":
			list = append(list, Finding{"slingshot", Warn, "programs do not use the NIC of Slingshot: " + d.Name +
				": " + d.Problem,
				"install HPE's libcxi; in containers pass /dev/" + d.Name})
		case d.Link != "up":
			what := fmt.Sprintf("%s: the link is %s: programs reach other hosts over UDP", d.Name, d.Link)
			remedy := "ip link set " + cmp.Or(d.Netdev, "hsn0") + " up; check the cable and the switch"
			list = append(list, Finding{"slingshot", Warn, what, remedy})
		default:
			list = append(list, good("slingshot", "%s: NID %#x, link up, %d Mbit/s; %s (not verified on hardware)",
				d.Name, d.NID, d.Mbps, service)...)
		}
	}
	if len(list) == 0 {
		return note("slingshot", "no NIC of Slingshot")
	}
	return list
}

func charDevices(check, name string, paths []string) []Finding {
	for _, p := range paths {
		f, err := os.OpenFile(p, os.O_RDWR, 0)
		if err == nil {
			f.Close()
			continue
		}
		remedy := "as root: chmod 666 " + p + ", or a udev rule that does"
		if errors.Is(err, fs.ErrNotExist) {
			remedy = "load its kernel modules (modprobe ib_uverbs); in containers pass the device: --device=" + p
		}
		return []Finding{{check, Warn, fmt.Sprintf("%s: %v", name, err), remedy}}
	}
	if len(paths) == 0 {
		return []Finding{{check, Warn, name + " has no character devices", "modprobe ib_uverbs; in containers pass " +
			"/dev/infiniband"}}
	}
	return good(check, "%s: %s can be opened", name, strings.Join(paths, " "))
}

// checkTrace asks whether weft trace can work.
func checkTrace(_ context.Context, h *host) []Finding {
	if _, err := os.Stat(filepath.Join(h.sys, "bus/event_source/devices/uprobe")); err != nil {
		return []Finding{{"trace", Note, "the kernel has no uprobes (CONFIG_UPROBE_EVENTS): weft trace cannot work",
			"a kernel built with uprobes"}}
	}
	switch err := features.HaveProgramType(ebpf.Kprobe); {
	case err == nil:
		return good("trace", "the kernel takes eBPF programs on uprobes: weft trace works")
	case errors.Is(err, ebpf.ErrNotSupported):
		return []Finding{{"trace", Note, "the kernel takes no eBPF programs on probes: weft trace cannot work",
			"a kernel built with CONFIG_BPF_SYSCALL and CONFIG_BPF_EVENTS"}}
	case errors.Is(err, fs.ErrPermission):
		return []Finding{{"trace", Note, "weft trace needs CAP_BPF and CAP_PERFMON (or root)", "sudo weft trace PID"}}
	default:
		return note("trace", "not known: %v", err)
	}
}
