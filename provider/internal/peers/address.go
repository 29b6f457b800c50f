package peers

import (
	"encoding/binary"
	"fmt"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/info"
	"github.com/weft-fabric/weft/provider/names"
)

// Address is what a transport knows an interface by: the name of its endpoint,
// the authorisation key under which it is meant, if this side has several, and a
// number, because each context of a scalable endpoint has an interface of
// its own. Receive context i has number i, so that the first one is found where
// an ordinary endpoint is, and transmit context i has number FirstTx+i.
type Address struct {
	names.Name
	Number uint8
}

// FirstTx is the number of a scalable endpoint's first transmit context.
const FirstTx = info.MaxCtx

// There is room for all numbers in an address.
const _ = uint8(2*info.MaxCtx - 1)

// String is the name, the number unless it is 0, and the key as the application
// knows it.
func (a Address) String() string {
	s := a.Name.String()
	if a.Number != 0 {
		s += fmt.Sprintf(".%d", a.Number)
	}
	if a.Key != 0 {
		s += fmt.Sprintf(" with authorisation key %d", a.Key-1)
	}
	return s
}

// Raw is the address as transports take it: a socket address; unless it and the
// key are 0 the number in 4 bytes; and unless it is 0 the key in 4 bytes.
func (a Address) Raw() []byte {
	b := a.AppendSockaddr(nil)
	if a.Number == 0 && a.Key == 0 {
		return b
	}
	return hw.AppendKey(binary.LittleEndian.AppendUint32(b, uint32(a.Number)), a.Key)
}

// ParseAddress reads what Raw gives. Errors wrap fi.EINVAL.
func ParseAddress(b []byte) (Address, error) {
	n, err := names.FromSockaddr(b)
	if err != nil {
		return Address{}, err
	}
	a := Address{Name: n}
	rest := b[n.SockaddrLen():]
	if len(rest) == 0 {
		return a, nil
	}
	if len(rest) < 4 || binary.LittleEndian.Uint32(rest) >= 2*info.MaxCtx {
		return Address{}, fmt.Errorf("number % x after a socket address: %w", rest, fi.EINVAL)
	}
	a.Number = rest[0]
	if a.Key, err = hw.ParseKey(rest[4:]); err != nil {
		return Address{}, fmt.Errorf("key % x after a socket address: %w", rest, fi.EINVAL)
	}
	return a, nil
}
