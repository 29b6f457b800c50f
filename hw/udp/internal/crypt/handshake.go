package crypt

import (
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/weft-fabric/weft/hw/udp/internal/wire"
)

// ErrKey is what an authorisation key that is no good gives.
var ErrKey = errors.New("authorisation key")

// MaxKey bounds authorisation keys, in bytes.
const MaxKey = 4096

// salt separates weft's use of a key from others'.
const salt = "weft udp 1"

// Key is an authorisation key, made ready. Immutable; any thread may use it.
type Key struct {
	prk       []byte // HKDF's pseudorandom key
	handshake []byte // key of Sign and Verify
}

// NewKey makes an authorisation key ready. Errors: ErrKey.
func NewKey(secret []byte) (*Key, error) {
	if len(secret) == 0 || len(secret) > MaxKey {
		return nil, fmt.Errorf("%d bytes: %w", len(secret), ErrKey)
	}
	prk, err := hkdf.Extract(sha256.New, secret, []byte(salt))
	if err != nil {
		return nil, fmt.Errorf("derive: %w", err)
	}
	k := &Key{prk: prk}
	if k.handshake, err = hkdf.Expand(sha256.New, prk, "handshake", sha256.Size); err != nil {
		return nil, fmt.Errorf("derive: %w", err)
	}
	return k, nil
}

// Sign writes the MAC of a handshake packet into its end.
func (k *Key) Sign(packet []byte) {
	at := wire.MACOffset(packet)
	var sum [sha256.Size]byte
	k.sum(&sum, packet[:at])
	copy(packet[at:], sum[:wire.TagSize])
}

// Verify reports whether a handshake packet's MAC is right.
func (k *Key) Verify(packet []byte) bool {
	at := wire.MACOffset(packet)
	var sum [sha256.Size]byte
	k.sum(&sum, packet[:at])
	return subtle.ConstantTimeCompare(sum[:wire.TagSize], packet[at:]) == 1
}

func (k *Key) sum(out *[sha256.Size]byte, b []byte) {
	m := hmac.New(sha256.New, k.handshake)
	m.Write(b)
	m.Sum(out[:0])
}

// Connection derives the keys of the connection between client and server.
// isClient says which of the two this side is.
func (k *Key) Connection(client, server *wire.Side, isClient bool) (*Seal, *Open, error) {
	info := make([]byte, 0, 64)
	for _, s := range []*wire.Side{client, server} {
		info = append(info, s.Nonce[:]...)
		info = binary.LittleEndian.AppendUint64(info, uint64(s.CID))
	}
	up, err := hkdf.Expand(sha256.New, k.prk, "client"+string(info), secretSize)
	if err != nil {
		return nil, nil, fmt.Errorf("derive: %w", err)
	}
	down, err := hkdf.Expand(sha256.New, k.prk, "server"+string(info), secretSize)
	if err != nil {
		return nil, nil, fmt.Errorf("derive: %w", err)
	}
	if !isClient {
		up, down = down, up
	}
	seal, err := newSeal(up)
	if err != nil {
		return nil, nil, err
	}
	open, err := newOpen(down)
	return seal, open, err
}
