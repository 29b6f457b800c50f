package info

import (
	"testing"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/config"
	"github.com/weft-fabric/weft/provider/names"
)

func named(name string) *config.Config {
	return configWith(func(c *config.Config) { c.Name = name })
}

// TestAliasTable finds every name that FI_WEFT_NAME takes in the table, and no other.
func TestAliasTable(t *testing.T) {
	for _, a := range append(aliases, own) {
		c, err := config.Load(func(n string) (string, bool) { return a.name, n == "FI_WEFT_NAME" })
		if err != nil || c.Name != a.name || ReportedName(c) != a.name {
			t.Errorf("FI_WEFT_NAME=%s: %v", a.name, err)
		}
	}
	if _, err := config.Load(func(n string) (string, bool) { return "udp", n == "FI_WEFT_NAME" }); err == nil {
		t.Error("FI_WEFT_NAME=udp is taken")
	}
}

func TestAliasNames(t *testing.T) {
	for _, c := range []struct {
		name, asked string
		ok          bool
	}{
		{"tcp", "tcp", true}, {"tcp", "TCP", true}, {"tcp", "weft", true}, {"tcp", "", true}, {"tcp", "shm,tcp", true},
		{"tcp", "^shm", true}, {"tcp", "tcp;^ofi_rxm", true},
		{"tcp", "tcp;ofi_rxm", false}, {"tcp", "sockets", false}, {"tcp", "tcp2", false},
		{"tcp;ofi_rxm", "tcp;ofi_rxm", true}, {"tcp;ofi_rxm", "ofi_rxm", true}, {"tcp;ofi_rxm", "tcp", true},
		{"tcp;ofi_rxm", "verbs;ofi_rxm", false}, {"tcp;ofi_rxm", "verbs", false},
		{"weft", "tcp", false},
	} {
		infos, err := testEnv().GetInfo(v117, "", "", 0, newHints(func(h *fi.Info) { h.Fabric.ProvName = c.asked }),
			named(c.name))
		if !c.ok {
			wantRefused(t, err, "fabric_attr.prov_name")
		} else if err != nil || infos[0].Fabric.ProvName != c.name || infos[0].Fabric.ProvVersion != ProvVersion {
			t.Errorf("%s asked for %q: %v", c.name, c.asked, err)
		}
	}
	for name, want := range map[string][2]string{
		"tcp": {"tcp", ""}, "tcp;ofi_rxm": {"ofi_rxm", "tcp"}, "weft": {"weft", ""}, "": {"weft", ""},
		"bad": {"weft", ""},
	} {
		if top, lower := Registered(name); top != want[0] || lower != want[1] {
			t.Errorf("%q is registered as %q over %q", name, top, lower)
		}
	}
	if !IsReported(named("shm"), "shm") || !IsReported(named("shm"), "Weft") || IsReported(named("shm"), "tcp") {
		t.Error("the wrong names open a fabric")
	}
}

// TestAliasProtocols asks each name for its protocols, others', and none.
func TestAliasProtocols(t *testing.T) {
	for _, a := range append(aliases, own) {
		for _, typ := range []fi.EPType{fi.EPRDM, fi.EPMsg, fi.EPDgram} {
			list := a.protocols[typ]
			if len(list) == 0 {
				list = []fi.Protocol{fi.ProtoWeft}
			}
			for asked, want := range map[fi.Protocol]fi.Protocol{
				fi.ProtoUnspec: list[0], fi.ProtoWeft: fi.ProtoWeft, list[0]: list[0],
				list[len(list)-1]: list[len(list)-1], fi.ProtoPSMX2: 0,
			} {
				infos, err := testEnv().GetInfo(v117, "", "", 0,
					newHints(func(h *fi.Info) { h.EP.Type, h.EP.Protocol = typ, asked }), named(a.name))
				if want == 0 {
					wantRefused(t, err, "ep_attr.protocol")
				} else if want&fi.ProvSpecific != 0 {
					t.Errorf("%s, type %v: protocol %#x is negative in an int", a.name, typ, want)
				} else if err != nil || infos[0].EP.Protocol != want {
					t.Errorf("%s, type %v, protocol %v: %v", a.name, typ, asked, err)
				}
			}
		}
	}
	_, err := testEnv().GetInfo(v117, "", "", 0, newHints(func(h *fi.Info) { h.EP.ProtocolVersion = 5 }), named("efa"))
	wantRefused(t, err, "ep_attr.protocol_version")
}

func TestAliasFormats(t *testing.T) {
	for name, want := range map[string]fi.AddrFormat{"shm": fi.AddrStr, "efa": fi.AddrEFA, "cxi": fi.AddrCXI,
		"tcp": fi.SockaddrIn} {
		for _, asked := range []fi.AddrFormat{fi.FormatUnspec, want} {
			infos, err := testEnv().GetInfo(v117, "", "", 0, newHints(func(h *fi.Info) { h.AddrFormat = asked }),
				named(name))
			if err != nil || infos[0].AddrFormat != want {
				t.Fatalf("%s: format %v: %v", name, asked, err)
			}
			n, err := names.Decode(want, infos[0].SrcAddr)
			if err != nil || n.Addr().String() != "10.0.0.5" {
				t.Errorf("%s: % x, %v", name, infos[0].SrcAddr, err)
			}
			if names.Opaque(want) && len(infos[0].SrcAddr) != names.OpaqueLen {
				t.Errorf("%s: an address of %d bytes", name, len(infos[0].SrcAddr))
			}
		}
	}
	_, err := testEnv().GetInfo(v117, "", "", 0, newHints(func(h *fi.Info) { h.AddrFormat = fi.AddrEFA }), named("cxi"))
	wantRefused(t, err, "addr_format")
}
