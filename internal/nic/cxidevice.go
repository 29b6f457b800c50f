package nic

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// CXIDevice is what the kernel says of a NIC of Slingshot, and what a program would choose there. Numbers that the
// kernel does not say are 0.
type CXIDevice struct {
	Name     string `json:"name"`
	NID      uint64 `json:"nid"` // its address in the fabric
	Netdev   string `json:"netdev,omitempty"`
	Link     string `json:"link,omitempty"` // the network interface's state: up, down, unknown
	Mbps     uint64 `json:"mbps,omitempty"` // of the link
	MTU      uint64 `json:"mtu,omitempty"`
	NUMANode int    `json:"numa_node"` // -1: not known
	// Generation of the NIC: Cassini 1 or 2, 0: not known.
	Generation int `json:"generation,omitempty"`
	// Limits are what it has of its objects in all, in the order of their names.
	Limits []CXILimit `json:"limits"`
	// Service and VNI are what the launcher of the job says, in SLINGSHOT_SVC_IDS and SLINGSHOT_VNIS; 0: it says
	// nothing, and a program asks the driver for the service that admits it.
	Service uint32 `json:"service,omitempty"`
	VNI     uint16 `json:"vni,omitempty"`
	// Why says how a program chooses the service and the VNI.
	Why string `json:"why,omitempty"`
	// Problem is what keeps programs from using it, empty: nothing that is seen without the library.
	Problem string `json:"problem,omitempty"`
}

// CXILimit is how many of one kind of object a NIC has.
type CXILimit struct {
	What  string `json:"what"`
	Count uint64 `json:"count"`
}

// cxiLimits are the files of limits, and what they count.
var cxiLimits = []struct{ file, what string }{
	{"num_acs", "address contexts"}, {"num_cts", "counters"}, {"num_eqs", "event queues"}, {"num_les", "list entries"},
	{"pid_count", "PIDs"}, {"num_ptes", "portal table entries"}, {"num_tgqs", "target queues"},
	{"num_txqs", "transmit queues"},
	{"num_tles", "triggered entries"},
}

// CXIDevices lists the NICs of Slingshot by name. env reads the variables of the launcher.
func (h Host) CXIDevices(env func(string) string) []CXIDevice {
	found, _ := filepath.Glob(filepath.Join(h.Sys, "class/cxi/*")) // the pattern is well formed
	slices.SortFunc(found, func(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) })
	list := []CXIDevice{}
	for _, dir := range found {
		d := h.cxiDevice(dir)
		d.launched(env)
		if err := h.CXI(d.Name); err != nil {
			d.Problem = err.Error()
		}
		list = append(list, d)
	}
	return list
}

// cxiDevice reads the folder of a NIC.
func (h Host) cxiDevice(dir string) CXIDevice {
	at := filepath.Join(dir, "device")
	properties := filepath.Join(at, "properties")
	d := CXIDevice{
		Name: filepath.Base(dir), NID: hexadecimal(properties, "nid"), Mbps: number(properties, "speed"),
		MTU:  number(properties, "hpc_mtu"),
		Link: "down", NUMANode: -1, Limits: []CXILimit{},
	}
	if number(properties, "link") != 0 {
		d.Link = "up"
	}
	if n, err := strconv.Atoi(text(at, "numa_node")); err == nil {
		d.NUMANode = n
	}
	// 1.1 is the first generation, 2.0 the second.
	if g, _, _ := strings.Cut(text(properties, "cassini_version"), "."); g != "" {
		d.Generation, _ = strconv.Atoi(g)
	}
	for _, l := range cxiLimits {
		if n := number(properties, l.file); n != 0 {
			d.Limits = append(d.Limits, CXILimit{l.what, n})
		}
	}
	own, err := filepath.EvalSymlinks(at)
	links, _ := filepath.Glob(filepath.Join(h.Sys, "class/net/*/device")) // the pattern is well formed
	for _, link := range links {
		to, linkErr := filepath.EvalSymlinks(link)
		if err != nil || linkErr != nil || filepath.Base(to) != filepath.Base(own) {
			continue
		}
		net := filepath.Dir(link)
		d.Netdev, d.Link = filepath.Base(net), text(net, "operstate")
		if n := number(net, "speed"); n != 0 {
			d.Mbps = n
		}
	}
	return d
}

// hexadecimal reads a file that holds a number to the base 16, with or without 0x; 0: it does not.
func hexadecimal(dir, name string) uint64 {
	n, err := strconv.ParseUint(strings.TrimPrefix(text(dir, name), "0x"), 16, 64)
	if err != nil {
		return 0
	}
	return n
}

// number reads a file that holds a number; 0: it does not.
func number(dir, name string) uint64 {
	n, err := strconv.ParseUint(text(dir, name), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// Launched reads what the launcher of a job gives a device: SLINGSHOT_VNIS, SLINGSHOT_DEVICES and SLINGSHOT_SVC_IDS
// are lists; the place of the device in one is that of its service in the other, and the first VNI counts. False: it
// says nothing, or nothing of this device. An error says which variable is wrong.
func Launched(device string, env func(string) string) (service uint32, vni uint16, ok bool, err error) {
	vnis, devices, services := env("SLINGSHOT_VNIS"), env("SLINGSHOT_DEVICES"), env("SLINGSHOT_SVC_IDS")
	if vnis == "" || devices == "" || services == "" {
		return 0, 0, false, nil
	}
	at := slices.Index(strings.Split(devices, ","), device)
	if at < 0 {
		return 0, 0, false, nil
	}
	ids := strings.Split(services, ",")
	first, _, _ := strings.Cut(vnis, ",")
	v, err := strconv.ParseUint(strings.TrimSpace(first), 10, 16)
	if err != nil || v == 0 {
		return 0, 0, false, fmt.Errorf("SLINGSHOT_VNIS=%s: the first is no VNI, 1 to 65535", vnis)
	}
	if at >= len(ids) {
		return 0, 0, false, fmt.Errorf("SLINGSHOT_SVC_IDS=%s has no service for %s", services, device)
	}
	id, err := strconv.ParseUint(strings.TrimSpace(ids[at]), 10, 32)
	if err != nil {
		return 0, 0, false, fmt.Errorf("SLINGSHOT_SVC_IDS=%s: %q is no service", services, ids[at])
	}
	return uint32(id), uint16(v), true, nil
}

// launched fills in what the launcher says.
func (d *CXIDevice) launched(env func(string) string) {
	service, vni, ok, err := Launched(d.Name, env)
	switch {
	case err != nil:
		d.Problem = err.Error()
	case ok:
		d.Service, d.VNI, d.Why = service, vni, "SLINGSHOT_SVC_IDS and SLINGSHOT_VNIS, set by the job's launcher"
	case env("SLINGSHOT_DEVICES") != "":
		d.Why = "the service that admits the process: the launcher's SLINGSHOT_DEVICES=" + env("SLINGSHOT_DEVICES") +
			" does not name it"
	default:
		d.Why = "the service that admits the network namespace, else the user, the group, everybody: " +
			"no launcher has set SLINGSHOT_SVC_IDS"
	}
}

// Telemetry is a counter of a NIC about its traffic, by the name of its file below device/telemetry.
type Telemetry struct{ Name, Help string }

// CXITelemetry are the counters to read first.
var CXITelemetry = []Telemetry{
	{"lpe_success_cntr", "operations that arrived and found an entry"},
	{"lpe_err_entry_not_found_no_match_in_overflow", "operations refused: the receiver had no entry"},
	{"ee_events_dropped_ordinary_cntr_0", "events dropped: their queue was full"},
	{"pct_retry_srb_requests", "requests sent again"},
	{"pct_spt_timeouts", "requests without an answer in time"},
	{"pct_sct_timeouts", "connections without an answer in time"},
	{"pct_no_tct_nacks", "refused: no connection left at the target"},
	{"pct_no_trs_nacks", "refused: no tracking state left at the target"},
	{"hni_rx_paused_0", "times that the switch was paused"},
	{"hni_tx_paused_0", "times that the switch paused the NIC"},
	{"hni_discard_cntr_0", "packets discarded"},
}

// Telemetry reads the counters of CXITelemetry of a NIC; those that the kernel does not have are missing. The values
// only rise.
func (h Host) Telemetry(device string) map[string]uint64 {
	values := map[string]uint64{}
	for _, c := range CXITelemetry {
		if n, ok := h.TelemetryOf(device, c.Name); ok {
			values[c.Name] = n
		}
	}
	return values
}

// TelemetryOf reads one counter of a NIC by the name of its file, which has no slash. False: the kernel does not have
// it.
func (h Host) TelemetryOf(device, name string) (uint64, bool) {
	// The value, an @, and the time.
	v, _, _ := strings.Cut(text(h.Sys, "class/cxi", device, "device/telemetry", name), "@")
	n, err := strconv.ParseUint(v, 10, 64)
	return n, err == nil
}
