package provider

import (
	"fmt"
	"slices"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/provider/names"
)

// matchedPeers is what a matched endpoint knows its peers by: its address vector, the authorisation keys of that, in
// the order of the device's networks (none: it has none), and the device's addresses. Immutable from Enable to Close.
type matchedPeers struct {
	av      *AV
	keys    []hw.Key
	matcher hw.Matcher
}

// holdKeys has peers be in an address vector, and takes the keys that it has if the domain has keys. Errors: fi.EINVAL
// where it has none then.
func (p *matchedPeers) holdKeys(keyed bool, av *AV) (err error) {
	p.av = av
	if keyed {
		p.keys, err = av.HoldKeys(0)
	}
	return err
}

// dropKeys gives them back.
func (p *matchedPeers) dropKeys() {
	p.av.DropKeys(p.keys)
	p.keys = nil
}

// address finds what is at an address of the address vector; name is room for its name.
func (p *matchedPeers) address(a fi.Addr, name []byte) (hw.MatchAddress, error) {
	n, ok := p.av.Name(a)
	if !ok {
		return 0, fmt.Errorf("not in the address vector: %w", fi.EINVAL)
	}
	at, err := p.matcher.ParseMatchName(append(name, n.IP[:names.WordLen]...))
	if err != nil || len(p.keys) == 0 {
		return at, err
	}
	return p.underKey(at, n.Key)
}

// underKey is an address in the network of the authorisation key with a number. Errors: hw.ErrUnreachable for a key
// that the endpoint does not have.
func (p *matchedPeers) underKey(at hw.MatchAddress, number uint8) (hw.MatchAddress, error) {
	networks, ok := p.matcher.(hw.NetworkMatcher)
	if ok {
		k := slices.IndexFunc(p.keys, func(k hw.Key) bool { return k.Number == number })
		at, ok = networks.InNetwork(at, k)
	}
	if !ok {
		return 0, fmt.Errorf("authorisation key %d came after the endpoint was enabled: %w", number, hw.ErrUnreachable)
	}
	return at, nil
}

// keyOf is the number of the authorisation key under which a sender has sent, 0: the endpoint has no keys.
func (p *matchedPeers) keyOf(from hw.MatchAddress) uint8 {
	networks, ok := p.matcher.(hw.NetworkMatcher)
	if !ok || len(p.keys) == 0 {
		return 0
	}
	if k := networks.NetworkOf(from); k >= 0 && k < len(p.keys) {
		return p.keys[k].Number
	}
	return 0
}

// source finds the address of a sender in the address vector; name is room for its name.
func (p *matchedPeers) source(a hw.MatchAddress, name []byte) fi.Addr {
	n, err := names.Decode(names.Matched, p.matcher.AppendMatchName(name, a))
	if err != nil {
		return fi.AddrNotAvail
	}
	return p.av.Reported(p.av.Find(n.WithKey(p.keyOf(a))))
}
