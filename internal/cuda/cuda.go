package cuda

import "errors"

// Library is the driver library's name for the loader.
const Library = "libcuda.so.1"

// ErrAbsent: there is no CUDA library, driver or device, or this program was built without cgo.
var ErrAbsent = errors.New("CUDA is not available")

// HandleBytes is the size of a Handle.
const HandleBytes = 64

// Handle lets another process of this host map an allocation (CUipcMemHandle).
type Handle [HandleBytes]byte

const (
	mark         = 1 << 63
	contextShift = 57
	maxContexts  = 63 // the last index is left for another kind of memory
	contextMask  = 1<<(63-contextShift) - 1
	pointerMask  = 1<<contextShift - 1
)

// isDevice reports whether an address is one of device memory that Register gave out.
func isDevice(addr uint64) bool {
	return addr&mark != 0 && addr>>contextShift != 1<<(64-contextShift)-1
}

// Pointer returns the address as CUDA knows it, and any other as it is.
func Pointer(addr uint64) uint64 {
	if isDevice(addr) {
		return addr & pointerMask
	}
	return addr
}
