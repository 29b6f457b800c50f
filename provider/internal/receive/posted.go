package receive

import (
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/info"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/provider/internal/hmem"
	"github.com/weft-fabric/weft/provider/internal/wire"
)

// Recv describes one receive that is posted.
type Recv struct {
	IOV     []fi.IOVec
	Src     fi.Addr
	Tag     uint64
	Ignore  uint64
	Flags   uint64
	Context uint64
	Work    uint64 // the number of the deferred work that it is, or 0
	Tagged  bool
}

// buffers are those of a receive, none of a search that ignores them.
func (m *Recv) buffers() []fi.IOVec {
	if m.Flags&hot.RecvNoBuffer != 0 {
		return nil
	}
	return m.IOV
}

// entry is the receive as it stands on the post ring, but for its buffer.
func (m *Recv) entry() hot.RecvEntry {
	e := hot.RecvEntry{Flags: m.Flags, Src: uint64(m.Src), Tag: m.Tag, Ignore: m.Ignore, Context: m.Context}
	if m.Tagged {
		e.Flags |= hot.RecvTagged
	}
	if hmem.AnyOnDevice(m.buffers()) {
		e.Flags |= hot.RecvDevice
	}
	if m.Work != 0 {
		e.Flags |= hot.RecvWork
		e.Context = m.Work
	}
	return e
}

// recvFlags are the flags that a receive may carry.
const recvFlags = fi.Completion | fi.More | fi.MultiRecv | fi.Peek | fi.Claim | fi.Discard | fi.AuthKey

// Rules are what receives of a context may ask for.
type Rules struct {
	Caps  uint64 // of the receive context
	Keyed bool   // the address vector has authorisation keys
}

// check validates a receive. leastMulti is FI_OPT_MIN_MULTI_RECV, in bytes. Errors: fi.EBADFLAGS, fi.EINVAL,
// fi.ETOOSMALL.
func (m *Recv) check(r *Rules, leastMulti uint64) error {
	bad := func(err error, format string, args ...any) error {
		log.Warnf(log.EPData, format, args...)
		return err
	}
	if m.Flags&^recvFlags != 0 {
		return bad(fi.EBADFLAGS, "receive: flags %#x are not for a receive", m.Flags&^recvFlags)
	}
	iov := m.buffers()
	if len(iov) > wire.IOVLimit {
		return bad(fi.EINVAL, "receive: %d elements, at most %d", len(iov), wire.IOVLimit)
	}
	for _, v := range iov {
		if hmem.Nowhere(v) {
			return bad(fi.EINVAL, "receive: element of %d bytes at %#x", v.Len, v.Base)
		}
	}
	search := m.Flags & (fi.Peek | fi.Claim | fi.Discard)
	switch {
	case m.Flags&fi.MultiRecv != 0 && m.Tagged && r.Caps&fi.TaggedMultiRecv == 0:
		return bad(fi.EINVAL, "receive: FI_MULTI_RECV for tagged messages is for endpoints with FI_TAGGED_MULTI_RECV")
	case m.Flags&fi.MultiRecv != 0 && (len(iov) != 1 || search != 0):
		return bad(fi.EINVAL, "receive: FI_MULTI_RECV takes one buffer")
	case m.Flags&fi.MultiRecv != 0 && iov[0].Len < leastMulti:
		return bad(fi.ETOOSMALL, "receive: multi-receive buffer of %d bytes, at least %d",
			iov[0].Len, leastMulti)
	case m.Flags&fi.AuthKey != 0 && (!r.Keyed || !info.Directed(r.Caps, m.Tagged)):
		return bad(fi.EINVAL, "receive: FI_AUTH_KEY is for directed receives in domains with FI_AV_AUTH_KEY")
	case m.Src == fi.AddrUnspec && r.Caps&fi.ExactDirectedRecv != 0 && info.Directed(r.Caps, m.Tagged):
		return bad(fi.EINVAL, "receive: from any source, which FI_EXACT_DIRECTED_RECV excludes")
	case search != 0 && !m.Tagged:
		return bad(fi.EBADFLAGS, "receive: FI_PEEK, FI_CLAIM and FI_DISCARD are for tagged receives")
	case search == fi.Discard:
		return bad(fi.EBADFLAGS, "receive: FI_DISCARD needs FI_PEEK or FI_CLAIM")
	case search == fi.Peek|fi.Claim|fi.Discard:
		return bad(fi.EBADFLAGS, "receive: FI_CLAIM and FI_DISCARD exclude each other in a peek")
	}
	return nil
}
