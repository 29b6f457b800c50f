// Package info is "weft info": what this host and this build of weft offer, and
// how it is configured.
package info

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/Mellanox/rdmamap"
	"github.com/spf13/cobra"

	"github.com/weft-fabric/weft/cmd/weft/internal/fabric"
	"github.com/weft-fabric/weft/cmd/weft/internal/text"
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/config"
	"github.com/weft-fabric/weft/internal/nic"
	"github.com/weft-fabric/weft/internal/probe"
	"github.com/weft-fabric/weft/internal/ptp"
	"github.com/weft-fabric/weft/internal/version"
	"github.com/weft-fabric/weft/provider"
	"github.com/weft-fabric/weft/provider/names"
)

// Report is what the command shows; its JSON is for programs.
type Report struct {
	Version   string    `json:"version"`
	Libraries []Library `json:"libraries"`
	Devices   []Device  `json:"devices"`
	RDMA      []RDMA    `json:"rdma"`
	// Slingshot are the NICs of HPE Slingshot.
	Slingshot []nic.CXIDevice `json:"slingshot"`
	Clocks    []Clock         `json:"clocks"`
	Backends  []Backend       `json:"backends"`
	Offers    []Offer         `json:"offers"`
	OfferErr  string          `json:"offers_error,omitempty"`
	Limits    []Limit         `json:"limits"`
	Variables []Variable      `json:"variables"`
	Unknown   []string        `json:"unknown_variables,omitempty"`
	// Elsewhere has what programs on other libfabrics of this host find set.
	Elsewhere []Elsewhere `json:"variables_elsewhere,omitempty"`
}

// RDMA is an RDMA device.
type RDMA struct {
	Name    string   `json:"name"`
	Ports   []string `json:"ports"`
	Chars   []string `json:"character_devices"`
	Problem string   `json:"problem,omitempty"`
}

// Clock is what PTP says about the clock of a network interface.
type Clock struct {
	Interface    string `json:"interface"`
	Device       string `json:"ptp_device,omitempty"`
	Transmit     bool   `json:"hardware_stamps_sent"`
	Receive      bool   `json:"hardware_stamps_received"`
	Synchronised bool   `json:"synchronised"`
	ErrorNS      int64  `json:"error_nanoseconds,omitempty"`
	Problem      string `json:"problem,omitempty"`
}

// Backend is a transport of this build.
type Backend struct {
	Name      string   `json:"name"`
	Reaches   string   `json:"reaches"`
	Usable    bool     `json:"usable"`
	Problem   string   `json:"problem,omitempty"`
	Abilities []string `json:"abilities,omitempty"`
	Bandwidth float64  `json:"bandwidth_bytes_per_second,omitempty"`
	Latency   float64  `json:"latency_seconds,omitempty"`
}

// Offer is an answer of fi_getinfo.
type Offer struct {
	Type    string `json:"type"`
	Fabric  string `json:"fabric"`
	Domain  string `json:"domain"`
	Address string `json:"address"`
	Format  string `json:"format"`
}

// endpointTypes are the names of the types that weft offers.
var endpointTypes = map[fi.EPType]string{fi.EPRDM: "FI_EP_RDM", fi.EPMsg: "FI_EP_MSG", fi.EPDgram: "FI_EP_DGRAM"}

// Limit is one limit of the provider.
type Limit struct {
	Name  string `json:"name"`
	Value uint64 `json:"value"`
	Unit  string `json:"unit"`
}

// Variable is a variable of the configuration.
type Variable struct {
	Name    string `json:"name"`
	Value   string `json:"value"`
	Source  string `json:"source"` // default, environment or file
	File    string `json:"file,omitempty"`
	Default string `json:"default"`
	Unit    string `json:"unit,omitempty"`
	Problem string `json:"problem,omitempty"`
}

// Elsewhere is a variable in the file of a libfabric that is not the loader's first.
type Elsewhere struct {
	Name    string `json:"name"`
	Value   string `json:"value"`
	File    string `json:"file"`
	Library string `json:"library"`
}

// Command is "weft info".
func Command() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "info",
		Short: "Show devices, backends, addresses, limits and settings",
		Long: `Shows what this host and this build of weft offer: network interfaces and RDMA
devices, backends and why one is not usable, the addresses that fi_getinfo
returns, limits, and every FI_WEFT_* variable with its value and where it comes
from: the environment, or the file libfabric.conf that libfabric 2.0 and later
read. The status is 1 if a variable has a bad value or no backend is usable.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			r := Collect(fabric.Find(fabric.Roots()), os.LookupEnv, os.Environ())
			w := cmd.OutOrStdout()
			if asJSON {
				if err := text.JSON(w, r); err != nil {
					return err
				}
			} else if err := r.Write(w, text.StyleFor(w)); err != nil {
				return err
			}
			return r.problem()
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "write JSON")
	return c
}

// Collect makes the report in an environment. Programs run on the first of the
// libraries if nothing sends them to another one.
func Collect(libraries []fabric.Library, lookup func(string) (string, bool), environ []string) *Report {
	r := &Report{Version: version.String(), RDMA: rdma(), Slingshot: nic.ThisHost().CXIDevices(value(lookup)),
		Unknown: config.Unknown(environ)}
	settings := fabric.SettingsOf(fabric.Library{}, lookup)
	for i, l := range libraries {
		if s := fabric.SettingsOf(l, lookup); i == 0 {
			settings = s
		} else {
			r.Elsewhere = append(r.Elsewhere, elsewhere(l, s)...)
		}
	}
	r.Variables = variables(settings)
	r.Libraries = weftLibraries(settings)
	only, _ := settings.Lookup("FI_WEFT_IFACE")
	r.Devices = devices(only)
	cfg, err := config.Load(settings.Lookup)
	if err != nil {
		r.OfferErr = err.Error()
		return r
	}
	r.Clocks = clocks(cfg, r.Devices)
	for _, b := range provider.Backends(cfg) {
		r.Backends = append(r.Backends, backend(b))
	}
	infos, err := provider.GetInfo(fi.Version(1, 17), "", "", 0, nil)
	if err != nil {
		r.OfferErr = fmt.Sprintf("fi_getinfo: %v", err)
		return r
	}
	for _, i := range infos {
		o := Offer{Type: endpointTypes[i.EP.Type], Fabric: i.Fabric.Name, Domain: i.Domain.Name,
			Format: format(i.AddrFormat)}
		if n, err := names.Decode(i.AddrFormat, i.SrcAddr); err == nil {
			o.Address = n.Addr().String()
		}
		r.Offers = append(r.Offers, o)
	}
	if len(infos) != 0 {
		r.Limits = limits(infos[0])
	}
	return r
}

// problem is the error for the exit status.
func (r *Report) problem() error {
	for _, v := range r.Variables {
		if v.Problem != "" {
			return fmt.Errorf("%s=%q: %s", v.Name, v.Value, v.Problem)
		}
	}
	if len(r.Backends) == 0 && r.OfferErr != "" {
		return errors.New(r.OfferErr) // variables that contradict each other
	}
	// Every endpoint opens the one to peers on this host; the others may be missing.
	if len(r.Backends) != 0 && !r.Backends[0].Usable {
		return fmt.Errorf("backend %s is not usable: %s", r.Backends[0].Name, r.Backends[0].Problem)
	}
	return nil
}

// clocks are those of the interfaces that lead to other hosts.
func clocks(cfg *config.Config, devices []Device) []Clock {
	out := []Clock{}
	for _, d := range devices {
		if !d.Up || len(d.Addresses) == 0 || d.Name == "lo" {
			continue
		}
		c := probe.ReadClock(cfg, d.Name, ptp.Sources{})
		k := Clock{
			Interface: d.Name, Device: c.Device, Transmit: c.Transmit, Receive: c.Receive,
			Synchronised: c.Synchronised, ErrorNS: c.Error.Nanoseconds(),
		}
		if c.Reason != nil {
			k.Problem = c.Reason.Error()
		}
		out = append(out, k)
	}
	return out
}

func rdma() []RDMA {
	out := []RDMA{}
	for _, name := range rdmamap.GetRdmaDeviceList() {
		d := RDMA{Name: name, Ports: rdmamap.GetPorts(name), Chars: rdmamap.GetRdmaCharDevices(name)}
		for _, c := range d.Chars {
			if f, err := os.OpenFile(c, os.O_RDWR, 0); err == nil {
				f.Close()
			} else if d.Problem == "" {
				d.Problem = err.Error()
			}
		}
		out = append(out, d)
	}
	return out
}

// abilities are the capability bits that people ask about.
var abilities = []struct {
	bit  hw.Cap
	name string
}{
	{hw.CapSameHost, "same host only"},
	{hw.CapDirectRing, "posts from C"},
	{hw.CapDriven, "posts from C"},
	{hw.CapPeerMemory, "reads the peer's memory (one copy)"},
	{hw.CapOrdered, "ordered"},
	{hw.CapWakeup, "can sleep"},
}

func backend(b provider.Backend) Backend {
	out := Backend{Name: b.Name, Reaches: b.Reaches, Usable: b.Err == nil}
	if b.Err != nil {
		out.Problem = b.Err.Error()
		return out
	}
	for _, a := range abilities {
		if b.Attr.Caps&a.bit != 0 {
			out.Abilities = append(out.Abilities, a.name)
		}
	}
	out.Bandwidth, out.Latency = b.Attr.Bandwidth, b.Attr.Latency
	return out
}

func format(f fi.AddrFormat) string {
	switch f {
	case fi.SockaddrIn:
		return "IPv4"
	case fi.SockaddrIn6:
		return "IPv6"
	}
	return fmt.Sprint(f)
}

func limits(i *fi.Info) []Limit {
	return []Limit{
		{"largest message", i.EP.MaxMsgSize, "bytes"},
		{"largest inject", i.Tx.InjectSize, "bytes"},
		{"elements of a vector", i.Tx.IOVLimit, ""},
		{"operations of a transmit queue", i.Tx.Size, ""},
		{"operations of a receive queue", i.Rx.Size, ""},
	}
}

func variables(settings *fabric.Settings) []Variable {
	var list []Variable
	for _, v := range config.Table() {
		out := Variable{Name: v.Env(), Value: v.Default, Source: "default", Default: v.Default, Unit: v.Unit}
		if s, inFile, ok := settings.Find(v.Env()); ok {
			out.Value, out.Source = s, "environment"
			if inFile {
				out.Source, out.File = "file", settings.File
			}
			if _, err := config.Load(func(n string) (string, bool) { return s, n == v.Env() }); err != nil {
				out.Problem = "range: " + v.Range
			}
		}
		list = append(list, out)
	}
	return list
}

// elsewhere are the variables that the file of another library has.
func elsewhere(l fabric.Library, s *fabric.Settings) []Elsewhere {
	var list []Elsewhere
	for _, name := range s.Names() {
		if value, inFile, _ := s.Find(name); inFile && strings.HasPrefix(name, "FI_WEFT_") {
			list = append(list, Elsewhere{name, value, s.File, l.Path})
		}
	}
	return list
}

// Write writes the report for people.
func (r *Report) Write(w io.Writer, s text.Style) error {
	var lines []string
	section := func(title string, t *text.Table, none string) {
		lines = append(lines, "", s.Bold(title))
		if rows := t.Lines("  "); len(rows) != 0 {
			lines = append(lines, rows...)
		} else {
			lines = append(lines, "  "+s.Dim(none))
		}
	}
	lines = append(lines, s.Bold("weft "+r.Version))
	section("Libraries", r.libraryTable(s), "none")
	section("Network interfaces, in the order of fi_getinfo", r.deviceTable(s), "none")
	section("RDMA devices", r.rdmaTable(s), "none")
	section("Slingshot NICs (weft's use of them is not verified on hardware)", r.slingshotTable(s), "none")
	section("Clocks (PTP)", r.clockTable(s), "none")
	section("Backends", r.backendTable(s), "none: "+r.OfferErr)
	section("Offered by fi_getinfo", r.offerTable(), r.OfferErr)
	section("Limits", r.limitTable(), "not known")
	section("Settings", r.variableTable(s), "none")
	for _, u := range r.Unknown {
		lines = append(lines, "  "+s.Warn(u+" is set, but is not a variable of weft"))
	}
	for _, e := range r.Elsewhere {
		lines = append(lines, fmt.Sprintf("  %s=%s in %s, for programs on %s", e.Name, e.Value, e.File, e.Library))
	}
	_, err := io.WriteString(w, strings.Join(lines, "\n")+"\n")
	if err != nil {
		return fmt.Errorf("write: %w", err)
	}
	return nil
}

func (r *Report) rdmaTable(s text.Style) *text.Table {
	t := &text.Table{}
	for _, d := range r.RDMA {
		t.Row(d.Name, "ports "+strings.Join(d.Ports, " "), strings.Join(d.Chars, " "), s.Bad(d.Problem))
	}
	return t
}

func (r *Report) clockTable(s text.Style) *text.Table {
	t := &text.Table{}
	for _, c := range r.Clocks {
		device := c.Device
		if device == "" {
			device = s.Dim("no PTP clock")
		}
		state := s.Dim(c.Problem)
		if c.Synchronised {
			state = s.Good(fmt.Sprintf("synchronised within %d ns", c.ErrorNS))
		}
		t.Row(c.Interface, device, state)
	}
	return t
}

func (r *Report) backendTable(s text.Style) *text.Table {
	t := &text.Table{}
	for _, b := range r.Backends {
		if b.Usable {
			t.Row(b.Name, s.Good("usable"), strings.Join(append([]string{b.Reaches}, b.Abilities...), ", "))
		} else {
			t.Row(b.Name, s.Bad("not usable"), b.Problem)
		}
	}
	return t
}

func (r *Report) offerTable() *text.Table {
	t := &text.Table{}
	for _, o := range r.Offers {
		t.Row(o.Type, o.Domain, o.Address, "fabric "+o.Fabric)
	}
	return t
}

func (r *Report) limitTable() *text.Table {
	t := &text.Table{Right: []bool{false, true}}
	for _, l := range r.Limits {
		t.Row(l.Name, fmt.Sprint(l.Value), l.Unit)
	}
	return t
}

func (r *Report) variableTable(s text.Style) *text.Table {
	t := &text.Table{}
	for _, v := range r.Variables {
		value, source := v.Value, s.Dim(v.Source)
		if value == "" {
			value = s.Dim("(empty)")
		}
		if v.Source != "default" {
			value, source = s.Bold(value), s.Warn(strings.TrimSpace(v.Source+" "+v.File))+", default "+v.Default
		}
		if v.Problem != "" {
			source += "  " + s.Bad("bad value, "+v.Problem)
		}
		t.Row(v.Name, value, source)
	}
	return t
}
