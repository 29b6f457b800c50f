package crypt

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/binary"
	"fmt"
	"hash"
	"time"

	"github.com/weft-fabric/weft/hw/udp/internal/wire"
)

// CookieLife is how long a cookie is good for.
const CookieLife = 10 * time.Second

// Cookies makes and checks cookies. It has one owner at a time; copies made by
// Share have the same key.
type Cookies struct {
	secret [32]byte
	mac    hash.Hash
}

// NewCookies draws a key.
func NewCookies() (*Cookies, error) {
	c := &Cookies{}
	if _, err := rand.Read(c.secret[:]); err != nil {
		return nil, fmt.Errorf("cookie key: %w", err)
	}
	c.mac = hmac.New(sha256.New, c.secret[:])
	return c, nil
}

// Share returns Cookies with the same key for another owner.
func (c *Cookies) Share() *Cookies {
	return &Cookies{secret: c.secret, mac: hmac.New(sha256.New, c.secret[:])}
}

// Make writes the cookie for a client at addr into out. now is the time since
// some start of this interface's own.
func (c *Cookies) Make(out *[wire.CookieSize]byte, now time.Duration, addr []byte, client *wire.Side) {
	binary.LittleEndian.PutUint64(out[:], uint64(now))
	var sum [sha256.Size]byte
	c.sum(&sum, out[:8], addr, client)
	copy(out[8:], sum[:])
}

// Check reports whether cookie was made for this client and is not too old.
func (c *Cookies) Check(cookie *[wire.CookieSize]byte, now time.Duration, addr []byte, client *wire.Side) bool {
	made := time.Duration(binary.LittleEndian.Uint64(cookie[:]))
	var sum [sha256.Size]byte
	c.sum(&sum, cookie[:8], addr, client)
	return subtle.ConstantTimeCompare(sum[:wire.CookieSize-8], cookie[8:]) == 1 && made <= now && now-made <= CookieLife
}

func (c *Cookies) sum(out *[sha256.Size]byte, stamp, addr []byte, client *wire.Side) {
	var fixed [9]byte
	fixed[0] = byte(len(addr))
	binary.LittleEndian.PutUint64(fixed[1:], uint64(client.CID))
	c.mac.Reset()
	c.mac.Write(stamp)
	c.mac.Write(fixed[:])
	c.mac.Write(client.Nonce[:])
	c.mac.Write(addr)
	c.mac.Sum(out[:0])
}
