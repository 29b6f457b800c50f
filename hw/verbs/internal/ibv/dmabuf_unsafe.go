package ibv

// #include "ibv.h"
import "C"

import (
	"errors"
	"unsafe"

	"golang.org/x/sys/unix"
)

// WrapPD makes a protection domain of the library's, for tests.
func WrapPD(p unsafe.Pointer) *PD { return &PD{(*C.struct_ibv_pd)(p)} }

// Calls are ibv_reg_mr, ibv_reg_dmabuf_mr, ibv_dereg_mr, ibv_create_qp, ibv_modify_qp and ibv_destroy_qp of C.
type Calls [C.WEFT_SWAPPED]unsafe.Pointer

// Swap has calls be called in the place of the library's, for tests. It returns those that were called before.
func Swap(calls Calls) Calls {
	C.weft_ibv_swap(&calls[0])
	return calls
}

// RegisterDMABuf registers n bytes of a dma-buf from an offset on, which the device is to know by the address at.
// Errors: EBADF for what is no descriptor; EINVAL for one of something else, a range that is not in the dma-buf, or an
// address that is not as far into a page as the offset; ENOMEM; those of [NoDMABuf].
func (d *PD) RegisterDMABuf(fd int, offset, n, at uint64, access uint32) (*MR, error) {
	m := new(MR)
	var l, r C.uint32_t
	b := C.struct_weft_dmabuf{offset: C.uint64_t(offset), len: C.uint64_t(n), at: C.uint64_t(at), fd: C.int(fd)}
	rc := C.weft_ibv_reg_dmabuf(d.p, &b, C.uint32_t(access), &m.p, &l, &r)
	m.LKey, m.RKey = uint32(l), uint32(r)
	return m, check("register a dma-buf", rc)
}

// NoDMABuf reports whether an error of RegisterDMABuf says that the library (ENOSYS), the kernel (EPROTONOSUPPORT), or
// the device (EOPNOTSUPP) does not take dma-bufs. What exports a dma-buf says the latter of that one, or ENOTSUPP,
// which is the kernel's own.
func NoDMABuf(err error) bool {
	for _, no := range []unix.Errno{unix.EOPNOTSUPP, unix.EPROTONOSUPPORT, unix.ENOSYS, enotsupp} {
		if errors.Is(err, no) {
			return true
		}
	}
	return false
}

// enotsupp is ENOTSUPP of include/linux/errno.h, which is not for user space and comes there nevertheless.
const enotsupp = unix.Errno(524)
