package main

import (
	"fmt"
	"os"
	"strings"
)

// Reads and writes of memory under keys.

// memory runs those tests with a as the initiator.
func (x *pair) memory() {
	keys, few := []uint64{0, 8, 50, 99, 100, 1 << 20, 0xfffffffe}, []uint64{8, 99, 1 << 20}
	if x.keys != "" { // which is asked for does not matter
		keys, few = []uint64{0, 1}, []uint64{0}
	}
	for _, key := range keys {
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
	for _, key := range few {
		for _, rights := range []string{"r", "w"} {
			name := fmt.Sprintf("rights %s under key %d", rights, key)
			x.check(name, func() error { return x.rights(key, rights) })
		}
		for _, c := range atomicCases {
			x.check(fmt.Sprintf("%+v under key %d", c, key), func() error { return x.atomic(key, c) })
		}
	}
}

// notifies reports whether writes may have data: libfabric's CXI provider has such by keys that it chooses alone, and
// where it is asked to.
func (x *pair) notifies() bool {
	if x.keys != "" {
		return x.keys == "chosen" && os.Getenv("FI_CXI_ENABLE_WRITEDATA") != ""
	}
	return weft(x.a) && weft(x.b)
}

// expose has the receiver let memory be reached with rights, and returns its key.
func (x *pair) expose(key uint64, size int, rights string) (uint64, error) {
	said, err := x.b.do("expose 1 %x %d %s", key, size, rights)
	if err != nil {
		return 0, err
	}
	_, err = fmt.Sscanf(said, "%x", &key)
	return key, err
}

// bounded reports whether a region ends where its memory does, and with its owner's wish: libfabric's provider has keys
// that reach all memory which it has registered.
func bounded(key uint64) bool { return key>>62 != 3 }

// counts waits until so many writes to the region are counted, where they are.
func (x *pair) counts(want string) error {
	if x.keys != "counted" {
		return nil
	}
	got := ""
	for range 500 {
		var err error
		if got, err = x.b.do("count 1"); err != nil || got == want {
			return err
		}
		if _, err = x.b.do("rest"); err != nil {
			return err
		}
	}
	return fmt.Errorf("%s operations are counted, not %s", got, want)
}

// put writes under a key with a completion level, or with data, and compares.
func (x *pair) put(key uint64, n int, level string) error {
	const data = 0xfedcba9876543210
	size, off := n+300, 77
	key, err := x.expose(key, size, "rw")
	if err != nil {
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
	key, err := x.expose(key, size, "rw")
	if err != nil {
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
	if err := x.counts("1"); err != nil {
		return err
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
	if !bounded(key) {
		_, err = x.b.do("withdraw 1")
		return err
	}
	return x.refused(key, size)
}

// rights reads and writes a region that allows one of both.
func (x *pair) rights(key uint64, rights string) error {
	const n = 300
	key, err := x.expose(key, n, rights)
	if err != nil {
		return err
	}
	if bounded(key) {
		err = x.half(key, n, rights)
	}
	if err == nil {
		_, err = x.b.do("withdraw 1")
	}
	return err
}

// half reads and writes a region of n bytes, which allows what rights says, and reads its content then.
func (x *pair) half(key uint64, n int, rights string) error {
	there, err := x.b.do("content 1 0 %d", n)
	if err != nil {
		return err
	}
	for _, c := range []struct{ right, post, end, refused string }{
		{"r", fmt.Sprintf("read 2 %x 0 %d", key, n), "read 2 " + there, "refused 2"},
		{"w", fmt.Sprintf("write 3 %x 0 %d", key, n), "sent 3", "refused 3"},
	} {
		if !strings.Contains(rights, c.right) {
			c.end = c.refused
		}
		if _, err := x.a.do("%s", c.post); err != nil {
			return err
		}
		if ends, _, err := x.await(1, 0); err != nil || ends[0] != c.end {
			return fmt.Errorf("%s: %q, not %q: %w", c.post, ends, c.end, err)
		}
	}
	if now, err := x.b.do("content 1 0 %d", n); err != nil || (now == there) == (rights == "w") {
		return fmt.Errorf("%s was there, %s is: %w", there, now, err)
	}
	return nil
}

// refused goes over the end of a region, and to one that is withdrawn.
func (x *pair) refused(key uint64, size int) error {
	for _, c := range []struct{ post, end string }{
		{fmt.Sprintf("write 4 %x %d 8", key, size-3), "refused 4"}, {fmt.Sprintf("read 5 %x 0 8", key), "refused 5"},
	} {
		if _, err := x.a.do("%s", c.post); err != nil {
			return err
		}
		if ends, _, err := x.await(1, 0); err != nil || ends[0] != c.end {
			return fmt.Errorf("%s: %q, %w", c.post, ends, err)
		}
		if c.end == "refused 4" {
			if _, err := x.b.do("withdraw 1"); err != nil {
				return err
			}
		}
	}
	return nil
}

// atomicCase is an operation on an element, by libfabric's numbers.
type atomicCase struct {
	op, kind                    int
	was, operand, compare, want uint64
}

// Types of elements, and operations that others are made of.
const (
	int8Type, uint8Type, int16Type, int32Type, uint32Type, int64Type, uint64Type = 0, 1, 2, 4, 5, 6, 7
	floatType, doubleType, complexType, uint128Type                              = 8, 9, 10, 15

	readOp, writeOp = 10, 11
)

// atomicCases are each operation, and each type.
var atomicCases = []atomicCase{
	{0, int32Type, 5, 0xfffffffe, 0, 0xfffffffe}, {0, uint32Type, 5, 0xfffffffe, 0, 5}, {1, int64Type, 5, 1<<64 - 2,
		0, 5},
	{1, uint64Type, 5, 1<<64 - 2, 0, 1<<64 - 2}, {2, uint64Type, 1 << 40, 7, 0, 1<<40 + 7}, {2, int8Type, 0x7f, 2,
		0, 0x81},
	{2, int16Type, 0xffff, 3, 0, 2}, {2, floatType, 0x3fc00000, 0x40100000, 0, 0x40700000},
	{2, doubleType, 0x3ff8000000000000, 0x4002000000000000, 0, 0x400e000000000000},
	{2, complexType, 0x40000000_3f800000, 0x3f800000_3f800000, 0, 0x40400000_40000000}, {4, uint8Type, 0, 3, 0, 1},
	{5, int32Type, 7, 0, 0, 0}, {6, uint64Type, 0xf0, 0x0f, 0, 0xff}, {7, uint32Type, 0xf3, 0x3f, 0, 0x33},
	{8, int16Type, 7, 9, 0, 0}, {9, uint64Type, 0xff, 0x0f, 0, 0xf0}, {readOp, uint64Type, 77, 5, 0, 77},
	{writeOp, doubleType, 77, 99, 0, 99}, {12, uint64Type, 7, 9, 7, 9}, {12, uint64Type, 7, 9, 8, 7},
	{12, uint128Type, 7, 9, 7, 9}, {13, int32Type, 7, 9, 8, 9}, {14, int32Type, 7, 9, 7, 9}, {15, int32Type, 7, 9,
		7, 7},
	{16, uint32Type, 7, 9, 8, 9}, {17, uint32Type, 7, 9, 7, 7}, {18, uint64Type, 0x1234, 0xabcd, 0xff00, 0xab34},
}

// perform does an operation, and returns what it says.
func (x *pair) perform(key uint64, op, kind, fetch int, operand, compare uint64) (uint64, error) {
	const off = 64
	if _, err := x.a.do("atomic 3 %x %d %d %d %d %x 0 %x 0", key, off, op, kind, fetch, operand,
		compare); err != nil {
		return 0, err
	}
	a, _, err := x.await(1, 0)
	if err != nil {
		return 0, err
	}
	var got, high uint64
	if _, err := fmt.Sscanf(a[0], "performed 3 %x %x", &got, &high); err != nil || high != 0 {
		return 0, fmt.Errorf("%q: %w", a, err)
	}
	return got, nil
}

// atomic writes an element, changes it in each way, and reads it.
func (x *pair) atomic(key uint64, c atomicCase) error {
	key, err := x.expose(key, 256, "rw")
	if err != nil {
		return err
	}
	for fetch := range 2 {
		if c.op >= readOp && c.op != writeOp && fetch == 0 {
			continue // it fetches
		}
		// What is 16 bytes long is written in two parts, of which the upper is 0.
		wide := c.kind == uint128Type
		if _, err := x.perform(key, writeOp, uint64Type, 0, c.was, 0); err != nil {
			return err
		}
		if wide {
			if _, err := x.a.do("atomic 3 %x 72 %d %d 0 0 0 0 0", key, writeOp, uint64Type); err != nil {
				return err
			}
			if _, _, err := x.await(1, 0); err != nil {
				return err
			}
		}
		got, err := x.perform(key, c.op, c.kind, fetch, c.operand, c.compare)
		if err != nil || fetch == 1 && got != c.was {
			return fmt.Errorf("fetched %x, not %x: %w", got, c.was, err)
		}
		if got, err = x.perform(key, readOp, uint64Type, 1, 0, 0); err != nil || got != c.want {
			return fmt.Errorf("%x is there, not %x: %w", got, c.want, err)
		}
	}
	_, err = x.b.do("withdraw 1")
	return err
}
