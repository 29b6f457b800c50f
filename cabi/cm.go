package main

// #include "goapi.h"
// #include "host.h"
import "C"

import (
	"sync"
	"unsafe"

	"github.com/weft-fabric/weft/eq"
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/provider"
)

// self goes into the events of connection requests, and is what an info names.
//
//export weftGoPEPOpen
func weftGoPEPOpen(
	fabric C.uint64_t, info *C.struct_fi_info, self unsafe.Pointer, out *C.struct_weft_opened,
) (rc C.int) {
	defer guard("fi_passive_ep", &rc)
	f, err := objectOf[*provider.Fabric](fabric)
	if err != nil {
		return result(err)
	}
	p, err := f.OpenPassive(infoOf(info))
	if err != nil {
		return result(err)
	}
	if out.handle, err = enter(p); err != nil {
		return result(err)
	}
	p.SetFID(uintptr(self))
	setFID(p, self)
	return 0
}

//export weftGoPEPBind
func weftGoPEPBind(pep, queue, flags C.uint64_t) (rc C.int) {
	defer guard("fi_pep_bind", &rc)
	p, err := objectOf[*provider.Passive](pep)
	if err != nil {
		return result(err)
	}
	q, err := objectOf[*eq.Queue](queue)
	if err != nil {
		return result(err)
	}
	return result(p.BindEQ(q, uint64(flags)))
}

//export weftGoPEPControl
func weftGoPEPControl(pep C.uint64_t, command C.int, arg unsafe.Pointer) (rc C.int) {
	defer guard("fi_control", &rc)
	switch {
	case command != C.FI_BACKLOG:
		return result(fi.ENOSYS)
	case arg == nil:
		return result(fi.EINVAL)
	}
	p, err := objectOf[*provider.Passive](pep)
	if err != nil {
		return result(err)
	}
	return result(p.SetBacklog(int(*(*C.int)(arg))))
}

//export weftGoPEPListen
func weftGoPEPListen(pep C.uint64_t) (rc C.int) {
	defer guard("fi_listen", &rc)
	p, err := objectOf[*provider.Passive](pep)
	if err != nil {
		return result(err)
	}
	return result(p.Listen())
}

//export weftGoPEPReject
func weftGoPEPReject(pep, request C.uint64_t, param unsafe.Pointer, size C.size_t) (rc C.int) {
	defer guard("fi_reject", &rc)
	p, err := objectOf[*provider.Passive](pep)
	if err != nil {
		return result(err)
	}
	r, err := objectOf[*provider.ConnReq](request)
	if err != nil {
		return result(err)
	}
	return result(p.Reject(r, view[byte](param, size)))
}

//export weftGoEPConnect
func weftGoEPConnect(ep C.uint64_t, addr, param unsafe.Pointer, size C.size_t) (rc C.int) {
	defer guard("fi_connect", &rc)
	e, err := objectOf[*provider.Endpoint](ep)
	if err != nil {
		return result(err)
	}
	return result(e.Connect(socketAddr(e.Info().AddrFormat, addr), view[byte](param, size)))
}

// socketAddr copies an address that comes without its length: its family or
// its end says.
func socketAddr(format fi.AddrFormat, addr unsafe.Pointer) []byte {
	n := C.size_t(unsafe.Sizeof(C.struct_sockaddr_in{}))
	if format != fi.AddrStr && (*C.struct_sockaddr)(addr).sa_family == C.AF_INET6 {
		n = C.size_t(unsafe.Sizeof(C.struct_sockaddr_in6{}))
	}
	return addrFromC(C.uint32_t(format), addr, n)
}

//export weftGoEPAccept
func weftGoEPAccept(ep C.uint64_t, param unsafe.Pointer, size C.size_t) (rc C.int) {
	defer guard("fi_accept", &rc)
	e, err := objectOf[*provider.Endpoint](ep)
	if err != nil {
		return result(err)
	}
	return result(e.Accept(view[byte](param, size)))
}

//export weftGoEPShutdown
func weftGoEPShutdown(ep, flags C.uint64_t) (rc C.int) {
	defer guard("fi_shutdown", &rc)
	e, err := objectOf[*provider.Endpoint](ep)
	if err != nil {
		return result(err)
	}
	return result(e.Shutdown(uint64(flags)))
}

//export weftGoEPPeer
func weftGoEPPeer(ep C.uint64_t, addr unsafe.Pointer, size *C.size_t) (rc C.int) {
	defer guard("fi_getpeer", &rc)
	e, err := objectOf[*provider.Endpoint](ep)
	if err != nil {
		return result(err)
	}
	name, err := e.Peer()
	if err != nil {
		return result(err)
	}
	return result(put(name, addr, size))
}

// requestList is the list of the C objects of connection requests that were answered. An application may still have
// their addresses, so the memory is used for nothing else; the handle is stale.
type requestList struct {
	mu   sync.Mutex
	free []*C.struct_weft_connreq_obj
}

var answered requestList

// take returns one of the list or a new one, nil without memory.
func (l *requestList) take() *C.struct_weft_connreq_obj {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := len(l.free)
	if n == 0 {
		return (*C.struct_weft_connreq_obj)(C.weft_object_new(C.FI_CLASS_CONNREQ, nil))
	}
	o := l.free[n-1]
	l.free = l.free[:n-1]
	return o
}

func (l *requestList) put(o *C.struct_weft_connreq_obj) {
	l.mu.Lock()
	defer l.mu.Unlock()
	o.handle = 0
	l.free = append(l.free, o)
}

// showInfo makes the fi_info that an application finds in an FI_CONNREQ event,
// and frees itself. The request that its handle names has a C object until it
// is answered.
func showInfo(host *C.struct_weft_host, i *fi.Info) (uintptr, error) {
	r, ok := i.Handle.(*provider.ConnReq)
	if !ok {
		return 0, fi.EINVAL
	}
	h, err := handles.add(r)
	if err != nil {
		return 0, err
	}
	request := answered.take()
	if request == nil {
		handles.remove(h)
		return 0, fi.ENOMEM
	}
	request.handle = C.uint64_t(h)
	setFID(r, unsafe.Pointer(request))
	forget := func() {
		handles.remove(h)
		setFID(r, nil)
		answered.put(request)
	}
	c := infoToC(host, i)
	if c == nil {
		forget()
		return 0, fi.ENOMEM
	}
	if c.fabric_attr != nil && c.fabric_attr.prov_name == nil {
		c.fabric_attr.prov_name = C.strdup(host.reported) // no host fills it in here
	}
	r.OnDone(forget)
	return uintptr(unsafe.Pointer(c)), nil
}
