package provider

import (
	"encoding/binary"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/dataplane"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/provider/claim"
)

// The messages of the two-sided protocol, encoded and parsed. Those of one-sided operations are in rma_wire.go.

// Active message ids. A message with DATA has the remote CQ data as its 8-byte head.
const (
	amMsg     hw.AMID = hot.AMMsg
	amMsgData hw.AMID = hot.AMMsgData
	amTag     hw.AMID = hot.AMTag
	amTagData hw.AMID = hot.AMTagData

	amRTS  hw.AMID = hot.AMRTS  // ready to send: head rts, header the tag
	amSync hw.AMID = hot.AMSync // eager that asks for an acknowledgement: head syncHead, header the tag
	amAck  hw.AMID = hot.AMAck  // header the sender's request id, head ackHead
	amCTS  hw.AMID = hot.AMCTS  // clear to send: header the sender's request id, head ctsHead
	amFrag hw.AMID = hot.AMFrag // header the receiver's operation id, head the offset

	amAssist hw.AMID = hot.AMAssist // header the sender's request id, head offer

	// header the sender's request id, head landing, payload the key of the receiver's memory
	amLanding hw.AMID = hot.AMLanding
	amPut     hw.AMID = hot.AMPut // header the sender's request id, head span: what the sender is to put there
	// header the receiver's operation id, head as of amAck: the sender waits for a put to do
	amHelped hw.AMID = hot.AMHelped
)

// iovLimit is the number of elements of one message's vector, on both sides:
// what an [rts] has room for.
const iovLimit = dataplane.VectorMax

// Bits of an rts's or syncHead's flags.
const (
	wireTagged uint32 = hot.RTSTagged
	wireData   uint32 = hot.RTSData // the remote CQ data is valid
	wireNoGet  uint32 = 1 << 2      // the sender's memory cannot be read: ask for fragments
	wireKeyed  uint32 = 1 << 3      // in place of its address an element has the key of a region that is it
)

// wirePacked, with wireKeyed: the keys are the payload, and elements have addresses.
const wirePacked uint32 = 1 << 4

// wireShared: the payload lies in one piece in an allocation that the receiver may map by its token from process pid;
// Addr is an offset there. wireNoGet is always set with it: a receiver that does not map asks for fragments.
const wireShared uint32 = 1 << 5

// wireMatch: the acknowledgement waits until a receive has matched. Of a rendezvous it always does.
const wireMatch uint32 = 1 << 6

const wireFlags = wireMatch | wireTagged | wireData | wireNoGet | wireKeyed | wirePacked | wireShared

// rts is the head of an RTS: a message whose payload stays with the sender until the receiver reads it or, with
// wireNoGet, asks for it (cts).
type rts struct {
	request uint64 // of the sender, comes back in the acknowledgement
	length  uint64 // bytes of the whole message
	data    uint64
	flags   uint32
	count   uint32 // elements of iov
	iov     [iovLimit]hw.RemoteSegment
	token   uint64 // with wireShared
	pid     uint32 // likewise

	keys [iovLimit]hw.RemoteKey // at the receiver, with wireKeyed
}

const (
	rtsFixed = 32
	rtsBytes = rtsFixed + 16*iovLimit
	syncHead = 24
	ackHead  = 8
	ctsHead  = 16
	wordHead = 8

	offerHead = 32

	landingHead = 24
	spanHead    = 16
)

// put encodes r at the start of b, which has at least rtsBytes, and returns
// the bytes that it used. The other heads' put functions do likewise.
func (r *rts) put(b []byte) []byte {
	le := binary.LittleEndian
	le.PutUint64(b[0:], r.request)
	le.PutUint64(b[8:], r.length)
	le.PutUint64(b[16:], r.data)
	le.PutUint32(b[24:], r.flags)
	le.PutUint32(b[28:], r.count)
	n := rtsFixed
	for _, s := range r.iov[:r.count] {
		le.PutUint64(b[n:], s.Addr)
		le.PutUint64(b[n+8:], s.Len)
		n += 16
	}
	if r.flags&wireShared != 0 {
		le.PutUint64(b[n:], r.token)
		le.PutUint64(b[n+8:], uint64(r.pid))
		n += 16
	}
	return b[:n]
}

// parse decodes what a peer sent. It refuses unknown flags, too many
// elements, and elements whose lengths do not add up to the message's.
func (r *rts) parse(b []byte) bool {
	if len(b) < rtsFixed || len(b) > rtsBytes {
		return false
	}
	le := binary.LittleEndian
	*r = rts{
		request: le.Uint64(b[0:]),
		length:  le.Uint64(b[8:]),
		data:    le.Uint64(b[16:]),
		flags:   le.Uint32(b[24:]),
		count:   le.Uint32(b[28:]),
	}
	want := rtsFixed + 16*int(r.count)
	if r.flags&wireShared != 0 {
		want += 16
	}
	if r.flags&^wireFlags != 0 || r.count > iovLimit || len(b) != want {
		return false
	}
	if r.flags&wireShared != 0 {
		pid := le.Uint64(b[want-8:])
		if r.count != 1 || r.flags&(wireNoGet|wireKeyed|wirePacked) != wireNoGet || pid == 0 || pid > 1<<31-1 {
			return false
		}
		r.token, r.pid = le.Uint64(b[want-16:]), uint32(pid)
	}
	sum := uint64(0)
	for i := range int(r.count) {
		s := hw.RemoteSegment{Addr: le.Uint64(b[rtsFixed+16*i:]), Len: le.Uint64(b[rtsFixed+16*i+8:])}
		if s.Len > maxMessage || r.flags&(wireKeyed|wirePacked) != wireKeyed && s.Addr+s.Len < s.Addr {
			return false
		}
		sum += s.Len
		r.iov[i] = s
	}
	return sum == r.length && r.length <= maxMessage
}

// syncMsg is the head of an eager message whose sender waits for the
// acknowledgement.
type syncMsg struct {
	request uint64
	data    uint64
	flags   uint32
}

func (s *syncMsg) put(b []byte) []byte {
	binary.LittleEndian.PutUint64(b[0:], s.request)
	binary.LittleEndian.PutUint64(b[8:], s.data)
	binary.LittleEndian.PutUint64(b[16:], uint64(s.flags))
	return b[:syncHead]
}

func (s *syncMsg) parse(b []byte) bool {
	if len(b) != syncHead {
		return false
	}
	s.request = binary.LittleEndian.Uint64(b[0:])
	s.data = binary.LittleEndian.Uint64(b[8:])
	flags := binary.LittleEndian.Uint64(b[16:])
	s.flags = uint32(flags)
	return flags&^uint64(wireTagged|wireData|wireMatch) == 0
}

// putAck encodes the outcome of a message at its receiver: Success or why it
// failed.
func putAck(b []byte, status fi.Errno) []byte {
	binary.LittleEndian.PutUint64(b, uint64(status))
	return b[:ackHead]
}

// parseAck decodes an outcome.
func parseAck(b []byte) (fi.Errno, bool) {
	if len(b) != ackHead {
		return 0, false
	}
	return ackStatus(binary.LittleEndian.Uint64(b))
}

// ackStatus is the outcome that a peer's number stands for; numbers that are no errno are refused.
func ackStatus(v uint64) (fi.Errno, bool) { return fi.Errno(v), v < 1024 }

// cts asks the sender of a message for its first length bytes in fragments.
type cts struct {
	operation uint64 // of the receiver, comes back in each fragment
	length    uint64
}

func (c *cts) put(b []byte) []byte {
	binary.LittleEndian.PutUint64(b[0:], c.operation)
	binary.LittleEndian.PutUint64(b[8:], c.length)
	return b[:ctsHead]
}

func (c *cts) parse(b []byte) bool {
	if len(b) != ctsHead {
		return false
	}
	c.operation = binary.LittleEndian.Uint64(b[0:])
	c.length = binary.LittleEndian.Uint64(b[8:])
	return true
}

// putWord encodes a head that is one number: an offset, or a key.
func putWord(b []byte, v uint64) []byte {
	binary.LittleEndian.PutUint64(b, v)
	return b[:wordHead]
}

func parseWord(b []byte) (uint64, bool) {
	if len(b) != wordHead {
		return 0, false
	}
	return binary.LittleEndian.Uint64(b), true
}

func (o *offer) put(b []byte) []byte {
	le := binary.LittleEndian
	le.PutUint64(b[0:], o.round)
	le.PutUint64(b[8:], o.addr)
	le.PutUint64(b[16:], o.want)
	le.PutUint64(b[24:], o.chunk)
	return b[:offerHead]
}

// parse refuses a chunk size that would not cut the message into a number of
// chunks that the claim word can count.
func (o *offer) parse(b []byte) bool {
	if len(b) != offerHead {
		return false
	}
	le := binary.LittleEndian
	*o = offer{round: le.Uint64(b[0:]), addr: le.Uint64(b[8:]), want: le.Uint64(b[16:]), chunk: le.Uint64(b[24:])}
	return o.round>>(64-claim.RoundShift) == 0 && o.chunk >= minChunk && o.chunk <= maxChunk &&
		o.want != 0 && o.want <= maxMessage && claim.Chunks(o.want, o.chunk) <= claim.MaxChunks &&
		o.addr+o.want >= o.addr
}

// landing is the receiver's memory for a message, into which its sender may put.
type landing struct {
	operation uint64 // of the receiver, comes back in each amHelped
	addr      uint64
	want      uint64 // bytes of the message that go there
}

func (l *landing) put(b []byte) []byte {
	binary.LittleEndian.PutUint64(b[0:], l.operation)
	binary.LittleEndian.PutUint64(b[8:], l.addr)
	binary.LittleEndian.PutUint64(b[16:], l.want)
	return b[:landingHead]
}

func (l *landing) parse(b []byte) bool {
	if len(b) != landingHead {
		return false
	}
	l.operation = binary.LittleEndian.Uint64(b[0:])
	l.addr = binary.LittleEndian.Uint64(b[8:])
	l.want = binary.LittleEndian.Uint64(b[16:])
	return l.want != 0 && l.want <= maxMessage && l.addr+l.want >= l.addr
}

// putSpan encodes bytes of a message: n from byte from on.
func putSpan(b []byte, from, n uint64) []byte {
	binary.LittleEndian.PutUint64(b[0:], from)
	binary.LittleEndian.PutUint64(b[8:], n)
	return b[:spanHead]
}

// parseSpan refuses what does not lie within a message of want bytes.
func parseSpan(b []byte, want uint64) (from, n uint64, ok bool) {
	if len(b) != spanHead {
		return 0, 0, false
	}
	from, n = binary.LittleEndian.Uint64(b[0:]), binary.LittleEndian.Uint64(b[8:])
	return from, n, n != 0 && n <= want && from <= want-n
}
