//go:build !amd64 || race

package order

import "sync/atomic"

// Store64 stores v with release order: what was read and written before it in
// program order is done for a thread that loads v with acquire order.
func Store64(p *uint64, v uint64) { atomic.StoreUint64(p, v) }

// Store32 is Store64 for 32 bits.
func Store32(p *uint32, v uint32) { atomic.StoreUint32(p, v) }
