package loopback

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/hot"
)

// Senders, as the interface that receives from them knows them.

// sourceState is how far the receiver knows a sender.
//
//	unknown → ready    with its first message, if attach entry and segment are valid
//	unknown → refused  if they are not: its messages are dropped, and its attach entry says so
//	ready → cut        when a message was lost with the sender: what it sent after it is dropped too,
//	                   so that what is delivered is always the beginning of what was sent
//	any → unknown      when the sender is gone and its last message delivered
type sourceState uint8

const (
	sourceUnknown sourceState = iota
	sourceReady
	sourceRefused
	sourceCut
)

// source is a sender, by its index in the own attach table. Progress lease.
type source struct {
	state  sourceState
	name   sockaddr
	key    uint8    // of ours, under which it sends
	all    Families // at all of whose addresses it answers
	cookie uint64
	owner  process
	seg    *segment    // its segment for the bounce buffers, nil if that was gone when we opened it
	line   *hot.Source // of the data plane's table, nil: none; cleared when the state is no longer ready
	retry  time.Time   // when the segment cannot be opened for want of resources: the log says so again then
}

func (s *source) reset() {
	s.clearLine()
	if s.seg != nil {
		s.seg.mem.unmap()
	}
	*s = source{}
}

// clearLine takes the sender away from the data plane.
func (s *source) clearLine() {
	if s.line != nil {
		*s.line = hot.Source{}
		s.line = nil
	}
}

// growSources makes room for the source of an owner number. False means that
// there is no such attach entry.
func (i *Iface) growSources(owner uint32) bool {
	if owner == 0 || owner > i.seg.geo.attachCount {
		return false
	}
	for owner > uint32(len(i.rx.sources)) {
		i.rx.sources = append(i.rx.sources, source{})
	}
	return true
}

// known returns the source in attach entry index, nil if it has sent nothing.
func (i *Iface) known(index uint32) *source {
	if index >= uint32(len(i.rx.sources)) || i.rx.sources[index].state == sourceUnknown {
		return nil
	}
	return &i.rx.sources[index]
}

// openLogs is how often the log says that messages of a new sender wait, because the process has no file descriptor or
// memory to map the sender's segment. They wait until it has: the sender's operations have completed, or will.
const openLogs = 10 * time.Second

// admit gets to know the sender in attach entry index with its first message.
func (i *Iface) admit(index uint32, src *source) verdict {
	switch src.state {
	case sourceUnknown:
	case sourceCut: // what is behind a message that has gone with its sender
		return drop
	default:
		i.rx.malformed.Add(1)
		return drop
	}
	a := i.seg.attach(index)
	state := atomic.LoadUint32(&a.State) // acquire ↔ claimAttach
	if state != hot.AttachReady && state != hot.AttachLeaving {
		return i.malformed("message from attach entry %d, which is in state %d", index, state)
	}
	private := *a // one copy; what the peer changes later does not matter
	if private.NameBytes > uint32(len(private.Name)) {
		return src.refuse(i, a, "attach entry %d has a name of %d bytes", index, private.NameBytes)
	}
	name, err := parseStored(private.Name[:private.NameBytes], private.Number)
	if err != nil {
		return src.refuse(i, a, "attach entry %d: %v", index, err)
	}
	key, ok := i.senderKey(private.Auth, private.Cookie)
	if !ok {
		return src.refuse(i, a, "sender %s refused: it has another authorisation key", name.String())
	}
	owner := process{pid: private.PID, start: private.StartTime}
	seg, err := i.openSource(name, private.Cookie, owner)
	switch {
	case err == nil:
		owner = seg.id.owner
	case isGone(err):
	case transient(err):
		if src.due() {
			i.logf("messages from %s wait: %v", name.String(), err)
		}
		return later
	default:
		return src.refuse(i, a, "sender %s refused: %v", name.String(), err)
	}
	*src = source{
		state: sourceReady, name: name, key: key, all: Families(private.Flags) & allFamilies, cookie: private.Cookie,
		owner: owner, seg: seg,
	}
	return done
}

// refuse drops all that a sender sends from now on. It finds that in its attach entry, and takes back the bounce
// buffers of what it has sent.
func (s *source) refuse(i *Iface, a *hot.Attach, format string, args ...any) verdict {
	s.state = sourceRefused
	atomic.CompareAndSwapUint32(&a.State, hot.AttachReady, hot.AttachRefused) // ↔ Endpoint.refused
	return i.malformed(format, args...)
}

// openSource maps the segment of a sender. Errors as openPeer's: hw.ErrUnreachable when the
// sender is gone and perhaps another took its name; what it sent in slots still counts.
func (i *Iface) openSource(name sockaddr, cookie uint64, owner process) (*segment, error) {
	var first error
	for _, at := range i.host.exact(name) {
		seg, err := openNamed(&i.host, name, at, mapFile)
		if err == nil && seg.id.cookie == cookie && seg.id.owner.pid == owner.pid && seg.id.owner.start == owner.start {
			return seg, nil
		}
		if err == nil {
			seg.mem.unmap()
			err = fmt.Errorf("loopback: segment %s is another's: %w", seg.path, hw.ErrUnreachable)
		}
		if first == nil || isGone(first) {
			first = err
		}
	}
	return nil, first
}

// due reports whether the log is to say that the source's messages wait.
func (s *source) due() bool {
	now := time.Now()
	if now.Before(s.retry) {
		return false
	}
	s.retry = now.Add(openLogs)
	return true
}

// SourceAddress is the address of a remote interface that sent to us, nil if
// src is not such. The caller holds the progress lease.
func (i *Iface) SourceAddress(src hw.Source) []byte {
	s := i.known(uint32(src))
	if s == nil || s.state == sourceRefused {
		return nil
	}
	return target{s.name, s.key}.bytes()
}

// SourceReaches reports whether a Connect to address would reach the remote
// interface that sent to us, if address is one of this host. The caller holds
// the progress lease.
func (i *Iface) SourceReaches(src hw.Source, address []byte) bool {
	s := i.known(uint32(src))
	a, err := parseTarget(address)
	return s != nil && s.state != sourceRefused && err == nil && s.key == a.key && answers(&s.name, s.all, &a.sockaddr)
}

// isGone reports whether an error says that there is no such interface (any more).
func isGone(err error) bool { return errors.Is(err, hw.ErrUnreachable) }

// transient reports whether an error says nothing about the peer.
func transient(err error) bool {
	for _, errno := range []unix.Errno{unix.EMFILE, unix.ENFILE, unix.ENOMEM, unix.EINTR, unix.EAGAIN} {
		if errors.Is(err, errno) {
			return true
		}
	}
	return false
}
