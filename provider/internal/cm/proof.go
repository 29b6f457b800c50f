package cm

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
)

// Sizes in bytes.
const (
	NonceSize = 16
	macSize   = sha256.Size
	proofSize = NonceSize + macSize
)

// Proof shows that the sender of a message has an authorisation key. It is for one
// message on one TCP connection, and an answer's is for one request: a peer that has seen
// it can use it nowhere else.
type Proof struct {
	Nonce [NonceSize]byte // of the request, drawn by the active side
	MAC   [macSize]byte
}

// NewNonce draws the nonce of a request.
func NewNonce() (n [NonceSize]byte) {
	rand.Read(n[:]) // which never fails: crypto/rand ends the process first
	return n
}

// Sign gives a message its proof, none without a key. ends names both ends of the TCP
// connection, the active one first.
func (m *Message) Sign(key []byte, ends string, nonce [NonceSize]byte) {
	m.Proof = nil
	if len(key) != 0 {
		m.Proof = &Proof{Nonce: nonce}
		m.Proof.MAC = m.mac(key, ends)
	}
}

// Shows reports whether the sender has the key, or that there is none on either side.
func (m *Message) Shows(key []byte, ends string) bool {
	if len(key) == 0 || m.Proof == nil {
		return len(key) == 0 && m.Proof == nil
	}
	want := m.mac(key, ends)
	return hmac.Equal(want[:], m.Proof.MAC[:])
}

// mac is HMAC-SHA-256 (RFC 2104) of all that the message says.
func (m *Message) mac(key []byte, ends string) (sum [macSize]byte) {
	b := binary.LittleEndian.AppendUint32([]byte("weft cm"), uint32(len(ends)))
	b = append(append(b, ends...), m.Proof.Nonce[:]...)
	b = binary.LittleEndian.AppendUint16(append(b, byte(m.Kind)), m.Port)
	h := hmac.New(sha256.New, key)
	h.Write(append(b, m.Data...))
	h.Sum(sum[:0])
	return sum
}
