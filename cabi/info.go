package main

// #include "goapi.h"
// #include "host.h"
import "C"

import (
	"unsafe"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/info"
	"github.com/weft-fabric/weft/provider"
)

// Conversion of struct fi_info and what hangs on it. Only the fields of
// libfabric 1.17 are touched, and those of struct fi_domain_attr up to 2.5: a later host's
// structures are longer, its allocator zeroes what weft does not know.

// The versions of libfabric that appended members to struct fi_domain_attr: max_ep_auth_key,
// max_group_id, and max_cntr_value with max_err_cntr_value. A caller with an older API may
// have shorter structures.
var (
	keysPerEndpoint = fi.Version(1, 20)
	groups          = fi.Version(2, 0)
	counterRanges   = fi.Version(2, 5)
)

//export weftGoGetInfo
func weftGoGetInfo(host *C.struct_weft_host, version C.uint32_t, node, service *C.char, flags C.uint64_t,
	hints *C.struct_fi_info, out **C.struct_fi_info) (rc C.int) {
	defer guard("fi_getinfo", &rc)
	list, err := offers(host, version, node, service, flags, infoFromC(hints, uint32(version)))
	if err != nil {
		return result(err)
	}
	_, lower := info.Registered(C.GoString(host.reported))
	return result(infosToC(host, list, out, func(c *C.struct_fi_info) {
		if lower != "" {
			c.fabric_attr.prov_name = C.CString(lower) // the host adds the layer's name
		}
	}))
}

// offers are the answers to an application of a host.
func offers(host *C.struct_weft_host, version C.uint32_t, node, service *C.char, flags C.uint64_t,
	hints *fi.Info) ([]*fi.Info, error) {
	refreshLog()
	return provider.GetInfoFor(uint32(C.weft_version_of(host)), uint32(version), text(node), text(service),
		uint64(flags), hints)
}

// foreign stands for a C object that is not weft's.
type foreign struct{ fid unsafe.Pointer }

// anyOf returns the Go object behind a fid, nil for NULL.
func anyOf(f *C.struct_fid) any {
	if f == nil {
		return nil
	}
	if object := handles.get(uint64(C.weft_handle_of(f))); object != nil {
		return object
	}
	return foreign{unsafe.Pointer(f)}
}

// infoOf is infoFromC for an info that fi_getinfo has made: it says which API it is of.
func infoOf(c *C.struct_fi_info) *fi.Info {
	if c == nil || c.fabric_attr == nil {
		return infoFromC(c, 0)
	}
	return infoFromC(c, uint32(c.fabric_attr.api_version))
}

// infoFromC converts an info of a caller with an API version.
func infoFromC(c *C.struct_fi_info, version uint32) *fi.Info {
	if c == nil {
		return nil
	}
	return &fi.Info{
		Caps:       uint64(c.caps),
		Mode:       uint64(c.mode),
		AddrFormat: fi.AddrFormat(c.addr_format),
		SrcAddr:    addrFromC(c.addr_format, c.src_addr, c.src_addrlen),
		DestAddr:   addrFromC(c.addr_format, c.dest_addr, c.dest_addrlen),
		Handle:     anyOf(c.handle),
		Tx:         txFromC(c.tx_attr),
		Rx:         rxFromC(c.rx_attr),
		EP:         epFromC(c.ep_attr),
		Domain:     domainFromC(c.domain_attr, version),
		Fabric:     fabricFromC(c.fabric_attr),
	}
}

// longestAddr bounds what is read of an address, bytes. What an address has beyond its format counts for nothing.
const longestAddr = 256

// addrFromC copies an address. Applications pass string addresses with a length
// that may or may not count the terminating NUL byte, or with none.
func addrFromC(format C.uint32_t, addr unsafe.Pointer, n C.size_t) []byte {
	if addr == nil {
		return nil
	}
	if fi.AddrFormat(format) == fi.AddrStr {
		return append([]byte(C.GoString((*C.char)(addr))), 0)
	}
	return C.GoBytes(addr, C.int(min(n, longestAddr)))
}

func txFromC(c *C.struct_fi_tx_attr) *fi.TxAttr {
	if c == nil {
		return nil
	}
	return &fi.TxAttr{
		Caps: uint64(c.caps), Mode: uint64(c.mode), OpFlags: uint64(c.op_flags),
		MsgOrder: uint64(c.msg_order), CompOrder: uint64(c.comp_order),
		InjectSize: uint64(c.inject_size), Size: uint64(c.size),
		IOVLimit: uint64(c.iov_limit), RMAIOVLimit: uint64(c.rma_iov_limit),
		TClass: uint32(c.tclass),
	}
}

func rxFromC(c *C.struct_fi_rx_attr) *fi.RxAttr {
	if c == nil {
		return nil
	}
	return &fi.RxAttr{
		Caps: uint64(c.caps), Mode: uint64(c.mode), OpFlags: uint64(c.op_flags),
		MsgOrder: uint64(c.msg_order), CompOrder: uint64(c.comp_order),
		TotalBufferedRecv: uint64(c.total_buffered_recv), Size: uint64(c.size),
		IOVLimit: uint64(c.iov_limit),
	}
}

// keyFromC copies an authorisation key. One whose size stands for something else
// (FI_AV_AUTH_KEY), or is too large for a key, is empty.
func keyFromC(key *C.uint8_t, n C.size_t) []byte {
	if key == nil || n == 0 {
		return nil
	}
	if n > 1<<16 {
		return []byte{}
	}
	return C.GoBytes(unsafe.Pointer(key), C.int(n))
}

func epFromC(c *C.struct_fi_ep_attr) *fi.EPAttr {
	if c == nil {
		return nil
	}
	return &fi.EPAttr{
		Type: fi.EPType(c._type), Protocol: fi.Protocol(c.protocol),
		ProtocolVersion: uint32(c.protocol_version), MaxMsgSize: uint64(c.max_msg_size),
		MsgPrefixSize: uint64(c.msg_prefix_size), MaxOrderRAWSize: uint64(c.max_order_raw_size),
		MaxOrderWARSize: uint64(c.max_order_war_size), MaxOrderWAWSize: uint64(c.max_order_waw_size),
		MemTagFormat: uint64(c.mem_tag_format), TxCtxCnt: uint64(c.tx_ctx_cnt),
		RxCtxCnt: uint64(c.rx_ctx_cnt), AuthKeySize: uint64(c.auth_key_size),
		AuthKey: keyFromC(c.auth_key, c.auth_key_size),
	}
}

func domainFromC(c *C.struct_fi_domain_attr, version uint32) *fi.DomainAttr {
	if c == nil {
		return nil
	}
	var domain any
	if c.domain != nil {
		domain = anyOf(&c.domain.fid)
	}
	var later C.struct_weft_domain_attr_later
	if version >= keysPerEndpoint {
		later.max_ep_auth_key = C.weft_domain_later(c).max_ep_auth_key
	}
	if version >= groups {
		later.max_group_id = C.weft_domain_later(c).max_group_id
	}
	if version >= counterRanges {
		later.max_cntr_value = C.weft_domain_later(c).max_cntr_value
		later.max_err_cntr_value = C.weft_domain_later(c).max_err_cntr_value
	}
	return &fi.DomainAttr{
		MaxEPAuthKey: uint64(later.max_ep_auth_key), MaxGroupID: uint32(later.max_group_id),
		MaxCntrValue: uint64(later.max_cntr_value), MaxErrCntrValue: uint64(later.max_err_cntr_value),
		Domain: domain, Name: text(c.name), Threading: fi.Threading(c.threading),
		ControlProgress: fi.Progress(c.control_progress), DataProgress: fi.Progress(c.data_progress),
		ResourceMgmt: fi.ResourceMgmt(c.resource_mgmt), AVType: fi.AVType(c.av_type),
		MRMode: fi.MRMode(c.mr_mode), MRKeySize: uint64(c.mr_key_size),
		CQDataSize: uint64(c.cq_data_size), CQCnt: uint64(c.cq_cnt), EPCnt: uint64(c.ep_cnt),
		TxCtxCnt: uint64(c.tx_ctx_cnt), RxCtxCnt: uint64(c.rx_ctx_cnt),
		MaxEPTxCtx: uint64(c.max_ep_tx_ctx), MaxEPRxCtx: uint64(c.max_ep_rx_ctx),
		MaxEPSTxCtx: uint64(c.max_ep_stx_ctx), MaxEPSRxCtx: uint64(c.max_ep_srx_ctx),
		CntrCnt: uint64(c.cntr_cnt), MRIOVLimit: uint64(c.mr_iov_limit),
		Caps: uint64(c.caps), Mode: uint64(c.mode),
		AuthKey: keyFromC(c.auth_key, c.auth_key_size), AuthKeySize: uint64(c.auth_key_size),
		MaxErrData: uint64(c.max_err_data), MRCnt: uint64(c.mr_cnt), TClass: uint32(c.tclass),
	}
}

func fabricFromC(c *C.struct_fi_fabric_attr) *fi.FabricAttr {
	if c == nil {
		return nil
	}
	var fabric any
	if c.fabric != nil {
		fabric = anyOf(&c.fabric.fid)
	}
	return &fi.FabricAttr{
		Fabric: fabric, Name: text(c.name), ProvName: text(c.prov_name),
		ProvVersion: uint32(c.prov_version), APIVersion: uint32(c.api_version),
	}
}
