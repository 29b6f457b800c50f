// Package shlib loads shared libraries at run time, so that weft runs where they are not installed.
package shlib

// #cgo CFLAGS: -O2 -std=gnu11 -Wall -Wextra -D_GNU_SOURCE
// #cgo LDFLAGS: -ldl
// #include <dlfcn.h>
// #include <stdlib.h>
// #include "shlib.h"
//
// // find stores where the functions are, and returns the name of one that is missing, or NULL.
// static const char *find(void *library, const void *table, size_t n)
// {
// 	const struct weft_shlib_symbol *s = table;
//
// 	for (; n; n--, s++) {
// 		*s->to = dlvsym(library, s->name, s->version);
// 		if (!*s->to && !s->optional)
// 			return s->name;
// 	}
// 	return NULL;
// }
import "C"

import (
	"fmt"
	"sync"
	"unsafe"
)

// Library is a shared library, which is loaded once and stays.
type Library struct {
	absent error          // immutable, as what follows
	table  unsafe.Pointer // struct weft_shlib_symbol [count]
	count  int

	mu     sync.Mutex // Load only
	loaded bool
}

// New describes a library with the functions of a table, which is an array of count struct weft_shlib_symbol in C.
// Errors of [Library.Load] wrap absent.
func New(absent error, table unsafe.Pointer, count int) *Library {
	return &Library{absent: absent, table: table, count: count}
}

// Load loads the library called name, which may be a path, stores its functions where the table says, and calls first,
// unless it was loaded before. One that was not found is searched for again by the next call. It returns an error that
// says why the library, or which of its functions, could not be found.
func (l *Library) Load(name string, first func()) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.loaded {
		return nil
	}
	c := C.CString(name)
	defer C.free(unsafe.Pointer(c))
	h := C.dlopen(c, C.RTLD_NOW|C.RTLD_LOCAL)
	if h == nil {
		return fmt.Errorf("load %s: %s: %w", name, C.GoString(C.dlerror()), l.absent)
	}
	if missing := C.find(h, l.table, C.size_t(l.count)); missing != nil {
		C.dlclose(h)
		return fmt.Errorf("load %s: %s: %w", name, C.GoString(missing), l.absent)
	}
	if first != nil {
		first()
	}
	l.loaded = true
	return nil
}
