package cxi

import (
	"fmt"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/hw/cxi/internal/wire"
)

// verdict is what a return code says of a peer.
type verdict int

const (
	accepted verdict = iota
	refused          // no room now, or it is not known whether it arrived: it may be sent again
	lost             // the path is broken: it may be sent again, for a while
	absent           // the interface is not there (any more)
	broken           // the command itself is wrong
)

// judge sorts the codes of a message or presence put. One that arrived and whose answer was lost
// is sent twice: receivers take a position once.
func judge(code uint32) verdict {
	switch code {
	case wire.RcOk:
		return accepted
	case wire.RcEntryNotFound, wire.RcPtDisabled, wire.RcNoSpace, wire.RcDropped, wire.RcNoTargetTrs,
		wire.RcNoTargetMst,
		wire.RcResourceBusy, wire.RcPtlteSwManaged, wire.RcNoMatchingTrs, wire.RcNoMatchingMst, wire.RcPktbufError, wire.RcUncorTrnsnt:
		return refused
	case wire.RcUndeliverable, wire.RcNoTargetConn, wire.RcNoMatchingConn, wire.RcSequenceError, wire.RcConnClosed,
		wire.RcCanceled,
		wire.RcMstCancelled, wire.RcTrsPendRsp:
		return lost
	case wire.RcPtlteNotFound, wire.RcVniNotFound, wire.RcInvalidEndpoint:
		return absent
	}
	return broken
}

// codeError is what a one-sided operation's code means to its caller.
func codeError(code uint32) error {
	kind := hw.ErrInvalid
	switch code {
	case wire.RcOk:
		return nil
	case wire.RcEntryNotFound, wire.RcOpViolation, wire.RcPermViolation, wire.RcAddrOutOfRange, wire.RcNoTranslation,
		wire.RcPagePermError, wire.RcInvalidAc, wire.RcDropped, wire.RcNoMatch, wire.RcPtDisabled:
		kind = hw.ErrKey
	case wire.RcUndeliverable, wire.RcVniNotFound, wire.RcPtlteNotFound, wire.RcNoTargetConn, wire.RcNoMatchingConn,
		wire.RcInvalidEndpoint, wire.RcConnClosed,
		wire.RcNoTargetTrs, wire.RcNoTargetMst, wire.RcSequenceError, wire.RcCanceled:
		kind = hw.ErrPeerDead
	}
	return fmt.Errorf("cxi: %s: %w", codeText(code), kind)
}

var codeNames = map[uint32]string{
	wire.RcUndeliverable: "undeliverable", wire.RcPtDisabled: "list disabled", wire.RcDropped: "dropped",
	wire.RcPermViolation: "permission violation",
	wire.RcOpViolation:   "operation not allowed", wire.RcNoMatch: "no match", wire.RcNoSpace: "no space",
	wire.RcEntryNotFound: "no entry",
	wire.RcNoTargetConn:  "no connection at the target", wire.RcVniNotFound: "no such VNI",
	wire.RcPtlteNotFound: "no such index",
	wire.RcNoTranslation: "no translation", wire.RcInvalidEndpoint: "no such endpoint",
	wire.RcCmdInvalidArg: "invalid argument",
	wire.RcCmdAlignError: "command out of alignment", wire.RcIllegalOp: "illegal operation",
	wire.RcAddrOutOfRange: "address out of range",
	wire.RcAmoAlign:       "atomic out of alignment", wire.RcInvalidAc: "invalid address context",
	wire.RcPagePermError: "page not accessible",
}

// codeText names a return code.
func codeText(code uint32) string {
	if s, ok := codeNames[code]; ok {
		return fmt.Sprintf("%s (%d)", s, code)
	}
	return fmt.Sprintf("return code %d", code)
}
