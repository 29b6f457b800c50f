package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
)

// pair are both sides.
type pair struct {
	a, b   *process
	passed int
	failed int
	lost   error // what one side says is no longer of what it was asked
	little bool  // receivers have little room
	keys   string
}

// await has both sides wait for ends.
func (x *pair) await(na, nb int) (a, b []string, err error) {
	lists, err := gather([]*process{x.a, x.b}, []int{na, nb})
	return lists[0], lists[1], err
}

// arrived waits for the ends of count messages, of which the receiver is to have those that are wanted, in any order.
func (x *pair) arrived(count int, want []string) error {
	_, b, err := x.await(count, count)
	if err != nil {
		return err
	}
	return same(b, want)
}

// same compares lines, in any order.
func same(got, want []string) error {
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		return fmt.Errorf("%q, not %q", got, want)
	}
	return nil
}

// levels are the completion levels of messages that are sent without waiting for those before. libfabric's CXI provider
// takes a message of level match that came before its receive off its queue twice, which damages the queue if others
// are in it, and flow control goes through that queue.
func (x *pair) levels() []string {
	if x.little && !weft(x.a) {
		return []string{"transmit", "transmit"}
	}
	return []string{"transmit", "match"}
}

// check counts a test, and runs it unless the sides are out of step.
func (x *pair) check(name string, test func() error) {
	if x.lost != nil {
		return
	}
	err := test()
	if errors.Is(err, errLate) {
		x.lost = err
	}
	if err == nil {
		x.passed++
		return
	}
	x.failed++
	fmt.Printf("FAILED %s to %s: %s: %v\n", x.a.command, x.b.command, name, err)
}

// message is a case of one message.
type message struct {
	bytes            int
	tagged, expected bool
	wild, data       bool
	level            string
}

func bit(v bool) int {
	if v {
		return 1
	}
	return 0
}

// one sends a message and compares.
func (x *pair) one(m message) error {
	const tag = 0xabcd12340077
	receive := func() error {
		ignore := 0
		if m.wild {
			ignore = 0xffff0000
		}
		want := uint64(tag)
		if m.wild {
			want ^= 0x5a5a0000
		}
		_, err := x.b.do("receive 1 %d %x %x %d %d 0", bit(m.tagged), want, ignore, m.bytes, bit(!m.wild))
		return err
	}
	if m.expected {
		if err := receive(); err != nil {
			return err
		}
	}
	hash, err := x.a.do("send 2 %d %x %d %d 1122334455667788 %s", bit(m.tagged), tag, m.bytes, bit(m.data), m.level)
	if err != nil {
		return err
	}
	if !m.expected {
		if _, err := x.b.do("rest"); err != nil {
			return err
		}
		if err := receive(); err != nil {
			return err
		}
	}
	a, b, err := x.await(1, 1)
	if err != nil {
		return err
	}
	tagOf, data := uint64(0), uint64(0)
	if m.tagged {
		tagOf = tag
	}
	if m.data {
		data = 0x1122334455667788
	}
	if want := fmt.Sprintf("received 1 %d %x %x 1 %s", m.bytes, tagOf, data, hash); a[0] != "sent 2" || b[0] != want {
		return fmt.Errorf("%q and %q, not %q", a, b, want)
	}
	return nil
}

// messages sends one of each kind.
func (x *pair) messages(sizes []int) {
	for _, n := range sizes {
		levels := []string{"transmit", "match", "injected", "delivery"}
		if n > 0 && n <= 192 {
			levels = append(levels, "inject")
		}
		for k := range 16 * len(levels) {
			m := message{n, k&1 != 0, k&2 != 0, k&4 != 0, k&8 != 0, levels[k/16]}
			x.check(fmt.Sprintf("%+v", m), func() error { return x.one(m) })
		}
	}
}

// many sends messages of several lengths to one receive, some before it is there.
func (x *pair) many(early int) error {
	lengths := []int{10, 3000, 40000, 192, 20000, 64, 18433, 18434}
	var sums []string
	for k, n := range lengths {
		if k == early {
			if _, err := x.b.do("rest"); err != nil {
				return err
			}
			if _, err := x.b.do("receive 1 0 0 0 200000 1 1"); err != nil {
				return err
			}
		}
		hash, err := x.a.do("send %d 0 0 %d 1 %x transmit", 10+k, n, k+1)
		if err != nil {
			return err
		}
		sums = append(sums, fmt.Sprintf("received 1 %d 0 %x 1 %s", n, k+1, hash))
	}
	if err := x.arrived(len(lengths), sums); err != nil {
		return err
	}
	if _, err := x.b.do("cancel 1"); err != nil {
		return err
	}
	_, b, err := x.await(0, 1)
	if err == nil && b[0] != "canceled 1" {
		err = fmt.Errorf("%q", b)
	}
	return err
}

// truncated sends a message that is longer than its receive.
func (x *pair) truncated(n, room int, expected bool) error {
	receive := func() error {
		_, err := x.b.do("receive 1 1 5 0 %d 0 0", room)
		return err
	}
	if expected {
		if err := receive(); err != nil {
			return err
		}
	}
	if _, err := x.a.do("send 2 1 5 %d 0 0 transmit", n); err != nil {
		return err
	}
	if !expected {
		if _, err := x.b.do("rest"); err != nil {
			return err
		}
		if err := receive(); err != nil {
			return err
		}
	}
	_, b, err := x.await(1, 1)
	if want := fmt.Sprintf("truncated 1 %d %d", room, n-room); err == nil && b[0] != want {
		err = fmt.Errorf("%q, not %q", b, want)
	}
	return err
}

// found searches, or claims, until the answer is as wanted: the message may be on its way.
func (x *pair) found(what, want string) error {
	var b []string
	for range 500 {
		_, err := x.b.do("%s", what)
		if err == nil {
			_, b, err = x.await(0, 1)
		}
		if err != nil || b[0] == want {
			return err
		}
		if !strings.HasPrefix(b[0], "missing") {
			break
		}
		if _, err = x.b.do("rest"); err != nil {
			return err
		}
	}
	return fmt.Errorf("%s: %q, not %q", what, b, want)
}

// steps has the receiver do something after the other, and compares its answers.
func (x *pair) steps(list ...[2]string) error {
	for _, step := range list {
		if _, err := x.b.do("%s", step[0]); err != nil {
			return err
		}
		if _, b, err := x.await(0, 1); err != nil || b[0] != step[1] {
			return errors.Join(fmt.Errorf("%s: %q, not %q", step[0], b, step[1]), err)
		}
	}
	return nil
}

// searched finds a message, by peeking, and receives it then.
func (x *pair) searched(n int) error {
	hash, err := x.a.do("send 2 1 77 %d 0 0 transmit", n)
	if err != nil {
		return err
	}
	if err := x.found("search 4 1 77", fmt.Sprintf("found 4 %d 77", n)); err != nil {
		return err
	}
	if err := x.steps([2]string{"search 3 1 78", "missing 3"}, [2]string{fmt.Sprintf("receive 5 1 77 0 %d 0 0", n),
		fmt.Sprintf("received 5 %d 77 0 1 %s", n, hash)}); err != nil {
		return err
	}
	_, _, err = x.await(1, 0)
	return err
}

// claimed sets a message aside, has another receive get the next one, and receives the first then.
func (x *pair) claimed(n int) error {
	first, err := x.a.do("send 2 1 77 %d 1 5 %s", n, x.levels()[1])
	if err != nil {
		return err
	}
	second, err := x.a.do("send 3 1 77 30 1 6 transmit")
	if err != nil {
		return err
	}
	if err := x.found("claim 4 1 77", fmt.Sprintf("found 4 %d 77", n)); err != nil {
		return err
	}
	if err := x.steps([2]string{"claim 3 1 78", "missing 3"},
		[2]string{"receive 5 1 77 0 30 0 0", fmt.Sprintf("received 5 30 77 6 1 %s", second)},
		[2]string{"claim 6 1 77", "missing 6"},
		[2]string{fmt.Sprintf("take 4 %d", n), fmt.Sprintf("received 4 %d 77 5 1 %s", n, first)}); err != nil {
		return err
	}
	_, _, err = x.await(2, 0)
	return err
}

// canceled takes a receive back while a message may be on its way to it: either the receive has it, or the next.
func (x *pair) canceled(n, rests int) error {
	if _, err := x.b.do("receive 1 1 79 0 %d 0 0", n); err != nil {
		return err
	}
	hash, err := x.a.do("send 2 1 79 %d 1 9 transmit", n)
	for k := 0; err == nil && k < rests; k++ {
		_, err = x.a.do("rest")
	}
	if err != nil {
		return err
	}
	if _, err := x.b.say("cancel 1"); err != nil { // it may have ended
		return err
	}
	_, b, err := x.await(0, 1)
	if err == nil && b[0] == "canceled 1" {
		if _, err = x.b.do("receive 1 1 79 0 %d 0 0", n); err != nil {
			return err
		}
		_, b, err = x.await(0, 1)
	}
	if want := fmt.Sprintf("received 1 %d 79 9 1 %s", n, hash); err == nil && b[0] != want {
		err = fmt.Errorf("%q, not %q", b, want)
	}
	if err == nil {
		_, _, err = x.await(1, 0)
	}
	return err
}

// burst sends many messages at once, of which every second finds its receive.
func (x *pair) burst() error {
	const count = 24
	var want []string
	receive := func(k int) error {
		_, err := x.b.do("receive %d 1 %x 0 50000 1 0", k, 0x100+k)
		return err
	}
	for k := 0; k < count; k += 2 {
		if err := receive(k); err != nil {
			return err
		}
	}
	for k := range count {
		n := []int{0, 8, 200, 20000, 50000}[k%5]
		hash, err := x.a.do("send %d 1 %x %d 1 %x %s", 24+k, 0x100+k, n, k+1, x.levels()[k/2%2])
		if err != nil {
			return err
		}
		want = append(want, fmt.Sprintf("received %d %d %x %x 1 %s", k, n, 0x100+k, k+1, hash))
	}
	for k := 1; k < count; k += 2 {
		if err := receive(k); err != nil {
			return err
		}
	}
	return x.arrived(count, want)
}

// floodSizes are lengths of many messages to a receiver with little room, in turn.
var floodSizes = []int{0, 8, 300, 5000, 18434, 192, 16000, 2048, 50000}

// flood sends many messages before any receive is there, more than a receiver with little room takes: each comes, in
// order.
func (x *pair) flood() error {
	const count = 60
	var sums []string
	for k := range count {
		n := floodSizes[k%len(floodSizes)]
		hash, err := x.a.do("send %d 1 7 %d 1 %x %s", k, n, k+1, x.levels()[k/9%2])
		if err != nil {
			return err
		}
		sums = append(sums, fmt.Sprintf("received %d %d 7 %x 1 %s", k, n, k+1, hash))
	}
	for k := range count {
		if _, err := x.b.do("receive %d 1 7 0 50000 1 0", k); err != nil {
			return err
		}
	}
	return x.arrived(count, sums)
}

// direction runs all tests with a as the sender.
func (x *pair) direction() {
	x.messages([]int{0, 1, 192, 193, 2048, 16384, 18433, 18434, 1 << 20})
	for early := range 5 {
		x.check(fmt.Sprintf("many messages, %d before the receive", early), func() error { return x.many(early) })
	}
	for _, n := range []int{100, 5000, 100000} {
		for _, expected := range []bool{true, false} {
			x.check(fmt.Sprintf("%d bytes cut off, expected %v", n, expected), func() error {
				return x.truncated(n, n/2,
					expected)
			})
		}
	}
	for _, n := range []int{0, 64, 5000, 30000} {
		x.check(fmt.Sprintf("%d bytes found", n), func() error { return x.searched(n) })
	}
	for _, n := range []int{8, 64, 5000, 30000} {
		x.check(fmt.Sprintf("%d bytes claimed", n), func() error { return x.claimed(n) })
	}
	for k := range 12 {
		n := []int{0, 8, 5000, 30000}[k%4]
		x.check(fmt.Sprintf("%d bytes or cancelled", n), func() error { return x.canceled(n, k/4) })
	}
	x.memory()
	x.check("burst", x.burst)
	for k := range 3 {
		x.check(fmt.Sprintf("flood %d", k), x.flood)
	}
}

// drive runs tests between two commands, in both directions. little says that they have little room for messages.
func drive(a, b string, tests func(*pair), little bool) error {
	x := &pair{little: little, keys: os.Getenv("INTEROP_KEYS")}
	var err error
	if x.a, err = start(a); err != nil {
		return err
	}
	if x.b, err = start(b); err != nil {
		return err
	}
	return x.run(tests)
}

// driveOne runs tests between both sides of one process.
func driveOne(command string) error {
	x := &pair{}
	var err error
	if x.a, x.b, err = startBoth(command); err != nil {
		return err
	}
	return x.run((*pair).direction)
}

// run has the sides know each other, and runs tests in both directions.
func (x *pair) run(tests func(*pair)) error {
	x.a.others, x.b.others = []*process{x.b}, []*process{x.a}
	_, err := x.a.do("peer %s", x.b.name)
	if err == nil {
		_, err = x.b.do("peer %s", x.a.name)
	}
	if err != nil {
		return err
	}
	tests(x)
	x.a, x.b = x.b, x.a
	tests(x)
	if err := ended(x.a, x.b); err != nil {
		x.check("end", func() error { return err })
	}
	fmt.Printf("%d passed, %d failed\n", x.passed, x.failed)
	if x.failed > 0 {
		return fmt.Errorf("%d tests failed", x.failed)
	}
	return nil
}
