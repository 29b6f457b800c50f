package provider

import (
	"encoding/binary"
	"fmt"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/provider/info"
	"github.com/weft-fabric/weft/provider/names"
)

// address is what a transport knows an interface by: the name of its endpoint
// and a number, because each context of a scalable endpoint has an interface of
// its own. Receive context i has number i, so that the first one is found where
// an ordinary endpoint is, and transmit context i has number firstTx+i.
type address struct {
	names.Name
	number uint8
}

// firstTx is the number of a scalable endpoint's first transmit context.
const firstTx = info.MaxCtx

// There is room for all numbers in an address.
const _ = uint8(2*info.MaxCtx - 1)

// String is the name, and the number unless it is 0.
func (a address) String() string {
	if a.number == 0 {
		return a.Name.String()
	}
	return fmt.Sprintf("%s.%d", a.Name, a.number)
}

// raw is the address as transports take it: a socket address and, unless it is
// 0, the number in 4 bytes.
func (a address) raw() []byte {
	b := a.AppendSockaddr(nil)
	if a.number == 0 {
		return b
	}
	return binary.LittleEndian.AppendUint32(b, uint32(a.number))
}

// parseAddress reads what raw gives. Errors wrap fi.EINVAL.
func parseAddress(b []byte) (address, error) {
	n, err := names.FromSockaddr(b)
	if err != nil {
		return address{}, err
	}
	a := address{Name: n}
	switch rest := b[n.SockaddrLen():]; {
	case len(rest) == 0:
	case len(rest) == 4 && binary.LittleEndian.Uint32(rest) < 2*info.MaxCtx:
		a.number = rest[0]
	default:
		return address{}, fmt.Errorf("number % x after a socket address: %w", rest, fi.EINVAL)
	}
	return a, nil
}
