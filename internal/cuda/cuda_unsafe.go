//go:build cgo

package cuda

// #cgo CFLAGS: -O2 -std=gnu11 -Wall -Wextra -D_GNU_SOURCE
// #cgo LDFLAGS: -ldl
// #include <stdlib.h>
// #include "cuda.h"
import "C"

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

var loaded struct {
	mu   sync.Mutex // control path only
	done bool
	err  error
}

// Load loads the library and initialises the driver, once: what came of the
// first call is the answer to all. The error wraps [ErrAbsent] and says whether the library,
// the driver or a device is missing.
func Load() error {
	loaded.mu.Lock()
	defer loaded.mu.Unlock()
	if loaded.done {
		return loaded.err
	}
	loaded.done = true
	name := C.CString(Library)
	defer C.free(unsafe.Pointer(name))
	var step *C.char
	if rc := C.weft_cuda_load(name, &step); rc != 0 {
		loaded.err = fmt.Errorf("load %s: %s: %s: %w", Library, C.GoString(step), C.GoString(C.weft_cuda_error(rc)),
			ErrAbsent)
	}
	return loaded.err
}

// contexts are those that regions were registered in.
var contexts struct {
	mu sync.Mutex // control path only
	// list has entries that are stored once, under mu, and loaded by any thread (release, acquire).
	list [maxContexts]atomic.Uintptr
}

// context returns the context that an address names.
func context(addr uint64) unsafe.Pointer {
	p := contexts.list[addr>>contextShift&contextMask].Load()
	return *(*unsafe.Pointer)(unsafe.Pointer(&p)) // memory of the driver's
}

// indexOf returns the index of a context, which it enters if it is new.
func indexOf(c unsafe.Pointer) (uint64, error) {
	contexts.mu.Lock()
	defer contexts.mu.Unlock()
	for i := range contexts.list {
		switch contexts.list[i].Load() {
		case uintptr(c):
			return uint64(i), nil
		case 0:
			contexts.list[i].Store(uintptr(c))
			return uint64(i), nil
		}
	}
	return 0, fmt.Errorf("more than %d CUDA contexts: %w", maxContexts, errContexts)
}

var errContexts = errors.New("cuda: too many contexts")

// check turns a CUresult into an error.
func check(step string, rc C.int) error {
	if rc == 0 {
		return nil
	}
	return fmt.Errorf("%s: %s", step, C.GoString(C.weft_cuda_error(rc)))
}

// Register returns the address under which Copy takes the n bytes at addr, which a CUDA
// call has allocated: addr itself for memory that the process's own instructions
// reach (cuMemAllocHost). device is the CUdevice that the memory is said to be
// of. It fails for an address that CUDA does not know, and for a range that leaves its allocation.
func Register(addr, n uint64, device int) (uint64, error) {
	if addr>>contextShift != 0 {
		return 0, fmt.Errorf("address %#x is beyond %d bits: %w", addr, contextShift, errContexts)
	}
	var kind C.uint32_t
	var ctx unsafe.Pointer
	if err := check("cuPointerGetAttribute", C.weft_cuda_query(C.uint64_t(addr), C.int(device), &kind,
		&ctx)); err != nil {
		return 0, err
	}
	if kind == 1 {
		return addr, nil
	}
	index, err := indexOf(ctx)
	if err != nil {
		return 0, err
	}
	tagged := mark | index<<contextShift | addr
	base, size, err := Allocation(tagged)
	if err != nil {
		return 0, err
	}
	if n > base+size-tagged {
		return 0, fmt.Errorf("%d bytes at %#x leave an allocation of %d", n, addr, size)
	}
	return tagged, check("cuPointerSetAttribute", C.weft_cuda_sync_memops(ctx, C.uint64_t(addr)))
}

// Allocation returns the allocation that a registered address lies in: its first
// address, registered like addr, and its size in bytes.
func Allocation(addr uint64) (base, size uint64, err error) {
	var b C.uint64_t
	var s C.size_t
	err = check("cuMemGetAddressRange", C.weft_cuda_range(context(addr), C.uint64_t(Pointer(addr)), &b, &s))
	return addr&^pointerMask | uint64(b), uint64(s), err
}

// Buffer returns the driver's number of the memory at a registered address: memory that is allocated
// there after this was freed has another.
func Buffer(addr uint64) (uint64, error) {
	var id C.uint64_t
	err := check("cuPointerGetAttribute", C.weft_cuda_buffer(context(addr), C.uint64_t(Pointer(addr)), &id))
	return uint64(id), err
}

// sides returns which of two addresses are device memory, and the context in which they are copied.
func sides(dst, src uint64) (ctx unsafe.Pointer, which C.int) {
	if isDevice(src) {
		ctx, which = context(src), C.WEFT_CUDA_SRC
	}
	if isDevice(dst) {
		ctx, which = context(dst), which|C.WEFT_CUDA_DST
	}
	return ctx, which
}

// Copy copies n bytes between two addresses, of which at least one is registered device
// memory.
func Copy(dst, src, n uint64) error {
	ctx, which := sides(dst, src)
	if n == 0 {
		return nil
	}
	return check("cuMemcpy", C.weft_cuda_copy(ctx, C.uint64_t(Pointer(dst)), C.uint64_t(Pointer(src)), C.size_t(n),
		which))
}

// Export returns the handle by which another process of the host maps the
// allocation that begins at the registered address base. Memory of pools and
// managed memory has none.
func Export(base uint64) (h Handle, err error) {
	err = check("cuIpcGetMemHandle", C.weft_cuda_export(context(base), C.uint64_t(Pointer(base)), unsafe.Pointer(&h)))
	return h, err
}

// DMABuf returns a descriptor of a dma-buf of the allocation that begins at the registered address base and has size
// bytes, which is the caller's, and at which byte of it the allocation begins. It fails for a driver or a device that
// exports none.
func DMABuf(base, size uint64) (fd int, offset uint64, err error) {
	page := uint64(os.Getpagesize())
	addr := Pointer(base)
	offset = addr & (page - 1)
	n := (offset + size + page - 1) &^ (page - 1)
	var d C.int
	err = check("cuMemGetHandleForAddressRange",
		C.weft_cuda_dmabuf(context(base), C.uint64_t(addr-offset), C.size_t(n), &d))
	if err == nil {
		unix.CloseOnExec(int(d))
	}
	return int(d), offset, err
}

// Import maps another process's allocation and returns where it begins, as a
// registered address, and its size. near is a registered address in the context
// to be used, or any other.
func Import(h *Handle, near uint64) (base, size uint64, err error) {
	ctx := unsafe.Pointer(nil)
	if isDevice(near) {
		ctx = context(near)
	} else if err = check("cuDevicePrimaryCtxRetain", C.weft_cuda_default_context(&ctx)); err != nil {
		return 0, 0, err
	}
	index, err := indexOf(ctx)
	if err != nil {
		return 0, 0, err
	}
	var b C.uint64_t
	if err = check("cuIpcOpenMemHandle", C.weft_cuda_import(ctx, unsafe.Pointer(h), &b)); err != nil {
		return 0, 0, err
	}
	base = mark | index<<contextShift | uint64(b)
	if _, size, err = Allocation(base); err != nil {
		_ = Unimport(base)
	}
	return base, size, err
}

// Unimport undoes Import. Copies to or from the memory have ended.
func Unimport(base uint64) error {
	return check("cuIpcCloseMemHandle", C.weft_cuda_unimport(context(base), C.uint64_t(Pointer(base))))
}
