// Command interop has two endpoints exchange messages, one process each, and compares what comes with what was sent. A
// side is any program that does what it reads, a command a line, and answers each:
//
//	peer B0 … B7                                     another side's name; each begins with "name B0 … B7"
//	to N                                             what follows is for the peer that was named as N-th
//	receive ID TAGGED TAG IGNORE BYTES DIRECTED MANY
//	send ID TAGGED TAG BYTES HASDATA DATA LEVEL      "ok SUM"; LEVEL: transmit, match, inject, injected or delivery
//	search ID TAGGED TAG
//	claim ID TAGGED TAG                              a search that sets aside what it finds
//	take ID BYTES                                    receives that
//	discard ID                                       throws that away
//	drop ID TAGGED TAG                               a search that throws away what it finds, of weft's provider
//	cancel ID
//	expose ID KEY BYTES RIGHTS                       "ok KEY"; peers read (r), write (w) or both (rw) by that key
//	count ID                                         "ok N": so many operations were counted at them
//	content ID OFFSET BYTES                          "ok SUM" of a part of them
//	withdraw ID                                      ends that
//	write ID KEY OFFSET BYTES                        "ok SUM"
//	read ID KEY OFFSET BYTES                         "ok ..."
//	atomic ID KEY OFFSET OP TYPE FETCH OPERAND COMPARE   libfabric's numbers; elements as two words
//	put ID KEY OFFSET BYTES LEVEL DATA               as write; LEVEL: delivery, inject or data
//	counter NAME                                     "ok N": one of weft's counters
//	rest                                             a few milliseconds pass
//	await N                                          a line for each of N ends, and "end"
//	drain MS                                         a line for each end, and "end" when there is none for so long
//
// "interop peer" is such a side over hw/cxi, "interop small" one with little room for what has no receive; with
// "software" or "hybrid" behind it software matches, with hybrid after two unexpected messages, with "restricted" its
// peers get long messages by restricted gets. And
// tests/cxi/vendor.c one over a libfabric provider; "interop A B" runs them, "interop little A B" those that have
// little room. "interop keys A B" runs the tests of memory alone. INTEROP_KEYS=chosen has the endpoints of all of them
// choose keys, and INTEROP_KEYS=counted has regions count what is written there, as well. "interop kill N A B" kills
// N processes, of both sides. "interop random SEED N A B..." runs N random programs between all of these at
// once, where INTEROP_KEYS=chosen holds too, "interop long A B" messages of 64 MiB and from all address contexts,
// "interop one A" a program that is both sides, and "interop apart A B" sides of two VNIs. "interop full COUNTER A
// B..." has all others send more to A than it has room for, which that counter says.
package main

import (
	"errors"
	"fmt"
	"os"
	"strconv"

	"github.com/weft-fabric/weft/hw/cxi"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "interop:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	var c cxi.MatchConfig
	if len(args) == 2 {
		c.Mode = map[string]cxi.MatchMode{"software": cxi.MatchSoftware, "hybrid": cxi.MatchHybrid}[args[1]]
		c.Unexpected, c.Restricted = 2, args[1] == "restricted"
	}
	switch {
	case len(args) > 0 && args[0] == "peer":
		return peer(c)
	case len(args) > 0 && args[0] == "small":
		c.Buffers, c.BufferBytes, c.Requests, c.RequestBytes, c.Events = 2, 40000, 2, 40000, 64
		return peer(c)
	case len(args) == 2 && args[0] == "one":
		return driveOne(args[1])
	case len(args) == 2:
		return drive(args[0], args[1], (*pair).direction, false)
	case len(args) == 3 && args[0] == "little":
		return drive(args[1], args[2], (*pair).direction, true)
	case len(args) == 3 && args[0] == "keys":
		return drive(args[1], args[2], (*pair).memory, false)
	case len(args) == 3 && args[0] == "long":
		return drive(args[1], args[2], (*pair).long, false)
	case len(args) == 3 && args[0] == "apart":
		return apart(args[1], args[2])
	}
	if len(args) > 4 && args[0] == "random" {
		seed, first := strconv.ParseUint(args[1], 10, 32)
		count, second := strconv.ParseUint(args[2], 10, 32)
		if err := errors.Join(first, second); err != nil {
			return err
		}
		return random(seed, count, args[3:])
	}
	if len(args) > 3 && args[0] == "full" {
		return full(args[1], args[2:])
	}
	if len(args) == 4 && args[0] == "kill" {
		rounds, err := strconv.Atoi(args[1])
		if err != nil {
			return err
		}
		return killed(args[2], args[3], rounds)
	}
	return errors.New("interop peer, interop small, interop [little|keys|long|apart] A B, interop one A, " +
		"interop kill N A B, interop full COUNTER A B [C...], or interop random SEED N A B [C...]")
}
