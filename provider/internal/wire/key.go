package wire

import "encoding/binary"

// KeyHeadBytes is the size of the head of an AMKeyAsk, and of what comes before the key in that of an AMKeyAnswer.
const KeyHeadBytes = 8

// KeyStatus is what a peer says of a region.
type KeyStatus uint32

// What a peer says of a region.
const (
	KeyHere   KeyStatus = iota // the device's key follows
	KeyNever                   // the region is not for devices
	KeyAbsent                  // there is no such region now
)

// PutKeyAsk encodes a question for a device's key at the start of b and returns the bytes used: the number of the
// asker's link, which the answer repeats, 4 bytes, and 4 zeros.
func PutKeyAsk(b []byte, link uint32) []byte {
	binary.LittleEndian.PutUint32(b, link)
	binary.LittleEndian.PutUint32(b[4:], 0)
	return b[:KeyHeadBytes]
}

// ParseKeyAsk decodes the head of an AMKeyAsk with n bytes of payload.
func ParseKeyAsk(b []byte, n int) (link uint32, ok bool) {
	if len(b) != KeyHeadBytes || n != 0 || binary.LittleEndian.Uint32(b[4:]) != 0 {
		return 0, false
	}
	return binary.LittleEndian.Uint32(b), true
}

// KeyAnswer is the head of an AMKeyAnswer: link, 4 bytes, status, 4 bytes, and the device's key.
type KeyAnswer struct {
	Link   uint32 // as the question has it
	Status KeyStatus
	Key    []byte // as the device packs it, empty but for KeyHere
}

// Put encodes a from the start of b on and returns the bytes used.
func (a *KeyAnswer) Put(b []byte) []byte {
	b = append(b[:0], 0, 0, 0, 0, 0, 0, 0, 0)
	binary.LittleEndian.PutUint32(b, a.Link)
	binary.LittleEndian.PutUint32(b[4:], uint32(a.Status))
	return append(b, a.Key...)
}

// Parse decodes a head with n bytes of payload. Key is a part of b.
func (a *KeyAnswer) Parse(b []byte, n int) bool {
	if len(b) < KeyHeadBytes || n != 0 {
		return false
	}
	status := binary.LittleEndian.Uint32(b[4:])
	*a = KeyAnswer{Link: binary.LittleEndian.Uint32(b), Status: KeyStatus(status), Key: b[KeyHeadBytes:]}
	return status <= uint32(KeyAbsent) && (a.Status == KeyHere) == (len(a.Key) != 0)
}
