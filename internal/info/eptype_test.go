package info

import (
	"testing"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/config"
)

// typesOf returns the endpoint types of offers, each run of equal ones once.
func typesOf(infos []*fi.Info) (types []fi.EPType) {
	for _, i := range infos {
		if n := len(types); n == 0 || types[n-1] != i.EP.Type {
			types = append(types, i.EP.Type)
		}
	}
	return types
}

func TestEndpointTypes(t *testing.T) {
	const rdm, msg, dgram = fi.EPRDM, fi.EPMsg, fi.EPDgram
	for _, tc := range []struct {
		name string
		set  func(h *fi.Info)
		want []fi.EPType
	}{
		{"no hint", func(*fi.Info) {}, []fi.EPType{rdm, msg, dgram}},
		{"rdm", func(h *fi.Info) { h.EP.Type = rdm }, []fi.EPType{rdm}},
		{"msg", func(h *fi.Info) { h.EP.Type = msg }, []fi.EPType{msg}},
		{"dgram", func(h *fi.Info) { h.EP.Type = dgram }, []fi.EPType{dgram}},
		{"FI_MSG", func(h *fi.Info) { h.Caps = fi.Msg }, []fi.EPType{rdm, msg, dgram}},
		{"FI_TAGGED", func(h *fi.Info) { h.Caps = fi.Tagged }, []fi.EPType{rdm, msg}},
		{"FI_RMA", func(h *fi.Info) { h.Caps = fi.RMA }, []fi.EPType{rdm, msg}},
		{"FI_SOURCE", func(h *fi.Info) { h.Caps = fi.Msg | fi.Source }, []fi.EPType{rdm, dgram}},
		{"FI_NAMED_RX_CTX", func(h *fi.Info) { h.Caps = fi.NamedRxCtx }, []fi.EPType{rdm}},
		{"contexts", func(h *fi.Info) { h.EP.TxCtxCnt = 2 }, []fi.EPType{rdm}},
		{"domain contexts", func(h *fi.Info) { h.Domain.MaxEPRxCtx = 2 }, []fi.EPType{rdm}},
		{"delivery complete", func(h *fi.Info) { h.Tx.OpFlags = fi.DeliveryComplete }, []fi.EPType{rdm, msg}},
		{"long messages", func(h *fi.Info) { h.EP.MaxMsgSize = 1 << 20 }, []fi.EPType{rdm, msg}},
	} {
		hints := newHints(func(h *fi.Info) { h.EP.Type = fi.EPUnspec; tc.set(h) })
		infos := get(t, v117, hints)
		if got := typesOf(infos); len(got) != len(tc.want) || len(infos) != 5*len(got) {
			t.Errorf("%s: %d offers of types %v, want %v", tc.name, len(infos), got, tc.want)
		} else {
			for n := range got {
				if got[n] != tc.want[n] {
					t.Errorf("%s: types %v, want %v", tc.name, got, tc.want)
				}
			}
		}
	}
}

// TestUtilityProviders sees that none is offered what it would turn into a
// second FI_EP_RDM.
func TestUtilityProviders(t *testing.T) {
	infos, err := testEnv().GetInfo(v117, "", "", layered, nil, nil)
	if types := typesOf(infos); err != nil || len(types) != 1 || types[0] != fi.EPRDM {
		t.Errorf("types %v, %v", types, err)
	}
	for _, asked := range []fi.EPType{fi.EPMsg, fi.EPDgram} {
		_, err := testEnv().GetInfo(v117, "", "", layered, newHints(func(h *fi.Info) { h.EP.Type = asked }), nil)
		wantRefused(t, err, "ep_attr.type")
	}
}

// TestTypeRefusals says which hints a type does not meet, and that the refusal
// names them.
func TestTypeRefusals(t *testing.T) {
	for _, tc := range []struct {
		ep   fi.EPType
		set  func(h *fi.Info)
		attr string
	}{
		{fi.EPMsg, func(h *fi.Info) { h.Caps = fi.Msg | fi.DirectedRecv }, "caps"},
		{fi.EPMsg, func(h *fi.Info) { h.EP.RxCtxCnt = 2 }, "ep_attr.rx_ctx_cnt"},
		{fi.EPMsg, func(h *fi.Info) { h.Domain.Caps = fi.SharedAV }, "domain_attr.caps"},
		{fi.EPDgram, func(h *fi.Info) { h.Caps = fi.Tagged }, "caps"},
		{fi.EPDgram, func(h *fi.Info) { h.EP.MaxMsgSize = 8<<10 + 1 }, "ep_attr.max_msg_size"},
		{fi.EPDgram, func(h *fi.Info) { h.Tx.OpFlags = fi.MatchComplete }, "tx_attr.op_flags"},
	} {
		_, err := testEnv().GetInfo(v117, "", "", 0, newHints(func(h *fi.Info) { h.EP.Type = tc.ep; tc.set(h) }), nil)
		wantRefused(t, err, tc.attr)
	}
}

func TestTypeAttributes(t *testing.T) {
	cfg := configWith(func(c *config.Config) { c.EagerSize, c.BounceSize, c.InjectSize = 1000, 2000, 1500 })
	infos, err := testEnv().GetInfo(v117, "", "", 0, nil, cfg)
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range infos {
		size, inject, ctx := uint64(MaxMsgSize), uint64(1500), uint64(1)
		switch i.EP.Type {
		case fi.EPRDM:
			ctx = MaxCtx
		case fi.EPDgram:
			size, inject = 1000, 1000
		}
		if i.EP.MaxMsgSize != size || i.Tx.InjectSize != inject || i.Domain.MaxEPTxCtx != ctx ||
			i.Domain.MaxEPRxCtx != ctx {
			t.Errorf("type %d: %+v %+v %+v", i.EP.Type, *i.EP, *i.Tx, *i.Domain)
		}
		if i.EP.Type == fi.EPMsg && i.Caps&(fi.Source|fi.DirectedRecv|fi.SharedAV) != 0 {
			t.Errorf("connected endpoints offer %#x", i.Caps)
		}
		if i.EP.Type == fi.EPDgram && i.Caps&(fi.Tagged|fi.RMA|fi.Atomic|fi.Fence) != 0 {
			t.Errorf("datagram endpoints offer %#x", i.Caps)
		}
	}
}
