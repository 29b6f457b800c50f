package main

// #include "goapi.h"
import "C"

import (
	"io"
	"sync"
	"sync/atomic"

	"github.com/weft-fabric/weft/fi"
)

// A handle is the number by which C knows a Go object: the index of a slot plus
// one in the low half, the slot's generation in the high half. The generation
// changes when a slot is used again, so a handle that is kept too long is
// refused. 0 is no handle.

const (
	chunkBits = 10
	chunkSize = 1 << chunkBits
	maxChunks = 1 << 12
)

// entry is what a slot holds. Immutable.
type entry struct {
	handle uint64
	object any
}

// slot is a place in the table.
type slot struct {
	// entry is written under table.mu with release, read by every call from C
	// with acquire (the atomic's own orders). nil: not in use.
	entry      atomic.Pointer[entry]
	generation uint32 // of the next entry, under table.mu
}

// table maps handles to objects. Its chunks never move and are never freed, so
// a lookup is two loads and a comparison, without a lock.
type table struct {
	// chunks are added under mu with release and read with acquire.
	chunks [maxChunks]atomic.Pointer[[chunkSize]slot]

	mu   sync.Mutex // taken to open and to close objects, not on the data path
	free []uint32   // indexes of slots that are not in use
	used uint32     // indexes below were given out once
}

// handles is the process's table.
var handles table

// add enters an object and returns its handle. fi.ENOMEM when the table is
// full.
func (t *table) add(object any) (uint64, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var i uint32
	if n := len(t.free); n != 0 {
		i, t.free = t.free[n-1], t.free[:n-1]
	} else {
		if t.used == maxChunks*chunkSize {
			return 0, fi.ENOMEM
		}
		i = t.used
		t.used++
		if c := &t.chunks[i>>chunkBits]; c.Load() == nil {
			c.Store(new([chunkSize]slot))
		}
	}
	s := t.at(i)
	h := uint64(s.generation)<<32 | uint64(i+1)
	s.entry.Store(&entry{handle: h, object: object})
	return h, nil
}

// remove takes an object out; whether it was there.
func (t *table) remove(h uint64) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.get(h) == nil {
		return false
	}
	i := uint32(h) - 1
	s := t.at(i)
	s.entry.Store(nil)
	s.generation++
	t.free = append(t.free, i)
	return true
}

// get returns the object of a handle, nil for one that is stale or was never
// given out. It takes no lock and allocates nothing.
func (t *table) get(h uint64) any {
	i := uint32(h) - 1
	if i >= maxChunks*chunkSize || t.chunks[i>>chunkBits].Load() == nil {
		return nil
	}
	e := t.at(i).entry.Load()
	if e == nil || e.handle != h {
		return nil
	}
	return e.object
}

// at returns the slot of an index whose chunk exists.
func (t *table) at(i uint32) *slot { return &t.chunks[i>>chunkBits].Load()[i&(chunkSize-1)] }

// objectOf returns the object of a handle, fi.EINVAL if it is stale or of
// another type.
func objectOf[T any](h C.uint64_t) (T, error) {
	object, ok := handles.get(uint64(h)).(T)
	if !ok {
		return object, fi.EINVAL
	}
	return object, nil
}

// optional is objectOf for a handle that may be 0, which gives the zero T.
func optional[T any](h C.uint64_t) (T, error) {
	if h == 0 {
		var none T
		return none, nil
	}
	return objectOf[T](h)
}

// enter adds an object that was just opened. If the table is full it closes
// the object again.
func enter(object io.Closer) (C.uint64_t, error) {
	h, err := handles.add(object)
	if err != nil {
		_ = object.Close() // it has no user yet
	}
	return C.uint64_t(h), err
}

// weftGoClose closes any object. It stays in the table if that fails, for
// example with fi.EBUSY.
//
//export weftGoClose
func weftGoClose(h C.uint64_t) (rc C.int) {
	defer guard("fi_close", &rc)
	object, err := objectOf[io.Closer](h)
	if err == nil {
		err = object.Close()
	}
	if err == nil {
		handles.remove(uint64(h))
		setFID(object, nil)
	}
	return result(err)
}
