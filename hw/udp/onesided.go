package udp

import (
	"errors"
	"fmt"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/hw/udp/internal/wire"
	"github.com/weft-fabric/weft/internal/congestion"
	"github.com/weft-fabric/weft/internal/sock"
)

// maxIOV is the most local segments of one operation.
const maxIOV = 16

// enter takes the lease for an operation to be posted, with an entry for it.
// leave follows. Errors: those of package hw, and then the lease is given back.
func (c *Endpoint) enter(kind opKind) (*operation, congestion.Time, error) {
	if c.at() != up {
		return nil, 0, hw.ErrPeerDead
	}
	if !c.s.lease.spin() {
		return nil, 0, hw.ErrNoResource
	}
	var o *operation
	err := hw.ErrPeerDead
	if c.at() == up {
		err = hw.ErrNoResource
		if c.passed() {
			o = c.ops.begin(kind)
		}
	}
	if o == nil {
		c.s.leave()
		return nil, 0, err
	}
	return o, c.s.time(), nil
}

// checkLocal adds up local segments. Errors: hw.ErrInvalid, hw.ErrTooLong.
func checkLocal(local []hw.Segment) (uint64, error) {
	n := uint64(0)
	for _, s := range local {
		if s.Len < 0 || s.Len > maxOneSided {
			return 0, fmt.Errorf("udp: local segment of %d bytes: %w", s.Len, hw.ErrInvalid)
		}
		n += uint64(s.Len)
	}
	if len(local) > maxIOV {
		return 0, fmt.Errorf("udp: %d local segments: %w", len(local), hw.ErrInvalid)
	}
	if n > maxOneSided {
		return 0, hw.ErrTooLong
	}
	return n, nil
}

// PutZcopy writes the segments, as fast as the congestion window lets it.
func (c *Endpoint) PutZcopy(local []hw.Segment, addr uint64, key hw.RemoteKey, done *hw.Completion) (hw.Status, error) {
	return c.move(opPut, local, addr, key, done)
}

// GetZcopy reads into the segments, as fast as the peer's congestion window lets it.
func (c *Endpoint) GetZcopy(local []hw.Segment, addr uint64, key hw.RemoteKey, done *hw.Completion) (hw.Status, error) {
	return c.move(opGet, local, addr, key, done)
}

func (c *Endpoint) move(kind opKind, local []hw.Segment, addr uint64, key hw.RemoteKey, done *hw.Completion) (hw.Status,
	error) {
	n, err := checkLocal(local)
	if err != nil || n == 0 && c.at() == up {
		return hw.Done, err
	}
	if addr+n < addr {
		return hw.Done, hw.ErrKey
	}
	o, now, err := c.enter(kind)
	if err != nil {
		return hw.Done, err
	}
	o.segs = append(o.segs[:0], local...)
	o.total, o.addr, o.key, o.c = n, addr, key[0], done
	c.ops.sending = append(c.ops.sending, o)
	c.packet.Store(uint32(c.tx.mtu.Size()))
	c.transmit(now)
	c.s.leave()
	return hw.InProgress, nil
}

// Train is what the kernel takes in one call; see [hw.Trains]. Of a get it is what this side
// would send: the peer's packets are seldom of another size.
func (c *Endpoint) Train(get bool) uint64 {
	size, head := int(c.packet.Load()), wire.HeaderSize+wire.PutHeader
	if get {
		head = wire.HeaderSize + wire.DataHeader
	}
	if size == 0 || c.key.Key != nil {
		return 0
	}
	return uint64(sock.MaxTrain(size)) * uint64(size-head)
}

// Flush ends when all puts and gets of the connection have, and for
// the other scopes when the peer has every message and has performed every atomic.
func (c *Endpoint) Flush(scope hw.FlushScope, done *hw.Completion) (hw.Status, error) {
	if scope == hw.FlushLocal && c.at() == up && c.idle() {
		return hw.Done, nil
	}
	o, now, err := c.enter(opFlush)
	if err != nil {
		return hw.Done, err
	}
	o.c = done
	if !c.postControl(recordFlush, o.id, nil) {
		c.ops.end(o)
		c.starve(now)
		c.s.leave()
		return hw.Done, hw.ErrNoResource
	}
	o.total = 1 // ends with the peer's answer and with the puts and gets before it
	c.transmit(now)
	c.s.leave()
	return hw.InProgress, nil
}

// idle reports whether no operation is in progress.
func (c *Endpoint) idle() bool {
	if !c.s.lease.spin() {
		return false
	}
	n := c.ops.busy
	c.s.leave()
	return n == 0
}

// Fence has operations that are posted later wait (with ErrNoResource) until
// those before have been performed. Messages alone are in order anyway.
func (c *Endpoint) Fence() error {
	o, now, err := c.enter(opFlush)
	if err != nil {
		return err
	}
	switch {
	case c.ops.busy == 1:
		c.ops.end(o)
	case !c.postControl(recordFlush, o.id, nil):
		c.ops.end(o)
		err = hw.ErrNoResource
	default:
		c.tx.fence = true
		c.transmit(now)
	}
	c.s.leave()
	return err
}

// passed reports whether no fence stands before what is to be posted.
func (c *Endpoint) passed() bool {
	if c.tx.fence && c.ops.busy == 0 {
		c.tx.fence = false
	}
	return !c.tx.fence
}

// Flush of all endpoints; see Endpoint.Flush.
func (i *Iface) Flush(scope hw.FlushScope, done *hw.Completion) (hw.Status, error) {
	var all []*Endpoint
	i.each(func(c *Endpoint) {
		if c.at() == up && !c.half && c.attached.Load() {
			all = append(all, c)
		}
	})
	if len(all) == 0 {
		return hw.Done, nil
	}
	joint := &hw.Completion{}
	joint.Func = func(j *hw.Completion) {
		if done != nil {
			done.Update(1, j.Err())
		}
	}
	joint.Expect(len(all) + 1)
	for n, c := range all {
		status, err := c.Flush(scope, joint)
		if n == 0 && err != nil && len(all) == 1 {
			return hw.Done, err
		}
		if err != nil {
			i.retryFlush(c, scope, joint, err)
		} else if status == hw.Done {
			joint.Update(1, nil)
		}
	}
	joint.Update(1, nil)
	return hw.InProgress, nil
}

// retryFlush has Progress try a part of a joint flush that found no resource.
func (i *Iface) retryFlush(c *Endpoint, scope hw.FlushScope, joint *hw.Completion, err error) {
	if !errors.Is(err, hw.ErrNoResource) {
		joint.Update(1, err)
		return
	}
	i.flushes.Add(c, func() error {
		if i.closed.Load() {
			joint.Update(1, hw.ErrCanceled)
			return nil
		}
		status, err := c.Flush(scope, joint)
		switch {
		case errors.Is(err, hw.ErrNoResource):
			return err
		case err != nil || status == hw.Done:
			joint.Update(1, err)
		}
		return nil
	})
}

// Fence of all endpoints; see Endpoint.Fence.
func (i *Iface) Fence() error {
	for _, s := range i.stripes {
		s.lease.lock()
		all := append([]*Endpoint(nil), s.conns...)
		s.leave()
		for _, c := range all {
			if c != nil && c.at() == up && c.attached.Load() {
				if err := c.Fence(); err != nil && c.at() == up {
					return err
				}
			}
		}
	}
	return nil
}
