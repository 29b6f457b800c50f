package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
)

// Programs of random operations between several sides, each of which sends to all others at once.

// Ids within those of a side: so many messages, receives, transfers and claims at once, one search, and the region.
const (
	randomSends     = 20
	randomReceives  = 60
	randomTransfers = 16
	randomClaims    = 12

	firstReceive  = randomSends
	firstTransfer = firstReceive + randomReceives
	firstClaim    = firstTransfer + randomTransfers
	searchID      = firstClaim + randomClaims
	regionID      = searchID + 1

	// Each transfer has a slot of the region for itself.
	slotBytes = 4096
)

// randomSizes are on both sides of all bounds between the ways in which messages go.
var randomSizes = []int{0, 1, 8, 192, 193, 1000, 2048, 2049, 16384, 18433, 18434, 30000, 50000}

// sent is a message from one side to another.
type sent struct {
	n      int
	tagged bool
	tag    uint64
	data   uint64
	sum    string
	taken  bool
}

// wanted is a receive of messages of one side.
type wanted struct {
	id          int
	tagged      bool
	tag, ignore uint64
	room        int
	many, ended bool
	settled     bool // how it ended is known
}

func (w *wanted) takes(m *sent) bool {
	return !m.taken && w.tagged == m.tagged && (!m.tagged || (w.tag^m.tag)&^w.ignore == 0)
}

// way is what goes from one side to another.
type way struct {
	messages []*sent
	receives []*wanted
}

// crowd are several sides.
type crowd struct {
	r       *rand.Rand
	sides   []*process
	ways    [][]way // by sender and receiver
	sends   []int   // of each side, in this round
	gets    []int
	moves   []int
	slots   []int // of each side's region
	claims  []int
	aside   [][]claimed // of each side
	keys    []string
	want    [][]string // what each side is to answer
	early   [][]string // what it has answered
	maybe   []bool     // a side searches
	cancels bool       // sides take receives back in this round
	tally   *tally
	choice  string // which keys the sides choose (INTEROP_KEYS)
	checks  [][2]string
}

// number is what side p calls side q.
func number(p, q int) int {
	if q > p {
		return q
	}
	return q + 1
}

// do has a side do something to or from another.
func (x *crowd) do(p, q int, format string, args ...any) (string, error) {
	if _, err := x.sides[p].do("to %d", number(p, q)); err != nil {
		return "", err
	}
	return x.sides[p].do(format, args...)
}

// levels are those by which p may have messages to q completed. libfabric's CXI provider has no level match here: with
// more of its messages under way that damages its queue (pair.levels), and it crashes. Nor have messages to it while it
// takes receives back: a receive that has its message, and waits for the answer to its notice of the match, is canceled
// there (cxip_recv_cancel), and freed by that and by the answer.
func (x *crowd) levels(p, q, n int) []string {
	levels := []string{"transmit"}
	if weft(x.sides[p]) && (weft(x.sides[q]) || !x.cancels) {
		levels = append(levels, "match")
	}
	if n > 0 && n <= 192 {
		levels = append(levels, "inject")
	}
	return levels
}

// tagOf is a tag of messages of a side.
func tagOf(p int, low uint64) uint64 { return uint64(p+1)<<40 | low }

// send has p send a message to q. errAgain: p has no room, and may have none before q receives what was sent before.
func (x *crowd) send(p, q int, m *sent, level string) error {
	if _, err := x.sides[p].do("to %d", number(p, q)); err != nil {
		return err
	}
	id := x.sends[p]
	sum, err := x.sides[p].try(4, fmt.Sprintf("send %d %d %x %d %d %x %s", id, bit(m.tagged), m.tag, m.n,
		bit(m.data != 0), m.data, level))
	if err != nil {
		return err
	}
	x.sends[p]++
	m.sum = sum
	x.want[p] = append(x.want[p], fmt.Sprintf("sent %d", id))
	x.ways[p][q].messages = append(x.ways[p][q].messages, m)
	return nil
}

// receive has q receive a message of p.
func (x *crowd) receive(p, q int, w *wanted, directed bool) error {
	w.id = firstReceive + x.gets[q]
	x.gets[q]++
	x.ways[p][q].receives = append(x.ways[p][q].receives, w)
	_, err := x.do(q, p, "receive %d %d %x %x %d %d %d", w.id, bit(w.tagged), w.tag, w.ignore, w.room, bit(directed),
		bit(w.many))
	return err
}

// randomSend, randomReceive and randomTransfer do one of their kind.
func (x *crowd) randomSend(p, q int) error {
	if x.sends[p] == randomSends {
		return nil
	}
	m := &sent{n: randomSizes[x.r.IntN(len(randomSizes))], tagged: x.r.IntN(4) > 0}
	if m.tagged {
		m.tag = x.randomTag(p)
	}
	if x.r.IntN(2) == 0 {
		m.data = x.r.Uint64() | 1
	}
	levels := x.levels(p, q, m.n)
	return x.send(p, q, m, levels[x.r.IntN(len(levels))])
}

func (x *crowd) randomReceive(p, q int) error {
	if x.gets[q] >= randomReceives/2 { // the rest is for what has found none
		return nil
	}
	w := &wanted{tagged: x.r.IntN(4) > 0, room: 50000}
	directed := !w.tagged || x.r.IntN(2) == 0
	switch {
	case w.tagged:
		w.tag, w.ignore = tagOf(p, x.r.Uint64N(firstClaimed)), []uint64{0, 1, 3}[x.r.IntN(3)]
	case x.r.IntN(3) == 0:
		w.room, w.many = 1<<21, true
	}
	if !w.many && x.r.IntN(8) == 0 {
		w.room = []int{100, 3000}[x.r.IntN(2)]
	}
	return x.receive(p, q, w, directed)
}

func (x *crowd) randomTransfer(p, q int) error {
	if x.moves[p] == randomTransfers {
		return nil
	}
	id, off := firstTransfer+x.moves[p], x.slots[q]*slotBytes
	x.moves[p]++
	x.slots[q]++
	n := 1 + x.r.IntN(slotBytes)
	switch kind := x.r.IntN(5); kind {
	case 0:
		before := make([]byte, regionBytes(len(x.sides)))
		contents(before, regionID)
		var was uint64
		for k := range 8 {
			was |= uint64(before[off+k]) << (8 * k)
		}
		add := x.r.Uint64()
		x.want[p] = append(x.want[p], fmt.Sprintf("performed %d %x 0", id, was))
		_, err := x.do(p, q, "atomic %d %s %d 2 %d 1 %x 0 0 0", id, x.keys[q], off, uint64Type, add)
		return err
	case 1:
		sum, err := x.sides[q].do("content %d %d %d", regionID, off, n)
		if err == nil {
			_, err = x.do(p, q, "read %d %s %d %d", id, x.keys[q], off, n)
		}
		x.want[p] = append(x.want[p], fmt.Sprintf("read %d %s", id, sum))
		return err
	default:
		level, data := "delivery", uint64(0)
		switch {
		case kind == 3:
			level, n = "inject", 1+n%192
		case kind == 4 && (&pair{a: x.sides[p], b: x.sides[q], keys: x.choice}).notifies():
			level, data = "data", x.r.Uint64()|1
			x.tally.noticed++
			x.want[q] = append(x.want[q], fmt.Sprintf("written %x %d %d", data, n, number(q, p)))
		}
		sum, err := x.do(p, q, "put %d %s %d %d %s %x", id, x.keys[q], off, n, level, data)
		x.want[p] = append(x.want[p], fmt.Sprintf("sent %d", id))
		x.checks = append(x.checks, [2]string{fmt.Sprintf("%d content %d %d %d", q, regionID, off, n), sum})
		return err
	}
}

func (x *crowd) randomSearch(p, q int) error {
	if x.maybe[p] {
		return nil
	}
	x.maybe[p] = true
	_, err := x.do(p, q, "search %d 1 %x", searchID, tagOf(q, x.r.Uint64N(firstClaimed)))
	return err
}

// regionBytes is what all transfers of the other sides have room in.
func regionBytes(sides int) int { return (sides - 1) * randomTransfers * slotBytes }

// contents are those of a side's memory.
func contents(b []byte, id int) {
	for k := range b {
		b[k] = byte(id*131 + k*7 + k>>8)
	}
}

// matched says what each receive gets: the first of its messages that no earlier receive takes, whenever they came.
func (x *crowd) matched(p, q int) {
	for _, w := range x.ways[p][q].receives {
		for _, m := range x.ways[p][q].messages {
			if w.ended || !w.takes(m) {
				continue
			}
			m.taken, w.ended = true, !w.many
			line := fmt.Sprintf("received %d %d %x %x %d %s", w.id, m.n, m.tag, m.data, number(q, p), m.sum)
			if m.n > w.room {
				line = fmt.Sprintf("truncated %d %d %d", w.id, w.room, m.n-w.room)
			}
			x.want[q] = append(x.want[q], line)
		}
	}
}

// begin makes a round's regions.
func (x *crowd) begin() error {
	n := len(x.sides)
	x.ways, x.want, x.maybe = make([][]way, n), make([][]string, n), make([]bool, n)
	x.sends, x.gets, x.moves, x.slots = make([]int, n), make([]int, n), make([]int, n), make([]int, n)
	x.cancels = x.r.IntN(2) == 0
	x.claims, x.aside, x.early = make([]int, n), make([][]claimed, n), make([][]string, n)
	x.keys, x.checks = make([]string, n), nil
	for p := range x.sides {
		x.ways[p] = make([]way, n)
		key := []uint64{0, 50, 99, 100, 1 << 20}[x.r.IntN(5)]
		said, err := x.sides[p].do("expose %d %x %d rw", regionID, key, regionBytes(n))
		if err != nil {
			return err
		}
		x.keys[p] = said
	}
	return nil
}

// end has each message find a receive, waits for all, and compares.
func (x *crowd) end() error {
	for p := range x.sides {
		if err := x.takeAll(p); err != nil {
			return err
		}
		for q := range x.sides {
			x.matched(p, q)
			for _, m := range x.ways[p][q].messages {
				if m.taken {
					continue
				}
				w := &wanted{tagged: m.tagged, tag: m.tag, room: 50000}
				if err := x.receive(p, q, w, true); err != nil {
					return err
				}
				x.matched(p, q)
			}
		}
	}
	counts := make([]int, len(x.sides))
	for p := range x.sides {
		counts[p] = len(x.want[p]) + bit(x.maybe[p]) - len(x.early[p])
	}
	lists, err := gather(x.sides, counts)
	for p, got := range lists {
		if err == nil {
			err = x.compare(p, append(x.early[p], got...))
		}
	}
	if err == nil {
		err = x.written()
	}
	if err == nil {
		err = x.leave()
	}
	return err
}

// compare compares what a side has answered.
func (x *crowd) compare(p int, got []string) error {
	searched := func(line string) bool {
		return strings.HasPrefix(line, fmt.Sprintf("found %d ", searchID)) ||
			line == fmt.Sprintf("missing %d", searchID)
	}
	if x.maybe[p] && slices.ContainsFunc(got, searched) {
		got = slices.DeleteFunc(got, searched)
	}
	if err := same(got, x.want[p]); err != nil {
		return fmt.Errorf("%s: %w", x.sides[p].command, err)
	}
	return nil
}

// written compares what was written to regions, and ends those.
func (x *crowd) written() error {
	for _, c := range x.checks {
		var q int
		if err := scan(c[0], &q); err != nil {
			return err
		}
		_, line, _ := strings.Cut(c[0], " ")
		if got, err := x.sides[q].do("%s", line); err != nil || got != c[1] {
			return fmt.Errorf("%s: %s, not %s: %w", line, got, c[1], err)
		}
	}
	for _, p := range x.sides {
		if _, err := p.do("withdraw %d", regionID); err != nil {
			return err
		}
	}
	return nil
}

// leave takes receives back that have got nothing, or may get more.
func (x *crowd) leave() error {
	counts := make([]int, len(x.sides))
	for p := range x.sides {
		for q := range x.sides {
			for _, w := range x.ways[p][q].receives {
				if w.ended {
					continue
				}
				counts[q]++
				if _, err := x.sides[q].do("cancel %d", w.id); err != nil {
					return err
				}
			}
		}
	}
	lists, err := gather(x.sides, counts)
	for p, list := range lists {
		for _, line := range list {
			if err == nil && !strings.HasPrefix(line, "canceled ") {
				err = fmt.Errorf("%s: %q of receives that are taken back", x.sides[p].command, line)
			}
		}
	}
	return err
}

// round is one random program.
func (x *crowd) round() error {
	if err := x.begin(); err != nil {
		return err
	}
	for range 40 * len(x.sides) {
		p := x.r.IntN(len(x.sides))
		q := (p + 1 + x.r.IntN(len(x.sides)-1)) % len(x.sides)
		var err error
		switch what := x.r.IntN(25); {
		case what < 8:
			err = x.randomSend(p, q)
		case what < 14:
			err = x.randomReceive(p, q)
		case what < 18:
			err = x.randomTransfer(p, q)
		case what < 19:
			err = x.randomSearch(p, q)
		case what < 21:
			err = x.randomClaim(p, q)
		case what < 23:
			err = x.take(q)
		case what < 24:
			err = x.randomCancel(p, q)
		default:
			_, err = x.sides[p].do("rest")
		}
		if err != nil && !errors.Is(err, errAgain) {
			return err
		}
	}
	return x.end()
}

// flood has all others send more to one side at once than it has room for, before any receive is there.
func (x *crowd) flood(q int) error {
	if err := x.begin(); err != nil {
		return err
	}
	for k := range randomSends {
		for p := range x.sides {
			if p == q {
				continue
			}
			n := floodSizes[k%len(floodSizes)]
			levels := x.levels(p, q, 0)
			m := &sent{n: n, tagged: true, tag: tagOf(p, 0), data: uint64(k + 1)}
			err := x.send(p, q, m, levels[k%len(levels)])
			if err != nil && !errors.Is(err, errAgain) {
				return err
			}
		}
	}
	return x.end()
}

// random runs programs from a seed on, each with sides of its own, until maxFailed of them have failed.
func random(seed, count uint64, commands []string) error {
	const maxFailed = 5
	var failed []error
	var t tally
	for n := range count {
		err := randomOne(seed+n, commands, &t)
		if err == nil {
			continue
		}
		if failed = append(failed, fmt.Errorf("seed %d: %w", seed+n, err)); len(failed) == maxFailed {
			break
		}
	}
	if len(failed) > 0 {
		return errors.Join(failed...)
	}
	if err := t.missing(count, commands); err != nil {
		return err
	}
	fmt.Printf("%d random programs of %d sides passed, from seed %d on: %v\n", count, len(commands), seed, t)
	return nil
}

func randomOne(seed uint64, commands []string, t *tally) error {
	sides, err := crew(commands)
	if err != nil {
		return err
	}
	x := &crowd{r: rand.New(rand.NewPCG(seed, 1)), sides: sides, tally: t, choice: os.Getenv("INTEROP_KEYS")}
	err = x.flood(int(seed) % len(x.sides))
	for n := 0; n < 3 && err == nil; n++ {
		err = x.round()
	}
	if err == nil {
		return ended(sides...)
	}
	abandon(sides)
	return err
}
