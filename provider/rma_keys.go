package provider

import (
	"encoding/binary"
	"sync"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/log"
)

// A device finds a peer's region by a key of its own, which the peer sends when
// it is asked by the region's key. Both messages may be lost to a lack of room:
// then the question comes again. Until the answer is there operations go as
// messages, so no operation waits for it.

// amKeyAsk has the region's key as its header and keyAsk as its head, and
// amKeyAnswer the same key and keyAnswer.
const (
	amKeyAsk    hw.AMID = hot.AMKeyAsk
	amKeyAnswer hw.AMID = hot.AMKeyAnswer
)

// Sizes of their heads:
//
//	asked: link:4 | 4 zeros
//	answer: link:4 | status:4 | the device's key, if there is one
const keyHeadBytes = 8

// Status of an answer.
const (
	keyHere   = iota // the device's key follows
	keyNever         // this region is not for devices
	keyAbsent        // there is no such region now
)

// How many operations go as messages before the peer is asked again: because
// no answer has come, or because the region was not for devices.
const (
	askAgain   = 64
	tryAgain   = 4096
	maxPeerKey = 4096 // keys that are kept of one peer
)

// peerKeys are the device's keys of a peer's regions, by the keys of these. They
// belong to one connection to the peer: its successor has others.
type peerKeys struct {
	mu   sync.Mutex // operations of a device only, which make system calls
	list map[uint64]peerKey
}

type peerKey struct {
	device hw.RemoteKey // zero: not known
	wait   int          // operations that go as messages before the peer is asked
	why    fi.Errno     // it is not known, by the peer's answer: operations that may not go as messages end with it
}

// find returns a device's key. ask: it is not known, and now is the time to ask.
func (k *peerKeys) find(key uint64) (device hw.RemoteKey, known, ask bool) {
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
	k.set(key, peerKey{wait: askAgain, why: p.why})
	return hw.RemoteKey{}, false, true
}

// refusal is why the device does not reach a region, by the peer's last answer, fi.Success: there is none.
func (k *peerKeys) refusal(key uint64) fi.Errno {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.list[key].why
}

// set enters a key. The caller has k.mu.
func (k *peerKeys) set(key uint64, p peerKey) {
	if k.list == nil || len(k.list) >= maxPeerKey {
		k.list = map[uint64]peerKey{}
	}
	k.list[key] = p
}

// learn enters what the peer has answered, if it was asked.
func (k *peerKeys) learn(key uint64, p peerKey) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if _, asked := k.list[key]; asked {
		k.list[key] = p
	}
}

// forget drops a key that the peer's device refused.
func (k *peerKeys) forget(key uint64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.list, key)
}

// findKey returns the device's key of a peer's region, or asks for it.
func (e *peering) findKey(l *link, p *path, key uint64, device *hw.RemoteKey) bool {
	found, known, ask := p.keys.find(key)
	*device = found
	if ask {
		var b [keyHeadBytes]byte
		binary.LittleEndian.PutUint32(b[:], l.index)
		if err := p.AMShort(amKeyAsk, key, b[:], nil); err != nil {
			p.keys.forget(key)
		}
	}
	return known
}

// onKeyAsk sends a peer the device's key of a region.
func (e *leasedEP) onKeyAsk(src hw.Source, key uint64, head, payload []byte) {
	if len(head) != keyHeadBytes || len(payload) != 0 || binary.LittleEndian.Uint32(head[4:]) != 0 {
		e.malformed(src, "question for a key does not parse")
		return
	}
	p, err := e.connect(e.linkBack(e.senderOf(src)))
	if own, _ := e.portOf(src); err != nil || p.port != own {
		return // the way back is another, where the device's keys mean nothing
	}
	var b [keyHeadBytes + maxKey]byte
	copy(b[:4], head)
	answer := b[:keyHeadBytes]
	status := uint32(keyNever)
	if p.keys != nil && !e.counted() {
		answer, status = e.domain.deviceKey(p.port, key, answer)
	}
	binary.LittleEndian.PutUint32(b[4:], status)
	_ = p.AMShort(amKeyAnswer, key, answer, nil) // no room: the peer asks again
}

// deviceKey appends the device's key of a region, which it registers with the
// port's memory domain.
func (d *Domain) deviceKey(p *port, key uint64, to []byte) ([]byte, uint32) {
	m := d.regions.keys.Find(key)
	if m == nil || !m.gate.Enter() {
		return to, keyAbsent
	}
	defer m.gate.Leave()
	r, err := m.export(p.Memory())
	if err != nil {
		log.Infof(log.MR, "region %#x is reached by messages only: %v", key, err)
	}
	if r == nil {
		return to, keyNever
	}
	return r.PackKey(to), keyHere
}

// onKeyAnswer takes in what a peer says of a region.
func (e *leasedEP) onKeyAnswer(src hw.Source, key uint64, head, payload []byte) {
	if len(head) < keyHeadBytes || len(payload) != 0 {
		e.malformed(src, "answer about a key does not parse")
		return
	}
	index, status, packed := binary.LittleEndian.Uint32(head), binary.LittleEndian.Uint32(head[4:]), head[keyHeadBytes:]
	if !e.ownsLink(src, index) || status > keyAbsent || (status == keyHere) != (len(packed) != 0) {
		e.malformed(src, "answer about a key, status %d, %d bytes", status, len(packed))
		return
	}
	p := e.linkAt(index).path.Load()
	if own, _ := e.portOf(src); p == nil || p.keys == nil || p.port != own {
		return // the connection that asked is gone
	}
	switch status {
	case keyAbsent:
		p.keys.learn(key, peerKey{why: fi.ENOKEY})
	case keyNever:
		p.keys.learn(key, peerKey{wait: tryAgain, why: fi.EOPNOTSUPP})
	default:
		device, err := p.port.Memory().UnpackKey(packed)
		if err != nil {
			e.malformed(src, "answer about a key: %v", err)
			return
		}
		p.keys.learn(key, peerKey{device: device})
	}
}

// export registers the region with a device's memory domain. nil: it is not for
// devices, because what peers do there must be known, there is nothing, its memory is another
// device's, or the application has not promised that its pages stay (FI_MR_ALLOCATED).
// The caller has entered m.gate.
func (m *MR) export(md hw.MemoryDomain) (hw.Memory, error) {
	m.publishMu.Lock()
	defer m.publishMu.Unlock()
	if m.exported != nil || m.withdrawn || len(m.parts) != 1 || m.length == 0 || m.single || m.named != nil ||
		!m.domain.allocated() {
		return m.exported, nil
	}
	r, err := md.Register(hw.Region{Addr: pointerAt(uint64(m.parts[0].Base)), Len: int(m.length), Access: m.remoteAccess(), Base: m.base})
	if err != nil {
		return nil, err
	}
	m.exported = r
	return r, nil
}

// allocated reports whether the application has promised that the pages of its
// regions are there and stay: a device uses them without asking the process.
func (d *Domain) allocated() bool { return d.info.Domain.MRMode&(fi.MRAllocated|fi.MRBasic) != 0 }
