// Package step turns the software model of the NIC (tests/cassini) where nothing else does (mode=stepped), for tests.
package step

// #cgo LDFLAGS: -ldl
// #include <dlfcn.h>
// #include <stdlib.h>
//
// typedef unsigned int (*step_function)(unsigned int);
//
// static unsigned int step_call(void *f, unsigned int n) { return ((step_function)f)(n); }
import "C"

import (
	"fmt"
	"unsafe"
)

// Function returns the function by which the model in a library file, which is loaded, performs up to n commands that wait
// and tells how many there were.
func Function(library string) (step func(n uint) uint, err error) {
	file, name := C.CString(library), C.CString("cassini_step")
	defer C.free(unsafe.Pointer(file))
	defer C.free(unsafe.Pointer(name))
	handle := C.dlopen(file, C.RTLD_NOW|C.RTLD_NOLOAD)
	if handle == nil {
		return nil, fmt.Errorf("step: %s is not loaded", library)
	}
	f := C.dlsym(handle, name)
	if f == nil {
		return nil, fmt.Errorf("step: %s is no model of the NIC", library)
	}
	return func(n uint) uint { return uint(C.step_call(f, C.uint(n))) }, nil
}
