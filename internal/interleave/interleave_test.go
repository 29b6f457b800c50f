package interleave

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// outcomes explores two threads and collects what they stored in the words r0
// and r1 in the end.
func outcomes(t *testing.T, tso bool, a, b func(t *T)) map[string]bool {
	t.Helper()
	got := map[string]bool{}
	_, err := Explore(&Program{
		Names:   []string{"x", "y", "r0", "r1"},
		Threads: []Thread{{Name: "a", Body: a}, {Name: "b", Body: b}},
		TSO:     tso,
		Final: func(m Memory, _ []bool) error {
			got[fmt.Sprint(m.Load(2), m.Load(3))] = true
			return nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// TestLitmus compares with what x86-TSO allows and forbids (Sewell and others,
// 2010, examples SB, MP, and SB with fences).
func TestLitmus(t *testing.T) {
	const x, y, r0, r1 = Word(0), Word(1), Word(2), Word(3)
	sb := func(fence func(*T)) [2]func(*T) {
		return [2]func(*T){
			func(t *T) { t.Store(x, 1); fence(t); t.Store(r0, t.Load(y)) },
			func(t *T) { t.Store(y, 1); fence(t); t.Store(r1, t.Load(x)) },
		}
	}
	none, full := func(*T) {}, func(t *T) { t.Fence() }
	mp := [2]func(*T){
		func(t *T) { t.Store(x, 1); t.Store(y, 1) },
		func(t *T) { t.Store(r0, t.Load(y)); t.Store(r1, t.Load(x)) },
	}
	for _, c := range []struct {
		name    string
		tso     bool
		threads [2]func(*T)
		outcome string
		want    bool
	}{
		{"store buffering", true, sb(none), "0 0", true},
		{"store buffering, sequentially consistent", false, sb(none), "0 0", false},
		{"store buffering with fences", true, sb(full), "0 0", false},
		{"store buffering with fences, the other outcomes", true, sb(full), "1 1", true},
		{"store buffering by exchange", true, [2]func(*T){
			func(t *T) { t.StoreSC(x, 1); t.Store(r0, t.Load(y)) },
			func(t *T) { t.StoreSC(y, 1); t.Store(r1, t.Load(x)) },
		}, "0 0", false},
		{"message passing", true, mp, "1 0", false},
		{"message passing, all else", true, mp, "0 1", true},
		{"own stores are seen", true, [2]func(*T){
			func(t *T) { t.Store(x, 5); t.Store(r0, t.Load(x)) }, none,
		}, "0 0", false},
	} {
		if got := outcomes(t, c.tso, c.threads[0], c.threads[1])[c.outcome]; got != c.want {
			t.Errorf("%s: outcome %q possible: %v", c.name, c.outcome, got)
		}
	}
}

func TestFindsLostUpdate(t *testing.T) {
	count := func(atomic bool) error {
		body := func(t *T) {
			if atomic {
				t.Add(0, 1)
			} else {
				t.Store(0, t.Load(0)+1)
			}
		}
		_, err := Explore(&Program{
			Names:   []string{"count"},
			Threads: []Thread{{Name: "a", Body: body}, {Name: "b", Body: body}},
			Final: func(m Memory, _ []bool) error {
				if n := m.Load(0); n != 2 {
					return fmt.Errorf("count is %d", n)
				}
				return nil
			},
		})
		return err
	}
	if err := count(true); err != nil {
		t.Error(err)
	}
	err := count(false)
	var found *Error
	if !errors.As(err, &found) || !strings.Contains(err.Error(), "count is 1") || len(found.Trace) != 4 {
		t.Errorf("error %v", err)
	}
}

func TestFindsDeadlockCheckAndPanic(t *testing.T) {
	for want, body := range map[string]func(*T){
		"no thread can go on: a waits in await": func(t *T) { t.Await(func(m Memory) bool { return m.Load(0) == 1 }) },
		"no thread can go on: a waits in pause": func(t *T) { t.Load(0); t.Pause() },
		"a: word is 0":                          func(t *T) { v := t.Load(0); t.Check(v == 1, "word is %d", v) },
		"a: panic: oh":                          func(t *T) { t.Load(0); panic("oh") },
	} {
		_, err := Explore(&Program{Names: []string{"word"}, Threads: []Thread{{Name: "a", Body: body}}})
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}

// TestSpinEnds: a loop that tries again has a finite search, and the thread that
// it waits for makes it end.
func TestSpinEnds(t *testing.T) {
	lock := func(t *T) {
		for !t.CAS(0, 0, 1) {
			t.Pause()
			t.At(1)
		}
		t.Store(1, t.Load(1)+1)
		t.Store(0, 0)
	}
	for _, tso := range []bool{false, true} {
		r, err := Explore(&Program{
			Names: []string{"lock", "count"}, TSO: tso,
			Threads: []Thread{{Name: "a", Body: lock}, {Name: "b", Body: lock}, {Name: "c", Body: lock}},
			Final: func(m Memory, _ []bool) error {
				if m.Load(1) != 3 {
					return fmt.Errorf("count is %d", m.Load(1))
				}
				return nil
			},
		})
		if err != nil {
			t.Error(err)
		}
		t.Logf("tso %v: %+v", tso, r)
	}
}

func TestDeaths(t *testing.T) {
	seen := map[uint64]bool{}
	_, err := Explore(&Program{
		Names: []string{"steps"}, Deaths: 1, TSO: true,
		Threads: []Thread{{Name: "a", Killable: true, Body: func(t *T) { t.Store(0, 1); t.Store(0, 2) }},
			{Name: "b", Body: func(*T) {}}},
		Final: func(m Memory, died []bool) error {
			if died[1] || !died[0] && m.Load(0) != 2 {
				return fmt.Errorf("died %v at %d", died, m.Load(0))
			}
			seen[m.Load(0)] = true
			return nil
		},
	})
	if err != nil || len(seen) != 3 {
		t.Errorf("ended at %v: %v", seen, err)
	}
}

func TestTooManyStates(t *testing.T) {
	_, err := Explore(&Program{Names: []string{"n"}, MaxStates: 50, Threads: []Thread{{Name: "a", Body: func(t *T) {
		for {
			t.Add(0, 1)
		}
	}}, {Name: "b", Body: func(t *T) { t.Load(0) }}}})
	if err == nil || !strings.Contains(err.Error(), "more than 50 states") {
		t.Errorf("error %v", err)
	}
}
