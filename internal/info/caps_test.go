package info

import (
	"math/bits"
	"slices"
	"strings"
	"testing"

	"github.com/weft-fabric/weft/fi"
)

const (
	comm = fi.LocalComm | fi.RemoteComm
	free = fi.MultiRecv | fi.SharedAV
	dirs = fi.Send | fi.Recv

	rmaTx = fi.Read | fi.Write
	rmaRx = fi.RemoteRead | fi.RemoteWrite
	rma   = fi.RMA | fi.Atomic | rmaTx | rmaRx
)

func TestCapabilities(t *testing.T) {
	for _, tc := range []struct {
		name        string
		caps        uint64
		domain      uint64
		want        uint64
		tx, rx, dom uint64
	}{
		{name: "none asked",
			want: fi.Msg | fi.Tagged | fi.Collective | fi.DirectedRecv | fi.NamedRxCtx | dirs | free | comm |
				fi.Source | fi.Fence | rma | fi.RMAEvent,
			tx: fi.Msg | fi.Tagged | fi.Collective | fi.NamedRxCtx | fi.Send | fi.Fence | fi.RMA | fi.Atomic | rmaTx,
			rx: fi.Msg | fi.Tagged | fi.Collective | fi.DirectedRecv | fi.Recv | fi.MultiRecv | fi.Source | fi.RMA |
				fi.Atomic | rmaRx | fi.RMAEvent, dom: comm | fi.SharedAV},
		{name: "rma", caps: fi.RMA, want: fi.RMA | rmaTx | rmaRx | free | comm,
			tx: fi.RMA | rmaTx, rx: fi.RMA | rmaRx | fi.MultiRecv, dom: comm | fi.SharedAV},
		{name: "send only, atomics at home", caps: fi.Msg | fi.Send | fi.Atomic | fi.RemoteWrite | fi.RMAEvent,
			want: fi.Msg | fi.Send | fi.Atomic | fi.RemoteWrite | fi.RMAEvent | free | comm,
			tx:   fi.Msg | fi.Send | fi.Atomic, rx: fi.Msg | fi.Atomic | fi.RemoteWrite | fi.RMAEvent | fi.MultiRecv,
			dom: comm | fi.SharedAV},
		{name: "collectives only", caps: fi.Collective, want: fi.Collective | free | comm,
			tx: fi.Collective, rx: fi.Collective | fi.MultiRecv, dom: comm | fi.SharedAV},
		{name: "fence", caps: fi.Msg | fi.Fence, want: fi.Msg | fi.Fence | dirs | free | comm,
			tx: fi.Msg | fi.Send | fi.Fence, rx: fi.Msg | fi.Recv | fi.MultiRecv, dom: comm | fi.SharedAV},
		{name: "named contexts", caps: fi.Msg | fi.NamedRxCtx, want: fi.Msg | fi.NamedRxCtx | dirs | free | comm,
			tx: fi.Msg | fi.NamedRxCtx | fi.Send, rx: fi.Msg | fi.Recv | fi.MultiRecv, dom: comm | fi.SharedAV},
		{name: "msg", caps: fi.Msg, want: fi.Msg | dirs | free | comm,
			tx: fi.Msg | fi.Send, rx: fi.Msg | fi.Recv | fi.MultiRecv, dom: comm | fi.SharedAV},
		{name: "tagged, directed", caps: fi.Tagged | fi.DirectedRecv,
			want: fi.Tagged | fi.DirectedRecv | dirs | free | comm,
			tx:   fi.Tagged | fi.Send, rx: fi.Tagged | fi.DirectedRecv | fi.Recv | fi.MultiRecv,
			dom: comm | fi.SharedAV},
		{name: "send only", caps: fi.Msg | fi.Send, want: fi.Msg | fi.Send | free | comm,
			tx: fi.Msg | fi.Send, rx: fi.Msg | fi.MultiRecv, dom: comm | fi.SharedAV},
		{name: "recv only", caps: fi.Tagged | fi.Recv, want: fi.Tagged | fi.Recv | free | comm,
			tx: fi.Tagged, rx: fi.Tagged | fi.Recv | fi.MultiRecv, dom: comm | fi.SharedAV},
		{name: "source", caps: fi.Msg | fi.Source, want: fi.Msg | dirs | free | comm | fi.Source,
			tx: fi.Msg | fi.Send, rx: fi.Msg | fi.Recv | fi.MultiRecv | fi.Source, dom: comm | fi.SharedAV},
		{name: "secondary only", caps: fi.LocalComm, want: fi.LocalComm | free,
			tx: 0, rx: fi.MultiRecv, dom: fi.LocalComm | fi.SharedAV},
		{name: "local only", caps: fi.Msg | fi.LocalComm, want: fi.Msg | dirs | free | fi.LocalComm,
			tx: fi.Msg | fi.Send, rx: fi.Msg | fi.Recv | fi.MultiRecv, dom: fi.LocalComm | fi.SharedAV},
		{name: "remote domain", caps: fi.Msg, domain: fi.RemoteComm, want: fi.Msg | dirs | free | fi.RemoteComm,
			tx: fi.Msg | fi.Send, rx: fi.Msg | fi.Recv | fi.MultiRecv, dom: fi.RemoteComm | fi.SharedAV},
		{name: "local endpoint, remote domain", caps: fi.Msg | fi.LocalComm, domain: fi.RemoteComm,
			want: fi.Msg | dirs | free | comm, tx: fi.Msg | fi.Send, rx: fi.Msg | fi.Recv | fi.MultiRecv,
			dom: comm | fi.SharedAV},
		{name: "shared av domain", caps: fi.Msg, domain: fi.SharedAV, want: fi.Msg | dirs | free | comm,
			tx: fi.Msg | fi.Send, rx: fi.Msg | fi.Recv | fi.MultiRecv, dom: comm | fi.SharedAV},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for _, i := range get(t, v117, newHints(func(h *fi.Info) { h.Caps, h.Domain.Caps = tc.caps, tc.domain })) {
				if i.Caps != tc.want || i.Tx.Caps != tc.tx || i.Rx.Caps != tc.rx || i.Domain.Caps != tc.dom {
					t.Errorf("caps %#x tx %#x rx %#x domain %#x, want %#x %#x %#x %#x",
						i.Caps, i.Tx.Caps, i.Rx.Caps, i.Domain.Caps, tc.want, tc.tx, tc.rx, tc.dom)
				}
			}
		})
	}
}

// TestCostlyCapabilities: what costs something, used or not, has to be asked for.
func TestCostlyCapabilities(t *testing.T) {
	const costly = fi.Trigger | fi.SourceErr
	for _, i := range get(t, v117, newHints(func(*fi.Info) {})) {
		if i.Caps&costly != 0 {
			t.Errorf("caps %#x to hints that ask for none", i.Caps)
		}
	}
	for _, hints := range []*fi.Info{nil, newHints(func(h *fi.Info) { h.Caps = fi.Msg | fi.Source | costly })} {
		if i := get(t, v117, hints)[0]; i.Caps&costly != costly {
			t.Errorf("caps %#x, hints %v", i.Caps, hints != nil)
		}
	}
}

func TestCapabilitiesRefused(t *testing.T) {
	for _, bit := range []uint64{fi.Multicast, fi.VariableMsg, fi.RMAPmem,
		fi.XPUTrigger, fi.TaggedDirectedRecv, fi.TaggedMultiRecv, 1 << 0, 1 << 60, 1 << 63} {
		_, err := testEnv().GetInfo(v117, "", "", 0, newHints(func(h *fi.Info) { h.Caps = fi.Msg | bit }), nil)
		wantRefused(t, err, "caps")
	}
	_, err := testEnv().GetInfo(v117, "", "", 0, newHints(func(h *fi.Info) { h.Caps = fi.Msg | fi.SourceErr }), nil)
	wantRefused(t, err, "caps")
	for _, bit := range []uint64{fi.Msg, fi.DirectedRecv, fi.Peer} {
		_, err := testEnv().GetInfo(v117, "", "", 0, newHints(func(h *fi.Info) { h.Domain.Caps = bit }), nil)
		wantRefused(t, err, "domain_attr.caps")
	}
}

// TestCapabilities20: what came with API 2.0 is there from then on, for what asks for it.
func TestCapabilities20(t *testing.T) {
	all := fi.TaggedDirectedRecv | fi.ExactDirectedRecv | fi.TaggedMultiRecv
	for _, hints := range []*fi.Info{nil, newHints(func(*fi.Info) {})} {
		for _, i := range get(t, fi.Version(2, 0), hints) {
			if i.Caps&all != 0 {
				t.Errorf("%#x, though nothing asked", i.Caps)
			}
		}
	}
	for bit, types := range map[uint64][]fi.EPType{
		fi.TaggedDirectedRecv: {fi.EPRDM}, fi.ExactDirectedRecv: {fi.EPRDM, fi.EPDgram},
		fi.TaggedMultiRecv: {fi.EPRDM, fi.EPMsg},
	} {
		for _, kind := range []fi.EPType{fi.EPRDM, fi.EPMsg, fi.EPDgram} {
			hints := newHints(func(h *fi.Info) { h.Caps, h.EP.Type = fi.Msg|bit, kind })
			infos, err := testEnv().GetInfo(fi.Version(2, 0), "", "", 0, hints, nil)
			if !slices.Contains(types, kind) {
				wantRefused(t, err, "caps")
			} else if err != nil || infos[0].Caps&all != bit || infos[0].Rx.Caps&all != bit ||
				(infos[0].Tx.Caps|infos[0].Domain.Caps)&all != 0 {
				t.Errorf("%#x, type %v: %v", bit, kind, err)
			}
			_, err = testEnv().GetInfo(fi.Version(1, 22), "", "", 0, hints, nil)
			wantRefused(t, err, "caps")
		}
	}
}

func TestContextCapabilities(t *testing.T) {
	for _, tc := range []struct {
		name    string
		set     func(h *fi.Info)
		tx, rx  uint64
		refused string
	}{
		{name: "subset", set: func(h *fi.Info) { h.Caps, h.Tx.Caps, h.Rx.Caps = fi.Msg|fi.Tagged, fi.Tagged, fi.Msg },
			tx: fi.Tagged | fi.Send, rx: fi.Msg | fi.Recv},
		{name: "subset of everything", set: func(h *fi.Info) {
			h.Tx.Caps, h.Rx.Caps = fi.Msg,
				fi.Tagged|fi.DirectedRecv
		},
			tx: fi.Msg | fi.Send, rx: fi.Tagged | fi.DirectedRecv | fi.Recv},
		{name: "with direction", set: func(h *fi.Info) {
			h.Caps, h.Tx.Caps, h.Rx.Caps = fi.Msg, fi.Msg|fi.Send,
				fi.Msg|fi.Recv
		},
			tx: fi.Msg | fi.Send, rx: fi.Msg | fi.Recv},
		{name: "not asked of the endpoint", set: func(h *fi.Info) { h.Caps, h.Tx.Caps = fi.Msg, fi.Tagged },
			refused: "tx_attr.caps"},
		{name: "the other side's direction", set: func(h *fi.Info) { h.Caps, h.Tx.Caps = fi.Msg, fi.Msg|fi.Recv },
			tx: fi.Msg | fi.Send, rx: fi.Msg | fi.Recv | fi.MultiRecv},
		{name: "the other side's direction only", set: func(h *fi.Info) { h.Caps, h.Rx.Caps = fi.Msg, fi.Send },
			tx: fi.Msg | fi.Send, rx: fi.Msg | fi.Recv | fi.MultiRecv},
		{name: "the endpoint's in both", set: func(h *fi.Info) {
			h.Caps = fi.Msg | fi.RMA | dirs | fi.Read | fi.Write | fi.RemoteRead | fi.RemoteWrite | fi.Source
			h.Tx.Caps, h.Rx.Caps = h.Caps, h.Caps
		}, tx: fi.Msg | fi.RMA | fi.Send | fi.Read | fi.Write,
			rx: fi.Msg | fi.RMA | fi.Recv | fi.RemoteRead | fi.RemoteWrite | fi.Source},
		{name: "receive on a send-only endpoint", set: func(h *fi.Info) { h.Caps, h.Rx.Caps = fi.Msg|fi.Send, fi.Recv },
			refused: "rx_attr.caps"},
		{name: "unsupported", set: func(h *fi.Info) { h.Rx.Caps = fi.HMEM }, refused: "rx_attr.caps"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			infos, err := testEnv().GetInfo(v117, "", "", 0, newHints(tc.set), nil)
			if tc.refused != "" {
				wantRefused(t, err, tc.refused)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if i := infos[0]; i.Tx.Caps != tc.tx || i.Rx.Caps != tc.rx {
				t.Errorf("tx %#x rx %#x, want %#x %#x", i.Tx.Caps, i.Rx.Caps, tc.tx, tc.rx)
			}
		})
	}
}

// TestEveryAdvertisedBitHasAReason holds the table of capabilities to what is
// returned, and the reverse.
func TestEveryAdvertisedBitHasAReason(t *testing.T) {
	var inTable uint64
	for _, c := range capabilities {
		if bits.OnesCount64(c.Bit) != 1 || inTable&c.Bit != 0 {
			t.Errorf("%s: bit %#x is no bit or listed twice", c.Name, c.Bit)
		}
		inTable |= c.Bit
		if !strings.HasPrefix(c.Name, "FI_") || c.Reason == "" {
			t.Errorf("bit %#x: name %q, reason %q", c.Bit, c.Name, c.Reason)
		}
		if !c.Tx && !c.Rx && !c.Domain {
			t.Errorf("%s applies to nothing", c.Name)
		}
	}
	want := fi.Msg | fi.Tagged | fi.Collective | fi.DirectedRecv | fi.NamedRxCtx | dirs | comm | free | fi.Source |
		fi.SourceErr | fi.Fence | rma | fi.RMAEvent | fi.Trigger
	const demanded = fi.HMEM | fi.Peer | fi.AVUserID | caps20
	if inTable != want|demanded {
		t.Errorf("table has %#x, want %#x", inTable, want|demanded)
	}
	for _, i := range get(t, v117, nil) {
		if i.EP.Type == fi.EPRDM && i.Caps != want || i.Caps&^want != 0 {
			t.Errorf("no hints give %#x, want %#x", i.Caps, want)
		}
		if extra := (i.Tx.Caps | i.Rx.Caps | i.Domain.Caps) &^ i.Caps; extra != 0 {
			t.Errorf("attributes have %#x, which the endpoint has not", extra)
		}
	}
}

// TestEveryCombination asks for every combination of primary capabilities, as
// fabtests' getinfo_test does.
func TestEveryCombination(t *testing.T) {
	primary := []uint64{fi.Msg, fi.RMA, fi.Tagged, fi.Atomic, fi.Multicast, fi.NamedRxCtx, fi.HMEM, fi.Collective,
		fi.DirectedRecv}
	const primaryTx = fi.Msg | fi.RMA | fi.Tagged | fi.Atomic | fi.Multicast | fi.NamedRxCtx | fi.HMEM | fi.Collective
	const primaryRx = fi.Msg | fi.RMA | fi.Tagged | fi.Atomic | fi.DirectedRecv | fi.HMEM | fi.Collective
	const supported = fi.Msg | fi.Tagged | fi.NamedRxCtx | fi.DirectedRecv | fi.RMA | fi.Atomic | fi.Collective |
		fi.HMEM
	const optional = dirs | rmaTx | rmaRx | free | comm | fi.Source | fi.SourceErr
	accepted := 0
	for set := range 1 << len(primary) {
		var caps uint64
		for n, bit := range primary {
			if set>>n&1 != 0 {
				caps |= bit
			}
		}
		infos, err := testEnv().GetInfo(v117, "", "", 0, newHints(func(h *fi.Info) { h.Caps, h.Mode = caps, max64 }),
			nil)
		if caps&^supported != 0 {
			wantRefused(t, err, "caps")
			continue
		}
		if err != nil {
			t.Fatalf("caps %#x: %v", caps, err)
		}
		accepted++
		for _, i := range infos {
			if i.Caps&caps != caps || caps != 0 && i.Caps&^(caps|optional) != 0 ||
				i.Tx.Caps&caps != caps&primaryTx || i.Rx.Caps&caps != caps&primaryRx {
				t.Errorf("caps %#x give %#x, tx %#x, rx %#x", caps, i.Caps, i.Tx.Caps, i.Rx.Caps)
			}
		}
	}
	if accepted != 256 {
		t.Errorf("%d combinations were accepted, want 256", accepted)
	}
}

// TestPeer asks for what libfabric's lnx provider does, in hosts old and new.
func TestPeer(t *testing.T) {
	env := testEnv()
	ask := func() ([]*fi.Info, error) {
		return env.GetInfo(v117, "", "", 0, newHints(func(h *fi.Info) { h.Caps = fi.Tagged | fi.Peer | fi.AVUserID }),
			nil)
	}
	for _, host := range []uint32{0, fi.Version(1, 22)} {
		env.Host = host
		_, err := ask()
		wantRefused(t, err, "caps")
	}
	env.Host = fi.Version(2, 0)
	infos, err := ask()
	if err != nil || infos[0].Caps&infos[0].Domain.Caps&(fi.Peer|fi.AVUserID) != fi.Peer|fi.AVUserID {
		t.Errorf("%v, %v", infos, err)
	}
}
