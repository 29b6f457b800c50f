package main

import (
	"fmt"
	"strings"
)

// Reads and writes of memory under keys.

// memory runs those tests with a as the initiator.
func (x *pair) memory() {
	for _, key := range []uint64{0, 8, 50, 99, 100, 1 << 20, 0xfffffffe} {
		for _, n := range []int{1, 200, 5000, 250000} {
			name := fmt.Sprintf("%d bytes under key %d", n, key)
			x.check(name, func() error { return x.transferred(key, n) })
		}
		for _, c := range []struct {
			level string
			n     int
		}{{"inject", 1}, {"inject", 192}, {"delivery", 8}, {"delivery", 70000}, {"data", 100}, {"data",
			70000}} {
			if c.level != "data" || x.notifies() {
				name := fmt.Sprintf("%d bytes under key %d, %s", c.n, key, c.level)
				x.check(name, func() error { return x.put(key, c.n, c.level) })
			}
		}
	}
}

// notifies reports whether writes by keys that their owner chooses may have data: libfabric's CXI provider has such by
// keys that it chooses alone.
func (x *pair) notifies() bool {
	return !strings.HasSuffix(x.a.command, " cxi") && !strings.HasSuffix(x.b.command, " cxi")
}

// put writes under a key with a completion level, or with data, and compares.
func (x *pair) put(key uint64, n int, level string) error {
	const data = 0xfedcba9876543210
	size, off := n+300, 77
	if _, err := x.b.do("expose 1 %x %d", key, size); err != nil {
		return err
	}
	hash, err := x.a.do("put 2 %x %d %d %s %x", key, off, n, level, uint64(data))
	if err != nil {
		return err
	}
	count := bit(level == "data")
	a, b, err := x.await(1, count)
	if err != nil || a[0] != "sent 2" || count == 1 && b[0] != fmt.Sprintf("written %x %d 1", uint64(data), n) {
		return fmt.Errorf("%q and %q: %w", a, b, err)
	}
	if got, err := x.b.do("content 1 %d %d", off, n); err != nil || got != hash {
		return fmt.Errorf("%s, not %s: %w", got, hash, err)
	}
	_, err = x.b.do("withdraw 1")
	return err
}

// transferred writes and reads memory under a key, which is there for that time only.
func (x *pair) transferred(key uint64, n int) error {
	const size, off = 300000, 77
	if _, err := x.b.do("expose 1 %x %d", key, size); err != nil {
		return err
	}
	first, err := x.a.do("write 2 %x %d %d", key, off, n)
	if err != nil {
		return err
	}
	ends, _, err := x.await(1, 0)
	if err != nil || ends[0] != "sent 2" {
		return fmt.Errorf("a write: %q, %w", ends, err)
	}
	if there, err := x.b.do("content 1 %d %d", off, n); err != nil || there != first {
		return fmt.Errorf("%s is there, not %s: %w", there, first, err)
	}
	rest, err := x.b.do("content 1 %d %d", off+n, size-off-n)
	if err != nil {
		return err
	}
	for _, c := range []struct {
		off, n int
		want   string
	}{{off, n, first}, {off + n, size - off - n, rest}} {
		if _, err := x.a.do("read 3 %x %d %d", key, c.off, c.n); err != nil {
			return err
		}
		if ends, _, err = x.await(1, 0); err != nil || ends[0] != "read 3 "+c.want {
			return fmt.Errorf("a read: %q, not %s: %w", ends, c.want, err)
		}
	}
	if _, err := x.a.do("write 4 %x %d %d", key, size-3, 8); err != nil {
		return err
	}
	if ends, _, err = x.await(1, 0); err != nil || ends[0] != "refused 4" {
		return fmt.Errorf("a write over the end: %q, %w", ends, err)
	}
	if _, err := x.b.do("withdraw 1"); err != nil {
		return err
	}
	if _, err := x.a.do("read 5 %x 0 8", key); err != nil {
		return err
	}
	if ends, _, err = x.await(1, 0); err != nil || ends[0] != "refused 5" {
		return fmt.Errorf("a read of what is withdrawn: %q, %w", ends, err)
	}
	return nil
}
