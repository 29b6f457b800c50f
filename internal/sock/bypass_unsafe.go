package sock

import (
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Bypass carries a socket's datagrams past the kernel's network stack. The
// socket stays what has the port: what the bypass does not take goes by the
// kernel, and so does what it leaves to the kernel on the way in. It is used by
// the socket's owner.
type Bypass interface {
	// Receive reads what has come into m and returns how many that are. They
	// are valid until the next call. It never waits.
	Receive(m []Message) int
	// Send takes the datagrams of a train, or none of them: then it returns
	// false, and the kernel has to send them.
	Send(t *Train) bool
	// Flush sends what Send took.
	Flush()
	// Files are the descriptors that are readable when something has come.
	Files() []int
}

// SetBypass has the socket use b, before it is first used otherwise.
func (s *Socket) SetBypass(b Bypass) { s.bypass = b }

// Files are the descriptors that are readable when something has come.
func (s *Socket) Files() []int {
	files := []int{s.FD}
	if s.near.used {
		files = append(files, s.near.fd)
	}
	if s.bypass != nil {
		files = append(files, s.bypass.Files()...)
	}
	return files
}

// kernelPoll is how long a socket with a bypass does not poll the
// kernel after it found nothing there: that costs a system call, a poll of the
// bypass a few loads.
const kernelPoll = 20 * time.Microsecond

// receiveEither polls the kernel when that is due, and else the bypass. What
// comes by either does not keep the other from being polled.
func (s *Socket) receiveEither(in *In, now time.Duration) (n int, full bool, err error) {
	if now >= s.kernelDue && !s.kernelHad {
		n, _, err = s.receiveKernel(in, s.FD)
		s.kernelHad = n > 0 || err != nil
		if s.kernelHad {
			return n, true, err
		}
		s.kernelDue = now + kernelPoll
	}
	s.kernelHad = false
	in.direct = s.bypass.Receive(in.messages[:])
	return in.direct, in.direct == inMessages, nil
}

// Train is the datagrams of one message to one peer, all of Segment bytes but the
// last, which may be shorter.
type Train struct {
	To      *Addr
	Segment int
	Left    int // bytes that Next has not copied
	iovs    []unix.Iovec
	at      int // bytes of iovs[0] that were copied
}

// Count is the number of datagrams that are left.
func (t *Train) Count() int { return (t.Left + t.Segment - 1) / t.Segment }

// Next copies the next datagram to b, which has room for Segment bytes, and
// returns its size.
func (t *Train) Next(b []byte) int {
	size := min(t.Segment, t.Left)
	t.Left -= size
	for n := 0; n < size; {
		v := &t.iovs[0]
		k := copy(b[n:size], unsafe.Slice(v.Base, v.Len)[t.at:])
		n += k
		if t.at += k; t.at == int(v.Len) {
			t.iovs, t.at = t.iovs[1:], 0
		}
	}
	return size
}

// divert gives the bypass what it takes and leaves the rest in o.
func (o *Out) divert(b Bypass) {
	kept := 0
	for i := range o.n {
		m, h := &o.msgs[i], &o.hdrs[i].hdr
		o.train = Train{To: &m.to, Segment: max(m.segment, 1), Left: m.total, iovs: unsafe.Slice(h.Iov, h.Iovlen)}
		if n := o.train.Count(); m.owner != NoOwner && m.total > 0 && b.Send(&o.train) {
			o.Sent += uint64(n)
			o.Bypassed += uint64(n)
			continue
		}
		if kept != i {
			o.msgs[kept], o.hdrs[kept] = *m, o.hdrs[i]
		}
		kept++
	}
	if kept < o.n {
		b.Flush()
		o.Calls++
	}
	o.n = kept
}
