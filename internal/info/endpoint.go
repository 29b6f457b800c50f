package info

import (
	"math"

	"github.com/weft-fabric/weft/fi"
)

// negotiateEP returns the attributes of an endpoint of a type with a message
// order for hints h, in a domain for hints domain.
func (q *query) negotiateEP(h fi.EPAttr, domain *fi.DomainAttr, order, caps uint64, t epType) (*fi.EPAttr, *refusal) {
	tag, r := q.tagFormat(h.MemTagFormat, t)
	tx, rtx := ctxCount("ep_attr.tx_ctx_cnt", h.TxCtxCnt, t.ctx)
	rx, rrx := ctxCount("ep_attr.rx_ctx_cnt", h.RxCtxCnt, t.ctx)
	protocol, version, rproto := q.protocol(&h, t)
	raw, war, waw := t.orderedSizes(order)
	if caps&(fi.RMA|fi.Atomic) == 0 {
		h.MaxOrderRAWSize, h.MaxOrderWARSize, h.MaxOrderWAWSize = 0, 0, 0 // nothing to put in order
	}
	if r = firstRefusal(
		rproto,
		atMost("ep_attr.max_msg_size", h.MaxMsgSize, q.maxMsgSize(t)),
		atMost("ep_attr.msg_prefix_size", h.MsgPrefixSize, 0),
		atMost("ep_attr.max_order_raw_size", h.MaxOrderRAWSize, raw),
		atMost("ep_attr.max_order_war_size", h.MaxOrderWARSize, war),
		atMost("ep_attr.max_order_waw_size", h.MaxOrderWAWSize, waw),
		r, rtx, rrx,
		q.authKey("ep_attr.auth_key_size", h.AuthKeySize, &h.AuthKey), q.oneKind(h, domain),
	); r != nil {
		return nil, r
	}
	return &fi.EPAttr{
		Type:            t.EPType,
		Protocol:        protocol,
		ProtocolVersion: version,
		MaxMsgSize:      q.maxMsgSize(t),
		MaxOrderRAWSize: raw,
		MaxOrderWARSize: war,
		MaxOrderWAWSize: waw,
		MemTagFormat:    tag,
		TxCtxCnt:        tx,
		RxCtxCnt:        rx,
		AuthKey:         h.AuthKey,
		AuthKeySize:     uint64(len(h.AuthKey)),
	}, nil
}

// impliedOrder is the message order that hints for an endpoint with capabilities ask for by sizes of ordered data:
// that is defined only where messages are in order (fi_endpoint(3)). The orders that a device keeps are its own.
func (t epType) impliedOrder(h *fi.EPAttr, caps uint64) (order uint64) {
	if caps&(fi.RMA|fi.Atomic) == 0 || t.match != nil {
		return 0
	}
	if h.MaxOrderRAWSize != 0 {
		order |= fi.OrderRAW
	}
	if h.MaxOrderWARSize != 0 {
		order |= fi.OrderWAR
	}
	if h.MaxOrderWAWSize != 0 {
		order |= fi.OrderWAW
	}
	return order
}

// orderedSize is the size of operations up to which data is in order, in bytes: any,
// if the messages are in one of the orders of kind, else none.
func orderedSize(order, kind uint64) uint64 {
	if order&kind == 0 {
		return 0
	}
	return math.MaxUint64
}

// tagFormat returns the tag format for a hint. Since API 2.0 small values
// name formats, each of which restricts the 64 maskable bits that weft has;
// before, and for large values, the hint is a set of bit fields, which the
// same 64 bits hold.
func (q *query) tagFormat(asked uint64, t epType) (uint64, *refusal) {
	mask := uint64(math.MaxUint64)
	if t.match != nil {
		mask = t.match.TagMask
	}
	if asked == fi.TagBits {
		return TagFormat & mask, nil
	}
	if asked > mask {
		return 0, refuse("ep_attr.mem_tag_format", "%#x has bits beyond %#x", asked, mask)
	}
	if q.version >= fi.Version(2, 0) && asked < fi.TagMaxFormat &&
		asked != fi.TagMPI && asked != fi.TagCCL {
		return 0, refuse("ep_attr.mem_tag_format", "format %d is unknown", asked)
	}
	return asked, nil
}

// ctxCount returns the number of contexts for a hint.
func ctxCount(attr string, asked, most uint64) (uint64, *refusal) {
	switch {
	case asked == 0:
		return 1, nil
	case asked == fi.SharedContext:
		return asked, nil
	}
	return asked, atMost(attr, asked, most)
}

// authKey checks an authorisation key. API versions before 1.5 have none, so the
// fields hold nothing there, and the key is dropped.
func (q *query) authKey(attr string, size uint64, key *[]byte) *refusal {
	if q.version < fi.Version(1, 5) {
		*key = nil
		return nil
	}
	switch size = max(size, uint64(len(*key))); {
	case size > MaxAuthKey:
		return atMost(attr, size, MaxAuthKey)
	case size != uint64(len(*key)):
		return refuse(attr, "%d bytes without a key", size)
	}
	return nil
}

// inAV reports whether a domain is to have its authorisation keys in address vectors.
func inAV(h *fi.DomainAttr) bool { return h.AuthKeySize == fi.AVAuthKey }

// oneKind refuses an endpoint's own key where keys are in address vectors.
func (q *query) oneKind(h fi.EPAttr, domain *fi.DomainAttr) *refusal {
	if q.version >= fi.Version(1, 20) && inAV(domain) && max(h.AuthKeySize, uint64(len(h.AuthKey))) != 0 {
		return refuse("ep_attr.auth_key_size", "FI_AV_AUTH_KEY: keys are not those of endpoints")
	}
	return nil
}

// domainKeys checks a domain's authorisation key, or that it is to have them in address
// vectors, which connected endpoints have not.
func (q *query) domainKeys(h *fi.DomainAttr, t epType) *refusal {
	const attr = "domain_attr.auth_key_size"
	switch {
	case q.version < fi.Version(1, 5):
		h.AuthKey, h.AuthKeySize = nil, 0 // see authKey
		return nil
	case !inAV(h):
		return q.authKey(attr, h.AuthKeySize, &h.AuthKey)
	case q.version < fi.Version(1, 20):
		return refuse(attr, "FI_AV_AUTH_KEY came with API 1.20")
	case h.AuthKey != nil:
		return refuse("domain_attr.auth_key", "a key, and FI_AV_AUTH_KEY")
	case t.keys() == 0:
		return refuse(attr, "FI_AV_AUTH_KEY: connected endpoints have no address vectors")
	}
	return nil
}
