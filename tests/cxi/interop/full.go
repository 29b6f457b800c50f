package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// A receiver that has not enough of something for what comes before its receives: it stops for that reason, which it
// counts, and has every message in the end.

// Rounds, and messages from each sender in one.
const (
	fullRounds   = 3
	fullMessages = 70
	fullHalf     = fullMessages / 2
)

// fullOrders are the parts of a round where that is not to send all and then receive all: for what receives have too
// little of, some come ahead of their messages, and some messages first.
var fullOrders = map[string][]part{
	"matched_soft_receive": {{receives: true, to: fullMessages}, {to: fullMessages}},
	"matched_by_software": {{to: fullHalf}, {receives: true, from: fullHalf, to: fullMessages},
		{receives: true, to: fullHalf}, {from: fullHalf, to: fullMessages}},
}

// part is a part of a round: messages of all senders, or receives of them.
type part struct {
	receives bool
	from, to int
}

// filling is a receiver, the first side, and its senders.
type filling struct {
	sides []*process
	want  []string // what the receiver is to answer
}

// full has all other sides send more than the first has room for. reason is the counter that says of what it had too
// little: it must have risen in one of the rounds, and of what weft's senders send something been dropped, unless
// software has gone on with it, or all receives were there before.
func full(reason string, commands []string) error {
	sides, err := crew(commands)
	if err != nil {
		return err
	}
	x := &filling{sides: sides}
	order := fullOrders[reason]
	if order == nil {
		order = []part{{to: fullMessages}, {receives: true, to: fullMessages}}
	}
	for k := 0; k < fullRounds && err == nil; k++ {
		if err = x.round(order); err != nil {
			err = fmt.Errorf("round %d: %w", k, err)
		}
	}
	if err == nil {
		err = x.stopped(reason)
	}
	if err != nil {
		abandon(sides)
		return err
	}
	return ended(sides...)
}

// stopped compares the counters of a reason with what must have been.
func (x *filling) stopped(reason string) error {
	stops, err := counter(x.sides[0], reason)
	if err != nil {
		return err
	}
	dropped := 0
	for _, p := range x.sides[1:] {
		if !weft(p) {
			continue
		}
		n, err := counter(p, "matched_dropped")
		if err != nil {
			return err
		}
		dropped += n
	}
	if stops == 0 {
		return fmt.Errorf("%s never had too little: %s is 0", x.sides[0].command, reason)
	}
	if dropped == 0 && strings.HasPrefix(reason, "matched_no_") {
		return errors.New("no sender of weft's has had a message dropped")
	}
	fmt.Printf("%d messages of %d senders passed, the receiver had too little %d times (%s), and %d messages of "+
		"weft's were dropped\n", fullRounds*fullMessages*(len(x.sides)-1), len(x.sides)-1, stops, reason, dropped)
	return nil
}

// counter is a counter of a side.
func counter(p *process, name string) (int, error) {
	said, err := p.do("counter %s", name)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(said)
}

// round has the first side receive messages of all others, in order.
func (x *filling) round(order []part) error {
	x.want = nil
	for _, part := range order {
		step := x.send
		if part.receives {
			step = x.receive
		}
		if err := step(part.from, part.to); err != nil {
			return err
		}
	}
	counts := make([]int, len(x.sides))
	for p := range counts {
		counts[p] = fullMessages
	}
	counts[0] = len(x.want)
	lists, err := gather(x.sides, counts)
	if err != nil {
		return err
	}
	return same(lists[0], x.want)
}

// fullTag is the tag of a sender's message: both halves have their own.
func fullTag(p, k int) uint64 { return tagOf(p, uint64(k/fullHalf)) }

// send sends messages of all senders in turn, and waits until they have arrived or been dropped.
func (x *filling) send(from, to int) error {
	for k := from; k < to; k++ {
		for p, side := range x.sides[1:] {
			if _, err := side.do("to 1"); err != nil {
				return err
			}
			n, tag := floodSizes[(k+p)%len(floodSizes)], fullTag(p, k)
			sum, err := side.do("send %d 1 %x %d 1 %x transmit", k, tag, n, k+1)
			if err != nil {
				return err
			}
			x.want = append(x.want, fmt.Sprintf("received %d %d %x %x %d %s", p*fullMessages+k, n, tag, k+1, p+1, sum))
		}
	}
	for range 5 {
		for _, side := range x.sides {
			if _, err := side.say("rest"); err != nil {
				return err
			}
		}
	}
	return nil
}

// receive posts receives, each of one message.
func (x *filling) receive(from, to int) error {
	for p := range x.sides[1:] {
		if _, err := x.sides[0].do("to %d", p+1); err != nil {
			return err
		}
		for k := from; k < to; k++ {
			_, err := x.sides[0].do("receive %d 1 %x 0 50000 1 0", p*fullMessages+k, fullTag(p, k))
			if err != nil {
				return err
			}
		}
	}
	return nil
}
