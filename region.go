package weft

import (
	"context"
	"fmt"
	"runtime"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/provider"
)

// Access says what peers may do with a region.
type Access uint8

// Rights of peers, which may be combined.
const (
	RemoteRead Access = 1 << iota
	RemoteWrite
)

// Region is memory that peers may access. It is pinned and reachable until Close, of the region or of its endpoint.
type Region struct {
	e     *Endpoint
	mr    *provider.MR
	buf   []byte
	pin   runtime.Pinner
	token string
}

// Register makes b accessible to peers. The error wraps EINVAL for an empty b or unknown rights. What peers write shows
// in b at any time; a message after the write says when. Programs that share b that way order their accesses by such a
// message.
func (e *Endpoint) Register(b []byte, access Access) (*Region, error) {
	if err := e.enter(); err != nil {
		return nil, err
	}
	defer e.leave()
	if len(b) == 0 || access == 0 || access&^(RemoteRead|RemoteWrite) != 0 {
		return nil, fmt.Errorf("weft: register %d bytes, rights %#x: %w", len(b), access, fi.EINVAL)
	}
	var rights uint64
	if access&RemoteRead != 0 {
		rights |= fi.RemoteRead
	}
	if access&RemoteWrite != 0 {
		rights |= fi.RemoteWrite
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	r := &Region{e: e, buf: b}
	r.pin.Pin(&b[0])
	e.keys++
	mr, err := e.domain.RegMR(&fi.MRAttr{IOV: []fi.IOVec{vector(b)}, Access: rights, RequestedKey: e.keys}, 0)
	if err == nil {
		r.mr = mr
		var t provider.Token
		if t, err = mr.Token(&provider.TokenAttr{EP: e.ep}); err == nil {
			r.token = t.String()
			e.regions[r] = struct{}{}
			return r, nil
		}
		_ = mr.Close() // no peer knows its key
	}
	r.pin.Unpin()
	return nil, fmt.Errorf("weft: register %d bytes: %w", len(b), err)
}

// Token returns the line of text by which peers open the region. A process that has it may use the region.
func (r *Region) Token() string { return r.token }

// Bytes returns the memory.
func (r *Region) Bytes() []byte { return r.buf }

// Close ends the access: when it returns, no peer reads or writes the memory any more. A second Close gives EINVAL.
func (r *Region) Close() error {
	return closeOne(r.e, r.e.regions, r, "region", r.release)
}

// closeOne closes an object of an endpoint, which is in the set until it is closed.
func closeOne[T comparable](e *Endpoint, set map[T]struct{}, o T, kind string, release func() error) error {
	if err := e.enter(); err != nil {
		return err
	}
	defer e.leave()
	e.mu.Lock()
	_, open := set[o]
	delete(set, o)
	e.mu.Unlock()
	if !open {
		return fmt.Errorf("weft: %s is closed: %w", kind, fi.EINVAL)
	}
	return release()
}

// release closes the region of the provider, then lets the memory go.
func (r *Region) release() error {
	err := r.mr.Close()
	r.pin.Unpin()
	return err
}

// Remote is a region of a peer.
type Remote struct {
	e      *Endpoint
	remote *provider.Remote
	info   provider.RemoteInfo
}

// OpenRemote opens a peer's region by its token. The error wraps EINVAL for a text that is no token.
func (e *Endpoint) OpenRemote(token string) (*Remote, error) {
	if err := e.enter(); err != nil {
		return nil, err
	}
	defer e.leave()
	var t provider.Token
	if err := t.UnmarshalText([]byte(token)); err != nil {
		return nil, fmt.Errorf("weft: open remote region: %w", err)
	}
	remote, err := e.ep.OpenToken(t)
	if err != nil {
		return nil, fmt.Errorf("weft: open remote region: %w", err)
	}
	r := &Remote{e: e, remote: remote, info: remote.Info()}
	e.mu.Lock()
	e.remotes[r] = struct{}{}
	e.mu.Unlock()
	return r, nil
}

// Len returns the region's length in bytes.
func (r *Remote) Len() int { return int(r.info.Length) }

// Peer returns the region's owner.
func (r *Remote) Peer() Peer { return Peer{uint64(r.info.Addr) + 1} }

// Close forgets the region. No operation on it may be in flight. A second Close gives EINVAL.
func (r *Remote) Close() error {
	return closeOne(r.e, r.e.remotes, r, "remote region", r.remote.Close)
}

// Read reads len(b) bytes of a remote region from an offset into b. EACCES and ENOKEY: the owner does not allow it, or
// has closed the region; EINVAL: the range is not in the region. A ctx that ends first is as in Send.
func (e *Endpoint) Read(ctx context.Context, from *Remote, offset int, b []byte) error {
	return e.transfer(ctx, OpRead, from, offset, b)
}

// Write writes b into a remote region at an offset. It returns when the bytes are in the owner's memory, so that a
// message that is sent then informs the owner. Errors and a ctx that ends are as in Read.
func (e *Endpoint) Write(ctx context.Context, to *Remote, offset int, b []byte) error {
	return e.transfer(ctx, OpWrite, to, offset, b)
}

// StartRead is Read in completion form, as StartSend is of Send.
func (e *Endpoint) StartRead(from *Remote, offset int, b []byte, value any) error {
	if err := from.check(OpRead, e, offset, b); err != nil {
		return err
	}
	return e.start(OpRead, from.Peer(), b, value, func(r *request) error { return e.postRMA(r, from, offset) })
}

// StartWrite is Write in completion form, as StartSend is of Send.
func (e *Endpoint) StartWrite(to *Remote, offset int, b []byte, value any) error {
	if err := to.check(OpWrite, e, offset, b); err != nil {
		return err
	}
	return e.start(OpWrite, to.Peer(), b, value, func(r *request) error { return e.postRMA(r, to, offset) })
}

// check refuses what is not in the region, and regions of other endpoints.
func (r *Remote) check(op Op, e *Endpoint, offset int, b []byte) error {
	if offset < 0 || len(b) > r.Len() || offset > r.Len()-len(b) {
		return &Error{op, r.Peer(), fmt.Errorf("%d bytes at %d of %d: %w", len(b), offset, r.Len(), fi.EINVAL)}
	}
	if r.e != e {
		return &Error{op, r.Peer(), fmt.Errorf("region of another endpoint: %w", fi.EDOMAIN)}
	}
	return nil
}

func (e *Endpoint) transfer(ctx context.Context, op Op, on *Remote, offset int, b []byte) error {
	if err := on.check(op, e, offset, b); err != nil {
		return err
	}
	if err := e.enter(); err != nil {
		return err
	}
	r, err := e.post(ctx, op, on.Peer(), b, func(r *request) error { return e.postRMA(r, on, offset) })
	if err == nil {
		err = e.end(ctx, r)
	}
	return e.result(err)
}

func (e *Endpoint) postRMA(r *request, on *Remote, offset int) error {
	r.remote[0] = fi.RMAIOVec{Addr: on.info.Base + uint64(offset), Len: uint64(len(r.buf)), Key: on.info.Key}
	var flags uint64
	if r.op == OpWrite {
		flags = fi.DeliveryComplete
	}
	return e.ep.RMA(&provider.RMAArgs{
		IOV: r.iov[:], Remote: r.remote[:], Dest: on.info.Addr,
		Flags: flags, Context: uint64(r.number), Read: r.op == OpRead,
	})
}
