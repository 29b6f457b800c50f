package main

// #include "goapi.h"
import "C"

import (
	"io"
	"sync/atomic"
	"unsafe"

	"github.com/weft-fabric/weft/cq"
	"github.com/weft-fabric/weft/eq"
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/provider"
)

// endpoint is what endpoints have in common, matched ones included.
type endpoint interface {
	io.Closer
	Info() *fi.Info
	Domain() *provider.Domain
	Hot() *hot.EP
	HotRx() *hot.Rx
	SetHandles(ep uint64)
	SetFID(fid uintptr)
	BindCQ(q *cq.Queue, flags uint64) error
	BindCounter(c *cq.Counter, flags uint64) error
	BindAV(a *provider.AV, flags uint64) error
	BindEQ(q *eq.Queue, flags uint64) error
	BindSharedRx(s *provider.SharedRx) error
	BindSharedTx(s *provider.SharedTx) error
	Enable() error
	Send(s *provider.SendArgs) error
	RMA(a *provider.RMAArgs) error
	Atomic(a *provider.AtomicArgs) error
	PostRecv(a *provider.RecvArgs) error
}

// openEndpoint opens an endpoint of the domain's kind.
func openEndpoint(d *provider.Domain, info *fi.Info) (endpoint, error) {
	if d.Matches() {
		e, err := d.OpenMatched(info)
		if err != nil {
			return nil, err // not e: an interface that holds a nil pointer is not nil
		}
		return e, nil
	}
	e, err := d.OpenEndpoint(info)
	if err != nil {
		return nil, err
	}
	return e, nil
}

// fid goes into the events of connected endpoints.
//
//export weftGoEPOpen
func weftGoEPOpen(domain C.uint64_t, info *C.struct_fi_info, fid unsafe.Pointer, out *C.struct_weft_opened) (rc C.int) {
	defer guard("fi_endpoint", &rc)
	d, err := objectOf[*provider.Domain](domain)
	if err != nil {
		return result(err)
	}
	e, err := openEndpoint(d, infoOf(info))
	if err != nil {
		return result(err)
	}
	e.SetFID(uintptr(fid))
	out.ep_type = C.enum_fi_ep_type(e.Info().EP.Type)
	return result(ctxOpened(e, out))
}

//export weftGoEPBind
func weftGoEPBind(ep, other, flags C.uint64_t) (rc C.int) {
	defer guard("fi_ep_bind", &rc)
	if s, ok := handles.get(uint64(ep)).(*provider.Scalable); ok {
		a, err := objectOf[*provider.AV](other)
		if err != nil {
			return result(err)
		}
		return result(s.BindAV(a, uint64(flags)))
	}
	e, err := objectOf[endpoint](ep)
	if err != nil {
		return result(err)
	}
	switch o := handles.get(uint64(other)).(type) {
	case *cq.Queue:
		err = e.BindCQ(o, uint64(flags))
	case *cq.Counter:
		err = e.BindCounter(o, uint64(flags))
	case *provider.AV:
		err = e.BindAV(o, uint64(flags))
	case *eq.Queue:
		err = e.BindEQ(o, uint64(flags))
	case *provider.SharedRx:
		err = e.BindSharedRx(o)
	case *provider.SharedTx:
		err = e.BindSharedTx(o)
	default:
		err = fi.EINVAL
	}
	return result(err)
}

//export weftGoEPEnable
func weftGoEPEnable(ep C.uint64_t, out *C.struct_weft_opened) (rc C.int) {
	defer guard("fi_enable", &rc)
	if s, ok := handles.get(uint64(ep)).(*provider.Scalable); ok {
		return result(s.Enable())
	}
	e, err := objectOf[endpoint](ep)
	if err != nil {
		return result(err)
	}
	if err := e.Enable(); err != nil {
		return result(err)
	}
	if p, ok := e.(*provider.Endpoint); !ok || !p.SharesRx() {
		// Progress finds a receive context of its own through the endpoint.
		atomic.StoreUint64(&e.HotRx().Handle, uint64(ep))
	}
	enabled(e, out)
	return 0
}

// enabled says to C where an enabled endpoint is. Receives of a matched one are posted by Go.
func enabled(e endpoint, out *C.struct_weft_opened) {
	out.hot = unsafe.Pointer(e.Hot())
	p, ok := e.(*provider.Endpoint)
	if !ok {
		return
	}
	out.deaf = C.bool(p.Deaf())
	if !p.Imported() && !p.Deaf() {
		out.rx = unsafe.Pointer(p.HotRx()) // receives are posted there
	}
}

//export weftGoEPEnabled
func weftGoEPEnabled(ep C.uint64_t, out *C.struct_weft_opened) (rc C.int) {
	defer guard("fi_ep_bind", &rc)
	e, err := objectOf[endpoint](ep)
	if err == nil {
		enabled(e, out)
	}
	return result(err)
}

// receiver is what endpoints and shared receive contexts have in common.
type receiver interface {
	Cancel(context uint64) error
	HotRx() *hot.Rx
}

// optioned is what has options: endpoints of all kinds and shared receive
// contexts.
type optioned interface {
	GetOpt(name fi.Opt) (uint64, error)
	SetOpt(name fi.Opt, value uint64) error
}

//export weftGoEPCancel
func weftGoEPCancel(ep C.uint64_t, context unsafe.Pointer) (rc C.int) {
	defer guard("fi_cancel", &rc)
	entered()
	e, err := objectOf[receiver](ep)
	if err != nil {
		return result(err)
	}
	return result(e.Cancel(uint64(uintptr(context))))
}

// named is what endpoints and scalable ones have in common.
type named interface {
	Name() ([]byte, error)
	SetName(raw []byte) error
	Info() *fi.Info
}

// Names and options are those of passive endpoints, too.
//
//export weftGoEPName
func weftGoEPName(ep C.uint64_t, addr unsafe.Pointer, size *C.size_t) (rc C.int) {
	defer guard("fi_getname", &rc)
	e, err := objectOf[named](ep)
	if err != nil {
		return result(err)
	}
	name, err := e.Name()
	if err != nil {
		return result(err)
	}
	return result(put(name, addr, size))
}

//export weftGoEPSetName
func weftGoEPSetName(ep C.uint64_t, addr unsafe.Pointer, size C.size_t) (rc C.int) {
	defer guard("fi_setname", &rc)
	e, err := objectOf[named](ep)
	if err != nil {
		return result(err)
	}
	return result(e.SetName(addrFromC(C.uint32_t(e.Info().AddrFormat), addr, size)))
}

// optBytes is the size of an option's value: a size_t, but for some.
func optBytes(name fi.Opt) C.size_t {
	switch name {
	case fi.OptHMEMP2P:
		return 4
	case fi.OptCUDAAPIPermitted, fi.OptSharedMemoryPermitted:
		return 1
	}
	return 8
}

// optValue reads the value of an option.
func optValue(name fi.Opt, at unsafe.Pointer) uint64 {
	switch optBytes(name) {
	case 4:
		return uint64(*(*uint32)(at))
	case 1:
		return uint64(*(*uint8)(at))
	}
	return *(*uint64)(at)
}

//export weftGoEPGetOpt
func weftGoEPGetOpt(ep C.uint64_t, level, name C.int, value unsafe.Pointer, size *C.size_t) (rc C.int) {
	defer guard("fi_getopt", &rc)
	if level != C.FI_OPT_ENDPOINT {
		return result(fi.ENOPROTOOPT)
	}
	if size == nil || value == nil && *size != 0 {
		return result(fi.EINVAL)
	}
	e, err := objectOf[optioned](ep)
	if err != nil {
		return result(err)
	}
	v, err := e.GetOpt(fi.Opt(name))
	if err != nil {
		return result(err)
	}
	room := *size
	*size = optBytes(fi.Opt(name))
	if room < *size {
		return result(fi.ETOOSMALL)
	}
	if *size == 4 {
		*(*uint32)(value) = uint32(v)
	} else {
		*(*uint64)(value) = v
	}
	return 0
}

//export weftGoEPSetOpt
func weftGoEPSetOpt(ep C.uint64_t, level, name C.int, value unsafe.Pointer, size C.size_t) (rc C.int) {
	defer guard("fi_setopt", &rc)
	if level != C.FI_OPT_ENDPOINT {
		return result(fi.ENOPROTOOPT)
	}
	if value == nil {
		return result(fi.EINVAL)
	}
	e, err := objectOf[optioned](ep)
	if err != nil {
		return result(err)
	}
	if _, err := e.GetOpt(fi.Opt(name)); err != nil && !provider.SetOnly(fi.Opt(name)) {
		return result(err) // whatever its size is, weft does not have it
	}
	if size != optBytes(fi.Opt(name)) {
		return result(fi.EINVAL)
	}
	return result(e.SetOpt(fi.Opt(name), optValue(fi.Opt(name), value)))
}

//export weftGoSRxOpen
func weftGoSRxOpen(
	domain C.uint64_t, attr *C.struct_fi_rx_attr, self unsafe.Pointer, out *C.struct_weft_opened,
) (rc C.int) {
	defer guard("fi_srx_context", &rc)
	d, err := objectOf[*provider.Domain](domain)
	if err != nil {
		return result(err)
	}
	if attr != nil && attr.op_flags&C.FI_PEER != 0 {
		return result(peerRxOpened(d, *attr, (*C.struct_weft_ep_obj)(self), out))
	}
	s, err := d.OpenSharedRx(rxFromC(attr))
	if err != nil {
		return result(err)
	}
	if out.handle, err = enter(s); err != nil {
		return result(err)
	}
	s.SetHandle(uint64(out.handle))
	out.caps = C.uint64_t(d.Info().Caps&fi.HMEM | fi.Msg | fi.Tagged)
	out.rx = unsafe.Pointer(s.HotRx())
	out.rx_op_flags = C.uint64_t(s.Attr().OpFlags)
	return 0
}

//export weftGoSTxOpen
func weftGoSTxOpen(
	domain C.uint64_t, attr *C.struct_fi_tx_attr, _ unsafe.Pointer, out *C.struct_weft_opened,
) (rc C.int) {
	defer guard("fi_stx_context", &rc)
	d, err := objectOf[*provider.Domain](domain)
	if err != nil {
		return result(err)
	}
	s, err := d.OpenSharedTx(txFromC(attr))
	if err != nil {
		return result(err)
	}
	out.handle, err = enter(s)
	return result(err)
}
