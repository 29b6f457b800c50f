package crypt

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
)

// ErrForged is what a packet gives that was not sealed by the peer, or that was
// changed on its way.
var ErrForged = errors.New("forged or damaged packet")

const (
	secretSize = sha256.Size
	keySize    = 16
	nonceSize  = 12
	epochBits  = 22 // packets of one key, as a power of two
)

// phase is the key of one epoch of 2^22 packet numbers.
type phase struct {
	epoch  uint64
	secret []byte // from which this key and the next epoch's secret come
	aead   cipher.AEAD
	iv     [nonceSize]byte
}

func newPhase(epoch uint64, secret []byte) (*phase, error) {
	material, err := hkdf.Expand(sha256.New, secret, "packet", keySize+nonceSize)
	if err != nil {
		return nil, fmt.Errorf("derive: %w", err)
	}
	block, err := aes.NewCipher(material[:keySize])
	if err != nil {
		return nil, fmt.Errorf("cipher: %w", err)
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		return nil, fmt.Errorf("cipher: %w", err)
	}
	return &phase{epoch: epoch, secret: secret, aead: aead, iv: [nonceSize]byte(material[keySize:])}, nil
}

// next returns the phase after p.
func (p *phase) next() (*phase, error) {
	secret, err := hkdf.Expand(sha256.New, p.secret, "next", secretSize)
	if err != nil {
		return nil, fmt.Errorf("derive: %w", err)
	}
	return newPhase(p.epoch+1, secret)
}

// nonce writes the nonce of a packet number into b.
func (p *phase) nonce(b *[nonceSize]byte, number uint64) {
	*b = p.iv
	low := binary.LittleEndian.Uint64(b[4:]) ^ number
	binary.LittleEndian.PutUint64(b[4:], low)
}

// Seal encrypts and authenticates what one side of a connection sends. One
// owner at a time.
type Seal struct {
	now     *phase
	scratch [nonceSize]byte
}

func newSeal(secret []byte) (*Seal, error) {
	p, err := newPhase(0, secret)
	return &Seal{now: p}, err
}

// Seal encrypts frames in place and appends the tag, for which frames has
// room. header is covered by the tag. number has not been used before, and is
// not below an earlier one. Errors are of key derivation.
func (s *Seal) Seal(header, frames []byte, number uint64) ([]byte, error) {
	for s.now.epoch < number>>epochBits {
		p, err := s.now.next()
		if err != nil {
			return nil, err
		}
		s.now = p
	}
	s.now.nonce(&s.scratch, number)
	return s.now.aead.Seal(frames[:0], s.scratch[:], frames, header), nil
}

// Open checks and decrypts what one side of a connection receives. One owner
// at a time.
type Open struct {
	now     *phase
	before  *phase // nil at first
	after   *phase // made when first asked for; nil until then
	scratch [nonceSize]byte
}

func newOpen(secret []byte) (*Open, error) {
	p, err := newPhase(0, secret)
	return &Open{now: p}, err
}

// Open decrypts sealed in place and returns the frames. Packets of the epoch
// before and the epoch after the newest one are taken too; others are not, so
// that a forged number costs one check and no chain of derivations. Errors:
// ErrForged.
func (o *Open) Open(header, sealed []byte, number uint64) ([]byte, error) {
	p, err := o.phase(number >> epochBits)
	if err != nil {
		return nil, err
	}
	p.nonce(&o.scratch, number)
	frames, err := p.aead.Open(sealed[:0], o.scratch[:], sealed, header)
	if err != nil {
		return nil, ErrForged
	}
	if p == o.after {
		o.before, o.now, o.after = o.now, p, nil
	}
	return frames, nil
}

func (o *Open) phase(epoch uint64) (*phase, error) {
	switch {
	case epoch == o.now.epoch:
		return o.now, nil
	case o.before != nil && epoch == o.before.epoch:
		return o.before, nil
	case epoch != o.now.epoch+1:
		return nil, ErrForged
	}
	if o.after == nil {
		p, err := o.now.next()
		if err != nil {
			return nil, err
		}
		o.after = p
	}
	return o.after, nil
}
