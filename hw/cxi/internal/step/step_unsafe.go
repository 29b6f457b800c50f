// Package step orders things of the software model of the NIC (tests/cassini), for tests: settings, and steps where
// nothing else turns it (mode=stepped).
package step

// #cgo LDFLAGS: -ldl
// #include <dlfcn.h>
// #include <stdbool.h>
// #include <stdint.h>
// #include <stdlib.h>
//
// typedef unsigned int (*step_function)(unsigned int);
// typedef bool (*set_function)(const char *, long);
// typedef uint64_t (*count_function)(const char *);
//
// static unsigned int step_call(void *f, unsigned int n) { return ((step_function)f)(n); }
// static bool set_call(void *f, const char *name, long value) { return ((set_function)f)(name, value); }
// static uint64_t count_call(void *f, const char *name) { return ((count_function)f)(name); }
import "C"

import (
	"fmt"
	"unsafe"
)

// find returns a function of the model in a library file, which is loaded.
func find(library, function string) (unsafe.Pointer, error) {
	file, name := C.CString(library), C.CString(function)
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
	return f, nil
}

// Function returns the function by which the model in a library file, which is loaded, performs up to n commands that
// wait and returns how many there were.
func Function(library string) (step func(n uint) uint, err error) {
	f, err := find(library, "cassini_step")
	if err != nil {
		return nil, err
	}
	return func(n uint) uint { return uint(C.step_call(f, C.uint(n))) }, nil
}

// Set gives a setting of the model in a library file, which is loaded, a value.
func Set(library, setting string, value int) error {
	f, err := find(library, "cassini_set")
	if err != nil {
		return err
	}
	name := C.CString(setting)
	defer C.free(unsafe.Pointer(name))
	if !C.set_call(f, name, C.long(value)) {
		return fmt.Errorf("step: the model has no setting %s", setting)
	}
	return nil
}

// Count is how often something has happened in the model in a library file, which is loaded.
func Count(library, what string) (uint64, error) {
	f, err := find(library, "cassini_count")
	if err != nil {
		return 0, err
	}
	name := C.CString(what)
	defer C.free(unsafe.Pointer(name))
	return uint64(C.count_call(f, name)), nil
}
