package info

import (
	"reflect"
	"testing"

	"github.com/weft-fabric/weft/fi"
)

const max64 = 1<<64 - 1

// attrCase is a hint, and either a check of what comes back or the attribute
// that is refused.
type attrCase struct {
	name    string
	version uint32 // 0: 1.17
	set     func(h *fi.Info)
	check   func(i *fi.Info) bool
	refused string
}

// attrCases has the attributes of contexts and endpoints.
var attrCases = []attrCase{
	{name: "no hints", set: func(h *fi.Info) {}, check: func(i *fi.Info) bool {
		return i.Mode == 0 && i.Handle == nil && i.Tx.Mode == 0 && i.Rx.Mode == 0 && i.Domain.Mode == 0
	}},
	{name: "any mode is fine", set: func(h *fi.Info) {
		h.Mode, h.Tx.Mode, h.Rx.Mode, h.Domain.Mode = max64, max64, max64, max64
	}, check: func(i *fi.Info) bool {
		return i.Mode == 0 && i.Tx.Mode == 0 && i.Rx.Mode == 0 && i.Domain.Mode == 0
	}},
	{name: "handle", set: func(h *fi.Info) { h.Handle = "pep" },
		check: func(i *fi.Info) bool { return i.Handle == "pep" }},

	// Transmit attributes.
	{name: "tx default", set: func(h *fi.Info) {}, check: func(i *fi.Info) bool {
		return i.Tx.Size == 1024 && i.Tx.InjectSize == 4096 && i.Tx.IOVLimit == 4 && i.Tx.RMAIOVLimit == 4 &&
			i.Tx.MsgOrder == 0 && i.Tx.CompOrder == 0 && i.Tx.OpFlags == 0
	}},
	{name: "tx op_flags", set: func(h *fi.Info) { h.Tx.OpFlags = TxOpFlags },
		check: func(i *fi.Info) bool { return i.Tx.OpFlags == TxOpFlags }},
	{name: "tx op_flags commit", set: func(h *fi.Info) { h.Tx.OpFlags = fi.CommitComplete },
		refused: "tx_attr.op_flags"},
	{name: "tx order", set: func(h *fi.Info) { h.Tx.MsgOrder = fi.OrderSAS },
		check: func(i *fi.Info) bool { return i.Tx.MsgOrder == fi.OrderSAS && i.Rx.MsgOrder == 0 }},
	{name: "tx order raw", set: func(h *fi.Info) { h.Tx.MsgOrder = fi.OrderSAS | fi.OrderRAW },
		check: func(i *fi.Info) bool {
			return i.Tx.MsgOrder == fi.OrderSAS|fi.OrderRAW && i.EP.MaxOrderRAWSize == max64 &&
				i.EP.MaxOrderWARSize == 0 && i.EP.MaxOrderWAWSize == 0
		}},
	{name: "tx order rma", set: func(h *fi.Info) { h.Tx.MsgOrder = fi.OrderRMAWAR | fi.OrderAtomicWAW },
		check: func(i *fi.Info) bool {
			return i.EP.MaxOrderRAWSize == 0 && i.EP.MaxOrderWARSize == max64 && i.EP.MaxOrderWAWSize == max64
		}},
	{name: "tx order unknown", set: func(h *fi.Info) { h.Tx.MsgOrder = 1 << 9 }, refused: "tx_attr.msg_order"},
	{name: "tx comp order", set: func(h *fi.Info) { h.Tx.CompOrder = fi.OrderStrict }, refused: "tx_attr.comp_order"},
	{name: "tx inject", set: func(h *fi.Info) { h.Tx.InjectSize = 100 },
		check: func(i *fi.Info) bool { return i.Tx.InjectSize == 4096 }},
	{name: "tx inject limit", set: func(h *fi.Info) { h.Tx.InjectSize = 4097 }, refused: "tx_attr.inject_size"},
	{name: "tx size", set: func(h *fi.Info) { h.Tx.Size = 100 },
		check: func(i *fi.Info) bool { return i.Tx.Size == 100 }},
	{name: "tx size limit", set: func(h *fi.Info) { h.Tx.Size = 1<<20 + 1 }, refused: "tx_attr.size"},
	{name: "tx iov", set: func(h *fi.Info) { h.Tx.IOVLimit = 2 },
		check: func(i *fi.Info) bool { return i.Tx.IOVLimit == 4 }},
	{name: "tx iov limit", set: func(h *fi.Info) { h.Tx.IOVLimit = 5 }, refused: "tx_attr.iov_limit"},
	{name: "tx rma iov", set: func(h *fi.Info) { h.Tx.RMAIOVLimit = 5 }, refused: "tx_attr.rma_iov_limit"},
	{name: "tx tclass", set: func(h *fi.Info) { h.Tx.TClass = fi.TCLowLatency },
		check: func(i *fi.Info) bool { return i.Tx.TClass == fi.TCLowLatency }},

	// Receive attributes.
	{name: "rx default", set: func(h *fi.Info) {}, check: func(i *fi.Info) bool {
		return i.Rx.Size == 1024 && i.Rx.IOVLimit == 4 && i.Rx.TotalBufferedRecv == 0 && i.Rx.MsgOrder == 0
	}},
	{name: "rx op_flags", set: func(h *fi.Info) { h.Rx.OpFlags = fi.Completion | fi.MultiRecv },
		check: func(i *fi.Info) bool { return i.Rx.OpFlags == fi.Completion|fi.MultiRecv }},
	{name: "rx op_flags inject", set: func(h *fi.Info) { h.Rx.OpFlags = fi.Inject }, refused: "rx_attr.op_flags"},
	{name: "rx order", set: func(h *fi.Info) { h.Rx.MsgOrder = fi.OrderSAS },
		check: func(i *fi.Info) bool { return i.Rx.MsgOrder == fi.OrderSAS }},
	{name: "rx order atomic", set: func(h *fi.Info) { h.Rx.MsgOrder = fi.OrderWAR | fi.OrderAtomicWAW },
		check: func(i *fi.Info) bool {
			return i.Rx.MsgOrder == fi.OrderWAR|fi.OrderAtomicWAW && i.EP.MaxOrderWARSize == 0
		}},
	{name: "rx order data", set: func(h *fi.Info) { h.Rx.MsgOrder = fi.OrderData }, refused: "rx_attr.msg_order"},
	{name: "rx comp order", set: func(h *fi.Info) { h.Rx.CompOrder = fi.OrderData }, refused: "rx_attr.comp_order"},
	{name: "rx size", set: func(h *fi.Info) { h.Rx.Size = 1 << 20 },
		check: func(i *fi.Info) bool { return i.Rx.Size == 1<<20 }},
	{name: "rx size limit", set: func(h *fi.Info) { h.Rx.Size = max64 }, refused: "rx_attr.size"},
	{name: "rx iov limit", set: func(h *fi.Info) { h.Rx.IOVLimit = 5 }, refused: "rx_attr.iov_limit"},
	{name: "rx buffered is ignored", set: func(h *fi.Info) { h.Rx.TotalBufferedRecv = max64 },
		check: func(i *fi.Info) bool { return i.Rx.TotalBufferedRecv == 0 }},
	{name: "rx buffered in 2.0", version: fi.Version(2, 0), set: func(h *fi.Info) { h.Rx.TotalBufferedRecv = 1 },
		refused: "rx_attr.total_buffered_recv"},

	// Endpoint attributes.
	{name: "ep default", set: func(h *fi.Info) {}, check: func(i *fi.Info) bool {
		return reflect.DeepEqual(*i.EP, endpointDefault())
	}},
	{name: "ep rdm", set: func(h *fi.Info) { h.EP.Type = fi.EPRDM },
		check: func(i *fi.Info) bool { return i.EP.Type == fi.EPRDM }},
	{name: "ep stream", set: func(h *fi.Info) { h.EP.Type = fi.EPSockStream }, refused: "ep_attr.type"},
	{name: "ep type unknown", set: func(h *fi.Info) { h.EP.Type = 77 }, refused: "ep_attr.type"},
	{name: "protocol", set: func(h *fi.Info) { h.EP.Protocol, h.EP.ProtocolVersion = fi.ProtoWeft, 1 },
		check: func(i *fi.Info) bool { return i.EP.Protocol == fi.ProtoWeft && i.EP.ProtocolVersion == 1 }},
	{name: "protocol in an int", set: func(h *fi.Info) {},
		check: func(i *fi.Info) bool { return int32(i.EP.Protocol) > 0 }},
	{name: "protocol shm", set: func(h *fi.Info) { h.EP.Protocol = fi.ProtoSHM }, refused: "ep_attr.protocol"},
	{name: "protocol version", set: func(h *fi.Info) { h.EP.ProtocolVersion = 2 }, refused: "ep_attr.protocol_version"},
	{name: "message size", set: func(h *fi.Info) { h.EP.MaxMsgSize = 4 << 30 },
		check: func(i *fi.Info) bool { return i.EP.MaxMsgSize >= 4<<30 }},
	{name: "message size limit", set: func(h *fi.Info) { h.EP.MaxMsgSize = 1<<40 + 1 },
		refused: "ep_attr.max_msg_size"},
	{name: "prefix", set: func(h *fi.Info) { h.EP.MsgPrefixSize = 8 }, refused: "ep_attr.msg_prefix_size"},
	{name: "raw size", set: func(h *fi.Info) { h.EP.MaxOrderRAWSize = 1 }, check: func(i *fi.Info) bool {
		return i.Tx.MsgOrder == fi.OrderRAW && i.EP.MaxOrderRAWSize == max64 && i.EP.MaxOrderWAWSize == 0
	}},
	{name: "raw size in order", set: func(h *fi.Info) { h.Tx.MsgOrder, h.EP.MaxOrderRAWSize = fi.OrderRMARAW, 1<<20 },
		check: func(i *fi.Info) bool { return i.EP.MaxOrderRAWSize >= 1<<20 }},
	{name: "war size", set: func(h *fi.Info) { h.Tx.MsgOrder, h.EP.MaxOrderWARSize = fi.OrderSAS, max64 },
		check: func(i *fi.Info) bool {
			return i.Tx.MsgOrder == fi.OrderSAS|fi.OrderWAR && i.EP.MaxOrderWARSize == max64
		}},
	{name: "waw size", set: func(h *fi.Info) { h.EP.MaxOrderWAWSize = 1 }, check: func(i *fi.Info) bool {
		return i.Tx.MsgOrder == fi.OrderWAW && i.EP.MaxOrderWAWSize == max64
	}},
	{name: "sizes of messages' order", set: func(h *fi.Info) {
		h.Caps, h.EP.MaxOrderRAWSize, h.EP.MaxOrderWARSize, h.EP.MaxOrderWAWSize = fi.Msg, 1, max64, 8
	}, check: func(i *fi.Info) bool { return i.Tx.MsgOrder == 0 && i.EP.MaxOrderRAWSize == 0 }},
	{name: "tag fields", set: func(h *fi.Info) { h.EP.MemTagFormat = 0x30FF0000FF },
		check: func(i *fi.Info) bool { return i.EP.MemTagFormat == 0x30FF0000FF }},
	{name: "tag fields, small", set: func(h *fi.Info) { h.EP.MemTagFormat = 0x30FF },
		check: func(i *fi.Info) bool { return i.EP.MemTagFormat == 0x30FF }},
	{name: "tag mpi", version: fi.Version(2, 0), set: func(h *fi.Info) { h.EP.MemTagFormat = fi.TagMPI },
		check: func(i *fi.Info) bool { return i.EP.MemTagFormat == fi.TagMPI }},
	{name: "tag ccl", version: fi.Version(2, 0), set: func(h *fi.Info) { h.EP.MemTagFormat = fi.TagCCL },
		check: func(i *fi.Info) bool { return i.EP.MemTagFormat == fi.TagCCL }},
	{name: "tag unknown", version: fi.Version(2, 0), set: func(h *fi.Info) { h.EP.MemTagFormat = 3 },
		refused: "ep_attr.mem_tag_format"},
	{name: "one context", set: func(h *fi.Info) { h.EP.TxCtxCnt, h.EP.RxCtxCnt = 1, 1 },
		check: func(i *fi.Info) bool { return i.EP.TxCtxCnt == 1 && i.EP.RxCtxCnt == 1 }},
	{name: "most contexts", set: func(h *fi.Info) { h.EP.TxCtxCnt, h.EP.RxCtxCnt = MaxCtx, 3 },
		check: func(i *fi.Info) bool { return i.EP.TxCtxCnt == MaxCtx && i.EP.RxCtxCnt == 3 }},
	{name: "shared contexts", set: func(h *fi.Info) {
		h.EP.TxCtxCnt, h.EP.RxCtxCnt = fi.SharedContext,
			fi.SharedContext
	},
		check: func(i *fi.Info) bool { return i.EP.TxCtxCnt == fi.SharedContext && i.EP.RxCtxCnt == fi.SharedContext }},
	{name: "many tx contexts", set: func(h *fi.Info) { h.EP.TxCtxCnt = MaxCtx + 1 }, refused: "ep_attr.tx_ctx_cnt"},
	{name: "many rx contexts", set: func(h *fi.Info) { h.EP.RxCtxCnt = MaxCtx + 1 }, refused: "ep_attr.rx_ctx_cnt"},
	{name: "ep key", set: func(h *fi.Info) { h.EP.AuthKey = []byte{1} },
		check: func(i *fi.Info) bool { return i.EP.AuthKeySize == 1 && i.EP.AuthKey[0] == 1 }},
	{name: "long ep key", set: func(h *fi.Info) { h.EP.AuthKey = make([]byte, MaxAuthKey+1) },
		refused: "ep_attr.auth_key_size"},
	{name: "ep key size", set: func(h *fi.Info) { h.EP.AuthKeySize = 8 }, refused: "ep_attr.auth_key_size"},
	{name: "ep key in 1.4", version: fi.Version(1, 4), set: func(h *fi.Info) { h.EP.AuthKeySize = 8 },
		check: func(i *fi.Info) bool { return i.EP.AuthKeySize == 0 && i.EP.AuthKey == nil }},
}

func endpointDefault() fi.EPAttr {
	return fi.EPAttr{Type: fi.EPRDM, Protocol: fi.ProtoWeft, ProtocolVersion: 1, MaxMsgSize: 1 << 40,
		MemTagFormat: 0xAAAAAAAAAAAAAAAA, TxCtxCnt: 1, RxCtxCnt: 1}
}

func TestAttributes(t *testing.T) {
	cases := append(attrCases[:len(attrCases):len(attrCases)], domainCases...)
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			version := tc.version
			if version == 0 {
				version = v117
			}
			infos, err := testEnv().GetInfo(version, "", "", 0, newHints(tc.set), nil)
			if tc.refused != "" {
				wantRefused(t, err, tc.refused)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			for _, i := range infos {
				if !tc.check(i) {
					t.Errorf("got %+v %+v %+v %+v %+v %+v", *i, *i.Tx, *i.Rx, *i.EP, *i.Domain, *i.Fabric)
				}
			}
		})
	}
}
