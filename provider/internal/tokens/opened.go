package tokens

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/provider/internal/peers"
	"github.com/weft-fabric/weft/provider/token"
)

// The device's keys in tokens. A token says by which interface of the owner's, on which device, a key reaches the
// region; no other interface ever has that address. A peer that opens the token uses the key over a connection to that
// interface alone, so one of another process, or of the owner's before it was restarted, is never sent anywhere. Where
// the connection leads elsewhere, and when the device has refused the key, the owner is asked.

// Opened are the remote regions that an endpoint has opened; those that have keys for devices are found by the
// region's key.
type Opened struct {
	ep   Endpoint   // immutable
	mu   sync.Mutex // control operations, and operations of a device whose key is not known
	list map[uint64][]*Remote
}

// Init makes them those of an endpoint.
func (o *Opened) Init(e Endpoint) { o.ep = e }

// deviceKey is a key that a token has for a device of the owner's which is of the kind of one here.
type deviceKey struct {
	transport uint32 // Device.Transport of that one
	address   []byte // of the owner's interface
	key       hw.RemoteKey
}

// Open opens a token, in its serialised form, that was made with one of the endpoint's authorisation keys, or with none
// if it has none. The owner's address is one under that key. The region stays open until its
// Close. No peer is asked. Errors: fi.EINVAL for what is no token or was made with another key; those of Know and
// Acquire of the endpoint.
func (o *Opened) Open(packed []byte) (*Remote, error) {
	t, owner, err := parse(packed, o.ep.Keys())
	if err != nil {
		return nil, fmt.Errorf("%w: %w", err, fi.EINVAL)
	}
	keys, err := keysIn(t, o.ep.Devices())
	if err != nil {
		return nil, fmt.Errorf("%w: %w", err, fi.EINVAL)
	}
	addr, err := o.ep.Know(owner)
	if err != nil {
		return nil, fmt.Errorf("its owner: %w", err)
	}
	if err := o.ep.Acquire(); err != nil {
		return nil, err
	}
	r := &Remote{ep: o.ep, set: o, addr: addr, about: *t, keys: keys}
	o.add(r)
	return r, nil
}

// parse reads a token for an endpoint with some keys. owner is its owner, under the key of it.
func parse(packed []byte, own []hw.Key) (t *token.Token, owner peers.Address, err error) {
	keys := make([][]byte, len(own))
	for i, k := range own {
		keys[i] = k.Secret
	}
	t, under, err := token.ParseUnder(packed, keys)
	if err != nil {
		return nil, owner, err
	}
	context, ok := t.Context()
	if !ok {
		return nil, owner, errors.New("its owner is no receive context that there can be")
	}
	owner = peers.Address{Name: t.Owner, Number: context}
	if len(own) != 0 {
		owner.Name = owner.WithKey(own[under].Number)
	}
	return t, owner, nil
}

// keysIn returns the keys that a token has for devices of the kind of some here. The error says what is wrong with one:
// it does not parse, or says of the region what the token does not.
func keysIn(t *token.Token, devices []Device) (keys []deviceKey, err error) {
	for _, r := range t.Rails() {
		for _, d := range devices {
			if d.CheckDevice(r.Address) != nil {
				continue
			}
			k, err := d.Memory.UnpackKey(r.Key)
			if err != nil {
				return nil, fmt.Errorf("a device's key: %w", err)
			}
			if reader, ok := d.Memory.(hw.KeyReader); ok {
				if err := t.CheckRegion(reader.KeyRegion(k)); err != nil {
					return nil, err
				}
			}
			keys = append(keys, deviceKey{d.Transport, r.Address, k})
		}
	}
	return keys, nil
}

func (o *Opened) add(r *Remote) {
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

func (o *Opened) remove(r *Remote) {
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

// Find returns the key by which the device with an address, reached over a transport, reaches a region. is reports
// whether an address is that of the peer there.
func (o *Opened) Find(key uint64, transport uint32, device []byte, is func(fi.Addr) bool) (hw.RemoteKey, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, r := range o.list[key] {
		if !is(r.addr) {
			continue
		}
		for _, k := range r.keys {
			if k.transport == transport && bytes.Equal(k.address, device) {
				return k.key, true
			}
		}
	}
	return hw.RemoteKey{}, false
}

// Refused takes in that the device with an address has refused the keys of a region: they are not used again.
func (o *Opened) Refused(device []byte, key uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, r := range o.list[key] {
		r.keys = slices.DeleteFunc(r.keys, func(k deviceKey) bool { return bytes.Equal(k.address, device) })
	}
}

// leads reports whether a device's key that the token has may lead to the owner.
func (r *Remote) leads() bool {
	if r.set == nil {
		return false
	}
	r.set.mu.Lock()
	defer r.set.mu.Unlock()
	return len(r.keys) != 0
}
