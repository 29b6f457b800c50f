package list

import (
	"errors"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/dataplane"
	"github.com/weft-fabric/weft/provider/internal/claim"
	"github.com/weft-fabric/weft/provider/internal/hmem"
	"github.com/weft-fabric/weft/provider/internal/pieces"
	"github.com/weft-fabric/weft/provider/internal/wire"
)

// The target of shared posts takes chunks at the offer, and copies them when the round ends or later.

func (h *host) Shares(Path) bool { return true }
func (h *host) Reap()            {}

func (h *host) Offer(_ Path, n uint64, s *wire.Share) (Round, bool) {
	if h.chance(3) || len(h.shares) != 0 {
		return Round{}, false
	}
	if h.rounds++; s.Want == 0 || claim.Chunks(s.Want, uint64(s.Chunk)) != n {
		h.t.Errorf("%+v is offered in %d chunks", s, n)
	}
	round := h.rounds & 0xffff
	h.words[0] = round<<claim.RoundShift | n
	h.took = h.r.Uint64N(n + 1)
	for range h.took {
		h.words.TakeBack(round, n)
	}
	return Round{&h.words, round}, true
}

func (h *host) EndRound(_ Peer, over Path, s *Share, took uint64, err error) claim.Outcome {
	if took != h.took {
		h.t.Errorf("the target has taken %d chunks, not %d", took, h.took)
	}
	h.bad = err != nil || took != 0 && h.fault()
	if errors.Is(err, hw.ErrPeerDead) {
		return claim.Dead
	}
	if !h.bad {
		h.targetCopies(s)
	}
	if took != 0 && h.chance(2) {
		h.inFlight++
		h.shares = append(h.shares, s)
		return claim.Part
	}
	if h.bad {
		return claim.Alone
	}
	return claim.All
}

// targetCopies copies the target's chunks.
func (h *host) targetCopies(s *Share) {
	n := s.N()
	batch := new(pieces.Batch)
	for i := n - h.took; i < n; i++ {
		s.Fill(batch, i)
		for k := range batch.N {
			h.move(batch.Local[k].Addr, batch.Keys[k], batch.Remote[k].Addr, batch.Local[k].Len, s.op.args.Read)
		}
	}
}

// endShare has the target complete its last chunk.
func (h *host) endShare() {
	s := h.shares[0]
	switch {
	case h.gone:
		h.mistake(s.op.sel.Number(min(s.from, s.op.sel.Len()-1)), fi.ECONNRESET)
		s.Lost(fi.ECONNRESET)
	case !h.bad:
		s.Done()
	case s.Again() != nil:
		return
	}
	h.inFlight--
	h.shares = h.shares[1:]
}

// Memory of devices.

// mapped is the peer's memory, as one post reaches it.
type mapped struct {
	*host
	read  bool
	bad   error
	begun []func()
}

func (h *host) Map(regions []Region, read bool, _ uint64) Mapped {
	for _, r := range regions {
		if h.regions[r.About().Key] != r {
			h.t.Errorf("region %+v is another one", r.About())
		}
	}
	h.reading = read
	if h.mapping != nil {
		h.mapping()
	}
	return &mapped{host: h, read: read}
}

func (m *mapped) Reach(key uint64) Reach {
	by := m.regions[key].means
	return Reach{By: by, Err: errFault, Owner: Owner{PID: 5, Incarnation: 6, Key: key, Rights: 1}}
}

func (m *mapped) Copy(el *dataplane.Element) error {
	if m.fault() {
		m.bad = errFault
	}
	m.begun = append(m.begun, func() { m.move(el.Local, el.Key, el.Remote, el.Len, m.read) })
	return nil
}

func (m *mapped) Wait() error {
	err := m.bad
	for _, f := range m.begun {
		if err == nil {
			f()
		}
	}
	m.begun, m.bad = nil, nil
	return err
}

func (m *mapped) Failed(uint64, bool) fi.Errno { return fi.EIO }

func (m *mapped) End() {
	if len(m.begun) != 0 {
		m.t.Errorf("%d copies are begun and not waited for", len(m.begun))
	}
}

// Exported has local memory of the device in two allocations.
func (h *host) Exported(addr, n uint64) (hmem.Exported, bool) {
	const half = 1 << 14
	x := hmem.Exported{Token: 1, Base: deviceBase, Size: half, Buffer: 1}
	if addr >= deviceBase+half {
		x.Token, x.Base = 2, deviceBase+half
	}
	return x, x.Has(addr, n)
}

// Ask has the owner copy, or refuse.
func (h *host) Ask(pid int, q *wire.CopyRequest) error {
	if pid != 5 || q.Incarnation != 6 || len(q.Pieces) > batchElements {
		h.t.Errorf("%d pieces of incarnation %d asked of process %d", len(q.Pieces), q.Incarnation, pid)
	}
	if q.Key%2 != 0 {
		return errFault
	}
	base := deviceBase + (q.Token-1)<<14
	for _, p := range q.Pieces {
		h.move(base+p.Offset, q.Key, p.Addr, p.N, h.reading)
	}
	return nil
}
