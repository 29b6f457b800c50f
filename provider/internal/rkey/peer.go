package rkey

import (
	"cmp"
	"math/bits"
	"slices"
	"sync/atomic"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
)

// How many operations go as messages before the peer is asked again: because no answer has come, or because the region
// was not for devices.
const (
	askAgain = 64
	tryAgain = 4096
)

// Keys of one peer are kept in lists, each of at most listKeys: a new one for each key that is added costs less then.
const (
	lists    = 16
	listKeys = 512
)

// Peer has the device's keys of a peer's regions, by the keys of these. They belong to one connection to the peer: its
// successor has others. The zero value is ready; any thread may use it, and none waits for another.
//
// Regions that were asked for are in lists, each of which is made anew with a region that is added (P0). So a thread
// that searches has all of one time (P1); one whose addition is overtaken by another's begins again. What is known of a
// region changes in its own word (P2): of threads that would ask, the one that changes it asks.
type Peer struct {
	// lists are each by key; nil: empty. Changed by compare-and-swap by threads that meet a region, read by any;
	// sequentially consistent.
	lists [lists]atomic.Pointer[[]*peerKey]
}

// peerKey is a region that the peer was asked for.
type peerKey struct {
	key uint64 // immutable
	// now is what is known of it, nil: nothing, and the peer is to be asked. Changed by compare-and-swap by threads
	// that ask and by the one that takes an answer in, cleared by any, read by any; sequentially consistent.
	now atomic.Pointer[knowledge]
}

// knowledge is what is known of a region.
type knowledge struct {
	device hw.RemoteKey // zero: not known; immutable
	why    fi.Errno     // it is not known, by the peer's answer; immutable
	// wait is how many operations go as messages before the peer is asked. Taken from by threads that find no key,
	// below zero by some at once; sequentially consistent.
	wait atomic.Int32
}

// unknown is knowledge without a key.
func unknown(wait int32, why fi.Errno) *knowledge {
	n := &knowledge{why: why}
	n.wait.Store(wait)
	return n
}

// search finds a region in a list, or its place.
func search(list []*peerKey, key uint64) (at int, found bool) {
	return slices.BinarySearchFunc(list, key, func(p *peerKey, key uint64) int { return cmp.Compare(p.key, key) })
}

// listOf is the list that a region is in.
func (k *Peer) listOf(key uint64) *atomic.Pointer[[]*peerKey] {
	return &k.lists[key*0x9e3779b97f4a7c15>>(64-bits.Len(lists-1))]
}

// at returns a region that was asked for, nil: it was not.
func (k *Peer) at(key uint64) *peerKey {
	if all := k.listOf(key).Load(); all != nil { // P1
		if i, found := search(*all, key); found {
			return (*all)[i]
		}
	}
	return nil
}

// add returns a region that was not asked for, which the caller, or another thread at the same time, has added.
func (k *Peer) add(key uint64) *peerKey {
	p, list := &peerKey{key: key}, k.listOf(key)
	for {
		old, now := list.Load(), []*peerKey{p} // P1
		if old != nil {
			i, found := search(*old, key)
			if found {
				return (*old)[i]
			}
			if len(*old) < listKeys {
				now = slices.Concat((*old)[:i], now, (*old)[i:])
			}
		}
		if list.CompareAndSwap(old, &now) { // P0
			return p
		}
	}
}

// Find returns a device's key. ask: it is not known, and now is the time to ask.
func (k *Peer) Find(key uint64) (device hw.RemoteKey, known, ask bool) {
	p := k.at(key)
	if p == nil {
		p = k.add(key)
	}
	for {
		why, n := fi.Success, p.now.Load()
		if n != nil {
			if n.device != (hw.RemoteKey{}) {
				return n.device, true, false
			}
			if n.wait.Add(-1) >= 0 {
				return hw.RemoteKey{}, false, false
			}
			why = n.why
		}
		if p.now.CompareAndSwap(n, unknown(askAgain, why)) { // P2
			return hw.RemoteKey{}, false, true
		}
	}
}

// Refusal is why the device does not reach a region, by the peer's last answer, fi.Success: there is none. Operations
// that may not go as messages end with it.
func (k *Peer) Refusal(key uint64) fi.Errno {
	if p := k.at(key); p != nil {
		if n := p.now.Load(); n != nil {
			return n.why
		}
	}
	return fi.Success
}

// Learn enters the device's key of a region, which the peer has sent.
func (k *Peer) Learn(key uint64, device hw.RemoteKey) { k.answered(key, &knowledge{device: device}) }

// Refused takes in that the peer's region is not for devices.
func (k *Peer) Refused(key uint64) { k.answered(key, unknown(tryAgain, fi.EOPNOTSUPP)) }

// Absent takes in that the peer has no such region now.
func (k *Peer) Absent(key uint64) { k.answered(key, unknown(0, fi.ENOKEY)) }

// answered enters what the peer has answered, if it was asked.
func (k *Peer) answered(key uint64, now *knowledge) {
	p := k.at(key)
	if p == nil {
		return
	}
	for old := p.now.Load(); old != nil && !p.now.CompareAndSwap(old, now); old = p.now.Load() { // P2
	}
}

// Forget drops a key that the peer's device refused, or that the peer could not be asked for.
func (k *Peer) Forget(key uint64) {
	if p := k.at(key); p != nil {
		p.now.Store(nil)
	}
}
