package info

import (
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/version"
	"github.com/weft-fabric/weft/provider/names"
)

// ProvName is the provider's name.
const ProvName = "weft"

// ProvVersion is the provider's version.
var ProvVersion = fi.Version(version.Numbers())

// ProtocolVersion is the version of weft's protocol (fi.ProtoWeft). Endpoints
// of different versions do not talk to each other.
const ProtocolVersion = 1

// Limits of every endpoint and domain. A hint above a limit is refused.
const (
	// MaxMsgSize is the longest message in bytes.
	MaxMsgSize = 1 << 40
	// DefaultCtxSize is the size of a transmit or receive context for which
	// no size was asked, in operations.
	DefaultCtxSize = 1024
	// MaxCtxSize is the largest size of a transmit or receive context.
	MaxCtxSize = 1 << 20
	// IOVLimit is the number of parts of a scattered message, and of the
	// remote memory of one RMA or atomic operation.
	IOVLimit = 4
	// MRIOVLimit is the number of parts of a memory region.
	MRIOVLimit = 16
	// MaxCtx is the number of transmit and of receive contexts of an endpoint. A domain reports
	// it, too, as the contexts that work in parallel: SHMEM libraries open as many.
	MaxCtx = 64
	// MaxSharing is the number of endpoints that can share a context.
	MaxSharing = 1024
	// ObjectCount is the number of completion queues, counters and endpoints that a domain is
	// reported to support, and of contexts that it opens. Memory is the real limit.
	ObjectCount = 1 << 16
	// MRCount is the default number of memory regions of a domain.
	MRCount = 1 << 16
	// MRKeySize is the size of a memory key in bytes.
	MRKeySize = 8
	// CQDataSize is the size of remote CQ data in bytes.
	CQDataSize = 8
	// MaxErrData is the size of error data in bytes. FI_SOURCE_ERR returns an
	// address there, in any format.
	MaxErrData = names.MaxLen

	// MaxAuthKey bounds authorisation keys, bytes. No attribute says it.
	MaxAuthKey = 4096
	// MaxEPAuthKey is the number of authorisation keys of an address vector, and so of
	// an endpoint.
	MaxEPAuthKey = 254
	// TagFormat is fi_getinfo's answer to no hint: 64 tag bits, each of which
	// may be masked on its own.
	TagFormat = 0xAAAA_AAAA_AAAA_AAAA
)

// TxOpFlags are the flags that can be a transmit context's defaults.
const TxOpFlags = fi.Completion | fi.Inject | fi.InjectComplete |
	fi.TransmitComplete | fi.DeliveryComplete | fi.MatchComplete

// DgramTxOpFlags are those of a datagram endpoint, which hears nothing from
// the receiver.
const DgramTxOpFlags = TxOpFlags &^ (fi.DeliveryComplete | fi.MatchComplete)

// RxOpFlags are the flags that can be a receive context's defaults.
const RxOpFlags = fi.Completion | fi.MultiRecv

// MsgOrder is the message order that an endpoint can keep.
const MsgOrder = fi.OrderRAR | orderRAW | fi.OrderRAS | orderWAR | orderWAW | fi.OrderWAS |
	fi.OrderSAR | fi.OrderSAW | fi.OrderSAS | fi.OrderRMARAR | fi.OrderAtomicRAR

// Orders by which the data of two operations that meet in memory is in order too.
const (
	orderRAW = fi.OrderRAW | fi.OrderRMARAW | fi.OrderAtomicRAW
	orderWAR = fi.OrderWAR | fi.OrderRMAWAR | fi.OrderAtomicWAR
	orderWAW = fi.OrderWAW | fi.OrderRMAWAW | fi.OrderAtomicWAW
)
