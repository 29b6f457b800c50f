package loopback

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"github.com/weft-fabric/weft/hw"
)

// authBytes is the size of what a segment's header says about its key.
const authBytes = 16

// proof is what the header of the segment with a cookie says about an
// authorisation key, so that the key itself is in no file: HMAC-SHA-256 (RFC
// 2104) of the cookie, cut to 16 bytes. All zero: no key.
//
// It keeps endpoints apart that were given different keys. It keeps out nobody
// who has the rights of the user: they can read the key in a process's memory.
func proof(key []byte, cookie uint64) (p [authBytes]byte) {
	if len(key) == 0 {
		return p
	}
	h := hmac.New(sha256.New, key)
	h.Write(binary.LittleEndian.AppendUint64([]byte("weft segment"), cookie))
	copy(p[:], h.Sum(nil))
	if p == ([authBytes]byte{}) {
		p[0] = 1
	}
	return p
}

// authorised checks that the peer has the same authorisation key as the
// interface. Both sides check before they send, so none sends to a peer with
// another. The error wraps hw.ErrPermission.
func (i *Iface) authorised(peer *identity) error {
	if own := proof(i.cfg.Key, peer.cookie); !hmac.Equal(own[:], peer.auth[:]) {
		return fmt.Errorf("loopback: %s has another authorisation key: %w", peer.name.String(), hw.ErrPermission)
	}
	return nil
}
