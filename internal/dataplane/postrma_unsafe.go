package dataplane

import (
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/hot"
)

// Reads and writes of one piece: which are messages (postmessage_unsafe.go), and which copies (postcopy_unsafe.go).

// RMA posts a read or a write of one piece: a write as a message, if that is right for it, and what else can be one as
// a copy. at is the address of a hot.Post, the result one of its codes.
func RMA(at, _, _, _ uintptr) uintptr { return endPost(at, rma(beginAccess(at))) }

func rma(p *hot.Post) uintptr {
	if p.Step == stepCopied {
		return postCopy(p)
	}
	if p.Kind&(unlikely|hot.PostRemote) != 0 && !singleRMA(p) {
		p.Todo, p.Next = 0, 0
		return hot.PostGo
	}
	if p.Kind&hot.PostRead == 0 {
		if code := write(p); code != hot.PostGo {
			return code
		}
	}
	if t := matchOf(endpoint(p.EP)); t != nil {
		return accessMatched(p, t, false)
	}
	return postCopy(p)
}

// singleRMA is single for the pieces on both sides, which are as long as each other.
func singleRMA(p *hot.Post) bool {
	if p.Kind&unlikely != 0 && !single(p) {
		return false
	}
	if p.Kind&hot.PostRemote == 0 {
		return true
	}
	if p.Remotes != 1 || p.Remote == 0 {
		return false
	}
	piece := (*[3]uint64)(pointer(p.Remote)) // struct fi_rma_iov
	if piece[1] != p.Len {
		return false
	}
	p.Header, p.Key = piece[0], piece[2]
	p.Kind &^= hot.PostRemote
	return true
}

// write posts a write as a message, if it fits a slot of the peer's ring or is not worth a system call.
func write(p *hot.Post) uintptr {
	ep := endpoint(p.EP)
	p.Todo, p.Next, p.Request = 0, 0, 0
	if p.Flags&^(messageFlags|fi.DeliveryComplete) != 0 || !plausible(p, ep) ||
		!inSlot(p, hot.AMWrite) && (p.Len >= hot.CopyMinWrite || p.Len > uint64(ep.EagerMax)) {
		return hot.PostGo
	}
	peer, slots := onesided(p, ep)
	if peer == nil {
		return hot.PostGo
	}
	return writeMessage(p, ep, peer, slots)
}
