package provider

import (
	"bytes"
	"fmt"
	"slices"
	"sync"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/provider/token"
)

// The device's keys in tokens. A token says by which interface of the owner's, on which device, a key reaches the
// region; no other interface ever has that address. A peer that opens the token uses the key over a connection to that
// interface alone, so one of another process, or of the owner's before it was restarted, is never sent anywhere. Where
// the connection leads elsewhere, and when the device has refused the key, the owner is asked (rdma_keys.go).

// ownDevice is an interface of an endpoint on a device that reads and writes memory of peers.
type ownDevice struct {
	address []byte
	memory  hw.MemoryDomain
}

// rails are the keys of the owner's devices that a token of the region has: those that no other region gets. The region
// is registered with the devices.
func (m *MR) rails(owner *Endpoint) (list []token.RDMA) {
	if owner.counted() || m.region.OnDevice() && !owner.peerToPeer() || !m.region.Gate.Enter() {
		return nil
	}
	defer m.region.Gate.Leave()
	for _, d := range owner.devicesOf {
		if key, lasts := m.region.Export(&m.domain.published, d.memory, nil); lasts {
			list = append(list, token.RDMA{Address: d.address, Key: key})
		}
	}
	return list
}

// addDevice has tokens name the port's device, if it has one that reaches memory.
func (e *portSet) addDevice(p *port) {
	if d, ok := p.Iface.(hw.Device); ok && p.oneSided() {
		e.devicesOf = append(e.devicesOf, ownDevice{d.DeviceAddress(), p.Memory()})
	}
}

// tokenKey is a key that a token has for a device of the owner's which is of the kind of a port's here.
type tokenKey struct {
	port    *port
	address []byte // of the owner's interface
	key     hw.RemoteKey
}

// keysIn returns the keys that a token has for devices of the kind of the endpoint's. The error says what is wrong with
// one: it does not parse, or says of the region what the token does not.
func (e *portSet) keysIn(t *token.Token) (keys []tokenKey, err error) {
	for _, r := range t.Rails() {
		for _, p := range e.ports {
			d, ok := p.Iface.(hw.Device)
			if !ok || !p.oneSided() || d.CheckDevice(r.Address) != nil {
				continue
			}
			k, err := p.Memory().UnpackKey(r.Key)
			if err != nil {
				return nil, fmt.Errorf("a device's key: %w", err)
			}
			if reader, ok := p.Memory().(hw.KeyReader); ok {
				if err := t.CheckRegion(reader.KeyRegion(k)); err != nil {
					return nil, err
				}
			}
			keys = append(keys, tokenKey{p, r.Address, k})
		}
	}
	return keys, nil
}

// openedTokens are the open remote regions that have keys for devices, by the region's key.
type openedTokens struct {
	mu   sync.Mutex // control operations, and operations of a device whose key is not known
	list map[uint64][]*Remote
}

func (o *openedTokens) add(r *Remote) {
	if len(r.keys) == 0 {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.list == nil {
		o.list = map[uint64][]*Remote{}
	}
	o.list[r.about.Key] = append(o.list[r.about.Key], r)
}

func (o *openedTokens) remove(r *Remote) {
	o.mu.Lock()
	defer o.mu.Unlock()
	key := r.about.Key
	left := slices.DeleteFunc(o.list[key], func(other *Remote) bool { return other == r })
	if len(left) == 0 {
		delete(o.list, key)
	} else {
		o.list[key] = left
	}
}

// find returns the key by which the device at the end of a link's path reaches a region.
func (o *openedTokens) find(e *peering, l *link, p *path, key uint64) (hw.RemoteKey, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, r := range o.list[key] {
		if e.linkNumber(r.addr) != l.Index+1 {
			continue
		}
		for _, k := range r.keys {
			if k.port == p.port && bytes.Equal(k.address, p.device) {
				return k.key, true
			}
		}
	}
	return hw.RemoteKey{}, false
}

// refused takes in that the device at the end of a path has refused the keys of a region: they are not used again.
func (o *openedTokens) refused(p *path, key uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, r := range o.list[key] {
		r.keys = slices.DeleteFunc(r.keys, func(k tokenKey) bool { return bytes.Equal(k.address, p.device) })
	}
}

// leads reports whether a device's key that the token has may lead to the owner.
func (r *Remote) leads() bool {
	o := &r.ep.opened
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(r.keys) != 0
}
