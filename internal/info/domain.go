package info

import (
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/config"
)

// Domain is what an opened domain in hints.Domain.Domain implements. The
// output is restricted to the domain of that name.
type Domain interface {
	// DomainName returns the domain's name as fi_getinfo returned it.
	DomainName() string
}

// Fabric is what an opened fabric in hints.Fabric.Fabric implements. The
// output is restricted to the fabric of that name.
type Fabric interface {
	// FabricName returns the fabric's name as fi_getinfo returned it.
	FabricName() string
}

// negotiateDomain returns the domain attributes for hints h, without the name,
// for endpoints of type t with capabilities caps.
func (q *query) negotiateDomain(h fi.DomainAttr, caps uint64, t epType) (*fi.DomainAttr, *refusal) {
	if r := firstRefusal(q.checkModels(h), q.checkMRMode(h.MRMode), q.domainKeys(&h, t), q.checkCounts(h, t),
		q.checkHMEM(h, caps), q.checkPeer(h, caps), trafficClass("domain_attr.tclass", h.TClass)); r != nil {
		return nil, r
	}
	control, data := q.progress(h)
	return &fi.DomainAttr{
		Domain:          h.Domain,
		Threading:       orDefault(h.Threading, fi.ThreadSafe),
		ControlProgress: control,
		DataProgress:    data,
		ResourceMgmt:    orDefault(h.ResourceMgmt, fi.RMEnabled),
		AVType:          h.AVType, // unspecified: either, they are alike
		MRMode:          q.mrMode(h.MRMode, caps, t),
		MRKeySize:       t.keySize(),
		CQDataSize:      CQDataSize,
		CQCnt:           t.count(h.CQCnt, matchedCQCount),
		EPCnt:           t.count(h.EPCnt, matchedEPCount),
		TxCtxCnt:        max(h.TxCtxCnt, MaxCtx),
		RxCtxCnt:        max(h.RxCtxCnt, MaxCtx),
		MaxEPTxCtx:      t.ctx,
		MaxEPRxCtx:      t.ctx,
		MaxEPSTxCtx:     t.sharing(),
		MaxEPSRxCtx:     t.sharing(),
		CntrCnt:         t.count(h.CntrCnt, matchedCounters),
		MRIOVLimit:      t.regionIOVs(),
		Caps:            q.domainCaps(caps),
		MaxErrData:      MaxErrData,
		MRCnt:           t.regions(h.MRCnt),
		TClass:          h.TClass,
		AuthKey:         h.AuthKey,
		AuthKeySize:     keySize(&h),
		MaxEPAuthKey:    q.maxKeys(h, t),
		MaxCntrValue:    1<<64 - 1,
		MaxErrCntrValue: 1<<64 - 1,
	}, nil
}

// maxKeys is what a domain's max_ep_auth_key says, which came with API 1.20: 0 for callers that
// asks for no keys, because libfabric's lnx takes more for a demand.
func (q *query) maxKeys(h fi.DomainAttr, t epType) uint64 {
	switch {
	case q.version < fi.Version(1, 20):
		return 0
	case inAV(&h):
		return orDefault(h.MaxEPAuthKey, t.keys())
	}
	return h.MaxEPAuthKey
}

// checkDomainCaps refuses what is a domain's capability in later APIs only.
func (q *query) checkDomainCaps(caps uint64) *refusal {
	if q.version < fi.Version(1, 20) && caps&fi.DirectedRecv != 0 {
		return refuse("domain_attr.caps", "FI_DIRECTED_RECV became a domain's capability with API 1.20")
	}
	return nil
}

// domainCaps are the capabilities of a domain, of those of its endpoints.
// FI_DIRECTED_RECV became one with authorisation keys in address vectors.
func (q *query) domainCaps(caps uint64) uint64 {
	if q.version < fi.Version(1, 20) {
		caps &^= fi.DirectedRecv
	}
	return caps & domainCaps
}

// keySize is what a domain's auth_key_size says.
func keySize(h *fi.DomainAttr) uint64 {
	if inAV(h) {
		return fi.AVAuthKey
	}
	return uint64(len(h.AuthKey))
}

// checkModels checks the hints that choose among models.
func (q *query) checkModels(h fi.DomainAttr) *refusal {
	return firstRefusal(
		oneOf("domain_attr.threading", h.Threading, fi.ThreadUnspec, fi.ThreadSafe, fi.ThreadFID,
			fi.ThreadDomain, fi.ThreadCompletion, fi.ThreadEndpoint),
		q.checkProgress(h),
		oneOf("domain_attr.resource_mgmt", h.ResourceMgmt, fi.RMUnspec, fi.RMDisabled, fi.RMEnabled),
		oneOf("domain_attr.av_type", h.AVType, fi.AVUnspec, fi.AVMap, fi.AVTable),
	)
}

// checkCounts checks the hints that ask for numbers. mr_cnt is a hint how many
// regions the application will have; any number is met. More contexts than work in parallel
// share what there is, as fi_domain(3) says.
func (q *query) checkCounts(h fi.DomainAttr, t epType) *refusal {
	return firstRefusal(
		atMost("domain_attr.mr_key_size", h.MRKeySize, t.keySize()),
		atMost("domain_attr.cq_data_size", h.CQDataSize, CQDataSize),
		atMost("domain_attr.cq_cnt", h.CQCnt, ObjectCount),
		atMost("domain_attr.ep_cnt", h.EPCnt, ObjectCount),
		atMost("domain_attr.tx_ctx_cnt", h.TxCtxCnt, ObjectCount),
		atMost("domain_attr.rx_ctx_cnt", h.RxCtxCnt, ObjectCount),
		atMost("domain_attr.max_ep_tx_ctx", h.MaxEPTxCtx, t.ctx),
		atMost("domain_attr.max_ep_rx_ctx", h.MaxEPRxCtx, t.ctx),
		atMost("domain_attr.max_ep_stx_ctx", h.MaxEPSTxCtx, t.sharing()),
		atMost("domain_attr.max_ep_srx_ctx", h.MaxEPSRxCtx, t.sharing()),
		atMost("domain_attr.cntr_cnt", h.CntrCnt, ObjectCount),
		atMost("domain_attr.mr_iov_limit", h.MRIOVLimit, t.regionIOVs()),
		atMost("domain_attr.max_err_data", h.MaxErrData, MaxErrData),
		atMost("domain_attr.max_ep_auth_key", h.MaxEPAuthKey, t.keys()),
		atMost("domain_attr.max_group_id", uint64(h.MaxGroupID), 0),
	)
}

// takenModes are the registration modes that an application gets if it offers them. weft
// needs none of them, but there are applications that do what they have offered without a
// check what came back. fi_mr(3) leaves it to the provider. Not fi.MREndpoint: fabtests and
// others offer it and then want an endpoint before they register; regions may be bound and
// enabled without it.
const takenModes = fi.MRLocal | fi.MRVirtAddr | fi.MRAllocated | fi.MRProvKey

// mrMode returns the registration mode for a hint, which offers modes that the
// application can live with: those of takenModes, and that GPU memory is named by
// descriptors where there are GPUs. To the host's utility providers, which pass on what they
// are able to, the offer that regions have their pages and keep them is taken, where there are
// RDMA devices or NICs of Slingshot: a device may use them then without asking the process.
//
// fi.MRBasic and fi.MRScalable alone choose one of two models, before API 1.5 always one of them: without a choice the
// first, as libfabric's providers do, because applications of that time were written to it.
func (q *query) mrMode(asked fi.MRMode, caps uint64, t epType) fi.MRMode {
	switch {
	case asked == fi.MRBasic || asked == fi.MRScalable:
		return asked
	case q.version < fi.Version(1, 5):
		return fi.MRBasic
	}
	taken := asked & takenModes
	if t.match != nil {
		if caps&(fi.RMA|fi.Atomic) != 0 {
			mode := matchedMR // FI_MR_ALLOCATED whether offered or not, as libfabric's provider has it
			if t.chosen {
				mode |= fi.MRProvKey
			}
			return mode
		}
		return taken | asked&fi.MREndpoint // the memory of messages needs no registration by the application
	}
	if q.flags&layered != 0 {
		taken = 0
		rdma := q.cfg.Verbs != config.No && q.env.RDMA != nil && q.env.RDMA()
		cxi := q.cfg.CXI == config.Yes || q.cfg.CXI == config.Auto && q.env.CXI != nil && q.env.CXI()
		if rdma || cxi {
			taken = asked & fi.MRAllocated
		}
	}
	if caps&fi.HMEM != 0 && q.env.gpus() {
		taken |= fi.MRHMEM
	}
	return taken
}

// checkMRMode refuses fi.MRBasic and fi.MRScalable beside each other or other modes (fi_domain(3)), and other modes
// before API 1.5, which brought them.
func (q *query) checkMRMode(asked fi.MRMode) *refusal {
	const attr = "domain_attr.mr_mode"
	switch {
	case asked == fi.MRBasic || asked == fi.MRScalable:
		return nil
	case asked&(fi.MRBasic|fi.MRScalable) != 0:
		return refuse(attr, "%#x: FI_MR_BASIC and FI_MR_SCALABLE stand alone", int(asked))
	case asked != 0 && q.version < fi.Version(1, 5):
		return refuse(attr, "%#x: there are FI_MR_BASIC and FI_MR_SCALABLE before API 1.5", int(asked))
	}
	return nil
}

// checkHMEM refuses FI_HMEM on a host with GPUs to an application that does not
// promise to name GPU memory by descriptors. Without GPUs there is no such memory.
func (q *query) checkHMEM(h fi.DomainAttr, caps uint64) *refusal {
	switch {
	case caps&fi.HMEM == 0:
		return nil
	case q.version < fi.Version(1, 9):
		return refuse("caps", "FI_HMEM came with API 1.9")
	case h.MRMode&fi.MRHMEM == 0 && q.env.gpus():
		return refuse("domain_attr.mr_mode", "FI_HMEM with GPUs needs FI_MR_HMEM")
	}
	return nil
}

// checkPeer refuses FI_PEER in a host before libfabric 2.0, where the structures
// that the providers exchange were others.
func (q *query) checkPeer(h fi.DomainAttr, caps uint64) *refusal {
	if caps&fi.Peer != 0 && q.env.Host < fi.Version(2, 0) {
		name := "caps"
		if h.Caps&fi.Peer != 0 {
			name = "domain_attr.caps"
		}
		return refuse(name, "FI_PEER needs libfabric 2.0 or later, this is %d.%d", fi.Major(q.env.Host),
			fi.Minor(q.env.Host))
	}
	return nil
}

// gpus reports whether there are GPUs whose memory weft can copy.
func (e *Env) gpus() bool { return e.GPUs != nil && e.GPUs() }

// orDefault returns v unless it is the zero value.
func orDefault[T comparable](v, def T) T {
	var zero T
	if v == zero {
		return def
	}
	return v
}
