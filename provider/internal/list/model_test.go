package list

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/config"
	"github.com/weft-fabric/weft/internal/testseed"
)

// TestModel posts random lists, whole and by picks, over random ways, which are turned off and on meanwhile, and
// compares memory with a model that copies. Elements fail, posts are canceled, lists closed and the peer lost while
// they are under way.
func TestModel(t *testing.T) {
	seed := testseed.New(t)
	for n := range testseed.Count(t, 100) {
		m := newModel(t, seed+n)
		if n%4 == 0 {
			m.share()
		}
		for range 4 {
			m.list()
		}
		if t.Failed() {
			t.Fatalf("program %d", n)
		}
	}
}

// model is a host and what its memory is to be.
type model struct {
	*host
	context uint64
	bytes   *rand.ChaCha8
	direct  bool // all lists are of memory of processes
}

func newModel(t *testing.T, seed uint64) *model {
	m := &model{host: newHost(t, seed), bytes: rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8)})}
	m.path.copies, m.path.joins = m.chance(2), m.chance(2)
	if m.chance(2) {
		m.path.rdma, m.refusals = &standIn{knows: !m.chance(4)}, m.r.IntN(3)*20
	}
	m.full = m.r.IntN(2) * 5
	m.faults = [...]int{0, 0, 4, 30, 300}[m.r.IntN(5)]
	m.cfg.RMAAssistSize = m.r.IntN(2) * 256
	for key := range uint64(6) {
		n := 1 << 14
		if key < 2 {
			n = 1 << 17
		}
		r := m.region(key, n, key >= 2)
		r.means = [...]Means{ByCopy, ByCopy, ByCopy, ByOwner, ByMessage, ByOwner}[key]
		r.maps = key >= 2
	}
	return m
}

// share has posts be of memory of processes, and copied by both sides, which often fail.
func (m *model) share() {
	m.direct, m.path.copies, m.cfg.RMAAssistSize, m.faults = true, true, 256, m.faults&3
}

// fill gives all memory other bytes.
func (m *model) fill() {
	for _, b := range m.all() {
		_, _ = m.bytes.Read(b)
	}
}

// all is all memory, in one order.
func (m *model) all() [][]byte {
	list := [][]byte{m.local, m.device}
	for key := range uint64(len(m.regions)) {
		list = append(list, m.regions[key].memory)
	}
	return list
}

func (m *model) snapshot() (list [][]byte) {
	for _, b := range m.all() {
		list = append(list, bytes.Clone(b))
	}
	return list
}

// element is one of a list, as the model has it.
type element struct{ local, key, remote, n uint64 }

// elements makes pieces that do not overlap, and returns the elements of these.
func (m *model) elements(count int) (list []Piece, all []element) {
	host, device, there := hostBase, deviceBase, [6]uint64{}
	lens, keys := []uint64{1, 8, 64, 200, 700}, uint64(6)
	direct := m.direct || m.chance(2)
	if direct {
		lens, keys = append(lens, 3000), 2
	}
	for range count {
		key := m.r.Uint64N(keys)
		p := Piece{Region: m.regions[key], Len: lens[m.r.IntN(len(lens))], Count: m.r.Uint64N(4)}
		elements := max(1, p.Count)
		p.Local, p.Addr = host, regionBase+there[key]
		end := hostBase + uint64(len(m.local))
		byOwner := m.regions[key].means == ByOwner
		if !direct && (byOwner || m.chance(5)) {
			p.Local, end = device, deviceBase+uint64(len(m.device))
		}
		if m.chance(2) {
			p.LocalStride, p.RemoteStride = p.Len+m.r.Uint64N(9), p.Len+m.r.Uint64N(9)
		}
		here, far := max(p.LocalStride, p.Len), max(p.RemoteStride, p.Len)
		if p.Local+elements*here > end || there[key]+elements*far > p.Region.About().Length {
			continue
		}
		for i := range elements {
			all = append(all, element{p.Local + i*here, key, p.Addr + i*far, p.Len})
		}
		gap := m.r.Uint64N(2) * m.r.Uint64N(50)
		if p.Local == host {
			host += elements*here + gap
		} else {
			device += elements*here + gap
		}
		there[key] += elements*far + gap
		list = append(list, p)
	}
	return list, all
}

// apply does a post with the copies that memory in a snapshot is.
func (m *model) apply(to [][]byte, all []element, picks []uint32, read bool) {
	for _, n := range picks {
		el := all[n]
		here, at := to[0], el.local-hostBase
		if el.local >= deviceBase {
			here, at = to[1], el.local-deviceBase
		}
		local, remote := here[at:][:el.n], to[2+el.key][el.remote-regionBase:][:el.n]
		if read {
			copy(local, remote)
		} else {
			copy(remote, local)
		}
	}
}

// list prepares a list and posts it some times.
func (m *model) list() {
	list, all := m.elements([...]int{1, 3, 40, 200}[m.r.IntN(4)])
	if len(list) == 0 {
		return
	}
	m.turn()
	l, err := m.posts.New(len(list), func(i int, p *Piece) error {
		*p = list[i]
		return nil
	})
	if err != nil {
		m.t.Fatal(err)
	}
	if l.Len() != len(all) {
		m.t.Fatalf("%d elements, want %d", l.Len(), len(all))
	}
	closed := false
	for range 3 {
		if m.turn(); closed {
			break
		}
		closed = m.run(l, all)
	}
	if !closed {
		want(m.t, l.Close(), fi.Success, "close")
	}
}

// turn turns ways off and on.
func (m *model) turn() {
	m.cfg.TokenWays = config.Ways{IPC: !m.chance(3), RDMA: m.chance(2), Message: !m.chance(6)}
}

// picks chooses elements, by numbers or bits, and returns their numbers; some several times if they are numbers.
func (m *model) picks(count int, a *Args) (numbers []uint32) {
	switch m.r.IntN(3) {
	case 0:
		for n := range count {
			numbers = append(numbers, uint32(n))
		}
	case 1:
		for range 1 + m.r.IntN(count) {
			numbers = append(numbers, m.r.Uint32N(uint32(count)))
		}
		a.Picks = slices.Clone(numbers)
	case 2:
		a.Bits = make([]uint64, (count+63)/64)
		numbers = append(numbers, m.r.Uint32N(uint32(count)))
		for n := range uint32(count) {
			if m.chance(2) {
				numbers = append(numbers, n)
			}
		}
		slices.Sort(numbers)
		numbers = slices.Compact(numbers)
		for _, n := range numbers {
			a.Bits[n/64] |= 1 << (n % 64)
		}
	}
	return numbers
}

// run posts a list once and compares what comes of it. It reports that the list is closed.
func (m *model) run(l *List, all []element) (closed bool) {
	m.fill()
	m.context++
	a := Args{Read: m.chance(2), Context: m.context}
	if m.chance(4) {
		a.Flags = fi.DeliveryComplete
	}
	if m.chance(3) {
		a.Note, a.NoteOnError = []byte("done"), m.chance(2)
	}
	numbers := m.picks(len(all), &a)
	m.delivers = !a.Read && (a.Note != nil || a.Flags != 0)
	clear(m.path.denied)
	before, after := m.snapshot(), m.snapshot()
	m.apply(after, all, numbers, a.Read)
	m.counts, m.ended, m.noted = [Ways]uint64{}, nil, nil
	clear(m.mistakes)
	m.written, m.flushes = nil, 0
	clear(m.settled)
	interrupt := m.interrupt(l, &closed)
	m.mapping = nil
	if m.chance(2) {
		m.mapping = interrupt
	}
	if m.chance(8) {
		m.path.dead = true
	}
	picks := a.Picks
	err := m.post(l, &a)
	for i := range picks {
		picks[i] = ^uint32(0) // the caller's again
	}
	if err != nil {
		m.refused(err, before, after)
		return closed
	}
	for len(m.entered)+len(m.flying)+len(m.shares) != 0 {
		if m.step(); m.chance(30) {
			interrupt()
		}
	}
	m.settle()
	m.outcome(&a, all, numbers, before, after)
	return closed
}

// interrupt returns what happens once while a post is under way: nothing mostly.
func (m *model) interrupt(l *List, closed *bool) func() {
	what := m.r.IntN(16)
	return func() {
		switch what {
		case 0:
			m.posts.Cancel(m.context)
		case 1:
			if !*closed {
				*closed = true
				want(m.t, l.Close(), fi.Success, "close while a post is under way")
			}
		case 2:
			m.gone = true
		case 3:
			m.cfg.TokenWays.RDMA = !m.cfg.TokenWays.RDMA
		}
	}
}

// refused finds that of a post that is refused nothing but what both sides had copied when the peer was lost has
// happened.
func (m *model) refused(err error, before, after [][]byte) {
	if fi.ErrnoOf(err) != fi.ECONNRESET || !m.gone {
		m.t.Errorf("post: %v", err)
	}
	if len(m.ended)+len(m.settled)+len(m.noted) != 0 {
		m.t.Errorf("a post that was refused has ended: %+v", m.ended)
	}
	m.between(before, after)
	m.revive()
}

// revive has the peer be there again.
func (m *model) revive() { m.gone, m.path.dead = false, false }

// between finds each byte as it was before the post or as it is after.
func (m *model) between(before, after [][]byte) {
	for i, b := range m.all() {
		if bytes.Equal(b, before[i]) || bytes.Equal(b, after[i]) {
			continue
		}
		for k := range b {
			if b[k] != before[i][k] && b[k] != after[i][k] {
				m.t.Fatalf("byte %d of memory %d is %d, was %d and is to be %d", k, i, b[k], before[i][k], after[i][k])
			}
		}
	}
}

// outcome checks the completion of a post, and memory.
func (m *model) outcome(a *Args, all []element, numbers []uint32, before, after [][]byte) {
	what := fmt.Sprintf("post %d of %d elements of %d, read %t", a.Context, len(numbers), len(all), a.Read)
	if len(m.ended) != 1 || m.ended[0].Context != a.Context {
		m.t.Fatalf("%s: completions %+v", what, m.ended)
	}
	end, total := m.ended[0], uint64(0)
	for _, n := range numbers {
		total += all[n].n
	}
	if a.Note != nil && (len(m.noted) != 1 || m.settled[m.noted[0]] != end.status) {
		m.t.Errorf("%s: notifications %v settled as %v, want %v", what, m.noted, m.settled, end.status)
	}
	if f := m.inFlight; f != 0 {
		m.t.Fatalf("%s: %d operations are in flight", what, f)
	}
	m.between(before, after)
	defer m.revive()
	if end.status != fi.Success {
		m.failure(what, end, all, numbers)
		return
	}
	if m.flushes > 1 || m.flushes != 0 && (a.Read || a.Note == nil && a.Flags == 0) {
		m.t.Errorf("%s: %d flushes, flags %#x", what, m.flushes, a.Flags)
	}
	if len(m.mistakes) != 0 {
		m.t.Fatalf("%s: it has succeeded, though elements failed: %v", what, m.mistakes)
	}
	if end.Len != total {
		m.t.Errorf("%s: %d bytes, want %d", what, end.Len, total)
	}
	for i, b := range m.all() {
		if !bytes.Equal(b, after[i]) {
			m.t.Fatalf("%s: memory %d is not that of the model", what, i)
		}
	}
	if n := m.counts[WayIPC] + m.counts[WayRDMA] + m.counts[WayMessage]; n != uint64(len(numbers)) {
		m.t.Errorf("%s: %v elements are counted by their ways", what, m.counts)
	}
}

// failure checks the error completion of a post.
func (m *model) failure(what string, end ending, all []element, numbers []uint32) {
	first := uint32(end.Data)
	if !slices.Contains(numbers, first) {
		m.t.Errorf("%s: element %d has failed, which is not of the post", what, first)
	}
	for n, status := range m.mistakes {
		if n < first {
			m.t.Errorf("%s: element %d with %v, though %d failed with %v", what, first, end.status, n, status)
		}
	}
	switch end.status {
	case fi.ECANCELED, fi.EIO:
	default:
		if !slices.Contains(m.mistakes[first], end.status) && !(m.gone && end.status == fi.ECONNRESET) {
			m.t.Errorf("%s: element %d ends with %v, failures are %v", what, first, end.status, m.mistakes)
		}
	}
	done := uint64(0)
	for _, n := range numbers {
		if el := all[n]; bytes.Equal(m.here(el.local, el.n), m.there(el.key, el.remote, el.n)) {
			done += el.n
		}
	}
	if end.Len > done {
		m.t.Errorf("%s: %d bytes are said to be done, of %d that are", what, end.Len, done)
	}
}
