package mpsc

import (
	"fmt"

	"github.com/weft-fabric/weft/hot"
)

// A model of the ring's algorithm in which every access to shared memory is
// one step, for TestModel to run in every order. It is sequentially
// consistent: it checks the algorithm, not the ordering of plain accesses,
// which the race detector checks.

const (
	modelSlots     = 2
	modelProducers = 3
)

// rules of one exploration. The mutants show that the checks can fail.
type rules struct {
	messages [modelProducers]uint8 // each producer's
	deaths   uint8                 // producers that may be killed, each at any step

	plainClaim   bool // mutant: claim by load and store
	earlyPublish bool // mutant: publish before the body is written
	earlyRelease bool // mutant: release before the body is read
	noJump       bool // mutant: a stale tail is walked one step at a time
}

type modelSlot struct {
	lap, owner, state uint8
	half              [2]uint8 // the body: two words, written and read apart
}

// Steps of a producer.
const (
	pTail    = iota // load the tail
	pWord           // load the slot's word and decide
	pCAS            // C0
	pHint           // store the tail
	pHalf0          // write the body
	pHalf1          //
	pPublish        // P0
)

type modelProducer struct {
	pc, sent, pos, step, published uint8
	dead                           bool
}

// Steps of the consumer.
const (
	cLook    = iota // L0
	cHalf0          // read the body
	cHalf1          //
	cRelease        // R0
	cReclaim        // CAS
)

// model is a state of the whole. Comparable, so that visited states are found.
type model struct {
	slot   [modelSlots]modelSlot
	tail   uint8
	prod   [modelProducers]modelProducer
	pc     uint8 // the consumer's
	head   uint8
	half   uint8
	owner  uint8 // of the slot the consumer works on
	claims uint8 // ghost: successful claims so far
	deaths uint8
	got    [modelProducers]uint8 // ghost: messages received from each
}

// next returns the states that one step of anybody leads to.
func (m *model) next(r *rules) (out []model, err error) {
	for i := range m.prod {
		p := &m.prod[i]
		if p.sent == r.messages[i] || p.dead {
			continue
		}
		n := *m
		if err := n.produce(r, i); err != nil {
			return nil, err
		}
		out = append(out, n)
		if m.deaths < r.deaths {
			n := *m
			n.prod[i] = modelProducer{published: p.published, dead: true}
			n.deaths++
			out = append(out, n)
		}
	}
	n := *m
	if err := n.consume(r); err != nil {
		return nil, err
	}
	if n != *m {
		out = append(out, n)
	}
	return out, nil
}

// produce lets producer i make one step.
func (m *model) produce(r *rules, i int) error {
	p := &m.prod[i]
	s := &m.slot[p.pos%modelSlots]
	lap := p.pos / modelSlots
	message := uint8(i)<<4 | p.sent + 1
	switch p.pc {
	case pTail:
		p.pos, p.step, p.pc = m.tail, 0, pWord
	case pWord:
		m.look(r, p, s, lap)
	case pCAS:
		if !r.plainClaim && (s.lap != lap || s.state != hot.SlotFree) {
			p.forward(1)
			break
		}
		if p.pos != m.claims {
			return fmt.Errorf("producer %d claimed position %d after %d claims", i, p.pos, m.claims)
		}
		s.lap, s.owner, s.state = lap, uint8(i), hot.SlotTaken
		m.claims++
		p.pc = pHint
	case pHint:
		m.tail = p.pos + 1
		p.pc = pHalf0
		if r.earlyPublish {
			s.state = hot.SlotReady
		}
	case pHalf0:
		s.half[0] = message
		p.pc = pHalf1
	case pHalf1:
		s.half[1] = message
		p.pc = pPublish
	case pPublish:
		if !r.earlyPublish {
			s.lap, s.owner, s.state = lap, uint8(i), hot.SlotReady
		}
		p.published++
		p.sent++
		*p = modelProducer{sent: p.sent, published: p.published}
	}
	return nil
}

// look decides on a slot's word, as Claim does.
func (m *model) look(r *rules, p *modelProducer, s *modelSlot, lap uint8) {
	switch {
	case s.lap == lap && s.state == hot.SlotFree:
		p.pc = pCAS
	case s.lap < lap:
		p.pc, p.pos, p.step = pTail, 0, 0 // full: try again
	case s.lap > lap+1 && !r.noJump:
		p.forward((s.lap-lap-1)*modelSlots + 1)
	default:
		p.forward(1)
	}
}

func (p *modelProducer) forward(n uint8) {
	p.pos += n
	p.pc = pWord
	if p.step++; p.step > modelSlots {
		p.pc, p.pos, p.step = pTail, 0, 0
	}
}

// consume lets the consumer make one step, or none when there is nothing to do.
func (m *model) consume(r *rules) error {
	s := &m.slot[m.head%modelSlots]
	lap := m.head / modelSlots
	release := func() { *s = modelSlot{lap: lap + 1, half: s.half} }
	switch m.pc {
	case cLook:
		switch {
		case s.lap != lap || s.state == hot.SlotFree:
		case s.state == hot.SlotReady:
			m.pc, m.owner = cHalf0, s.owner
			if r.earlyRelease {
				release()
			}
		case m.prod[s.owner].dead:
			m.pc, m.owner = cReclaim, s.owner
		}
	case cHalf0:
		m.half = s.half[0]
		m.pc = cHalf1
	case cHalf1:
		if m.half != s.half[1] || m.half>>4 != m.owner || m.half&15 != m.got[m.owner]+1 {
			return fmt.Errorf("position %d: halves %#x %#x of owner %d after %d messages",
				m.head, m.half, s.half[1], m.owner, m.got[m.owner])
		}
		m.pc = cRelease
	case cRelease:
		m.got[m.owner]++
		if !r.earlyRelease {
			release()
		}
		m.advance()
	case cReclaim:
		if s.lap == lap && s.owner == m.owner && s.state == hot.SlotTaken {
			release()
			m.advance()
			break
		}
		m.pc = cLook
	}
	return nil
}

func (m *model) advance() {
	m.head++
	m.pc, m.half, m.owner = cLook, 0, 0
}

// final tells whether all producers have ended and all they claimed was
// handled; then everything published must have been received.
func (m *model) final(r *rules) (bool, error) {
	for i := range m.prod {
		if p := &m.prod[i]; p.sent != r.messages[i] && !p.dead {
			return false, nil
		}
	}
	if m.head != m.claims || m.pc != cLook {
		return false, nil
	}
	for i := range m.prod {
		if p := &m.prod[i]; m.got[i] != p.published {
			return true, fmt.Errorf("producer %d published %d, received %d", i, p.published, m.got[i])
		}
	}
	return true, nil
}

// edge is a step from one state to another, by their numbers.
type edge struct{ from, to int32 }

// explore visits every state and returns how many there are. The error says
// what went wrong in some order of steps, or that a state can be reached from
// which the work never ends.
func explore(r rules) (states int, err error) {
	index := map[model]int32{{}: 0}
	all := []model{{}}
	var edges []edge
	var finals []int32
	for i := 0; i < len(all); i++ {
		m := all[i]
		end, err := m.final(&r)
		if err != nil {
			return len(all), err
		}
		if end {
			finals = append(finals, int32(i))
			continue
		}
		next, err := m.next(&r)
		if err != nil {
			return len(all), err
		}
		for _, n := range next {
			j, seen := index[n]
			if !seen {
				j = int32(len(all))
				index[n] = j
				all = append(all, n)
			}
			edges = append(edges, edge{int32(i), j})
		}
	}
	for i, ok := range reaching(len(all), edges, finals) {
		if !ok {
			return len(all), fmt.Errorf("no way on from %+v", all[i])
		}
	}
	return len(all), nil
}

// reaching tells of each state whether one of finals can be reached from it. It
// walks the edges backwards.
func reaching(states int, edges []edge, finals []int32) []bool {
	first := make([]int32, states+1)
	for _, e := range edges {
		first[e.to+1]++
	}
	for i := range states {
		first[i+1] += first[i]
	}
	from := make([]int32, len(edges))
	fill := append([]int32(nil), first[:states]...)
	for _, e := range edges {
		from[fill[e.to]] = e.from
		fill[e.to]++
	}
	ends := make([]bool, states)
	queue := finals
	for _, i := range finals {
		ends[i] = true
	}
	for len(queue) > 0 {
		i := queue[len(queue)-1]
		queue = queue[:len(queue)-1]
		for _, j := range from[first[i]:first[i+1]] {
			if !ends[j] {
				ends[j] = true
				queue = append(queue, j)
			}
		}
	}
	return ends
}
