package rendezvous

import (
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/provider/internal/rkey"
)

// connection is a path from one node to another.
type connection struct {
	hw.Endpoint // nil
	from, to    *node
}

func (c *connection) Transport() hw.Endpoint       { return c }
func (c *connection) TransportDevice() rkey.Device { return c.from.device }
func (c *connection) Attr() *hw.Attr               { return &c.from.attr[c.TransportNumber()] }

func (c *connection) TransportNumber() uint32 {
	if c.from.oneHost(c.from.number, c.to.number) {
		return 0
	}
	return 1
}

func (c *connection) Err() error {
	if c.to.gone {
		return hw.ErrPeerDead
	}
	return nil
}

func (c *connection) Check() error { return c.Err() }

func (c *connection) AMShort(id hw.AMID, header uint64, head, payload []byte) error {
	if c.to.gone {
		return hw.ErrPeerDead
	}
	if c.from.noRoom() {
		return hw.ErrNoResource
	}
	c.from.post(c.to.number, id, header, head, payload)
	return nil
}

func (c *connection) SharedWords() *[4]uint64 {
	if !c.from.way.words || c.TransportNumber() != 0 {
		return nil
	}
	return &c.to.shared[c.from.number]
}

// sends returns the memory of messages that a node sends, nil: it does not all lie there.
func (n *node) sends(addr, k uint64) []byte {
	for _, m := range n.sent {
		for _, b := range m.parts {
			if at := address(b); addr >= at && addr-at <= uint64(len(b)) && k <= uint64(len(b))-(addr-at) {
				return b[addr-at:][:k]
			}
		}
	}
	return nil
}

// receives is sends of the receives that have not ended.
func (n *node) receives(addr, k uint64) []byte {
	for _, rv := range n.posted {
		at := address(rv.memory)
		if !rv.ended && addr >= at && addr-at <= uint64(len(rv.memory)) && k <= uint64(len(rv.memory))-(addr-at) {
			return rv.memory[addr-at:][:k]
		}
	}
	return nil
}

func (c *connection) ReadPeer(local []hw.Segment, remote []hw.RemoteSegment) (int, error) {
	if c.from.way.words && c.from.r.IntN(2) == 0 {
		c.to.step() // the peer makes progress meanwhile, and copies chunks
	}
	var from []byte
	for _, s := range remote {
		b := c.to.sends(s.Addr, s.Len)
		switch {
		case c.to.gone:
			return 0, hw.ErrPeerDead
		case c.from.way.refuses:
			return 0, hw.ErrPermission
		case b == nil && s.Len != 0:
			if !c.to.hostile && !c.from.hostile && !c.to.lost {
				c.from.t.Errorf("node %d reads what node %d does not send", c.from.number, c.to.number)
			}
			return 0, hw.ErrInvalid
		}
		from = append(from, b...)
	}
	done := 0
	for _, s := range local {
		done += copy(viewOf(s), from[done:])
	}
	if done != len(from) {
		c.from.t.Errorf("%d bytes are read to %d", len(from), done)
	}
	return done, nil
}

func (c *connection) WritePeer(local []hw.Segment, remote []hw.RemoteSegment) (int, error) {
	to := c.to.receives(remote[0].Addr, remote[0].Len)
	switch {
	case c.to.gone:
		return 0, hw.ErrPeerDead
	case c.from.way.refuses || c.from.way.fails && c.from.r.IntN(2) == 0:
		return 0, hw.ErrPermission
	case to == nil:
		if !c.to.hostile && !c.from.hostile {
			c.from.t.Errorf("node %d writes to memory that node %d does not receive in", c.from.number, c.to.number)
		}
		return 0, hw.ErrInvalid
	}
	c.from.wrote++
	return copy(to, viewOf(local[0])), nil
}

func (c *connection) PutZcopy(local []hw.Segment, at uint64, key hw.RemoteKey, done *hw.Completion) (hw.Status, error) {
	if c.from.noRoom() {
		return hw.Done, hw.ErrNoResource
	}
	if len(local) == 0 {
		return hw.Done, c.Err()
	}
	return c.move(hw.RemoteWrite, local, at, key, done)
}

func (c *connection) GetZcopy(local []hw.Segment, at uint64, key hw.RemoteKey, done *hw.Completion) (hw.Status, error) {
	if c.from.noRoom() {
		return hw.Done, hw.ErrNoResource
	}
	return c.move(hw.RemoteRead, local, at, key, done)
}

// move copies when it ends, as the key says then.
func (c *connection) move(
	access hw.Access, local []hw.Segment, at uint64, key hw.RemoteKey, done *hw.Completion,
) (hw.Status, error) {
	var here [][]byte
	n := uint64(0)
	for _, s := range local {
		if s.Memory == nil {
			c.from.t.Error("memory that is not registered")
		}
		here, n = append(here, viewOf(s)), n+uint64(s.Len)
	}
	end := func(lost bool) {
		r := c.from.keys[key[0]]
		switch {
		case lost || c.to.gone:
			done.Update(1, hw.ErrPeerDead)
			return
		case r == nil || r.n != c.to || r.of.Access&access == 0 || at-r.of.Base > uint64(r.of.Len) ||
			n > uint64(r.of.Len)-(at-r.of.Base):
			if !c.to.hostile && !c.from.hostile && !c.from.lost {
				c.from.t.Errorf("node %d has no key for what it moves", c.from.number)
			}
			done.Update(1, hw.ErrPermission)
			return
		}
		there := viewOf(hw.Segment{Addr: r.of.Addr, Len: r.of.Len})[at-r.of.Base:]
		for _, b := range here {
			var k int
			if access == hw.RemoteWrite {
				k = copy(there, b)
			} else {
				k = copy(b, there)
			}
			there = there[k:]
		}
		done.Update(1, nil)
	}
	c.from.flying = append(c.from.flying, operationOf{c.to.number, end})
	return hw.InProgress, nil
}

// memories is the memory domain of a node's device.
type memories struct {
	hw.MemoryDomain // nil
	n               *node
}

func (d memories) Attr() hw.MDAttr { return hw.MDAttr{Caps: hw.MDLocal | hw.MDCost, MaxKey: 16} }

func (d memories) Register(r hw.Region) (hw.Memory, error) {
	if d.n.noRoom() {
		return nil, hw.ErrNoResource
	}
	d.n.last++
	d.n.open++
	r.Base = uint64(uintptr(r.Addr))
	m := &region{r, d.n, d.n.last}
	d.n.keys[m.key] = m
	return m, nil
}

func (d memories) UnpackKey(b []byte) (k hw.RemoteKey, err error) {
	if len(b) != 16 {
		return k, hw.ErrInvalid
	}
	for i, v := range b[:8] {
		k[0] |= uint64(v) << (8 * i)
	}
	return k, nil
}

// region is registered memory of a node.
type region struct {
	of  hw.Region
	n   *node
	key uint64
}

func (r *region) Region() hw.Region { return r.of }

func (r *region) PackKey(to []byte) []byte {
	for i := range 16 {
		b := byte(0)
		if i < 8 {
			b = byte(r.key >> (8 * i))
		}
		to = append(to, b)
	}
	return to
}

func (r *region) Close() error {
	delete(r.n.keys, r.key)
	r.n.open--
	return nil
}

var (
	_ hw.OneSided   = (*connection)(nil)
	_ hw.PeerMemory = (*connection)(nil)
)
