package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Claims, discards and contested cancels of random programs. What comes of them depends on what has come; the model
// takes each over from what the side answers, so that the side is asked until it has.

// claimed is a message that a side has set aside.
type claimed struct {
	id, from int
	m        *sent
}

// firstClaimed is the first of the claimTags tags that only claims ask for, and receives when a round ends.
const (
	firstClaimed = 4
	claimTags    = 2
)

// tally is how often something happened in random programs.
type tally struct {
	claimed, dropped, discarded, canceled, kept, noticed int
}

func (t tally) String() string {
	return fmt.Sprintf("%d messages claimed, %d of them discarded, %d discarded by a search, %d receives canceled, "+
		"%d that had ended, %d writes with data", t.claimed, t.discarded, t.dropped, t.canceled, t.kept, t.noticed)
}

// tallySeeds are programs enough for each kind of what happens by chance in them.
const tallySeeds = 5

// missing names what has not happened in programs of some sides that are enough for it, nil where there is none.
func (t tally) missing(programs uint64, commands []string) error {
	discards := slices.ContainsFunc(commands, ofWeft)
	if programs < tallySeeds || t.claimed > 0 && t.canceled > 0 && (t.discarded > 0 || !discards) {
		return nil
	}
	return fmt.Errorf("something has never happened in %d programs: %v", programs, t)
}

// randomTag is a tag of messages from a side: one that receives ask for, or one that claims do.
func (x *crowd) randomTag(p int) uint64 {
	if x.r.IntN(5) == 0 {
		return tagOf(p, firstClaimed+x.r.Uint64N(claimTags))
	}
	return tagOf(p, x.r.Uint64N(firstClaimed))
}

// settleTime is how long a side has for an answer, as it has for the ends that it awaits.
const settleTime = 30 * time.Second

// settle has a side go on until it has answered a line that is wanted, and takes that out of what it has answered.
func (x *crowd) settle(q int, wanted func(line string) bool) (string, error) {
	for end := time.Now().Add(settleTime); time.Now().Before(end); {
		lines, err := x.sides[q].drain(1)
		if err != nil {
			return "", err
		}
		x.early[q] = append(x.early[q], lines...)
		if k := slices.IndexFunc(x.early[q], wanted); k >= 0 {
			line := x.early[q][k]
			x.early[q] = slices.Delete(x.early[q], k, k+1)
			return line, nil
		}
		for p, side := range x.sides {
			if p == q {
				continue
			}
			if _, err := side.say("rest"); err != nil {
				return "", err
			}
		}
	}
	return "", fmt.Errorf("%s does not answer; it has answered %q", x.sides[q].command, x.early[q])
}

// endsOf returns what accepts the lines of an operation.
func endsOf(id int) func(string) bool {
	return func(line string) bool {
		words := strings.Fields(line)
		return len(words) > 1 && words[0] != "written" && words[1] == fmt.Sprint(id)
	}
}

// ask has a side do something about messages of another, and waits for its answer. errAgain: it has no room.
func (x *crowd) ask(q, p, id int, line string) (string, error) {
	if _, err := x.sides[q].do("to %d", number(q, p)); err != nil {
		return "", err
	}
	if _, err := x.sides[q].try(4, line); err != nil {
		return "", err
	}
	return x.settle(q, endsOf(id))
}

// randomClaim has q set aside the first message of p with a tag, or throw it away at once, where q can do both in one.
func (x *crowd) randomClaim(p, q int) error {
	if x.claims[q] == randomClaims {
		return nil
	}
	tag, word, id := tagOf(p, firstClaimed+x.r.Uint64N(claimTags)), "claim", firstClaim+x.claims[q]
	if strings.HasSuffix(x.sides[q].command, " weft") && x.r.IntN(4) == 0 {
		word = "drop"
	}
	said, err := x.ask(q, p, id, fmt.Sprintf("%s %d 1 %x", word, id, tag))
	if err != nil || said == fmt.Sprintf("missing %d", id) {
		return err // it may be on its way
	}
	x.claims[q]++
	for _, m := range x.ways[p][q].messages {
		if m.taken || !m.tagged || m.tag != tag {
			continue
		}
		if want := fmt.Sprintf("found %d %d %x", id, m.n, tag); said != want {
			return fmt.Errorf("%s: %s of tag %x: %q, not %q", x.sides[q].command, word, tag, said, want)
		}
		m.taken = true
		if word == "drop" {
			x.tally.dropped++
		} else {
			x.tally.claimed++
			x.aside[q] = append(x.aside[q], claimed{id, p, m})
		}
		return nil
	}
	return fmt.Errorf("%s: %s of tag %x: %q, where no message is", x.sides[q].command, word, tag, said)
}

// take receives one of the messages that q has claimed, or throws it away: libfabric's CXI provider has no FI_DISCARD.
func (x *crowd) take(q int) error {
	if len(x.aside[q]) == 0 {
		return nil
	}
	k := x.r.IntN(len(x.aside[q]))
	h := x.aside[q][k]
	line := fmt.Sprintf("take %d %d", h.id, h.m.n)
	want := fmt.Sprintf("received %d %d %x %x %d %s", h.id, h.m.n, h.m.tag, h.m.data, number(q, h.from), h.m.sum)
	if weft(x.sides[q]) && x.r.IntN(2) == 0 {
		line, want = fmt.Sprintf("discard %d", h.id), fmt.Sprintf("discarded %d %d", h.id, h.m.n)
	}
	if _, err := x.sides[q].try(4, line); err != nil {
		return err
	}
	x.tally.discarded += bit(strings.HasPrefix(line, "discard"))
	x.aside[q] = slices.Delete(x.aside[q], k, k+1)
	x.want[q] = append(x.want[q], want)
	return nil
}

// takeAll takes all that is set aside.
func (x *crowd) takeAll(q int) error {
	for n := 0; len(x.aside[q]) > 0; n++ {
		if err := x.take(q); err != nil && (n > 1000 || !errors.Is(err, errAgain)) {
			return err
		}
	}
	return nil
}

// randomCancel takes a receive of q back, for which a message of p may be on its way: it is canceled, or has one.
func (x *crowd) randomCancel(p, q int) error {
	if !x.cancels {
		return nil
	}
	var open []*wanted
	for _, w := range x.ways[p][q].receives {
		if !w.many && !w.settled {
			open = append(open, w)
		}
	}
	if len(open) == 0 {
		return nil
	}
	w := open[x.r.IntN(len(open))]
	if x.r.IntN(2) == 0 && x.sends[p] < randomSends {
		m := &sent{n: randomSizes[x.r.IntN(len(randomSizes))], tagged: w.tagged, tag: w.tag, data: 1}
		if err := x.send(p, q, m, "transmit"); err != nil {
			return err
		}
	}
	switch said, err := x.sides[q].say(fmt.Sprintf("cancel %d", w.id)); {
	case err != nil:
		return err
	case said == "again":
		return errAgain
	}
	said, err := x.settle(q, endsOf(w.id))
	if err != nil {
		return err
	}
	w.settled = true
	if said == fmt.Sprintf("canceled %d", w.id) {
		x.tally.canceled++
		x.ways[p][q].receives = slices.DeleteFunc(x.ways[p][q].receives, func(v *wanted) bool { return v == w })
	} else {
		x.tally.kept++
		x.early[q] = append(x.early[q], said)
	}
	return nil
}
