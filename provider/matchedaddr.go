package provider

import (
	"fmt"
	"slices"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/provider/names"
)

// addressIn finds what is at an address of the endpoint's address vector.
func (e *MatchedEndpoint) addressIn(m hw.Matcher) func(fi.Addr, []byte) (hw.MatchAddress, error) {
	return func(a fi.Addr, name []byte) (hw.MatchAddress, error) {
		n, ok := e.av.Name(a)
		if !ok {
			return 0, fmt.Errorf("not in the address vector: %w", fi.EINVAL)
		}
		at, err := m.ParseMatchName(append(name, n.IP[:names.WordLen]...))
		if err != nil || len(e.keys) == 0 {
			return at, err
		}
		return e.underKey(m, at, n.Key)
	}
}

// underKey is an address in the network of the authorisation key with a number. Errors: hw.ErrUnreachable for a key
// that the endpoint does not have.
func (e *MatchedEndpoint) underKey(m hw.Matcher, at hw.MatchAddress, number uint8) (hw.MatchAddress, error) {
	networks, ok := m.(hw.NetworkMatcher)
	if ok {
		k := slices.IndexFunc(e.keys, func(k hw.Key) bool { return k.Number == number })
		at, ok = networks.InNetwork(at, k)
	}
	if !ok {
		return 0, fmt.Errorf("authorisation key %d came after the endpoint was enabled: %w", number, hw.ErrUnreachable)
	}
	return at, nil
}

// keyOf is the number of the authorisation key under which a sender has sent, 0: the endpoint has no keys.
func (e *MatchedEndpoint) keyOf(m hw.Matcher, from hw.MatchAddress) uint8 {
	networks, ok := m.(hw.NetworkMatcher)
	if !ok || len(e.keys) == 0 {
		return 0
	}
	if k := networks.NetworkOf(from); k >= 0 && k < len(e.keys) {
		return e.keys[k].Number
	}
	return 0
}
