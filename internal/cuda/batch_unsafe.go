//go:build cgo

package cuda

// #include "cuda.h"
import "C"

import (
	"sync"
	"unsafe"
)

// streams are those that no batch has, by context. Streams are made once for each batch that is at work at a time, and
// stay.
var streams struct {
	mu   sync.Mutex // taken twice for each batch
	free map[unsafe.Pointer][]unsafe.Pointer
}

// Batch is a number of copies on one stream, which are waited for together. It is one thread's. The zero value is
// ready.
type Batch struct {
	context, stream unsafe.Pointer // nil: nothing is under way
}

// Copy begins a copy of n bytes between two addresses, of which at least one is registered device memory. Memory of
// the process itself stays as it is until Wait has returned. After an error Wait is to be called all the same.
func (b *Batch) Copy(dst, src, n uint64) error {
	ctx, which := sides(dst, src)
	if n == 0 {
		return nil
	}
	if b.context != ctx {
		if err := b.Wait(); err != nil {
			return err
		}
		if err := b.begin(ctx); err != nil {
			return err
		}
	}
	return check("cuMemcpyAsync", C.weft_cuda_begin(ctx, b.stream, C.uint64_t(Pointer(dst)), C.uint64_t(Pointer(src)),
		C.size_t(n), which))
}

// begin takes a stream.
func (b *Batch) begin(ctx unsafe.Pointer) error {
	streams.mu.Lock()
	if free := streams.free[ctx]; len(free) != 0 {
		b.stream, streams.free[ctx] = free[len(free)-1], free[:len(free)-1]
	}
	streams.mu.Unlock()
	if b.stream == nil {
		if err := check("cuStreamCreate", C.weft_cuda_stream(ctx, &b.stream)); err != nil {
			return err
		}
	}
	b.context = ctx
	return nil
}

// Wait returns when all copies have ended. The error is that of any of them. The batch may be used again.
func (b *Batch) Wait() error {
	if b.context == nil {
		return nil
	}
	err := check("cuStreamSynchronize", C.weft_cuda_wait(b.context, b.stream))
	if err == nil {
		streams.mu.Lock()
		if streams.free == nil {
			streams.free = map[unsafe.Pointer][]unsafe.Pointer{}
		}
		streams.free[b.context] = append(streams.free[b.context], b.stream)
		streams.mu.Unlock()
	}
	b.context, b.stream = nil, nil // a stream that failed is lost with its context
	return err
}
