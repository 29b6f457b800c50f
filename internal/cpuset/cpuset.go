// Package cpuset reads lists of processors in the kernel's notation, such as
// "0,2-5", and binds threads to them.
package cpuset

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Max is the number of processors that a [Set] can name.
const Max = 1024

// ErrList is returned, wrapped, for text that is not a list of processors.
var ErrList = errors.New("not a list of processors")

// Set is a set of processors. The zero Set is empty.
type Set struct{ mask unix.CPUSet }

// Parse reads a list of numbers and ranges separated by commas. Empty text is
// the empty set. The error wraps [ErrList].
func Parse(s string) (set Set, err error) {
	s = strings.TrimSpace(s)
	if s == "" {
		return set, nil
	}
	for part := range strings.SplitSeq(s, ",") {
		lo, hi, isRange := strings.Cut(part, "-")
		first, err := number(lo)
		if err != nil {
			return Set{}, err
		}
		last := first
		if isRange {
			if last, err = number(hi); err != nil {
				return Set{}, err
			}
		}
		if last < first {
			return Set{}, fmt.Errorf("range %q: %w", part, ErrList)
		}
		for cpu := first; cpu <= last; cpu++ {
			set.mask.Set(cpu)
		}
	}
	return set, nil
}

func number(s string) (int, error) {
	n, err := strconv.ParseUint(s, 10, 16)
	if err != nil || n >= Max {
		return 0, fmt.Errorf("processor %q: %w", s, ErrList)
	}
	return int(n), nil
}

// OfNode returns the processors of a NUMA node, from the node folders below
// root (/sys/devices/system/node). A node without processors gives an empty set.
func OfNode(root string, node int) (Set, error) {
	b, err := os.ReadFile(filepath.Join(root, "node"+strconv.Itoa(node), "cpulist"))
	if err != nil {
		return Set{}, fmt.Errorf("processors of node %d: %w", node, err)
	}
	return Parse(string(b))
}

// OfThread returns the processors that the calling thread may run on.
func OfThread() (set Set, err error) {
	if err = unix.SchedGetaffinity(0, &set.mask); err != nil {
		return Set{}, fmt.Errorf("processors of the thread: %w", err)
	}
	return set, nil
}

// Bind makes the calling thread run on the processors of the set only. The
// kernel refuses a set of which it has none (EINVAL).
func (s *Set) Bind() error {
	if err := unix.SchedSetaffinity(0, &s.mask); err != nil {
		return fmt.Errorf("bind thread to processors %v: %w", s, err)
	}
	return nil
}

// Count returns the number of processors in the set.
func (s *Set) Count() int { return s.mask.Count() }

// Has reports whether the set has a processor.
func (s *Set) Has(cpu int) bool { return cpu >= 0 && cpu < Max && s.mask.IsSet(cpu) }

// Nth returns the set of one processor of the set, that before which there are n others. It is empty if there is none.
func (s *Set) Nth(n int) (one Set) {
	for cpu := range Max {
		if !s.mask.IsSet(cpu) {
			continue
		}
		if n == 0 {
			one.mask.Set(cpu)
			return one
		}
		n--
	}
	return one
}

// And returns the processors that both sets have.
func (s *Set) And(o *Set) Set {
	var both Set
	for i := range s.mask {
		both.mask[i] = s.mask[i] & o.mask[i]
	}
	return both
}

// String returns the set as [Parse] reads it.
func (s *Set) String() string {
	var b strings.Builder
	for cpu := 0; cpu < Max; cpu++ {
		if !s.mask.IsSet(cpu) {
			continue
		}
		last := cpu
		for last+1 < Max && s.mask.IsSet(last+1) {
			last++
		}
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.Itoa(cpu))
		if last > cpu {
			b.WriteByte('-')
			b.WriteString(strconv.Itoa(last))
		}
		cpu = last
	}
	return b.String()
}
