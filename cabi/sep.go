package main

// #include "goapi.h"
import "C"

import (
	"unsafe"

	"github.com/weft-fabric/weft/provider"
)

//export weftGoSEPOpen
func weftGoSEPOpen(domain C.uint64_t, info *C.struct_fi_info, _ unsafe.Pointer, out *C.struct_weft_opened) (rc C.int) {
	defer guard("fi_scalable_ep", &rc)
	d, err := objectOf[*provider.Domain](domain)
	if err != nil {
		return result(err)
	}
	s, err := d.OpenScalable(infoOf(info))
	if err != nil {
		return result(err)
	}
	out.tx_op_flags = C.uint64_t(s.Info().Tx.OpFlags)
	out.rx_op_flags = C.uint64_t(s.Info().Rx.OpFlags)
	out.handle, err = enter(s)
	return result(err)
}

//export weftGoTxCtxOpen
func weftGoTxCtxOpen(
	sep C.uint64_t, index C.int, attr *C.struct_fi_tx_attr, _ unsafe.Pointer, out *C.struct_weft_opened,
) (rc C.int) {
	defer guard("fi_tx_context", &rc)
	s, err := objectOf[*provider.Scalable](sep)
	if err != nil {
		return result(err)
	}
	a := txFromC(attr)
	e, err := s.OpenTx(int(index), a)
	if err != nil {
		return result(err)
	}
	if err := ctxOpened(e, out); err != nil {
		return result(err)
	}
	if a != nil {
		txToC(a, attr)
	}
	return 0
}

//export weftGoRxCtxOpen
func weftGoRxCtxOpen(
	sep C.uint64_t, index C.int, attr *C.struct_fi_rx_attr, _ unsafe.Pointer, out *C.struct_weft_opened,
) (rc C.int) {
	defer guard("fi_rx_context", &rc)
	s, err := objectOf[*provider.Scalable](sep)
	if err != nil {
		return result(err)
	}
	a := rxFromC(attr)
	e, err := s.OpenRx(int(index), a)
	if err != nil {
		return result(err)
	}
	if err := ctxOpened(e, out); err != nil {
		return result(err)
	}
	if a != nil {
		rxToC(a, attr)
	}
	return 0
}

// ctxOpened gives C what it needs of an endpoint or context.
func ctxOpened(e endpoint, out *C.struct_weft_opened) (err error) {
	if out.handle, err = enter(e); err != nil {
		return err
	}
	e.SetHandles(uint64(out.handle))
	full := e.Info()
	out.hot = unsafe.Pointer(e.Hot())
	out.caps = C.uint64_t(full.Caps)
	out.tx_op_flags = C.uint64_t(full.Tx.OpFlags)
	out.rx_op_flags = C.uint64_t(full.Rx.OpFlags)
	return nil
}
