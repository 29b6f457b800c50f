package exchange

import (
	"fmt"
	"testing"
	"time"

	"github.com/weft-fabric/weft/internal/congestion"
	"github.com/weft-fabric/weft/internal/interleave"
)

// The engine in every order of events, in groups of two to four: a thread is the wire of one member to another, which
// brings one message at a time, in order; what the receiver sends then is in its wires at once. No timer runs, so an
// operation ends by what arrives alone. A state in which no wire has a message before all members have ended is a
// deadlock.

// ordersModel is a group.
type ordersModel struct {
	slices [][]int64 // by sender and receiver
	policy Policy
	large  bool // has many states
	places int  // of each member's store, 0: none go through relays
	dies   int  // the member that may die between any two messages, 0: none
	calm   int  // rounds of one message of each wire that come in one order, before the search begins
	// change changes what members send, and returns how often they do; nil: nothing is wrong. With leak relays keep the
	// places of what they have passed on.
	change func(a *Action) int
	leak   bool

	members []*ordersMember // of this run
	wrong   string          // found in it, "": nothing
	ended   int             // wires
	pieces  int             // that came to relays, of all runs
}

// ordersMember is a member in its operation.
type ordersMember struct {
	o        *ordersModel
	me       int
	e        *Engine
	now      congestion.Time
	over     bool
	dead     bool
	wires    [][]ordersMessage // by sender, what is on its way
	credited []bool            // ranks that have a credit and have not ended a chunk since
}

// ordersMessage is what is sent, or that the sender has died.
type ordersMessage struct {
	a    Action
	died bool
}

func (m *ordersMember) rank(peer int) int { return (m.me + 1 + peer) % len(m.o.slices) }

func (m *ordersMember) peer(rank int) int {
	return (rank - m.me - 1 + len(m.o.slices)) % len(m.o.slices)
}

// program has a word for each member: how many messages it has taken in. A step returns that, so what the wires' steps
// have returned says in which order each member took its messages in, from which all else follows.
func (o *ordersModel) program() *interleave.Program {
	n := len(o.slices)
	p := &interleave.Program{MaxStates: 300_000, Init: func([]uint64) { o.begin() }}
	for to := range n {
		p.Names = append(p.Names, fmt.Sprintf("messages of member %d", to))
		for from := range n {
			if from != to {
				wire := len(p.Threads)
				body := func(t *interleave.T) { o.carry(t, wire, from, to) }
				p.Threads = append(p.Threads, interleave.Thread{Name: fmt.Sprintf("wire %d-%d", from, to), Body: body})
			}
		}
	}
	p.Names = append(p.Names, "deaths")
	if o.dies != 0 {
		p.Threads = append(p.Threads, interleave.Thread{Name: "death", Body: o.die})
	}
	return p
}

// begin starts the operation at all members.
func (o *ordersModel) begin() {
	n := len(o.slices)
	cfg := DefaultConfig(n - 1)
	cfg.Chunk, cfg.Short, cfg.Policy = 4, 1, o.policy
	o.members, o.wrong, o.ended = nil, "", 0
	for me := range n {
		if o.places != 0 {
			cfg.Chunk, cfg.Piece, cfg.Always = 2, 2, true
			cfg.Store = NewStore(int64(o.places)*cfg.Piece, cfg.Piece)
		}
		e, err := New(cfg)
		if err != nil {
			panic(err)
		}
		m := &ordersMember{o: o, me: me, e: e, now: 1000, credited: make([]bool, n), wires: make([][]ordersMessage, n)}
		o.members = append(o.members, m)
	}
	for me, m := range o.members {
		out, in := make([]int64, n-1), make([]int64, n-1)
		for p := range out {
			out[p], in[p] = o.slices[me][m.rank(p)], o.slices[m.rank(p)][me]
		}
		m.e.Start(m.now, out, in)
		m.send()
	}
	for range o.calm {
		for _, m := range o.members {
			for from := range o.members {
				if len(m.wires[from]) != 0 {
					m.next(from)
				}
			}
		}
	}
}

// carry brings messages from one member to another, until all have ended. Then wires end one after the other, as no
// order of that matters.
func (o *ordersModel) carry(t *interleave.T, wire, from, to int) {
	for {
		t.AwaitAdd(func() bool { // the members are as they are whenever the explorer is at this state
			over := o.over()
			return over && o.ended == wire || !over && len(o.members[to].wires[from]) != 0
		}, interleave.Word(to), 1)
		if o.over() {
			o.ended++
			return
		}
		o.members[to].next(from)
		t.Check(o.wrong == "", "%s", o.wrong)
	}
}

// die has a member die: what it has sent arrives still.
func (o *ordersModel) die(t *interleave.T) {
	t.Add(interleave.Word(len(o.slices)), 1)
	o.members[o.dies].dead = true
	for _, m := range o.members {
		if m.me != o.dies {
			m.wires[o.dies] = append(m.wires[o.dies], ordersMessage{died: true})
		}
	}
}

// over reports whether all members have ended.
func (o *ordersModel) over() bool {
	for _, m := range o.members {
		if !m.over && !m.dead {
			return false
		}
	}
	return true
}

func (o *ordersModel) fail(format string, args ...any) {
	if o.wrong == "" {
		o.wrong = fmt.Sprintf(format, args...)
	}
}

// next takes in the next message of a wire. A relay keeps a piece until it has arrived.
func (m *ordersMember) next(from int) {
	msg := m.wires[from][0]
	m.wires[from] = m.wires[from][1:]
	m.event(from, &msg)
	m.o.members[from].passed(&msg.a)
}

// event takes in a message.
func (m *ordersMember) event(from int, msg *ordersMessage) {
	m.now = m.now.Add(time.Millisecond)
	switch note := msg.a.Note; {
	case m.dead:
		return
	case msg.died:
		m.e.Lost(m.now, m.peer(from))
	case m.over && msg.a.Kind == SendNote && note.Kind == NoteAsk: // late, as other notes and words are
		m.post(from, Action{Kind: SendNote, Note: Note{Kind: NoteRefuse, Serial: note.Serial}})
	case m.over:
	case !m.take(m.peer(from), &msg.a):
		m.o.fail("member %d refuses %+v of %d", m.me, msg.a, from)
	}
	m.send()
}

// passed gives the place of a piece back that a relay has passed on.
func (m *ordersMember) passed(a *Action) {
	if a.Kind == SendPiece && a.Place >= 0 && !m.o.leak && !m.dead {
		m.e.Passed(a)
		m.send()
	}
}

// take brings a message to the engine.
func (m *ordersMember) take(from int, a *Action) (ok bool) {
	switch e := m.e; {
	case a.Kind == SendWord:
		return e.OnWord(m.now, from, a.Word)
	case a.Kind == SendNote:
		return e.OnNote(m.now, from, a.Note)
	case a.Kind == SendChunk:
		m.credited[m.rank(from)] = false
		return e.Arrived(m.now, from, &a.Head, a.Head.Offset, a.Head.Length, true)
	case a.Piece.Hop:
		m.o.pieces++
		_, ok = e.OnRelayed(m.now, from, &a.Piece, e.cfg.Piece)
		return ok
	}
	_, _, _, ok = m.e.OnPiece(m.now, from, &a.Piece, m.e.cfg.Piece)
	return ok
}

func (m *ordersMember) post(to int, a Action) {
	o := m.o.members[to]
	o.wires[m.me] = append(o.wires[m.me], ordersMessage{a: a})
}

// send sends what there is, and sees to what the member has when it has ended.
func (m *ordersMember) send() {
	o := m.o
	if m.over {
		return
	}
	for a, ok := m.e.Next(m.now); ok; a, ok = m.e.Next(m.now) {
		times, sent := 1, a
		if o.change != nil {
			times = o.change(&sent)
		}
		for range times {
			m.rules(&sent)
			m.post(m.rank(a.Peer), sent)
			sent.Place = -1 // is given back once
		}
		if times == 0 {
			m.passed(&a)
		}
	}
	if m.over = m.e.Done(); !m.over {
		return
	}
	if m.e.Failed() && o.dies == 0 {
		o.fail("member %d fails", m.me)
	}
	if s := m.e.cfg.Store; s != nil && s.Free() != len(s.data) {
		o.fail("member %d keeps %d of %d places", m.me, len(s.data)-s.Free(), len(s.data))
	}
	if twice := m.e.Report().Twice; twice != 0 && o.dies == 0 {
		o.fail("to member %d %d pieces come twice", m.me, twice)
	}
}

// rules checks what a member says of credits.
func (m *ordersMember) rules(a *Action) {
	if to := m.rank(a.Peer); a.Kind == SendWord && a.Word.Invite {
		if m.credited[to] {
			m.o.fail("member %d gives %d a second credit before the first is used", m.me, to)
		}
		m.credited[to] = true
	}
}

// ordersGroups are the groups that are searched.
var ordersGroups = map[string]ordersModel{
	"two":                {slices: [][]int64{{0, 9}, {5, 0}}},
	"two, one way":       {slices: [][]int64{{0, 14}, {0, 0}}},
	"three, in a circle": {slices: [][]int64{{0, 2, 0}, {0, 0, 2}, {2, 0, 0}}, large: true},
	"three, one has all": {slices: [][]int64{{0, 5, 5}, {0, 0, 0}, {0, 0, 0}}},
}

// relayGroups are those in which the end of a slice goes through relays: of rank 0's for rank 1 through rank 2, which
// has something for another rank meanwhile, and where both do so through each other. With one place a relay grants one
// piece.
var relayGroups = map[string]ordersModel{
	"relay":            {slices: relayed, places: 2},
	"relay, one place": {slices: relayed, places: 1},
	"relay that dies":  {slices: relayed, places: 1, dies: 2, calm: 1},
	"relay, two pieces": {
		slices: [][]int64{{0, 9, 0, 0}, {0, 0, 0, 0}, {1, 0, 0, 2}, {0, 0, 0, 0}}, places: 1, calm: 1,
	},
	"two relays": {
		slices: [][]int64{{0, 7, 1, 0}, {0, 0, 0, 0}, {1, 0, 0, 7}, {0, 0, 0, 0}}, places: 1, calm: 2, large: true,
	},
}

var relayed = [][]int64{{0, 7, 0, 0}, {0, 0, 0, 0}, {1, 0, 0, 2}, {0, 0, 0, 0}}

// TestOrders: no order of events has a small group wait for ever, under any policy.
func TestOrders(t *testing.T) {
	for name, group := range ordersGroups {
		for policy := range policies {
			if group.large && policy != Adaptive {
				continue
			}
			o := group
			o.policy = policy
			result, err := interleave.Explore(o.program())
			if err != nil {
				t.Errorf("%s, policy %d: %v", name, policy, err)
			}
			t.Logf("%s, policy %d: %+v", name, policy, result)
		}
	}
}

// TestOrdersRelays: nor does one have members wait for ever, or keep places, that send through relays, where nothing is
// wrong, where a relay dies, and where what it grants does not come.
func TestOrdersRelays(t *testing.T) {
	for name, group := range relayGroups {
		if group.large && testing.Short() {
			continue
		}
		for what, change := range map[string]func(a *Action) int{
			"": nil, "no grant": func(a *Action) int { return times(a.Kind != SendNote || a.Note.Kind != NoteGrant) },
		} {
			o := group
			o.change = change
			result, err := interleave.Explore(o.program())
			if err != nil {
				t.Errorf("%s, %q: %v", name, what, err)
			}
			if (o.pieces == 0) != (change != nil) {
				t.Errorf("%s, %q: %d pieces go to relays in all orders", name, what, o.pieces)
			}
			t.Logf("%s, %q: %+v, %d pieces", name, what, result, o.pieces)
		}
	}
}

func times(sent bool) int {
	if sent {
		return 1
	}
	return 0
}

// TestOrdersCredits: no member waits for ever for a credit that does not come.
func TestOrdersCredits(t *testing.T) {
	for name, group := range ordersGroups {
		if group.large && testing.Short() {
			continue
		}
		o, credits := group, 0
		o.change = func(a *Action) int {
			if a.Kind == SendWord && a.Word.Invite {
				credits++
				a.Word.Invite = false
			}
			return 1
		}
		if _, err := interleave.Explore(o.program()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		t.Logf("%s: %d credits do not come", name, credits)
	}
}

// TestOrdersFindMutants: the search finds members that wait for a word that was forgotten, and credits beyond the rule.
func TestOrdersFindMutants(t *testing.T) {
	for what, change := range map[string]func(a *Action) int{
		"a word is forgotten": func(a *Action) int { return times(a.Kind != SendWord || a.Word.Got < 2) },
		"every word is a credit, twice": func(a *Action) int {
			a.Word.Invite = true
			return 1 + times(a.Kind == SendWord)
		},
	} {
		for name, group := range ordersGroups {
			o := group
			o.change = change
			if _, err := interleave.Explore(o.program()); err == nil {
				t.Errorf("%s: %s: not found", name, what)
			}
		}
	}
}

// TestOrdersFindRelayMutants: the search finds faults in the rules of relays.
func TestOrdersFindRelayMutants(t *testing.T) {
	piece := func(a *Action, hop bool, n int) int {
		if a.Kind == SendPiece && a.Piece.Hop == hop && (hop || a.Place >= 0) {
			return n
		}
		return 1
	}
	for what, change := range map[string]func(a *Action) int{
		"a source uses a grant twice":  func(a *Action) int { return piece(a, true, 2) },
		"a source forgets a piece":     func(a *Action) int { return piece(a, true, 0) },
		"a relay forgets a piece":      func(a *Action) int { return piece(a, false, 0) },
		"a relay passes a piece twice": func(a *Action) int { return piece(a, false, 2) },
		"a source forgets to end": func(a *Action) int {
			return times(a.Kind != SendNote || a.Note.Kind != NoteEnd)
		},
		"a word is forgotten":          func(a *Action) int { return times(a.Kind != SendWord) },
		"a piece more is acknowledged": func(a *Action) int { a.Word.Low++; return 1 },
		"a relay grants without a place": func(a *Action) int {
			if a.Kind == SendNote && a.Note.Kind == NoteGrant {
				a.Note.Count++
			}
			return 1
		},
		"a source says it has used more": func(a *Action) int {
			if a.Kind == SendNote && a.Note.Kind == NoteEnd {
				a.Note.Count++
			}
			return 1
		},
		"a relay keeps places": nil,
	} {
		o := relayGroups["relay, two pieces"]
		o.change, o.leak = change, change == nil
		if _, err := interleave.Explore(o.program()); err == nil {
			t.Errorf("%s: not found", what)
		} else {
			t.Logf("%s: %.120v", what, err)
		}
	}
}
