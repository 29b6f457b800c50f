package links

import (
	"unsafe"

	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/mem"
)

// addressOfPath is where the ways over a driven transport begin, which lie outside the Go heap.
func addressOfPath(first *uintptr) uintptr { return uintptr(unsafe.Pointer(first)) }

// addressOfWay is what C has of a way over a driven transport, which the path's endpoint keeps alive.
func addressOfWay(way *hot.Path) uintptr { return uintptr(unsafe.Pointer(way)) }

// addressOfLine is where a line of a table outside the Go heap is.
func addressOfLine(line *hot.Peer) uintptr { return uintptr(unsafe.Pointer(line)) }

// wordAt is a word that other threads or processes write; for sync/atomic.
func wordAt(addr uintptr) *uint64 { return (*uint64)(mem.Pointer(uint64(addr))) }
