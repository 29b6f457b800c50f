package main

// #include "goapi.h"
// static inline uint64_t device_of(const struct fi_mr_attr *attr) { return attr->device.reserved; }
import "C"

import (
	"unsafe"

	"github.com/weft-fabric/weft/cq"
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/provider"
)

//export weftGoMRReg
func weftGoMRReg(
	domain C.uint64_t, attr *C.struct_fi_mr_attr, flags C.uint64_t, self unsafe.Pointer, out *C.struct_weft_opened,
) (rc C.int) {
	defer guard("fi_mr_regattr", &rc)
	if attr.mr_iov == nil && attr.iov_count != 0 {
		return result(fi.EINVAL)
	}
	d, err := objectOf[*provider.Domain](domain)
	if err != nil {
		return result(err)
	}
	m, err := d.RegMR(mrFromC(d, attr, uint64(flags)), uint64(flags))
	if err != nil {
		return result(err)
	}
	if out.handle, err = enter(m); err != nil {
		return result(err)
	}
	o := (*C.struct_weft_mr_obj)(self)
	o.fid.fid.context, o.fid.key = attr.context, C.uint64_t(m.Key())
	storeAddr(unsafe.Pointer(&o.fid.mem_desc), m.Desc())
	return 0
}

// mrFromC converts the attributes of a region of d. The parts are read during the
// call only.
func mrFromC(d *provider.Domain, c *C.struct_fi_mr_attr, flags uint64) *fi.MRAttr {
	a := mrFromMemory(c, flags)
	if !d.Keyed() {
		return a
	}
	a.AuthKey, a.AuthKeySize, a.Src = nil, 0, fi.AddrUnspec
	if k := (*C.struct_weft_mr_auth_key)(unsafe.Pointer(c.auth_key)); k != nil &&
		c.auth_key_size == C.sizeof_struct_weft_mr_auth_key && k.av != nil {
		a.AV, a.Src = anyOf(&k.av.fid), fi.Addr(k.src_addr)
	}
	return a
}

// mrFromMemory converts the attributes of memory or of a dma-buf.
func mrFromMemory(c *C.struct_fi_mr_attr, flags uint64) *fi.MRAttr {
	if flags&fi.MRDMABuf != 0 {
		return dmabufFromC(c)
	}
	return &fi.MRAttr{
		IOV:          view[fi.IOVec](unsafe.Pointer(c.mr_iov), c.iov_count),
		Access:       uint64(c.access),
		Offset:       uint64(c.offset),
		RequestedKey: uint64(c.requested_key),
		Context:      uintptr(c.context),
		AuthKey:      keyFromC(c.auth_key, c.auth_key_size),
		AuthKeySize:  uint64(c.auth_key_size),
		Iface:        fi.HMEMIface(c.iface),
		Device:       uint64(C.device_of(c)),
	}
}

// dmabufFromC converts the attributes of a dma-buf, which stands where the parts
// of other regions do.
func dmabufFromC(c *C.struct_fi_mr_attr) *fi.MRAttr {
	b := (*C.struct_weft_mr_dmabuf)(unsafe.Pointer(c.mr_iov))
	a := &fi.MRAttr{
		IOV:          make([]fi.IOVec, min(c.iov_count, 2)),
		Access:       uint64(c.access),
		Offset:       uint64(c.offset),
		RequestedKey: uint64(c.requested_key),
		Context:      uintptr(c.context),
		AuthKey:      keyFromC(c.auth_key, c.auth_key_size),
		AuthKeySize:  uint64(c.auth_key_size),
		Iface:        fi.HMEMIface(c.iface),
	}
	if b != nil {
		a.DMABuf = &fi.DMABuf{FD: int(b.fd), Offset: uint64(b.offset), Len: uint64(b.len), Base: uintptr(b.base_addr)}
	}
	return a
}

// Writes the event of a registration that completes on an event queue; self must be ready for use then.
//
//export weftGoMRNotify
func weftGoMRNotify(mr C.uint64_t, self unsafe.Pointer) (rc C.int) {
	defer guard("fi_mr_regattr", &rc)
	m, err := objectOf[*provider.MR](mr)
	if err != nil {
		return result(err)
	}
	m.Complete(uintptr(self))
	return 0
}

//export weftGoMRBind
func weftGoMRBind(mr C.uint64_t, other *C.struct_fid, flags C.uint64_t, _ *C.struct_weft_mr_obj) (rc C.int) {
	defer guard("fi_mr_bind", &rc)
	m, err := objectOf[*provider.MR](mr)
	if err != nil {
		return result(err)
	}
	switch o := handles.get(uint64(C.weft_handle_of(other))).(type) {
	case *cq.Counter:
		return result(m.BindCounter(o, uint64(flags)))
	case *provider.Endpoint:
		if other.fclass == C.FI_CLASS_EP {
			return result(m.BindEP(o, uint64(flags)))
		}
	case *provider.MatchedEndpoint:
		return result(m.BindMatched(o, uint64(flags)))
	}
	return result(fi.EINVAL)
}

// FI_REFRESH is for applications that report changed mappings (FI_MR_MMU_NOTIFY), which weft does not ask for: it keeps
// no mapping, so there is nothing to refresh.
//
//export weftGoMRControl
func weftGoMRControl(mr C.uint64_t, command C.int, arg unsafe.Pointer, self *C.struct_weft_mr_obj) (rc C.int) {
	defer guard("fi_control", &rc)
	m, err := objectOf[*provider.MR](mr)
	switch {
	case err != nil:
	case command == C.FI_ENABLE:
		err = m.Enable()
		self.fid.key = C.uint64_t(m.Key())
	case command != C.FI_REFRESH:
		err = fi.ENOSYS
	case arg == nil:
		err = fi.EINVAL
	}
	return result(err)
}
