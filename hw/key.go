package hw

import (
	"encoding/binary"
	"fmt"
)

// MaxKeys is the highest number of a [Key].
const MaxKeys = 254

// Key is one of several authorisation keys of an interface. A process that holds one of them reaches the interface.
// On the side that has several, an address ends in the number of the key under which the peer is meant ([AppendKey]),
// and a peer that sends under two of them is two sources. Peers do not learn the numbers.
type Key struct {
	Number uint8 // 1 to MaxKeys
	Secret []byte
}

// sizeKey is what the number of a key takes at the end of an address, in bytes.
const sizeKey = 4

// AppendKey appends the number of a key to an address b, nothing for 0.
func AppendKey(b []byte, number uint8) []byte {
	if number == 0 {
		return b
	}
	return binary.LittleEndian.AppendUint32(b, uint32(number))
}

// ParseKey reads what AppendKey appended. Errors wrap ErrInvalid.
func ParseKey(b []byte) (uint8, error) {
	if len(b) == 0 {
		return 0, nil
	}
	if len(b) != sizeKey || binary.LittleEndian.Uint32(b)-1 >= MaxKeys {
		return 0, fmt.Errorf("key number % x: %w", b, ErrInvalid)
	}
	return b[0], nil
}

// CheckKeys reports whether the keys of a configuration are possible: each number once,
// no empty secret. Errors wrap ErrInvalid.
func CheckKeys(keys []Key) error {
	seen := map[uint8]bool{}
	for _, k := range keys {
		if k.Number == 0 || k.Number > MaxKeys || seen[k.Number] || len(k.Secret) == 0 {
			return fmt.Errorf("authorisation key number %d of %d bytes: %w", k.Number, len(k.Secret), ErrInvalid)
		}
		seen[k.Number] = true
	}
	return nil
}
