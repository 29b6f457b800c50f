package provider

import (
	"encoding/binary"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/provider/atomics"
	"github.com/weft-fabric/weft/provider/claim"
)

// Active messages of one-sided operations. The header is the address in the
// target's region for the first four, amShare and amAccessed, and the initiator's request id for the
// answers.
const (
	amWrite    hw.AMID = hot.AMWrite    // head writeHead, and the payload
	amRead     hw.AMID = hot.AMRead     // head readHead
	amNotify   hw.AMID = hot.AMNotify   // head writeHead: the payload is there already
	amAtomic   hw.AMID = hot.AMAtomic   // head atomicHead, payload the operands, then the comparands
	amRMADone  hw.AMID = hot.AMRMADone  // head doneHead
	amReadData hw.AMID = hot.AMReadData // head the offset in what is read or fetched, and the payload
	amShare    hw.AMID = hot.AMShare    // head shareHead
	amAccessed hw.AMID = hot.AMAccessed // head the key
)

// Bits of a write's or notice's flags.
const (
	rmaAck  uint64 = 1 << 0        // the initiator waits to be told, also of success
	rmaData uint64 = hot.WriteData // the CQ data is valid
	rmaLast uint64 = hot.WriteLast // the last message of its operation
)

const (
	writeHeadBytes  = hot.WriteHeadBytes // or writeDataBytes with CQ data
	writeDataBytes  = hot.WriteHeadDataBytes
	readHeadBytes   = 40
	atomicHeadBytes = 32
	doneHeadBytes   = 24
	shareHeadBytes  = 32
)

// writeHead goes with a piece of a write.
type writeHead struct {
	key     uint64
	request uint64
	flags   uint64
	data    uint64
	length  uint64 // bytes of the whole operation, with CQ data only
}

func (w *writeHead) put(b []byte) []byte {
	le := binary.LittleEndian
	le.PutUint64(b[0:], w.key)
	le.PutUint64(b[8:], w.request)
	le.PutUint64(b[16:], w.flags)
	if w.flags&rmaData == 0 {
		return b[:writeHeadBytes]
	}
	le.PutUint64(b[24:], w.data)
	le.PutUint64(b[32:], w.length)
	return b[:writeDataBytes]
}

func (w *writeHead) parse(b []byte) bool {
	if len(b) != writeHeadBytes && len(b) != writeDataBytes {
		return false
	}
	le := binary.LittleEndian
	*w = writeHead{key: le.Uint64(b[0:]), request: le.Uint64(b[8:]), flags: le.Uint64(b[16:])}
	if len(b) > writeHeadBytes {
		w.data, w.length = le.Uint64(b[24:]), le.Uint64(b[32:])
	}
	return w.flags&^(rmaAck|rmaData|rmaLast) == 0 && (w.flags&rmaData != 0) == (len(b) > writeHeadBytes)
}

// readHead asks for length bytes, which belong at offset at of the operation.
type readHead struct {
	key     uint64
	request uint64
	length  uint64
	at      uint64
	last    bool // the last of its operation
}

func (r *readHead) put(b []byte) []byte {
	le := binary.LittleEndian
	le.PutUint64(b[0:], r.key)
	le.PutUint64(b[8:], r.request)
	le.PutUint64(b[16:], r.length)
	le.PutUint64(b[24:], r.at)
	le.PutUint64(b[32:], 0)
	if r.last {
		b[32] = 1
	}
	return b[:readHeadBytes]
}

func (r *readHead) parse(b []byte) bool {
	if len(b) != readHeadBytes {
		return false
	}
	le := binary.LittleEndian
	*r = readHead{key: le.Uint64(b[0:]), request: le.Uint64(b[8:]), length: le.Uint64(b[16:]), at: le.Uint64(b[24:]), last: b[32] == 1}
	return r.length <= maxMessage && r.at <= maxMessage && le.Uint64(b[32:]) <= 1
}

// atomicHead describes an operation on count elements; the result belongs at
// byte offset at of the operation's result.
type atomicHead struct {
	key      uint64
	request  uint64
	op       fi.Op
	datatype fi.Datatype
	kind     atomics.Kind
	last     bool // the last message of its operation
	count    uint32
	at       uint32
}

func (a *atomicHead) put(b []byte) []byte {
	le := binary.LittleEndian
	le.PutUint64(b[0:], a.key)
	le.PutUint64(b[8:], a.request)
	b[16], b[17], b[18], b[19] = byte(a.op), byte(a.datatype), byte(a.kind), 0
	if a.last {
		b[19] = 1
	}
	le.PutUint32(b[20:], a.count)
	le.PutUint64(b[24:], uint64(a.at))
	return b[:atomicHeadBytes]
}

func (a *atomicHead) parse(b []byte) bool {
	if len(b) != atomicHeadBytes {
		return false
	}
	le := binary.LittleEndian
	at := le.Uint64(b[24:])
	*a = atomicHead{
		key: le.Uint64(b[0:]), request: le.Uint64(b[8:]), op: fi.Op(b[16]), datatype: fi.Datatype(b[17]),
		kind: atomics.Kind(b[18]),
		last: b[19] != 0, count: le.Uint32(b[20:]), at: uint32(at),
	}
	return a.kind <= atomics.Compare && b[19] <= 1 && at < 1<<32
}

// doneHead tells how units of an operation have ended: bytes of a read or of
// an atomic's result, messages of a write. Of a read it says where these bytes
// begin in it, because data that was asked for before may follow; else at is noPlace.
type doneHead struct {
	status fi.Errno
	units  uint64
	at     uint64
}

const noPlace = ^uint64(0)

func (d *doneHead) put(b []byte) []byte {
	binary.LittleEndian.PutUint64(b[0:], uint64(d.status))
	binary.LittleEndian.PutUint64(b[8:], d.units)
	binary.LittleEndian.PutUint64(b[16:], d.at)
	return b[:doneHeadBytes]
}

func (d *doneHead) parse(b []byte) bool {
	if len(b) != doneHeadBytes {
		return false
	}
	status := binary.LittleEndian.Uint64(b[0:])
	*d = doneHead{fi.Errno(status), binary.LittleEndian.Uint64(b[8:]), binary.LittleEndian.Uint64(b[16:])}
	return status < 1024
}

// shareHead offers the target a share of an operation that the initiator does.
type shareHead struct {
	key   uint64
	local uint64 // address of the initiator's buffer
	want  uint64 // bytes
	chunk uint32 // bytes
	round uint16
	read  bool
}

func (s *shareHead) put(b []byte) []byte {
	le := binary.LittleEndian
	le.PutUint64(b[0:], s.key)
	le.PutUint64(b[8:], s.local)
	le.PutUint64(b[16:], s.want)
	le.PutUint32(b[24:], s.chunk)
	le.PutUint16(b[28:], s.round)
	le.PutUint16(b[30:], 0)
	if s.read {
		b[30] = 1
	}
	return b[:shareHeadBytes]
}

// parse refuses a chunk size that would not cut the operation into a number of
// chunks that the claim word can count.
func (s *shareHead) parse(b []byte) bool {
	if len(b) != shareHeadBytes {
		return false
	}
	le := binary.LittleEndian
	*s = shareHead{
		key: le.Uint64(b[0:]), local: le.Uint64(b[8:]), want: le.Uint64(b[16:]),
		chunk: le.Uint32(b[24:]), round: le.Uint16(b[28:]), read: b[30] == 1,
	}
	return le.Uint16(b[30:]) <= 1 && s.chunk >= minShareChunk && s.chunk <= maxShareChunk &&
		s.want != 0 && s.want <= maxMessage && claim.Chunks(s.want, uint64(s.chunk)) <= claim.MaxChunks &&
		s.local+s.want >= s.local
}
