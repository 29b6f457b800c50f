package info

import (
	"strings"
	"testing"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/config"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/internal/log/logtest"
)

// openMPI returns the hints of Open MPI's mtl ofi.
func openMPI(threading fi.Threading, av fi.AVType) *fi.Info {
	return newHints(func(h *fi.Info) {
		h.Mode = fi.Context | fi.Context2
		h.Caps = fi.Msg | fi.Tagged | fi.LocalComm | fi.RemoteComm | fi.DirectedRecv
		h.EP.Type = fi.EPRDM
		h.Tx.MsgOrder, h.Rx.MsgOrder = fi.OrderSAS, fi.OrderSAS
		h.Tx.OpFlags, h.Rx.OpFlags = fi.Completion, fi.Completion
		h.Domain.Threading = threading
		h.Domain.ResourceMgmt = fi.RMEnabled
		h.Domain.AVType = av
		h.Domain.CQDataSize = 4
		h.Domain.MRMode = fi.MRLocal | fi.MRProvKey | fi.MRVirtAddr
	})
}

func TestOpenMPI(t *testing.T) {
	for _, version := range []uint32{fi.Version(1, 18), fi.Version(1, 9), fi.Version(1, 5)} {
		for _, threading := range []fi.Threading{fi.ThreadSafe, fi.ThreadDomain} {
			for _, av := range []fi.AVType{fi.AVMap, fi.AVTable} {
				for _, i := range get(t, version, openMPI(threading, av)) {
					if i.Mode != 0 || i.Domain.MRMode != fi.MRLocal|fi.MRProvKey|fi.MRVirtAddr ||
						i.Domain.Threading != threading || i.Domain.AVType != av ||
						i.Domain.CQDataSize < 4 || i.Tx.MsgOrder != fi.OrderSAS || i.Rx.MsgOrder != fi.OrderSAS {
						t.Errorf("version %#x: %+v %+v %+v", version, *i, *i.Tx, *i.Domain)
					}
					const needs = fi.Msg | fi.Tagged | fi.Send | fi.Recv | fi.DirectedRecv | fi.LocalComm |
						fi.RemoteComm
					if i.Caps&needs != needs || i.Caps&(fi.Source|fi.SourceErr) != 0 {
						t.Errorf("caps %#x", i.Caps)
					}
					// It counts the leading zero bits to place the tag's fields.
					if i.EP.MemTagFormat>>63 != 1 {
						t.Errorf("tag format %#x reserves upper bits", i.EP.MemTagFormat)
					}
				}
			}
		}
	}
}

// TestOpenMPIForGPUs asks with FI_HMEM, on hosts without GPUs and with them.
func TestOpenMPIForGPUs(t *testing.T) {
	h := openMPI(fi.ThreadDomain, fi.AVMap)
	h.Caps |= fi.HMEM
	h.Domain.MRMode |= fi.MRHMEM | fi.MRAllocated
	for _, i := range get(t, fi.Version(1, 18), h) {
		if i.Caps&i.Tx.Caps&i.Rx.Caps&fi.HMEM == 0 || i.Domain.MRMode != h.Domain.MRMode&^fi.MRHMEM {
			t.Errorf("without GPUs: caps %#x, registration mode %#x", i.Caps, i.Domain.MRMode)
		}
	}
	env := testEnv()
	env.GPUs = func() bool { return true }
	infos, err := env.GetInfo(fi.Version(1, 18), "", "", 0, h, nil)
	if err != nil || infos[0].Domain.MRMode != h.Domain.MRMode {
		t.Fatalf("with GPUs: %v, %v", infos, err)
	}
	h.Domain.MRMode &^= fi.MRHMEM
	_, err = env.GetInfo(fi.Version(1, 18), "", "", 0, h, nil)
	wantRefused(t, err, "domain_attr.mr_mode")
	h.Caps &^= fi.HMEM
	if infos, err = env.GetInfo(fi.Version(1, 18), "", "", 0, h, nil); err != nil ||
		infos[0].Domain.MRMode != h.Domain.MRMode {
		t.Errorf("without FI_HMEM: %v, %v", infos, err)
	}
	_, err = env.GetInfo(fi.Version(1, 8), "", "", 0, newHints(func(h *fi.Info) { h.Caps = fi.Msg | fi.HMEM }), nil)
	wantRefused(t, err, "caps")
}

// TestOneSidedClients get what they ask for.
func TestOneSidedClients(t *testing.T) {
	const oneSided = fi.RMA | fi.Read | fi.Write | fi.RemoteRead | fi.RemoteWrite | fi.Atomics
	mpich := newHints(func(h *fi.Info) {
		h.EP.Type = fi.EPRDM
		h.Caps = oneSided | fi.Tagged | fi.DirectedRecv | fi.Msg | fi.MultiRecv
		h.Mode = fi.Context | fi.Context2 | fi.AsyncIOV | fi.RxCQData
		h.Domain.Threading = fi.ThreadDomain
		h.Domain.ResourceMgmt = fi.RMEnabled
		h.Domain.AVType = fi.AVTable
	})
	btl := newHints(func(h *fi.Info) {
		h.EP.Type = fi.EPRDM
		h.Caps = fi.RMA | fi.Atomic
		h.Mode = fi.Context | fi.Context2
		h.Tx.OpFlags = fi.DeliveryComplete
		h.Domain.MRMode = fi.MRLocal | fi.MRProvKey | fi.MRVirtAddr | fi.MRAllocated
		h.Domain.Threading = fi.ThreadDomain
	})
	for name, h := range map[string]*fi.Info{"mpich": mpich, "btl ofi": btl} {
		infos, err := testEnv().GetInfo(fi.Version(1, 14), "", "", 0, h, nil)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for _, i := range infos {
			if i.Caps&h.Caps != h.Caps || i.Domain.MRMode != h.Domain.MRMode {
				t.Errorf("%s: caps %#x, registration mode %#x", name, i.Caps, i.Domain.MRMode)
			}
		}
	}
}

// TestAllocated: of what the host's utility providers offer only the promise that regions keep
// their pages is taken, where RDMA devices or NICs of Slingshot may be used.
func TestAllocated(t *testing.T) {
	for _, c := range []struct {
		devices     bool
		verbs       config.Tri
		nics        bool
		cxi         config.Tri
		asked, want fi.MRMode
	}{
		{true, config.Auto, false, config.No, fi.MRAllocated | fi.MRVirtAddr, fi.MRAllocated},
		{true, config.Auto, false, config.Auto, fi.MRVirtAddr, 0},
		{true, config.No, false, config.Auto, fi.MRAllocated, 0},
		{false, config.Yes, false, config.Auto, fi.MRAllocated, 0},
		{false, config.No, true, config.Auto, fi.MRAllocated, fi.MRAllocated},
		{false, config.Auto, true, config.No, fi.MRAllocated, 0},
		{false, config.Auto, false, config.Yes, fi.MRAllocated, fi.MRAllocated},
	} {
		env := testEnv()
		env.RDMA = func() bool { return c.devices }
		env.CXI = func() bool { return c.nics }
		cfg := config.Default()
		cfg.Verbs, cfg.CXI = c.verbs, c.cxi
		h := newHints(func(h *fi.Info) { h.Domain.MRMode = c.asked })
		infos, err := env.GetInfo(fi.Version(1, 18), "", "", layered, h, cfg)
		if err != nil || infos[0].Domain.MRMode != c.want {
			t.Errorf("%+v: %v, %+v", c, err, infos)
		}
	}
}

func TestPingpongPrograms(t *testing.T) {
	for name, h := range map[string]*fi.Info{
		"fi_pingpong": newHints(func(h *fi.Info) {
			h.EP.Type = fi.EPRDM
			h.Caps = fi.Msg | fi.Tagged
			h.Mode = fi.Context | fi.Context2
			h.Domain.MRMode = fi.MRLocal | fi.MRAllocated | fi.MRProvKey | fi.MRVirtAddr
			h.Domain.Threading = fi.ThreadDomain
			h.Domain.ResourceMgmt = fi.RMEnabled
			h.Fabric.ProvName = "weft"
		}),
		"fi_rdm_tagged_pingpong": newHints(func(h *fi.Info) {
			h.EP.Type = fi.EPRDM
			h.EP.MaxMsgSize = 1 << 20
			h.Caps = fi.Tagged
			h.Mode = fi.Context | fi.Context2
			h.Domain.MRMode = fi.MRLocal | fi.MREndpoint | fi.MRRaw
			h.Domain.Threading = fi.ThreadDomain
			h.Domain.ResourceMgmt = fi.RMEnabled
			h.Tx.TClass = fi.TCLowLatency
			h.AddrFormat = fi.FormatUnspec
			h.Fabric.ProvName = "weft"
		}),
	} {
		server, err := testEnv().GetInfo(v117, "", "9228", fi.Source, h, nil)
		if err != nil || len(server) == 0 {
			t.Fatalf("%s: server: %v", name, err)
		}
		if got := address(t, server[0].AddrFormat, server[0].SrcAddr); got != "0.0.0.0:9228" {
			t.Errorf("%s: server listens on %s", name, got)
		}
		client, err := testEnv().GetInfo(v117, "localhost", "9228", 0, h, nil)
		if err != nil || len(client) == 0 {
			t.Fatalf("%s: client: %v", name, err)
		}
		if got := address(t, client[0].AddrFormat, client[0].DestAddr); got != "127.0.0.1:9228" {
			t.Errorf("%s: client connects to %s", name, got)
		}
	}
}

// TestGetinfoTest repeats those cases of fabtests' getinfo_test that the other
// tests do not have. The RMA ordering cases are refused there as well.
func TestGetinfoTest(t *testing.T) {
	base := func() *fi.Info {
		return newHints(func(h *fi.Info) { h.Mode = max64; h.Fabric.ProvName = "weft" })
	}
	for _, c := range []struct {
		node, service string
		flags         uint64
		dest          bool
	}{
		{"", "", 0, false}, {"localhost", "", fi.Source, false}, {"", "9228", fi.Source, false},
		{"localhost", "9228", fi.Source, false}, {"localhost", "9228", 0, true},
	} {
		for _, h := range []*fi.Info{nil, base()} {
			infos, err := testEnv().GetInfo(v117, c.node, c.service, c.flags, h, nil)
			if err != nil {
				t.Fatalf("%+v: %v", c, err)
			}
			for _, i := range infos {
				if len(i.SrcAddr) == 0 || c.dest && len(i.DestAddr) == 0 {
					t.Errorf("%+v: addresses %v, %v", c, i.SrcAddr, i.DestAddr)
				}
			}
		}
	}
	for n := range 64 {
		for _, rx := range []bool{false, true} {
			h := base()
			if rx {
				h.Rx.MsgOrder = 1 << n
			} else {
				h.Tx.MsgOrder = 1 << n
			}
			infos, err := testEnv().GetInfo(v117, "", "", 0, h, nil)
			if 1<<n&MsgOrder == 0 {
				if fi.ErrnoOf(err) != fi.ENODATA {
					t.Errorf("order bit %d: %v", n, err)
				}
			} else if err != nil || rx && infos[0].Rx.MsgOrder != 1<<n || !rx && infos[0].Tx.MsgOrder != 1<<n {
				t.Errorf("order bit %d: %v", n, err)
			}
		}
	}
	for set := range 1 << 10 {
		h := base()
		h.Domain.MRMode = fi.MRMode(set << 2)
		for _, i := range get(t, v117, h) {
			if want := h.Domain.MRMode & takenModes; i.Domain.MRMode != want {
				t.Errorf("mr mode %#x gives %#x", h.Domain.MRMode, i.Domain.MRMode)
			}
		}
	}
}

func TestRefusalIsLogged(t *testing.T) {
	logged := logtest.Capture(t, log.Debug)
	h := newHints(func(h *fi.Info) { h.Domain.DataProgress = fi.ProgressAuto })
	cfg := config.Default()
	cfg.ProgressThread = config.No
	if _, err := testEnv().GetInfo(v117, "", "", 0, h, cfg); err == nil {
		t.Fatal("automatic progress was accepted without threads")
	}
	want := "info core fi_getinfo: hint domain_attr.data_progress refused: value 1 is not supported"
	if lines := logged(); len(lines) != 1 || lines[0] != want {
		t.Errorf("log has %q, want %q", lines, want)
	}
}

// FuzzGetInfo sees that whatever is asked, an answer keeps the promises that
// fi_getinfo(3) makes: it has what was asked, and nothing is required.
func FuzzGetInfo(f *testing.F) {
	f.Add("localhost", "9228", uint64(0), fi.Msg, uint64(0), uint64(0), uint32(0), []byte(nil), []byte(nil))
	f.Add("", "", fi.Source, fi.Tagged|fi.LocalComm, fi.OrderSAS, uint64(7), uint32(2),
		[]byte{2, 0, 0, 5, 10, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0, 0}, []byte("x"))
	f.Add("fi_sockaddr_in://10.0.0.5:5", "", fi.Source, uint64(0), uint64(0), uint64(0), uint32(9),
		[]byte("fi_sockaddr_in://10.0.0.5:5\x00"), []byte("fi_sockaddr_in://10.0.0.9:5\x00"))
	f.Fuzz(func(t *testing.T, node, service string, flags, caps, order, size uint64, format uint32, src, dest []byte) {
		h := newHints(func(h *fi.Info) {
			h.Caps, h.AddrFormat, h.SrcAddr, h.DestAddr = caps, fi.AddrFormat(format), src, dest
			h.Tx.MsgOrder, h.Tx.Size, h.Rx.IOVLimit = order, size, size
		})
		infos, err := testEnv().GetInfo(v117, node, service, flags, h, nil)
		if err != nil {
			switch fi.ErrnoOf(err) {
			case fi.ENODATA, fi.EBADFLAGS, fi.EINVAL:
			default:
				t.Fatalf("error %v", err)
			}
			if infos != nil || strings.Contains(err.Error(), "%!") {
				t.Fatalf("%d offers with error %v", len(infos), err)
			}
			return
		}
		if len(infos) == 0 {
			t.Fatal("neither offers nor an error")
		}
		if flags&fi.ProvAttrOnly != 0 {
			return
		}
		for _, i := range infos {
			if i.Caps&caps != caps || i.Caps&^allCaps != 0 || i.Mode != 0 || i.Tx.MsgOrder&order != order ||
				i.Tx.Size < size || i.Rx.IOVLimit < size || format != 0 && uint32(i.AddrFormat) != format {
				t.Fatalf("asked %+v, got %+v", h, i)
			}
			address(t, i.AddrFormat, i.SrcAddr)
			if len(i.DestAddr) > 0 {
				address(t, i.AddrFormat, i.DestAddr)
			}
		}
	})
}

// TestMPICH asks as MPICH's ch4:ofi does: without hints and under version 0.0 for what there is, then with
// the capabilities of what it found, and at last for contexts of a scalable endpoint.
func TestMPICH(t *testing.T) {
	found := get(t, 0, nil)
	h := newHints(func(h *fi.Info) {
		h.Mode = fi.Context | fi.AsyncIOV | fi.RxCQData
		h.Caps = found[0].Caps | fi.DirectedRecv
		h.EP.Type = fi.EPRDM
		h.Domain.Threading = fi.ThreadDomain
		h.Domain.ResourceMgmt = fi.RMEnabled
		h.Domain.AVType = fi.AVTable
		h.Tx.OpFlags = fi.Completion | fi.DeliveryComplete
		h.Tx.MsgOrder, h.Rx.MsgOrder = fi.OrderSAS, fi.OrderSAS
	})
	caps := get(t, fi.Version(1, 15), h)[0].Caps
	const rx = fi.Tagged | fi.DirectedRecv | fi.RMA | fi.RemoteRead | fi.RemoteWrite | fi.Atomic | fi.Msg | fi.MultiRecv
	if got, ok := CtxCaps(false, rx|fi.NamedRxCtx, caps); !ok || got&rx != rx || got&fi.NamedRxCtx != 0 {
		t.Errorf("receive context: capabilities %#x, %v", got, ok)
	}
	if got, ok := CtxCaps(false, rx|fi.Send, caps); !ok || got&fi.Send != 0 {
		t.Errorf("receive context with FI_SEND: capabilities %#x, %v", got, ok)
	}
	if got, ok := CtxCaps(false, rx|fi.Send, caps&^fi.Send); ok {
		t.Errorf("receive context with FI_SEND, which its endpoint has not: capabilities %#x", got)
	}
}
