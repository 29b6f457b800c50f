package main

import (
	"fmt"
	"strings"
)

// long sends messages of 64 MiB, and long ones at once, each from memory of a registration of its own. The model gives
// registrations the address contexts in turn, so that there are sources in all eight.
func (x *pair) long() {
	for k := range 4 {
		m := message{64 << 20, k&1 != 0, k&2 != 0, false, k == 3, "transmit"}
		x.check(fmt.Sprintf("%+v", m), func() error { return x.one(m) })
	}
	for _, expected := range []bool{true, false} {
		x.check(fmt.Sprintf("sources in all address contexts, expected %v", expected), func() error {
			return x.contexts(expected)
		})
	}
}

// contexts sends long messages at once.
func (x *pair) contexts(expected bool) error {
	const count, n = 24, 100000
	var want []string
	receives := func() error {
		for k := range count {
			if _, err := x.b.do("receive %d 1 %x 0 %d 0 0", k, 0x300+k, n); err != nil {
				return err
			}
		}
		return nil
	}
	if expected {
		if err := receives(); err != nil {
			return err
		}
	}
	for k := range count {
		sum, err := x.a.do("send %d 1 %x %d 0 0 transmit", count+k, 0x300+k, n)
		if err != nil {
			return err
		}
		want = append(want, fmt.Sprintf("received %d %d %x 0 1 %s", k, n, 0x300+k, sum))
	}
	if !expected {
		if err := receives(); err != nil {
			return err
		}
	}
	return x.arrived(count, want)
}

// apart runs two sides of two VNIs: neither gets what the other sends, whose operations end with an error. In the VNI
// of each nothing has the PID of the other.
func apart(a, b string) error {
	first, err := start(b) // takes the PID in b's VNI that a has in its own
	if err != nil {
		return err
	}
	x := &pair{}
	if x.b, err = start(b); err == nil {
		err = ended(first)
	}
	if err == nil {
		x.a, err = start(a)
	}
	if err != nil {
		return err
	}
	x.a.others, x.b.others = []*process{x.b}, []*process{x.a}
	for range 2 {
		x.check("another VNI", x.refusedApart)
		x.a, x.b = x.b, x.a
	}
	if err := ended(x.a, x.b); err != nil {
		return err
	}
	fmt.Printf("%d passed, %d failed\n", x.passed, x.failed)
	if x.failed > 0 {
		return fmt.Errorf("%d tests failed", x.failed)
	}
	return nil
}

// refusedApart posts operations on the other side, which has a receive and a region for them.
func (x *pair) refusedApart() error {
	if _, err := x.a.do("peer %s", x.b.name); err != nil {
		return err
	}
	for _, line := range []string{"receive 1 1 5 0 50000 0 0", "expose 2 8 4096 rw"} {
		if _, err := x.b.do("%s", line); err != nil {
			return err
		}
	}
	for k, post := range []string{"send 3 1 5 8 0 0 transmit", "send 3 1 5 5000 0 0 transmit",
		"send 3 1 5 50000 0 0 transmit", "write 3 8 0 100", "read 3 8 0 100"} {
		if _, err := x.a.do("%s", post); err != nil {
			return err
		}
		a, _, err := x.await(1, 0)
		if err != nil {
			return err
		}
		if want := []string{"error 3 ", "refused 3"}[k/3]; !strings.HasPrefix(a[0], want) {
			return fmt.Errorf("%s: %q, not %q", post, a[0], want)
		}
	}
	for _, line := range []string{"cancel 1", "withdraw 2"} {
		if _, err := x.b.do("%s", line); err != nil {
			return err
		}
	}
	if _, b, err := x.await(0, 1); err != nil || b[0] != "canceled 1" {
		return fmt.Errorf("%q, not that the receive is taken back: %w", b, err)
	}
	return nil
}
