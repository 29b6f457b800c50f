package proxy

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// DescriptorKind says what a descriptor stands for.
type DescriptorKind uint32

// What descriptors stand for.
const (
	DescriptorMemory DescriptorKind = 1 + iota // memfd or a file: mapped with mmap
	DescriptorDMABuf                           // memory of a device, to be registered with another
	DescriptorDevice                           // an exported allocation of an accelerator, imported by its driver
)

// Exported is what a process knows of a descriptor that it fetched.
type Exported struct {
	FD     int // closed at exec; the caller's. -1: there is a handle instead
	Kind   DescriptorKind
	Length uint64 // bytes, as the owner says: to be checked against what the kernel says
	Handle string // bytes by which a driver names the memory, at most MaxHandle
}

// MaxHandle is the size of the longest handle in bytes.
const MaxHandle = 256

// exportedBytes is the size of the body that goes with a descriptor, or before a handle.
const exportedBytes = 12

// Descriptors hands descriptors and handles of this process to others of the same user,
// over a thread of its own, so that one that is slow to take them holds up no
// connection. A process that knows the token of a descriptor, a random number, gets it. Its
// methods may be called by any thread.
//
// A process that fetches from another has a thread of this kind, too: it answers when that process asks for
// what was fetched to be given up ([Client.Recall]).
type Descriptors struct {
	service *Service
	recall  func(pid int, token uint64) <-chan struct{} // immutable

	mu      sync.Mutex // taken to export, to revoke and for each fetch; not on the data path
	byToken map[uint64]*offer
	closed  bool
}

// offer is what is exported under a token, and the processes that have fetched it.
type offer struct {
	Exported
	holders map[int]struct{}
}

// StartDescriptors starts the thread. recall gives up what was fetched from a process by a token; the channel is
// closed when that is done. It is called on the thread, which it must not hold up. Errors as of [StartService].
func StartDescriptors(o ServiceOptions, recall func(pid int, token uint64) <-chan struct{}) (*Descriptors, error) {
	d := &Descriptors{byToken: map[uint64]*offer{}, recall: recall}
	handlers := map[Kind]func(*Request){KindDescriptor: d.serve, KindRecall: d.serveRecall}
	maps.Copy(handlers, o.Handlers)
	o.Handlers = handlers
	var err error
	d.service, err = StartService(o)
	if err != nil {
		return nil, err
	}
	return d, nil
}

// Export lets other processes have a duplicate of fd, and returns the token by
// which they ask for it.
func (d *Descriptors) Export(fd int, kind DescriptorKind, length uint64) (token uint64, err error) {
	own, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return 0, fmt.Errorf("export descriptor %d: %w", fd, err)
	}
	if token, err = d.enter(Exported{FD: own, Kind: kind, Length: length}); err != nil {
		unix.Close(own)
	}
	return token, err
}

// ExportHandle is Export for memory that a driver names by bytes instead of a
// descriptor.
func (d *Descriptors) ExportHandle(handle []byte, kind DescriptorKind, length uint64) (token uint64, err error) {
	if len(handle) == 0 || len(handle) > MaxHandle {
		return 0, fmt.Errorf("export a handle of %d bytes: %w", len(handle), errMessage)
	}
	return d.enter(Exported{FD: -1, Kind: kind, Length: length, Handle: string(handle)})
}

// enter gives what is exported its token.
func (d *Descriptors) enter(e Exported) (token uint64, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return 0, ErrStopped
	}
	for token == 0 || d.byToken[token] != nil {
		var b [8]byte
		_, _ = rand.Read(b[:]) // never fails
		token = binary.LittleEndian.Uint64(b[:])
	}
	d.byToken[token] = &offer{e, map[int]struct{}{}}
	return token, nil
}

// Revoke takes back Export. Processes that have fetched the descriptor keep it until it is recalled: these
// are returned.
func (d *Descriptors) Revoke(token uint64) (holders []int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if e, ok := d.byToken[token]; ok {
		e.close()
		delete(d.byToken, token)
		holders = slices.Collect(maps.Keys(e.holders))
	}
	return holders
}

// Watch has f called on the thread when the process of a descriptor of pidfd_open(2), which it takes over, has ended.
func (d *Descriptors) Watch(pidfd int, f func()) error { return d.service.watchEnd(pidfd, f) }

// Address is where the descriptors are fetched from.
func (d *Descriptors) Address() string { return d.service.Address() }

// Close ends the thread when the fetches that are under way are answered, or
// after the time limit.
func (d *Descriptors) Close(limit time.Duration) {
	d.service.Stop(limit)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
	for token, e := range d.byToken {
		e.close()
		delete(d.byToken, token)
	}
}

func (e *Exported) close() {
	if e.FD >= 0 {
		unix.Close(e.FD)
	}
}

// serve answers one fetch.
func (d *Descriptors) serve(r *Request) {
	if len(r.Body) != 8 {
		r.Reply(StatusBad, nil)
		return
	}
	d.mu.Lock()
	e, ok := d.byToken[binary.LittleEndian.Uint64(r.Body)]
	fd := -1
	if ok {
		e.holders[r.PID] = struct{}{}
	}
	if ok && e.FD >= 0 {
		// A duplicate goes out: the original may be revoked before it is sent.
		var err error
		if fd, err = unix.FcntlInt(uintptr(e.FD), unix.F_DUPFD_CLOEXEC, 0); err != nil {
			ok = false
		}
	}
	d.mu.Unlock()
	if !ok {
		r.Reply(StatusNone, nil)
		return
	}
	body := binary.LittleEndian.AppendUint32(nil, uint32(e.Kind))
	body = append(binary.LittleEndian.AppendUint64(body, e.Length), e.Handle...)
	if fd < 0 {
		r.Reply(StatusOK, body)
		return
	}
	r.ReplyWith(StatusOK, body, fd)
}

// serveRecall gives up what the process that asks has exported under a token, and then answers.
func (d *Descriptors) serveRecall(r *Request) {
	if len(r.Body) != 8 {
		r.Reply(StatusBad, nil)
		return
	}
	done := d.recall(r.PID, binary.LittleEndian.Uint64(r.Body))
	select {
	case <-done:
		r.Reply(StatusOK, nil)
	default:
		go func() {
			<-done
			r.Reply(StatusOK, nil)
		}()
	}
}

// Recall has the process that c is connected to give up what it has fetched from this one by a token, and returns when
// it has. Errors as of [Client.Call].
func (c *Client) Recall(token uint64) error {
	_, err := c.Call(KindRecall, binary.LittleEndian.AppendUint64(nil, token))
	return err
}

// Fetch gets a descriptor from the process that c is connected to. The error is
// a *[StatusError] with StatusNone for a token that is not (any more) known, or
// as of [Client.Call].
func (c *Client) Fetch(token uint64) (Exported, error) {
	body, fds, err := c.call(KindDescriptor, binary.LittleEndian.AppendUint64(nil, token))
	if err != nil {
		return Exported{}, err
	}
	extra := len(body) - exportedBytes
	if len(fds) > 1 || extra < 0 || extra > MaxHandle || (len(fds) == 1) == (extra != 0) {
		closeAll(fds)
		return Exported{}, fmt.Errorf("%d descriptors and %d bytes for a token: %w", len(fds), len(body), errMessage)
	}
	e := Exported{
		FD: -1, Kind: DescriptorKind(binary.LittleEndian.Uint32(body)), Length: binary.LittleEndian.Uint64(body[4:]),
		Handle: string(body[exportedBytes:]),
	}
	if len(fds) == 1 {
		e.FD = fds[0]
	}
	return e, nil
}
