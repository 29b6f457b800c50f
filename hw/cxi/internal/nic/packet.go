package nic

import (
	"encoding/binary"

	"github.com/weft-fabric/weft/hw/cxi/internal/wire"
)

// MaxHeader is the most that a packet's header takes in front of a message in a buffer of the request list, in bytes.
const MaxHeader = wire.PacketFabricSize + wire.PacketPutSize

// What a packet's header says of itself.
const (
	packetVersion = 4
	packetPut     = 0
	packetMessage = 1
)

// Header reads the header of a packet, with which a message lies in a buffer of the request list: how many bytes it
// has, and the offset of its put, at which a rendezvous has its bytes at the sender. False: it is none of a message.
func Header(b []byte) (length int, offset uint64, ok bool) {
	if len(b) < wire.PacketFabricSize+wire.PacketMessageSize || b[0]>>wire.PacketFabricVerBit != packetVersion {
		return 0, 0, false
	}
	h := b[wire.PacketFabricSize:]
	switch h[0] >> wire.PacketPutVerPktTypeBit & (1<<wire.PacketPutVerPktTypeWidth - 1) {
	case packetMessage:
		return wire.PacketFabricSize + wire.PacketMessageSize, 0, true
	case packetPut:
		if len(h) < wire.PacketPutSize {
			return 0, 0, false
		}
		const at = wire.PacketPutRemoteOffsetBit / 8
		offset = binary.BigEndian.Uint64(h[at:]) >> (64 - wire.PacketPutRemoteOffsetWidth)
		return MaxHeader, offset, true
	}
	return 0, 0, false
}
