// Package authkey has the authorisation keys of libfabric's attributes.
package authkey

import (
	"fmt"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/info"
)

// Key is an authorisation key, "" for none. A string, because strings are
// compared.
type Key string

// New checks a key that attributes have beside a size, and returns it, or
// the default one if there is none. The error wraps fi.EINVAL for a size without
// a key or beyond the limit, fi.AVAuthKey included.
func New(key []byte, size uint64, otherwise Key) (Key, error) {
	switch size = max(size, uint64(len(key))); {
	case size == 0:
		return otherwise, nil
	case size != uint64(len(key)) || size > info.MaxAuthKey:
		return "", fmt.Errorf("an authorisation key of %d bytes, of which %d are there, at most %d: %w",
			size, len(key), info.MaxAuthKey, fi.EINVAL)
	}
	return Key(key), nil
}

// OfInfo is the key of a passive endpoint: the endpoint's of its info, else the
// domain's. The error wraps fi.EINVAL.
func OfInfo(i *fi.Info) (key Key, err error) {
	if i.Domain != nil {
		if key, err = New(i.Domain.AuthKey, i.Domain.AuthKeySize, ""); err != nil {
			return "", err
		}
	}
	if i.EP != nil {
		return New(i.EP.AuthKey, i.EP.AuthKeySize, key)
	}
	return key, nil
}

// Keys are the keys of an endpoint that has this one, or if that is none those of its address vector.
func (k Key) Keys(own []hw.Key) []hw.Key {
	if k == "" {
		return own
	}
	return []hw.Key{{Secret: k.Bytes()}}
}

// Bytes is the key as transports take it, nil for none.
func (k Key) Bytes() []byte {
	if k == "" {
		return nil
	}
	return []byte(k)
}
