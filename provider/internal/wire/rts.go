package wire

import (
	"encoding/binary"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/dataplane"
)

// RTS is the head of an RTS: a message whose payload stays with the sender until the receiver reads it or, with
// FlagNoGet, asks for it ([CTS]).
type RTS struct {
	Request uint64 // of the sender, comes back in the acknowledgement
	Length  uint64 // bytes of the whole message
	Data    uint64
	Flags   uint32
	Count   uint32 // elements of iov
	IOV     [IOVLimit]hw.RemoteSegment
	Token   uint64 // with FlagShared
	PID     uint32 // likewise

	Keys [IOVLimit]hw.RemoteKey // at the receiver, with FlagKeyed
}

// Put encodes r at the start of b, which has at least RTSBytes, and returns
// the bytes that it used. The other heads' put functions do likewise.
func (r *RTS) Put(b []byte) []byte {
	var elements [IOVLimit]fi.IOVec
	for i, s := range r.IOV[:r.Count] {
		elements[i] = fi.IOVec{Base: uintptr(s.Addr), Len: s.Len}
	}
	n := dataplane.PutRTS((*[RTSBytes]byte)(b), r.Request, r.Length, r.Data, r.Flags, elements[:r.Count])
	if r.Flags&FlagShared != 0 {
		le := binary.LittleEndian
		le.PutUint64(b[n:], r.Token)
		le.PutUint64(b[n+8:], uint64(r.PID))
		n += 16
	}
	return b[:n]
}

// Parse decodes what a peer sent. It refuses unknown flags, too many
// elements, and elements whose lengths do not add up to the message's.
func (r *RTS) Parse(b []byte) bool {
	if len(b) < rtsFixed || len(b) > RTSBytes {
		return false
	}
	le := binary.LittleEndian
	*r = RTS{
		Request: le.Uint64(b[0:]),
		Length:  le.Uint64(b[8:]),
		Data:    le.Uint64(b[16:]),
		Flags:   le.Uint32(b[24:]),
		Count:   le.Uint32(b[28:]),
	}
	want := rtsFixed + 16*int(r.Count)
	if r.Flags&FlagShared != 0 {
		want += 16
	}
	if r.Flags&^Flags != 0 || r.Count > IOVLimit || len(b) != want {
		return false
	}
	if r.Flags&FlagShared != 0 {
		pid := le.Uint64(b[want-8:])
		if r.Count != 1 || r.Flags&(FlagNoGet|FlagKeyed|FlagPacked) != FlagNoGet || pid == 0 || pid > 1<<31-1 {
			return false
		}
		r.Token, r.PID = le.Uint64(b[want-16:]), uint32(pid)
	}
	sum := uint64(0)
	for i := range int(r.Count) {
		s := hw.RemoteSegment{Addr: le.Uint64(b[rtsFixed+16*i:]), Len: le.Uint64(b[rtsFixed+16*i+8:])}
		if s.Len > MaxMessage || r.Flags&(FlagKeyed|FlagPacked) != FlagKeyed && s.Addr+s.Len < s.Addr {
			return false
		}
		sum += s.Len
		r.IOV[i] = s
	}
	return sum == r.Length && r.Length <= MaxMessage
}
