package udp

import (
	"fmt"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/hw/udp/internal/crypt"
	"github.com/weft-fabric/weft/internal/sock"
)

// An interface may have several authorisation keys (hw.Key). A connection has one of
// them: the one that Connect was given the number of, or the one that the client's
// Init is signed with. So there may be a connection to a peer for each key.

// ifaceKey is one of an interface's keys, made ready. number is 0 for an only one.
type ifaceKey struct {
	*crypt.Key
	number uint8
}

// target is what a peer is known by: its name, which of the interfaces of that name it
// is, and the number of the key under which it is meant.
type target struct {
	sock.Addr
	number, key uint8
}

// newKeys makes the keys of a configuration ready.
func newKeys(cfg *Config) ([]ifaceKey, error) {
	list := cfg.Keys
	if len(cfg.Key) > 0 {
		list = []hw.Key{{Secret: cfg.Key}}
	}
	var keys []ifaceKey
	for _, k := range list {
		key, err := crypt.NewKey(k.Secret)
		if err != nil {
			return nil, fmt.Errorf("udp: %w", err)
		}
		keys = append(keys, ifaceKey{key, k.Number})
	}
	return keys, nil
}

// keyed reports whether connections are authenticated.
func (i *Iface) keyed() bool { return len(i.keys) != 0 }

// keyOf returns the key with a number; false: there is none. Without keys it is
// none with number 0.
func (i *Iface) keyOf(number uint8) (ifaceKey, bool) {
	for _, k := range i.keys {
		if k.number == number {
			return k, true
		}
	}
	return ifaceKey{}, number == 0 && !i.keyed()
}

// signer returns the key that a handshake packet is signed with; false: none of ours.
func (i *Iface) signer(packet []byte) (ifaceKey, bool) {
	for _, k := range i.keys {
		if k.Verify(packet) {
			return k, true
		}
	}
	return ifaceKey{}, !i.keyed()
}

// sign signs a handshake packet, unless there is no key.
func (k ifaceKey) sign(packet []byte) {
	if k.Key != nil {
		k.Sign(packet)
	}
}

// bytes is the target as parse reads it.
func (t *target) bytes() []byte {
	b := t.Bytes()
	if t.number == 0 && t.key == 0 {
		return b
	}
	return hw.AppendKey(append(b[:len(b):len(b)], t.number, 0, 0, 0), t.key)
}
