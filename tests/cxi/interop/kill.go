package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// One side is killed in the middle of what it does, again and again. Whatever the other has posted for it ends once;
// it goes on, with the next process in that one's place.

// group is how often one side is killed until both begin anew, with the other side as the one that is killed.
const group = 10

// Ids of what is posted, within those of a side.
const (
	killReceive  = 2
	killSend     = 8
	killTransfer = 16
	killRegion   = 1
)

// killed runs rounds between two commands.
func killed(a, b string, rounds int) error {
	passed := 0
	for passed < rounds {
		n := min(group, rounds-passed)
		if err := killGroup(a, b, n, uint64(passed)); err != nil {
			return fmt.Errorf("kills %d to %d of %s, seen by %s: %w", passed, passed+n, b, a, err)
		}
		passed += n
		a, b = b, a
	}
	fmt.Printf("%d kills passed\n", passed)
	return nil
}

// killGroup has one side live through the ends of others.
func killGroup(command, victim string, rounds int, seed uint64) error {
	r := rand.New(rand.NewPCG(seed, 0))
	a, err := start(command)
	if err != nil {
		return err
	}
	_, err = a.say(fmt.Sprintf("expose %d c8 4096 rw", killRegion))
	for round := 0; round < rounds && err == nil; round++ {
		err = killOne(a, victim, r)
	}
	a.in.Close()
	if end := a.cmd.Wait(); err == nil {
		err = end
	}
	return err
}

// killOne starts a side, has both work for each other, and kills it.
func killOne(a *process, victim string, r *rand.Rand) error {
	b, err := start(victim)
	if err != nil {
		return err
	}
	a.others, b.others = []*process{b}, []*process{a}
	for _, c := range []struct {
		p    *process
		line string
	}{{a, "peer " + b.name}, {b, "peer " + a.name}, {b, fmt.Sprintf("expose %d c8 4096 rw", killRegion)}} {
		if _, err := c.p.say(c.line); err != nil {
			return err
		}
	}
	early := r.IntN(2) == 0
	if early {
		if _, err := killPosts(b, r); err != nil {
			return err
		}
	}
	posted, err := killPosts(a, r)
	if err == nil && !early {
		_, err = killPosts(b, r)
	}
	if err != nil {
		return err
	}
	fmt.Fprintln(b.in, "await 40") // it works while it is killed
	for range r.IntN(3) {
		if _, err := a.say("rest"); err != nil {
			return err
		}
	}
	if err := b.cmd.Process.Kill(); err != nil {
		return err
	}
	_ = b.cmd.Wait() // it was killed
	return killEnds(a, posted)
}

// killPosts has a side post operations of all kinds, and returns the ids of those that must end when the other side
// has gone; the data of a long message may never be read.
func killPosts(p *process, r *rand.Rand) (must []int, err error) {
	post := func(id int, ends bool, format string, args ...any) {
		var said string
		if err == nil {
			said, err = p.say(fmt.Sprintf(format, args...))
		}
		if ends && strings.HasPrefix(said, "ok") {
			must = append(must, id)
		}
	}
	for k := range 4 {
		post(killReceive+k, true, "receive %d 1 %x 0 60000 0 0", killReceive+k, k)
	}
	for k, n := range []int{8, 0, 300, 16000, 50000, 20000} {
		level := []string{"transmit", "match"}[r.IntN(2)]
		ends := n < 18434 && level == "transmit"
		post(killSend+k, ends, "send %d 1 %x %d 1 5 %s", killSend+k, k, n, level)
	}
	for k := range 4 {
		post(killTransfer+k, true, "%s %d c8 %d %d", []string{"write", "read"}[k%2], killTransfer+k, 8*k, 1+1000*k)
	}
	return must, err
}

// killEnds waits until everything that must has ended, once; receives are taken back.
func killEnds(p *process, must []int) error {
	times := map[int]int{}
	ends := func() error {
		lines, err := p.drain(60)
		for _, line := range lines {
			var what string
			var id int
			if _, err := fmt.Sscan(line, &what, &id); err != nil {
				return fmt.Errorf("%q: %w", line, err)
			}
			times[id]++
		}
		return err
	}
	missing := func(id int) bool { return times[id] != 1 }
	err := ends()
	for k := range 4 {
		if err == nil && times[killReceive+k] == 0 {
			_, err = p.say(fmt.Sprintf("cancel %d", killReceive+k))
		}
	}
	for n := 0; n < 100 && err == nil && slices.ContainsFunc(must, missing); n++ {
		if _, err = p.say("rest"); err == nil {
			err = ends()
		}
	}
	for id, n := range times {
		if n > 1 {
			err = errors.Join(err, fmt.Errorf("operation %d has ended %d times", id, n))
		}
	}
	for _, id := range must {
		if err == nil && missing(id) {
			err = fmt.Errorf("operation %d has not ended", id)
		}
	}
	return err
}
