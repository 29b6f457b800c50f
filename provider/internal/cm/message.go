// Package cm is the protocol by which connection-oriented endpoints
// (FI_EP_MSG) find each other: a question and an answer on a TCP connection
// to the passive endpoint's address.
//
//	active                      passive
//	Request, port, data  →
//	                     ←      Accept, port, data    or Reject, data
//
// With an authorisation key each message has a proof that its sender has the key too;
// the application's data are authenticated by it, and not secret.
//
// The port is that of the sender's endpoint; its address is the one that the
// TCP connection comes from, which cannot be claimed. After Accept nothing more
// is said: the TCP connection stays open for as long as the endpoints are
// connected, and its end, which the kernel reports also for a process that was
// killed, is the disconnect.
package cm

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// Kind is the kind of a message.
type Kind uint8

// Kinds of messages.
const (
	Request Kind = 1 + iota
	Accept
	Reject
	lastKind = Reject
)

// MaxData is the most data of an application in one message, in bytes.
const MaxData = 256

// Layout of a message's head, little-endian: magic 4, version 1, kind 1, port
// 2, length of the data 2, flags 1, 0 1. The proof follows, if there is one (its nonce,
// then its MAC), then the data.
const (
	headBytes = 12
	magic     = 0x6d636677 // "wfcm"
	version   = 2
	hasProof  = 1 // flag
)

// Message is one message.
type Message struct {
	Kind  Kind
	Port  uint16 // of Request and Accept, else 0
	Data  []byte // at most MaxData
	Proof *Proof // nil: none
}

// ErrMalformed says that what came is not a message of the protocol.
var ErrMalformed = errors.New("malformed")

// Append appends the encoding of m to b.
func (m *Message) Append(b []byte) []byte {
	b = binary.LittleEndian.AppendUint32(b, magic)
	b = append(b, version, byte(m.Kind))
	b = binary.LittleEndian.AppendUint16(b, m.Port)
	b = binary.LittleEndian.AppendUint16(b, uint16(len(m.Data)))
	if m.Proof == nil {
		return append(append(b, 0, 0), m.Data...)
	}
	b = append(append(b, hasProof, 0), m.Proof.Nonce[:]...)
	return append(append(b, m.Proof.MAC[:]...), m.Data...)
}

// Read reads one message. Errors: those of r, io.ErrUnexpectedEOF for one that
// ends in the middle, and what wraps ErrMalformed.
func Read(r io.Reader) (Message, error) {
	var head [headBytes]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return Message{}, err
	}
	m := Message{Kind: Kind(head[5]), Port: binary.LittleEndian.Uint16(head[6:])}
	n := binary.LittleEndian.Uint16(head[8:])
	switch {
	case binary.LittleEndian.Uint32(head[:]) != magic:
		return Message{}, fmt.Errorf("begins with % x: %w", head[:4], ErrMalformed)
	case head[4] != version:
		return Message{}, fmt.Errorf("version %d, not %d: %w", head[4], version, ErrMalformed)
	case m.Kind == 0 || m.Kind > lastKind:
		return Message{}, fmt.Errorf("kind %d: %w", m.Kind, ErrMalformed)
	case (m.Port != 0) != (m.Kind == Request || m.Kind == Accept):
		return Message{}, fmt.Errorf("port %d in a message of kind %d: %w", m.Port, m.Kind, ErrMalformed)
	case n > MaxData:
		return Message{}, fmt.Errorf("%d bytes of data: %w", n, ErrMalformed)
	case head[10]&^hasProof|head[11] != 0:
		return Message{}, fmt.Errorf("head ends with % x: %w", head[10:], ErrMalformed)
	}
	if head[10] == hasProof {
		var b [proofSize]byte
		if err := readRest(r, b[:]); err != nil {
			return Message{}, err
		}
		m.Proof = &Proof{Nonce: [NonceSize]byte(b[:]), MAC: [macSize]byte(b[NonceSize:])}
	}
	m.Data = make([]byte, n)
	if err := readRest(r, m.Data); err != nil {
		return Message{}, err
	}
	return m, nil
}

// readRest fills b, in the middle of a message.
func readRest(r io.Reader, b []byte) error {
	_, err := io.ReadFull(r, b)
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return err
}
