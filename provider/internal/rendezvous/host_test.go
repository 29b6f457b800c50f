package rendezvous

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/dataplane"
	"github.com/weft-fabric/weft/provider/internal/claim"
	"github.com/weft-fabric/weft/provider/internal/wire"
)

// The node as rendezvous have it.

type host struct{ *node }

func (h host) Closed() bool                          { return h.gone }
func (h host) Count(i int, v uint64)                 { h.counts[i] += v }
func (h host) Malformed(hw.Source, string, ...any)   { h.bad++ }
func (h host) IsFrom(src hw.Source, m *Message) bool { return src == m.Src }
func (h host) Reads(src hw.Source) bool              { return src < otherHosts }
func (h host) Gets(src hw.Source) bool               { return src >= otherHosts }
func (h host) Maps() bool                            { return true }
func (h host) Offload() bool                         { return h.way.offload }
func (h host) Segmented(_ uint32, n uint64) bool     { return h.way.segments && n > 16<<10 }
func (h host) SenderOf(m *Message) fmt.Stringer      { return named(m.Sender) }
func (h host) PeerOf(link uint32) fmt.Stringer       { return named(link) }
func (h host) Owns(src hw.Source, link uint32) bool  { return uint32(src&(otherHosts-1)) == link }

func (h host) Request(id uint64) (*dataplane.Request, bool) { return h.requests.Lookup(id) }
func (h host) Exposed(request uint64) []hw.Memory           { return h.exposed.Of(request) }
func (h host) CameOver(src hw.Source, p Path) bool          { return uint32(src>>20) == p.TransportNumber() }

type named uint32

func (n named) String() string { return fmt.Sprintf("node %d", uint32(n)) }

func (h host) TakeKeys(src hw.Source, rts *wire.RTS, payload []byte) bool {
	if rts.Flags&(wire.FlagKeyed|wire.FlagPacked) == 0 {
		return len(payload) == 0
	}
	return h.device.Take(rts, payload, src >= otherHosts)
}

func (h host) Arrived(src hw.Source, header uint64, rts *wire.RTS) {
	m := Message{
		Src: src, Sender: uint32(src & (otherHosts - 1)), Tag: header, Length: rts.Length, Request: rts.Request,
	}
	if rv := h.posted[header]; rv != nil && !rv.ended && rv.status == 0 {
		rv.status = fi.EBUSY // matched
		h.start(rv, m, rts)
		return
	}
	h.kept[header] = keptRTS{m, *rts}
}

func (h host) Back(m *Message) (Path, error) {
	from := int(m.Sender)
	switch {
	case h.heard[from] != 0:
		return nil, fi.ECONNRESET
	case h.nodes[from].gone || h.way.full != 0 && h.r.IntN(20) == 0:
		return nil, fi.EAGAIN
	}
	return &connection{from: h.node, to: h.nodes[from]}, nil
}

func (h host) Path(link uint32) (Path, bool) {
	if h.nodes[link].gone {
		return nil, false
	}
	return &connection{from: h.node, to: h.nodes[link]}, true
}

func (h host) Answer(m *Message, id hw.AMID, head []byte) {
	h.post(int(m.Sender), id, m.Request, head, nil)
}

func (h host) Send(link uint32, id hw.AMID, header uint64, head []byte) {
	h.post(int(link), id, header, head, nil)
}

func (h host) Fragment(p Path, req *dataplane.Request, from, n uint64) error {
	if h.noRoom() {
		return fi.EAGAIN
	}
	var b []byte
	for _, v := range req.IOV[:req.Count] {
		b = append(b, bytesAt(uint64(v.Base), v.Len)...)
	}
	head := wire.PutWord(make([]byte, wire.WordBytes), from)
	h.post(int(req.Link), wire.AMFrag, req.Fragments.Op, head, b[from:from+n])
	return nil
}

func (h host) Words(src hw.Source) *claim.Words {
	if !h.way.words || src >= otherHosts || h.heard[int(src)] != 0 {
		return nil
	}
	return claim.MessageWords(&h.node.shared[src])
}

func (h host) Flow(m *Message, p Path) *Flow {
	f := h.flow[int(m.Sender)]
	if f == nil {
		ff, err := h.flows.New(&h.cfg, p.Attr())
		if err != nil {
			h.t.Fatal(err)
		}
		f = h.protocol.NewFlow(ff, p)
		h.flow[int(m.Sender)] = f
	}
	return f
}

func (h host) Complete(m *Message, done uint64, status fi.Errno) {
	rv := h.posted[m.Tag]
	if rv == nil || rv.ended {
		h.t.Errorf("node %d: a receive ends twice or was not posted", h.number)
		return
	}
	rv.ended, rv.status, rv.done, rv.after = true, status, done, bytes.Clone(rv.memory)
	if status != fi.ECONNRESET || h.heard[int(m.Sender)] == 0 {
		h.post(int(m.Sender), wire.AMAck, m.Request, wire.PutAck(make([]byte, 8), status), nil)
	}
}

func (h host) Abandon(m *Message) {
	rv := h.posted[m.Tag]
	rv.ended, rv.status, rv.after = true, fi.ECANCELED, bytes.Clone(rv.memory)
}

func (h host) Fetch(pid uint32, token, near uint64) Memory {
	if int(pid) > len(h.nodes) {
		return &mapped{fails: true}
	}
	return &mapped{n: h.nodes[pid-1], token: token, waits: h.r.IntN(4), fails: h.r.IntN(8) == 0}
}

// mapped is a message's memory of another node's device.
type mapped struct {
	n     *node
	token uint64
	waits int
	fails bool
	drops int
}

func (m *mapped) Ready() (bool, error) {
	if m.waits--; m.waits >= 0 {
		return false, nil
	}
	if m.fails {
		return true, errors.New("not to be mapped")
	}
	return true, nil
}

func (m *mapped) Do(f func(Mapping) error) bool {
	if m.n.r.IntN(10) == 0 {
		return false
	}
	_ = f(m)
	return true
}

func (m *mapped) Drop() {
	if m.drops++; m.drops != 1 {
		panic("dropped twice")
	}
}

func (m *mapped) Size() uint64 {
	if s := m.n.sent[m.token]; s != nil {
		return uint64(len(s.data))
	}
	return 0
}

func (m *mapped) CopyTo(to, offset, n uint64) error {
	s := m.n.sent[m.token]
	if m.n.gone || s == nil {
		return hw.ErrPeerDead
	}
	copy(bytesAt(to, n), s.parts[0][offset:offset+n])
	return nil
}
