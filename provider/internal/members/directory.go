package members

import (
	"fmt"
	"slices"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/provider/internal/av"
	"github.com/weft-fabric/weft/provider/names"
)

// Directory finds endpoints of a device by the addresses of an address vector, and the other way round. Immutable while
// the endpoint is enabled.
type Directory struct {
	AV      *av.AV
	Matcher hw.Matcher
	// Keys are the authorisation keys of the address vector, in the order of the device's networks; none: it has none.
	Keys []hw.Key
}

// HoldKeys has endpoints be in an address vector, and takes the keys that it has if the domain has keys. Errors:
// fi.EINVAL where it has none then.
func (d *Directory) HoldKeys(keyed bool, v *av.AV) (err error) {
	d.AV = v
	if keyed {
		d.Keys, err = v.HoldKeys(0)
	}
	return err
}

// DropKeys gives them back.
func (d *Directory) DropKeys() {
	d.AV.DropKeys(d.Keys)
	d.Keys = nil
}

// Address finds what is at an address; name is memory for its name. Errors: fi.EINVAL, and of the device.
func (d *Directory) Address(a fi.Addr, name []byte) (hw.MatchAddress, error) {
	n, ok := d.AV.Name(a)
	if !ok {
		return 0, fmt.Errorf("not in the address vector: %w", fi.EINVAL)
	}
	at, err := d.Matcher.ParseMatchName(append(name, n.IP[:names.WordLen]...))
	if err != nil || len(d.Keys) == 0 {
		return at, err
	}
	return d.underKey(at, n.Key)
}

// underKey is an address in the network of the authorisation key with a number. Errors: hw.ErrUnreachable for a key
// that the endpoint does not have.
func (d *Directory) underKey(at hw.MatchAddress, number uint8) (hw.MatchAddress, error) {
	networks, ok := d.Matcher.(hw.NetworkMatcher)
	if ok {
		k := slices.IndexFunc(d.Keys, func(k hw.Key) bool { return k.Number == number })
		at, ok = networks.InNetwork(at, k)
	}
	if !ok {
		return 0, fmt.Errorf("authorisation key %d came after the endpoint was enabled: %w", number, hw.ErrUnreachable)
	}
	return at, nil
}

// KeyOf is the number of the authorisation key under which a sender has sent, 0: the endpoint has no keys.
func (d *Directory) KeyOf(from hw.MatchAddress) uint8 {
	networks, ok := d.Matcher.(hw.NetworkMatcher)
	if !ok || len(d.Keys) == 0 {
		return 0
	}
	if k := networks.NetworkOf(from); k >= 0 && k < len(d.Keys) {
		return d.Keys[k].Number
	}
	return 0
}

// Source finds the addresses of senders, for the holder of the progress lease. nil: capabilities do not ask for them.
func (d *Directory) Source(caps uint64) func(hw.MatchAddress) fi.Addr {
	var buf [names.WordLen]byte
	if caps&(fi.Source|fi.SourceErr) == 0 {
		return nil
	}
	return func(a hw.MatchAddress) fi.Addr {
		n, err := names.Decode(names.Matched, d.Matcher.AppendMatchName(buf[:0], a))
		if err != nil {
			return fi.AddrNotAvail
		}
		return d.AV.Reported(d.AV.Find(n.WithKey(d.KeyOf(a))))
	}
}

// name is the name of what is at an address, without a network: messages of weft's own go in the endpoint's first.
// Errors: as of Address, and fi.EOPNOTSUPP for an address of another network.
func (d *Directory) name(a fi.Addr) (names.Name, []byte, error) {
	var buf [names.WordLen]byte
	at, err := d.Address(a, buf[:0])
	if err != nil {
		return names.Name{}, nil, err
	}
	if networks, ok := d.Matcher.(hw.NetworkMatcher); ok && networks.NetworkOf(at) != 0 {
		return names.Name{}, nil, fmt.Errorf("of another VNI than the endpoint's first, which has the messages of "+
			"collective operations: %w", fi.EOPNOTSUPP)
	}
	raw := d.Matcher.AppendMatchName(nil, at)
	n, err := names.Decode(names.Matched, raw)
	return n, raw, err
}
