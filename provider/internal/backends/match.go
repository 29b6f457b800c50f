//go:build cgo

package backends

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strconv"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/hw/cxi"
	"github.com/weft-fabric/weft/internal/config"
	"github.com/weft-fabric/weft/internal/info"
	"github.com/weft-fabric/weft/internal/libcxi"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/provider/internal/authkey"
)

// Devices that match messages: which there are, and how they are opened.

// The most operations of a matched endpoint.
const (
	maxMatchReceives = 15360
	maxMatchSends    = 16384
	maxMatchStripes  = 8
	// maxSoftReceives is the most where software matches.
	maxSoftReceives = 1 << 20
)

// receivesOf is the most receives of a matched endpoint.
func receivesOf(c *config.Config) int {
	if c.CXIMatch == "software" {
		return maxSoftReceives
	}
	return maxMatchReceives
}

// matchModes are the values of the variable that says what matches.
var matchModes = map[string]cxi.MatchMode{
	"hardware": cxi.MatchHardware, "software": cxi.MatchSoftware, "hybrid": cxi.MatchHybrid,
}

// matchConfig is the configuration of a matched endpoint's interface.
func matchConfig(c *config.Config, pid *uint32, receives, sends int) *cxi.MatchConfig {
	return &cxi.MatchConfig{
		PID: pid, Receives: receives, Sends: max(sends, 8), Events: c.CXIEvents, Buffers: c.CXIOverflows,
		BufferBytes: c.CXIOverflow, Eager: c.CXIEager, First: c.CXIFirst, Mode: matchModes[c.CXIMatch],
		Requests: c.CXIRequests, RequestBytes: c.CXIRequest, Unexpected: c.CXIUnexpected,
		Restricted: c.CXIRendezvous == "alt_read",
	}
}

// MatchAttr is what the interface of a matched endpoint will have, but for how many operations.
func MatchAttr() hw.MatchAttr { return cxi.MatchConfig{}.MatchAttr() }

// MatchDevices lists the devices that match messages, those alone that the configuration names.
func MatchDevices(c *config.Config) ([]info.MatchDevice, error) {
	list, err := cxi.Devices(cxi.DefaultSysfs, libcxi.DefaultLibrary)
	if err != nil {
		return nil, err
	}
	var devices []info.MatchDevice
	for _, d := range list {
		if c.CXIDevice != "" && c.CXIDevice != d.Name || !d.Up {
			continue
		}
		devices = append(devices, info.MatchDevice{
			Name: d.Name, Source: d.SourceName(),
			Attr: cxi.MatchConfig{Receives: receivesOf(c), Sends: maxMatchSends}.MatchAttr(),
			NIC:  matchNIC(&d),
			Named: func(node, service string, own bool) ([]byte, error) {
				return d.NodeName(list, node, service, own)
			},
			Check:  func(source []byte) error { _, err := d.ParseSourceName(source); return err },
			Admits: func(key []byte) error { return admitsKey(&d, authkey.Key(key)) },
		})
	}
	if len(devices) == 0 {
		return nil, fmt.Errorf("no NIC of Slingshot with a link, or none %q: %w", c.CXIDevice, hw.ErrUnreachable)
	}
	return devices, nil
}

// matchNIC is a device as fi_getinfo describes it, where it is up.
func matchNIC(d *cxi.Device) *fi.NIC {
	return &fi.NIC{
		Name: d.Name, DeviceID: fmt.Sprintf("%#x", d.DeviceInfo.Device), VendorID: fmt.Sprintf("%#x", d.Vendor),
		DeviceVersion: fmt.Sprint(d.Revision), PCI: (*fi.PCIAttr)(&d.Function), Driver: "cxi_ss1",
		Address: fmt.Sprintf("%#x", d.NID), MTU: d.MTU, Speed: d.LinkMbps * 1000 * 1000, State: fi.LinkUp,
		NetworkType: "HPC Ethernet",
	}
}

// An authorisation key of a matched endpoint has a service and a VNI, as words of 32 and 16 bits, and perhaps the bytes
// that C's structure has behind them.
const (
	leastMatchKey = 6 // bytes
	mostMatchKey  = 8
)

// matchKey are the service and the VNI that an authorisation key names. Errors: fi.EINVAL for one of another length.
func matchKey(key authkey.Key) (service uint32, vni uint16, err error) {
	b := key.Bytes()
	if len(b) < leastMatchKey || len(b) > mostMatchKey {
		return 0, 0, fmt.Errorf("authorisation key of %d bytes, want service and VNI in %d to %d: %w", len(b),
			leastMatchKey, mostMatchKey, fi.EINVAL)
	}
	return binary.NativeEndian.Uint32(b), binary.NativeEndian.Uint16(b[4:]), nil
}

// OwnMatchKey judges the authorisation key of an endpoint, and returns it if it is not that of its domain: it may be of
// another VNI of the domain's service, which is not known yet for a domain without a key. Errors: as of
// AdmitsDomainKey, and fi.EINVAL for another service.
func OwnMatchKey(c *config.Config, device string, domain, key authkey.Key) (authkey.Key, error) {
	if key == domain {
		return "", nil
	}
	if err := AdmitsDomainKey(c, device, key); err != nil {
		return "", err
	}
	of, _, err := matchKey(domain)
	if service, _, _ := matchKey(key); domain != "" && (err != nil || of != service) {
		return "", fmt.Errorf("of service %d, and the domain's of service %d: %w", service, of, fi.EINVAL)
	}
	return key, nil
}

// admitsKey judges whether a device has the service of an authorisation key, with its VNI.
func admitsKey(d *cxi.Device, key authkey.Key) error {
	service, vni, err := matchKey(key)
	if err != nil {
		return err
	}
	return d.Admits(service, vni)
}

// AdmitsMatchKey judges an authorisation key of an address vector or endpoint: it is of the device's service, which has
// its VNI.
func AdmitsMatchKey(device hw.MemoryDomain, key authkey.Key) error {
	service, vni, err := matchKey(key)
	if err != nil {
		return err
	}
	return device.(*cxi.MemoryDomain).Admits(service, vni)
}

// launched is what the launcher of a job says of a device in its environment, or in its place an authorisation key.
// Errors: fi.EINVAL for a key of another length.
func launched(device string, key authkey.Key) (getenv func(string) string, err error) {
	if key == "" {
		return os.Getenv, nil
	}
	service, vni, err := matchKey(key)
	if err != nil {
		return nil, err
	}
	says := map[string]string{
		"SLINGSHOT_DEVICES": device,
		"SLINGSHOT_SVC_IDS": strconv.FormatUint(uint64(service), 10),
		"SLINGSHOT_VNIS":    strconv.FormatUint(uint64(vni), 10),
	}
	return func(name string) string { return says[name] }, nil
}

// openMatchDevice opens the device of a domain, which is named after it, for matched endpoints.
func openMatchDevice(domain string, auth authkey.Key) (hw.MemoryDomain, error) {
	getenv, err := launched(domain, auth)
	if err != nil {
		return nil, err
	}
	m, err := cxi.OpenDomain(cxi.DomainConfig{
		Device: domain, Getenv: getenv,
		Logf: func(format string, args ...any) { log.Infof(log.Domain, format, args...) },
	})
	if err != nil {
		return nil, err // not m: an interface that holds a nil pointer is not nil
	}
	return m, nil
}

// MatchAtomic reports whether matched endpoints have an atomic operation.
func MatchAtomic(op hw.MatchOp, t hw.MatchType, fetch bool) bool {
	return cxi.AtomicValid(op, t, fetch)
}

// What messages of weft's own have at a matched endpoint.
const (
	messageBuffers = 4
	messageEvents  = 1024
	messageBounces = 64
	maxMessage     = 1 << 20 // bytes of one, but for its head
)

// OpenMatched opens the interface of a matched endpoint on the memory domain of Device.Domain. Errors: fi.EADDRINUSE
// for a PID that is taken, hw.ErrNoResource for a device that has no room for the interface.
func OpenMatched(device hw.MemoryDomain, e *Matched) (hw.Iface, error) {
	m := device.(*cxi.MemoryDomain)
	d := m.Device()
	pid, err := d.ParseSourceName(e.Source)
	if err != nil {
		return nil, err
	}
	match := matchConfig(e.Config, pid, e.Receives, e.Sends)
	match.Stripes = min(e.Stripes, maxMatchStripes)
	if e.Own != "" {
		if err := AdmitsMatchKey(device, e.Own); err != nil {
			return nil, fmt.Errorf("the endpoint's authorisation key: %w: %w", fi.EINVAL, err)
		}
		e.Keys = []hw.Key{{Secret: e.Own.Bytes()}}
	}
	for _, k := range e.Keys { // they were admitted
		_, vni, err := matchKey(authkey.Key(k.Secret))
		if err != nil {
			return nil, err
		}
		match.VNIs = append(match.VNIs, vni)
	}
	c := cxi.Config{
		// There are no messages of weft's own: what they would have is the least that there is.
		RxBuffers: 4, RxBytes: 4096, RxEvents: 64, BounceCount: 1, BounceBytes: 256, Depth: 16, Posted: 32,
		PathTimeout: e.Config.PeerTimeout, Direct: e.Direct,
		Match: match,
		Logf:  func(format string, args ...any) { log.Warnf(log.EPData, format, args...) },
	}
	if e.Messages {
		c.RxBuffers, c.RxBytes, c.RxEvents, c.Named = messageBuffers, 0, messageEvents, true
		c.BounceCount = cmp.Or(e.Config.BounceCount, messageBounces)
		c.BounceBytes, c.Depth, c.Posted = min(e.Config.BounceSize, maxMessage), 0, 0
	}
	i, err := m.Open(c)
	if err != nil {
		if errors.Is(err, cxi.ErrTaken) {
			err = fmt.Errorf("%w: %w", err, fi.EADDRINUSE)
		}
		return nil, err
	}
	return i, nil
}
