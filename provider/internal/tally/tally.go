// Package tally counts what the endpoints of package provider do, in the words of an endpoint's block (package stats).
// It says which words an operation, a post or an error counts at.
//
// The comment of a method says which threads may call it: all, the holder of a stripe's lease, or that of the progress
// lease.
package tally

import (
	"errors"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/stats"
)

// Counts are an endpoint's counters.
type Counts struct {
	block *stats.Endpoint
	lines []stats.Line // by stripe; its lease holder's
}

// On returns the counters of a block, for an endpoint with a number of stripes.
func On(block *stats.Endpoint, stripes int) Counts {
	c := Counts{block, make([]stats.Line, stripes)}
	for i := range c.lines {
		c.lines[i] = block.Stripe(i)
	}
	return c
}

// Error is the word of the progress lease's holder that counts operations which have ended with an error.
func Error(err fi.Errno) int {
	switch err {
	case fi.ETRUNC:
		return stats.RxErrTruncated
	case fi.ECONNRESET, fi.EHOSTUNREACH:
		return stats.RxErrReset
	case fi.ECANCELED:
		return stats.RxErrCanceled
	case fi.ENOMEM:
		return stats.RxErrMemory
	}
	return stats.RxErrOther
}

// Failed counts an operation that has ended with an error. The caller holds the progress lease.
func (c *Counts) Failed(err fi.Errno) { c.block.Rx(Error(err), 1) }

// Refused counts a post that found its peer out of reach, and returns err. Any thread may call it.
func (c *Counts) Refused(err error) error {
	word := stats.SharedRefused
	if errors.Is(err, fi.EAGAIN) {
		word = stats.SharedNotUp
	}
	c.block.Shared(word, 1)
	return err
}

// Posted counts a post of total bytes, by its outcome: at a word of the stripe and the word after it, or as refused.
// The caller holds the stripe's lease.
func (c *Counts) Posted(stripe, word int, total uint64, err error) {
	l := &c.lines[stripe]
	switch {
	case err == nil:
		l.Add(word, 1)
		l.Add(word+1, total)
	case errors.Is(err, fi.EAGAIN):
		l.Add(stats.StripeNoRing, 1)
	default:
		c.block.Shared(stats.SharedRefused, 1)
	}
}

// Add adds to a word of a stripe. The caller holds the stripe's lease.
func (c *Counts) Add(stripe, word int, n uint64) { c.lines[stripe].Add(word, n) }

// Shared adds to a word that all threads add to. Any thread may call it.
func (c *Counts) Shared(word int, n uint64) { c.block.Shared(word, n) }

// Kind is a kind of one-sided operations.
type Kind uint8

// Kinds of one-sided operations.
const (
	Write Kind = iota
	Read
	Atomic
)

// OneSided counts n one-sided operations, of total bytes, that go as messages. The caller holds the stripe's lease.
func (c *Counts) OneSided(stripe int, k Kind, n, total uint64) {
	l := &c.lines[stripe]
	switch k {
	case Atomic:
		l.Add(stats.StripeAtomic, n)
	case Read:
		l.Add(stats.StripeRead, n)
		l.Add(stats.StripeReadBytes, total)
	default:
		l.Add(stats.StripeWrite, n)
		l.Add(stats.StripeWriteBytes, total)
	}
}

// Direct counts n reads or writes, of total bytes, that the posting thread has done itself, or given to a device,
// without a stripe. Any thread may call it.
func (c *Counts) Direct(read bool, n, total uint64) {
	word := stats.SharedWrite
	if read {
		word = stats.SharedRead
	}
	c.block.Shared(word, n)
	c.block.Shared(word+1, total)
}

// Eager counts a message of n bytes that came with its payload. The caller holds the progress lease.
func (c *Counts) Eager(n int) {
	c.block.Rx(stats.RxEager, 1)
	c.block.Rx(stats.RxEagerBytes, uint64(n))
}

// Unexpected counts an unexpected message of which n bytes were copied. The caller holds the progress lease.
func (c *Counts) Unexpected(n int) {
	c.block.Rx(stats.RxUnexpected, 1)
	c.block.Rx(stats.RxUnexpectedBytes, uint64(n))
}

// Fill gives C the addresses of its counters.
func (c *Counts) Fill(h *hot.EP) {
	h.StatsThreads = c.block.Threads()
	h.StatsRx = c.block.RxLine()
}
