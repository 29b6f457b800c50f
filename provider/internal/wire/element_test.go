package wire

import (
	"bytes"
	"slices"
	"testing"
)

// elements encodes some, and bytes behind them.
func elements(list []Element, behind string) []byte {
	b := make([]byte, len(list)*ElementBytes, len(list)*ElementBytes+len(behind))
	for i := range list {
		list[i].Put(b[i*ElementBytes:])
	}
	return append(b, behind...)
}

// TestElements: elements come back as they were, with what follows them.
func TestElements(t *testing.T) {
	list := []Element{
		{1, 2, 3, EndsOperation},
		{^uint64(0), ^uint64(0), MaxMessage - 7, EndsShared},
		{0, 0, 0, EndsElement},
		{9, 8, 4, EndsNothing},
	}
	before := []Element{{Key: 77}}
	got, rest, total, ok := ParseElements(before, elements(list, "bytes"), 4)
	if !ok || total != MaxMessage || string(rest) != "bytes" || !slices.Equal(got[1:], list) || got[0] != before[0] {
		t.Errorf("%+v became %+v, %d bytes, %q, %t", list, got, total, rest, ok)
	}
	most := make([]Element, MaxElements)
	if got, _, _, ok := ParseElements(nil, elements(most, ""), MaxElements); !ok || len(got) != MaxElements {
		t.Errorf("%d elements of %d, %t", len(got), MaxElements, ok)
	}
}

// TestElementsRefused: elements that are not there, and numbers that do not add up.
func TestElementsRefused(t *testing.T) {
	long := elements([]Element{{Len: MaxMessage}}, "")
	long[16]++
	for name, c := range map[string]struct {
		b []byte
		n uint64
	}{
		"none":              {elements([]Element{{}}, ""), 0},
		"too many":          {elements(make([]Element, MaxElements+1), ""), MaxElements + 1},
		"more than came":    {elements(make([]Element, 3), "behind them"), 4},
		"a number wraps":    {elements(make([]Element, 3), ""), ^uint64(0)/ElementBytes + 2},
		"cut":               {elements(make([]Element, 3), "")[:3*ElementBytes-1], 3},
		"an unknown end":    {elements([]Element{{Ends: EndsShared + 1}}, ""), 1},
		"longer than any":   {long, 1},
		"long in all":       {elements([]Element{{Len: MaxMessage}, {Len: 1}}, ""), 2},
		"length of 1 << 55": {elements([]Element{{Len: 1 << 55}}, ""), 1},
	} {
		if got, _, _, ok := ParseElements(nil, c.b, c.n); ok {
			t.Errorf("%s: taken as %+v", name, got)
		}
	}
}

// FuzzElements: what is accepted encodes to what it was, and is within the bounds that its users rely on.
func FuzzElements(f *testing.F) {
	f.Add(uint64(2), elements([]Element{{1, 2, 3, EndsOperation}, {4, 5, 6, EndsShared}}, "behind"))
	f.Add(uint64(1), elements([]Element{{Len: MaxMessage}}, ""))
	f.Add(uint64(1<<63), elements([]Element{{Len: 1 << 56}}, ""))
	f.Fuzz(func(t *testing.T, n uint64, in []byte) {
		list, rest, total, ok := ParseElements(nil, in, n)
		if !ok {
			return
		}
		sum := uint64(0)
		for i := range list {
			sum += list[i].Len
		}
		if uint64(len(list)) != n || len(list) > MaxElements || sum != total || total > MaxMessage {
			t.Errorf("%d elements of %d, %d bytes of %d", len(list), n, sum, total)
		}
		if !bytes.Equal(elements(list, string(rest)), in) {
			t.Errorf("%x became %+v", in, list)
		}
	})
}
