package backend

import (
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/provider"
)

// Network is the hub as a network of package provider: fabric.AddNetwork(hub.Network()).
func (h *Hub) Network() provider.Network {
	return provider.Network{Name: "hub", Open: func(address []byte) (hw.Iface, error) {
		i, err := h.OpenAt(address)
		if err != nil {
			return nil, err // not i: an interface that holds a nil pointer is not nil
		}
		return i, nil
	}}
}
