package rkey

import (
	"sync"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
)

// How many operations go as messages before the peer is asked again: because no answer has come, or because the region
// was not for devices.
const (
	askAgain = 64
	tryAgain = 4096
)

// maxKeys is how many keys are kept of one peer.
const maxKeys = 4096

// Peer has the device's keys of a peer's regions, by the keys of these. They belong to one connection to the peer: its
// successor has others. The zero value is ready; any thread may use it.
type Peer struct {
	mu   sync.Mutex // operations of a device only, which make system calls
	list map[uint64]peerKey
}

type peerKey struct {
	device hw.RemoteKey // zero: not known
	wait   int          // operations that go as messages before the peer is asked
	why    fi.Errno     // it is not known, by the peer's answer
}

// Find returns a device's key. ask: it is not known, and now is the time to ask.
func (k *Peer) Find(key uint64) (device hw.RemoteKey, known, ask bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	p, met := k.list[key]
	if p.device != (hw.RemoteKey{}) {
		return p.device, true, false
	}
	if met && p.wait > 0 {
		p.wait--
		k.list[key] = p
		return hw.RemoteKey{}, false, false
	}
	if k.list == nil || len(k.list) >= maxKeys {
		k.list = map[uint64]peerKey{}
	}
	k.list[key] = peerKey{wait: askAgain, why: p.why}
	return hw.RemoteKey{}, false, true
}

// Refusal is why the device does not reach a region, by the peer's last answer, fi.Success: there is none. Operations
// that may not go as messages end with it.
func (k *Peer) Refusal(key uint64) fi.Errno {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.list[key].why
}

// Learn enters the device's key of a region, which the peer has sent.
func (k *Peer) Learn(key uint64, device hw.RemoteKey) { k.answered(key, peerKey{device: device}) }

// Refused takes in that the peer's region is not for devices.
func (k *Peer) Refused(key uint64) { k.answered(key, peerKey{wait: tryAgain, why: fi.EOPNOTSUPP}) }

// Absent takes in that the peer has no such region now.
func (k *Peer) Absent(key uint64) { k.answered(key, peerKey{why: fi.ENOKEY}) }

// answered enters what the peer has answered, if it was asked.
func (k *Peer) answered(key uint64, p peerKey) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if _, asked := k.list[key]; asked {
		k.list[key] = p
	}
}

// Forget drops a key that the peer's device refused, or that the peer could not be asked for.
func (k *Peer) Forget(key uint64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.list, key)
}
