package loopback

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/hot"
)

// Authorisation keys keep interfaces apart that were given different ones. They are
// no protection against processes of the same user: these can read a key in a process's memory.
//
// A segment has a proof of each of its owner's keys, and an attach entry one of the key
// under which the sender means to be there. So neither a key nor whether two
// segments have the same is in any file.

// authBytes is the size of a proof.
const authBytes = hot.AuthBytes

// ownerProof is what the segment with a cookie says about a key of its owner.
func ownerProof(secret []byte, cookie uint64) [authBytes]byte {
	return proof(secret, binary.LittleEndian.AppendUint64([]byte("weft segment"), cookie))
}

// senderProof is what a sender's entry in the attach table of a segment says about the
// key that both have; all zero: none. The cookies are those of the two segments.
func senderProof(secret []byte, segment, sender uint64) [authBytes]byte {
	if len(secret) == 0 {
		return [authBytes]byte{}
	}
	b := binary.LittleEndian.AppendUint64([]byte("weft sender"), segment)
	return proof(secret, binary.LittleEndian.AppendUint64(b, sender))
}

// proof is HMAC-SHA-256 (RFC 2104) of what, cut to 16 bytes, and not all zero.
func proof(secret, what []byte) (p [authBytes]byte) {
	h := hmac.New(sha256.New, secret)
	h.Write(what)
	copy(p[:], h.Sum(nil))
	if p == ([authBytes]byte{}) {
		p[0] = 1
	}
	return p
}

// secrets are the keys of an interface, the only one with number 0.
func (c *Config) secrets() []hw.Key {
	if len(c.Key) != 0 {
		return []hw.Key{{Secret: c.Key}}
	}
	return c.Keys
}

// authorised checks that a peer has the key with a number of ours, and returns
// it, nil if there are no keys on either side. Both sides check before they send,
// so none sends to a peer that has not. The error wraps hw.ErrPermission.
func (i *Iface) authorised(peer *segment, number uint8) (secret []byte, err error) {
	own := i.cfg.secrets()
	if len(own) == 0 && number == 0 && peer.geo.authCount == 0 {
		return nil, nil
	}
	for _, k := range own {
		if k.Number != number {
			continue
		}
		want := ownerProof(k.Secret, peer.id.cookie)
		for n := range peer.geo.authCount {
			if got := *peer.proof(n); hmac.Equal(want[:], got[:]) {
				return k.Secret, nil
			}
		}
	}
	return nil, fmt.Errorf("loopback: %s has another authorisation key: %w", peer.id.name.String(), hw.ErrPermission)
}

// senderKey returns the number of the key under which the sender with a cookie is
// attached to our segment; false: none of ours.
func (i *Iface) senderKey(got [authBytes]byte, cookie uint64) (number uint8, ok bool) {
	own := i.cfg.secrets()
	if len(own) == 0 {
		return 0, got == [authBytes]byte{}
	}
	for _, k := range own {
		if want := senderProof(k.Secret, i.seg.id.cookie, cookie); hmac.Equal(want[:], got[:]) {
			return k.Number, true
		}
	}
	return 0, false
}
