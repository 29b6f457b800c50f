package main

// #include <stdlib.h>
// #include "goapi.h"
// #include "host.h"
// static inline struct fi_info *new_info(struct weft_host *host) { return host->dupinfo(NULL); }
// static inline void free_info(struct weft_host *host, struct fi_info *info) { host->freeinfo(info); }
import "C"

import (
	"unsafe"

	"github.com/weft-fabric/weft/fi"
)

// infosToC stores a list of C infos, each completed by name; fi.ENOMEM, and no list then.
func infosToC(host *C.struct_weft_host, list []*fi.Info, out **C.struct_fi_info, name func(*C.struct_fi_info)) error {
	var head *C.struct_fi_info
	tail := &head
	for _, i := range list {
		c := infoToC(host, i)
		if c == nil {
			C.free_info(host, head)
			return fi.ENOMEM
		}
		name(c)
		*tail = c
		tail = &c.next
	}
	*out = head
	return nil
}

// infoToC makes a C info in memory that a host's fi_freeinfo frees: the
// structures are the host's allocator's, strings and addresses are malloc'd.
// An info that names an object has a pointer to its C object. It returns nil when memory is
// short. (C.CString and C.CBytes end the process then, as Go does.)
func infoToC(host *C.struct_weft_host, i *fi.Info) *C.struct_fi_info {
	c := C.new_info(host)
	if c == nil {
		return nil
	}
	c.caps = C.uint64_t(i.Caps)
	c.mode = C.uint64_t(i.Mode)
	c.addr_format = C.uint32_t(i.AddrFormat)
	if len(i.SrcAddr) != 0 {
		c.src_addr, c.src_addrlen = C.CBytes(i.SrcAddr), C.size_t(len(i.SrcAddr))
	}
	if len(i.DestAddr) != 0 {
		c.dest_addr, c.dest_addrlen = C.CBytes(i.DestAddr), C.size_t(len(i.DestAddr))
	}
	c.handle = (*C.struct_fid)(fidOf(i.Handle))
	if i.Tx != nil {
		txToC(i.Tx, c.tx_attr)
	}
	if i.Rx != nil {
		rxToC(i.Rx, c.rx_attr)
	}
	if i.EP != nil {
		epToC(i.EP, c.ep_attr)
	}
	if i.Domain != nil {
		domainToC(i.Domain, c.domain_attr, uint32(C.weft_version_of(host)))
		c.domain_attr.domain = (*C.struct_fid_domain)(fidOf(i.Domain.Domain))
	}
	if i.Fabric != nil {
		fabricToC(i.Fabric, c.fabric_attr)
		c.fabric_attr.fabric = (*C.struct_fid_fabric)(fidOf(i.Fabric.Fabric))
	}
	if i.NIC != nil {
		if c.nic = nicToC(i.NIC); c.nic == nil {
			C.free_info(host, c)
			return nil
		}
	}
	return c
}

// freeInfo frees what infoToC made, by its address.
func freeInfo(host *C.struct_weft_host, addr uintptr) {
	C.free_info(host, *(**C.struct_fi_info)(unsafe.Pointer(&addr)))
}

// nicToC makes a struct fid_nic, nil when memory is short.
func nicToC(n *fi.NIC) *C.struct_fid_nic {
	c := C.weft_nic_new()
	if c == nil {
		return nil
	}
	d, l := c.device_attr, c.link_attr
	for _, t := range []struct {
		to   **C.char
		text string
	}{
		{&d.name, n.Name}, {&d.device_id, n.DeviceID}, {&d.device_version, n.DeviceVersion}, {&d.vendor_id, n.VendorID},
		{&d.driver, n.Driver}, {&d.firmware, n.Firmware}, {&l.address, n.Address}, {&l.network_type, n.NetworkType},
	} {
		if t.text != "" {
			*t.to = C.CString(t.text)
		}
	}
	if p := n.PCI; p != nil {
		C.weft_nic_set_pci(c, C.uint16_t(p.Domain), C.uint8_t(p.Bus), C.uint8_t(p.Device), C.uint8_t(p.Function))
	}
	l.mtu, l.speed, l.state = C.size_t(n.MTU), C.size_t(n.Speed), C.enum_fi_link_state(n.State)
	return c
}

func txToC(a *fi.TxAttr, c *C.struct_fi_tx_attr) {
	c.caps = C.uint64_t(a.Caps)
	c.mode = C.uint64_t(a.Mode)
	c.op_flags = C.uint64_t(a.OpFlags)
	c.msg_order = C.uint64_t(a.MsgOrder)
	c.comp_order = C.uint64_t(a.CompOrder)
	c.inject_size = C.size_t(a.InjectSize)
	c.size = C.size_t(a.Size)
	c.iov_limit = C.size_t(a.IOVLimit)
	c.rma_iov_limit = C.size_t(a.RMAIOVLimit)
	c.tclass = C.uint32_t(a.TClass)
}

func rxToC(a *fi.RxAttr, c *C.struct_fi_rx_attr) {
	c.caps = C.uint64_t(a.Caps)
	c.mode = C.uint64_t(a.Mode)
	c.op_flags = C.uint64_t(a.OpFlags)
	c.msg_order = C.uint64_t(a.MsgOrder)
	c.comp_order = C.uint64_t(a.CompOrder)
	c.total_buffered_recv = C.size_t(a.TotalBufferedRecv)
	c.size = C.size_t(a.Size)
	c.iov_limit = C.size_t(a.IOVLimit)
}

func epToC(a *fi.EPAttr, c *C.struct_fi_ep_attr) {
	c._type = C.enum_fi_ep_type(a.Type)
	c.protocol = C.uint32_t(a.Protocol)
	c.protocol_version = C.uint32_t(a.ProtocolVersion)
	c.max_msg_size = C.size_t(a.MaxMsgSize)
	c.msg_prefix_size = C.size_t(a.MsgPrefixSize)
	c.max_order_raw_size = C.size_t(a.MaxOrderRAWSize)
	c.max_order_war_size = C.size_t(a.MaxOrderWARSize)
	c.max_order_waw_size = C.size_t(a.MaxOrderWAWSize)
	c.mem_tag_format = C.uint64_t(a.MemTagFormat)
	c.tx_ctx_cnt = C.size_t(a.TxCtxCnt)
	c.rx_ctx_cnt = C.size_t(a.RxCtxCnt)
	if len(a.AuthKey) != 0 {
		c.auth_key = (*C.uint8_t)(C.CBytes(a.AuthKey))
		c.auth_key_size = C.size_t(len(a.AuthKey))
	}
}

// domainToC fills the attributes, of which a host of an older version has fewer.
func domainToC(a *fi.DomainAttr, c *C.struct_fi_domain_attr, host uint32) {
	if a.Name != "" {
		c.name = C.CString(a.Name)
	}
	c.threading = C.enum_fi_threading(a.Threading)
	c.control_progress = C.enum_fi_progress(a.ControlProgress)
	c.data_progress = C.enum_fi_progress(a.DataProgress)
	c.resource_mgmt = C.enum_fi_resource_mgmt(a.ResourceMgmt)
	c.av_type = C.enum_fi_av_type(a.AVType)
	c.mr_mode = C.int(a.MRMode)
	c.mr_key_size = C.size_t(a.MRKeySize)
	c.cq_data_size = C.size_t(a.CQDataSize)
	c.cq_cnt = C.size_t(a.CQCnt)
	c.ep_cnt = C.size_t(a.EPCnt)
	c.tx_ctx_cnt = C.size_t(a.TxCtxCnt)
	c.rx_ctx_cnt = C.size_t(a.RxCtxCnt)
	c.max_ep_tx_ctx = C.size_t(a.MaxEPTxCtx)
	c.max_ep_rx_ctx = C.size_t(a.MaxEPRxCtx)
	c.max_ep_stx_ctx = C.size_t(a.MaxEPSTxCtx)
	c.max_ep_srx_ctx = C.size_t(a.MaxEPSRxCtx)
	c.cntr_cnt = C.size_t(a.CntrCnt)
	c.mr_iov_limit = C.size_t(a.MRIOVLimit)
	c.caps = C.uint64_t(a.Caps)
	c.mode = C.uint64_t(a.Mode)
	if len(a.AuthKey) != 0 {
		c.auth_key = (*C.uint8_t)(C.CBytes(a.AuthKey))
	}
	c.auth_key_size = C.size_t(a.AuthKeySize)
	if host >= keysPerEndpoint {
		C.weft_domain_later(c).max_ep_auth_key = C.size_t(a.MaxEPAuthKey)
	}
	if host >= groups {
		C.weft_domain_later(c).max_group_id = C.uint32_t(a.MaxGroupID)
	}
	if host >= counterRanges {
		C.weft_domain_later(c).max_cntr_value = C.uint64_t(a.MaxCntrValue)
		C.weft_domain_later(c).max_err_cntr_value = C.uint64_t(a.MaxErrCntrValue)
	}
	c.max_err_data = C.size_t(a.MaxErrData)
	c.mr_cnt = C.size_t(a.MRCnt)
	c.tclass = C.uint32_t(a.TClass)
}

// fabricToC leaves the provider's name out: the host sets it, and takes
// one that it finds for that of the layers underneath.
func fabricToC(a *fi.FabricAttr, c *C.struct_fi_fabric_attr) {
	if a.Name != "" {
		c.name = C.CString(a.Name)
	}
	c.prov_version = C.uint32_t(a.ProvVersion)
	c.api_version = C.uint32_t(a.APIVersion)
}
