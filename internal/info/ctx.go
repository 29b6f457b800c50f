package info

import "github.com/weft-fabric/weft/fi"

// negotiateTx returns the transmit attributes for hints h on an endpoint of
// type t with capabilities caps. noHints is set if the application gave no hints at all.
func (q *query) negotiateTx(h fi.TxAttr, caps uint64, noHints bool, t epType) (*fi.TxAttr, *refusal) {
	inject := q.injectSize(t)
	ctx, r := negotiateCtxCaps("tx_attr.caps", h.Caps, caps, txCaps)
	if r = firstRefusal(r,
		subset("tx_attr.op_flags", h.OpFlags, t.txFlags),
		subset("tx_attr.msg_order", h.MsgOrder, t.orders()),
		subset("tx_attr.comp_order", h.CompOrder, fi.OrderNone),
		atMost("tx_attr.inject_size", h.InjectSize, inject),
		atMost("tx_attr.size", h.Size, t.txSize()),
		atMost("tx_attr.iov_limit", h.IOVLimit, t.iovs()),
		atMost("tx_attr.rma_iov_limit", h.RMAIOVLimit, t.rmaIOVs()),
		trafficClass("tx_attr.tclass", h.TClass),
	); r != nil {
		return nil, r
	}
	return &fi.TxAttr{
		Caps:       ctx,
		OpFlags:    h.OpFlags,
		MsgOrder:   t.order(h.MsgOrder, noHints),
		InjectSize: inject,
		Size:       ctxSize(h.Size),
		IOVLimit:   t.iovs(),

		RMAIOVLimit: t.rmaIOVs(),
		TClass:      h.TClass,
	}, nil
}

// negotiateRx is negotiateTx for the receive attributes. The hint
// total_buffered_recv is to be 0 from API 2.0 on, and ignored before: unexpected data is bounded by
// FI_WEFT_UNEXPECTED_BYTES.
func (q *query) negotiateRx(h fi.RxAttr, caps uint64, noHints bool, t epType) (*fi.RxAttr, *refusal) {
	ctx, r := negotiateCtxCaps("rx_attr.caps", h.Caps, caps, rxCaps)
	if q.version >= fi.Version(2, 0) {
		r = firstRefusal(r, atMost("rx_attr.total_buffered_recv", h.TotalBufferedRecv, 0))
	}
	if r = firstRefusal(r,
		subset("rx_attr.op_flags", h.OpFlags, RxOpFlags),
		subset("rx_attr.msg_order", h.MsgOrder, t.orders()),
		subset("rx_attr.comp_order", h.CompOrder, fi.OrderNone),
		atMost("rx_attr.size", h.Size, t.rxSize()),
		atMost("rx_attr.iov_limit", h.IOVLimit, t.iovs()),
	); r != nil {
		return nil, r
	}
	return &fi.RxAttr{
		Caps:     ctx,
		OpFlags:  h.OpFlags,
		MsgOrder: t.order(h.MsgOrder, noHints || t.match != nil), // of receives, NICs keep all, asked or not
		Size:     ctxSize(h.Size),
		IOVLimit: t.iovs(),
	}, nil
}

// CtxCaps returns the capabilities of a transmit (tx) or receive context of an
// endpoint: those asked for or, if asked is 0, all that apply, with their
// directions. false: not all of them apply or are the endpoint's.
func CtxCaps(tx bool, asked, endpoint uint64) (uint64, bool) {
	caps, r := negotiateCtxCaps("", asked, withDirections(endpoint), applicable(tx))
	return caps, r == nil
}

// Elsewhere returns the capabilities that a context may ask for in vain: those of its
// endpoint that do not apply to it. MPICH asks for FI_NAMED_RX_CTX at a
// receive context.
func Elsewhere(tx bool, endpoint uint64) uint64 { return elsewhere(endpoint, applicable(tx)) }

func applicable(tx bool) uint64 {
	if tx {
		return txCaps
	}
	return rxCaps
}

// order returns the message order of a context: what was asked for, so that
// order that is not requested costs nothing. Without hints it is what costs nothing.
func order(asked uint64, noHints bool) uint64 {
	if noHints {
		return fi.OrderSAS
	}
	return asked
}

// ctxSize returns the size of a context for which asked was hinted.
func ctxSize(asked uint64) uint64 {
	if asked == 0 {
		return DefaultCtxSize
	}
	return asked
}
