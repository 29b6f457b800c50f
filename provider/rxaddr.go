package provider

import (
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/provider/info"
	"github.com/weft-fabric/weft/provider/peers"
)

// targetAt returns what a send to an address reaches, false if it is not in the
// address vector or has the index of a receive context that cannot exist.
func targetAt(a *AV, addr fi.Addr) (peers.Address, bool) {
	base, index := a.Peer(addr)
	n, ok := a.Name(base)
	return peers.Address{Name: n, Number: uint8(index)}, ok && index < info.MaxCtx
}
