package info

import (
	"errors"
	"strings"
	"testing"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/config"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/internal/log/logtest"
)

// matching is a host with two devices that match messages.
func matching() *Env {
	e := testEnv()
	e.Matching = func(*config.Config) ([]MatchDevice, error) {
		var list []MatchDevice
		for _, name := range []string{"cxi0", "cxi1"} {
			list = append(list, MatchDevice{
				Name: name, Source: []byte{0xff, 1, 0, 0, 0, 0, 0, 0},
				Attr: hw.MatchAttr{TagMask: 1<<48 - 1, MaxMessage: 1<<32 - 1, MaxInject: 192, Receives: 15360,
					Sends: 16384, ChoosesKeys: true},
				Named: func(node, service string, own bool) ([]byte, error) {
					if node == "none" {
						return nil, errors.New("no NIC")
					}
					return []byte((node + service + "........")[:8]), nil
				},
				Check: func(b []byte) error {
					if strings.HasPrefix(string(b), "cxi") && string(b[:4]) != name {
						return errors.New("of another device")
					}
					if len(b) != 8 {
						return errors.New("another length")
					}
					return nil
				},
				Admits: func(key []byte) error {
					if string(key) != name {
						return errors.New("no such service")
					}
					return nil
				},
			})
		}
		return list, nil
	}
	return e
}

func native() *config.Config {
	c := config.Default()
	c.CXI = config.Native
	return c
}

// TestMatched asks in each way for matched endpoints.
func TestMatched(t *testing.T) {
	version := fi.Version(1, 20)
	cxi := config.Default()
	cxi.Name = "cxi"
	for name, c := range map[string]struct {
		cfg   *config.Config
		hints *fi.Info
		want  int
	}{
		"no hints":             {nil, nil, 0},
		"native":               {native(), nil, 4}, // with keys that the device chooses, and without
		"format":               {nil, newHints(func(h *fi.Info) { h.AddrFormat = fi.AddrCXI }), 2},
		"protocol":             {nil, newHints(func(h *fi.Info) { h.EP.Protocol = fi.ProtoCXI }), 2},
		"device":               {native(), newHints(func(h *fi.Info) { h.Domain.Name = "cxi1" }), 1},
		"another fabric":       {native(), newHints(func(h *fi.Info) { h.Fabric.Name = "10.0.0.0/24" }), 0},
		"native, sockets":      {native(), newHints(func(h *fi.Info) { h.AddrFormat = fi.SockaddrIn }), 0},
		"the name cxi":         {cxi, newHints(func(h *fi.Info) { h.AddrFormat = fi.AddrCXI }), 0},
		"the protocol without": {nil, newHints(func(h *fi.Info) { h.EP.Protocol = fi.ProtoCXIRNR }), 0},
		"one-sided":            {native(), newHints(func(h *fi.Info) { h.Caps = fi.Msg | fi.RMA }), 0},
		"regions of endpoints": {native(), newHints(func(h *fi.Info) {
			h.Caps, h.Domain.MRMode = fi.Msg|fi.RMA, fi.MREndpoint
		}), 2},
		"keys of the device": {native(), newHints(func(h *fi.Info) {
			h.Caps, h.Domain.MRMode = fi.Msg|fi.RMA, fi.MREndpoint|fi.MRProvKey
		}), 4},
		"keys without memory": {native(), newHints(func(h *fi.Info) {
			h.Caps, h.Domain.MRMode = fi.Msg, fi.MREndpoint|fi.MRProvKey
		}), 2},
		"long keys": {native(), newHints(func(h *fi.Info) {
			h.Domain.MRMode, h.Domain.MRKeySize = fi.MREndpoint, 8
		}), 0},
		"long keys of the device": {native(), newHints(func(h *fi.Info) {
			h.Domain.MRMode, h.Domain.MRKeySize = fi.MREndpoint|fi.MRProvKey, 8
		}), 2},
		"several remote buffers": {native(), newHints(func(h *fi.Info) { h.Tx.RMAIOVLimit = 2 }), 0},
		"regions of two parts":   {native(), newHints(func(h *fi.Info) { h.Domain.MRIOVLimit = 2 }), 0},
		"more queues":            {native(), newHints(func(h *fi.Info) { h.Domain.CQCnt = 1000 }), 2},
		"connected":              {native(), newHints(func(h *fi.Info) { h.EP.Type = fi.EPMsg }), 0},
		"automatic progress": {native(), newHints(func(h *fi.Info) {
			h.Domain.DataProgress = fi.ProgressAuto
		}), 2},
		"automatic progress without threads": {
			withoutThreads(), newHints(func(h *fi.Info) { h.Domain.DataProgress = fi.ProgressAuto }), 0,
		},
		"wider tags":             {native(), newHints(func(h *fi.Info) { h.EP.MemTagFormat = 1 << 50 }), 0},
		"several buffers":        {native(), newHints(func(h *fi.Info) { h.Tx.IOVLimit = 2 }), 0},
		"order of reads":         {native(), newHints(func(h *fi.Info) { h.Tx.MsgOrder = fi.OrderRAR }), 0},
		"keys in address vector": {native(), newHints(func(h *fi.Info) { h.Domain.AuthKeySize = fi.AVAuthKey }), 2},
		"keys and directed receives": {native(), newHints(func(h *fi.Info) {
			h.Domain.AuthKeySize, h.Caps = fi.AVAuthKey, fi.Msg|fi.DirectedRecv
		}), 0},
		"one key and directed receives": {native(), newHints(func(h *fi.Info) {
			h.Domain.AuthKeySize, h.Domain.MaxEPAuthKey, h.Caps = fi.AVAuthKey, 1, fi.Msg|fi.DirectedRecv
		}), 2},
		"too many keys": {native(), newHints(func(h *fi.Info) {
			h.Domain.AuthKeySize, h.Domain.MaxEPAuthKey = fi.AVAuthKey, MatchedAuthKeys+1
		}), 0},
		"shared contexts": {native(), newHints(func(h *fi.Info) { h.Domain.MaxEPSRxCtx = 1 }), 0},
		"a name":          {native(), newHints(func(h *fi.Info) { h.SrcAddr = make([]byte, 8) }), 2},
		"a short name":    {native(), newHints(func(h *fi.Info) { h.SrcAddr = make([]byte, 7) }), 0},
		"a short peer":    {native(), newHints(func(h *fi.Info) { h.DestAddr = make([]byte, 7) }), 0},
		"Open MPI":        {native(), openMPI(fi.ThreadDomain, fi.AVMap), 2},
	} {
		infos, err := matching().GetInfo(version, "", "", 0, c.hints, c.cfg)
		n := 0
		for _, i := range infos {
			if Matched(orDefault(c.cfg, config.Default()), i) {
				n++
				wantMatched(t, name, i)
			}
		}
		if n != c.want || err != nil && !errors.Is(err, fi.ENODATA) {
			t.Errorf("%s: %d offers, want %d: %v", name, n, c.want, err)
		}
	}
}

// TestMatchedRNR: hints for the other protocol of libfabric's provider are not met, and the log says which there is.
func TestMatchedRNR(t *testing.T) {
	warned := logtest.Capture(t, log.Warn)
	hints := newHints(func(h *fi.Info) { h.EP.Protocol = fi.ProtoCXIRNR })
	infos, err := matching().GetInfo(fi.Version(1, 20), "", "", 0, hints, native())
	seen := warned()
	if len(infos) != 0 || !errors.Is(err, fi.ENODATA) ||
		!strings.Contains(strings.Join(seen, ""), "FI_PROTO_CXI_RNR is not there") {
		t.Errorf("%d offers, %v, warnings %q", len(infos), err, seen)
	}
}

// withoutThreads is native without progress threads.
func withoutThreads() *config.Config {
	c := native()
	c.ProgressThread = config.No
	return c
}

// wantMatched compares with what libfabric's provider fixes.
func wantMatched(t *testing.T, name string, i *fi.Info) {
	t.Helper()
	e, progress := i.EP, fi.ProgressManual
	if name == "automatic progress" {
		progress = fi.ProgressAuto
	}
	if i.AddrFormat != fi.AddrCXI || e.Protocol != fi.ProtoCXI || e.ProtocolVersion != 1 || e.MaxMsgSize != 1<<32-1 ||
		i.Tx.InjectSize != 192 || i.Tx.IOVLimit != 1 || i.Rx.IOVLimit != 1 || i.Fabric.Name != "cxi" ||
		len(i.SrcAddr) != 8 ||
		i.Caps&^MatchedCaps != 0 || i.Domain.MaxEPTxCtx != 1 ||
		i.Domain.DataProgress != progress || i.Domain.ControlProgress != progress {
		t.Errorf("%s: %+v %+v %+v", name, *i, *e, *i.Tx)
	}
}

// TestMatchedMemory compares what is said of memory with what libfabric's provider fixes, and with it what needs no
// region.
func TestMatchedMemory(t *testing.T) {
	version := fi.Version(1, 20)
	const every = fi.OrderSAS | fi.OrderWAW | fi.OrderRMAWAW | fi.OrderRMARAR | fi.OrderAtomicRAR |
		fi.OrderAtomicRAW | fi.OrderAtomicWAR | fi.OrderAtomicWAW
	const all = fi.RMA | fi.Atomic | fi.Read | fi.Write | fi.RemoteRead | fi.RemoteWrite
	for name, c := range map[string]struct {
		version uint32
		hints   *fi.Info
		caps    uint64
		mode    fi.MRMode
		order   uint64
	}{
		"no hints": {version, nil, all, fi.MREndpoint | fi.MRAllocated | fi.MRProvKey,
			every},
		"nothing asked": {version, newHints(func(*fi.Info) {}), 0, 0, 0},
		"regions of endpoints": {version, newHints(func(h *fi.Info) {
			h.Caps, h.Tx.MsgOrder = fi.RMA|fi.Atomic, fi.OrderRMAWAW
			h.Domain.MRMode = fi.MREndpoint | fi.MRVirtAddr | fi.MRLocal
		}), all, fi.MREndpoint | fi.MRAllocated, fi.OrderRMAWAW},
		"reads": {version, newHints(func(h *fi.Info) {
			h.Caps, h.Domain.MRMode = fi.RMA|fi.Read,
				fi.MREndpoint
		}), fi.RMA | fi.Read, fi.MREndpoint | fi.MRAllocated, 0},
		"basic": {version, newHints(func(h *fi.Info) { h.Domain.MRMode = fi.MRBasic }), 0, fi.MRBasic,
			0},
		"before modes": {fi.Version(1, 4), nil, 0, fi.MRBasic,
			every},
	} {
		infos, err := matching().GetInfo(c.version, "", "", 0, c.hints, native())
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		i := infos[0]
		d, e := i.Domain, i.EP
		if i.Caps&all != c.caps || d.MRMode != c.mode || i.Tx.MsgOrder != c.order || i.Rx.MsgOrder != c.order &&
			c.hints == nil {
			t.Errorf("%s: capabilities %#x, modes %#x, order %#x", name, i.Caps, d.MRMode, i.Tx.MsgOrder)
		}
		size := uint64(4)
		if c.mode&fi.MRProvKey != 0 {
			size = 8
		}
		if d.MRKeySize != size || d.MRIOVLimit != 1 || d.MRCnt != 100 || d.CQCnt != 32 || d.EPCnt != 128 ||
			d.CntrCnt != 16 ||
			i.Tx.RMAIOVLimit != 1 || d.CQDataSize != 8 {
			t.Errorf("%s: %+v", name, *d)
		}
		if e.MaxOrderRAWSize != 0 || e.MaxOrderWARSize != 0 || e.MaxOrderWAWSize != 1<<64-1 {
			t.Errorf("%s: %+v", name, *e)
		}
	}
}

// TestMatchedKeys: a device is offered if it admits the domain's key and the endpoint's, which the offer has.
func TestMatchedKeys(t *testing.T) {
	for name, c := range map[string]struct {
		domain, ep string
		want       int
	}{
		"none": {"", "", 4}, "the first's": {"cxi0", "", 2}, "an endpoint's": {"", "cxi1", 2},
		"the same": {"cxi1", "cxi1", 2}, "of both": {"cxi0", "cxi1", 0}, "of neither": {"", "cxi2", 0},
	} {
		hints := newHints(func(h *fi.Info) {
			h.Domain.AuthKey, h.EP.AuthKey = []byte(c.domain), []byte(c.ep)
			h.Domain.AuthKeySize, h.EP.AuthKeySize = uint64(len(c.domain)), uint64(len(c.ep))
			h.Domain.MRMode = fi.MREndpoint | fi.MRAllocated | fi.MRProvKey
			h.Caps = fi.RMA
		})
		infos, err := matching().GetInfo(fi.Version(1, 20), "", "", 0, hints, native())
		if len(infos) != c.want || (err == nil) != (c.want != 0) {
			t.Errorf("%s: %d infos, %v", name, len(infos), err)
		}
		for _, i := range infos {
			if string(i.Domain.AuthKey) != c.domain || string(i.EP.AuthKey) != c.ep {
				t.Errorf("%s: keys %q and %q", name, i.Domain.AuthKey, i.EP.AuthKey)
			}
		}
	}
}

// TestMatchedNone has no device, and one that is not wanted.
func TestMatchedNone(t *testing.T) {
	none, no := matching(), config.Default()
	none.Matching = func(*config.Config) ([]MatchDevice, error) { return nil, errors.New("no NIC") }
	no.CXI = config.No
	hints := newHints(func(h *fi.Info) { h.AddrFormat = fi.AddrCXI })
	for name, c := range map[string]struct {
		env *Env
		cfg *config.Config
	}{"no device": {none, nil}, "not wanted": {matching(), no}, "no way to know": {testEnv(), nil}} {
		if _, err := c.env.GetInfo(v117, "", "", 0, hints, c.cfg); !errors.Is(err, fi.ENODATA) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestMatchedNode: node and service are an endpoint's own name, which its device has to have, or its peer's.
func TestMatchedNode(t *testing.T) {
	for _, c := range []struct {
		node, service string
		flags         uint64
		source, dest  string // of each offer
		offers        int
	}{
		{"cxi1", "7", fi.Source, "cxi17...", "", 1},
		{"", "7", fi.Source, "7.......", "", 2},
		{"cxi9", "", fi.Source, "", "", 0},
		{"none", "", 0, "", "", 0},
		{"cxi1", "7", 0, "\xff\x01\x00\x00\x00\x00\x00\x00", "cxi17...", 2},
		{"", "7", 0, "\xff\x01\x00\x00\x00\x00\x00\x00", "", 2},
	} {
		infos, err := matching().GetInfo(fi.Version(1, 20), c.node, c.service, c.flags, newHints(func(h *fi.Info) {
			h.AddrFormat = fi.AddrCXI
		}), native())
		if len(infos) != c.offers || (err == nil) != (c.offers > 0) || err != nil && !errors.Is(err, fi.ENODATA) {
			t.Errorf("node %q, service %q, flags %#x: %d offers, %v", c.node, c.service, c.flags, len(infos), err)
		}
		for _, i := range infos {
			if string(i.SrcAddr) != c.source || string(i.DestAddr) != c.dest {
				t.Errorf("node %q, service %q, flags %#x: %q, %q", c.node, c.service, c.flags, i.SrcAddr, i.DestAddr)
			}
		}
	}
}
