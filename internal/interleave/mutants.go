package interleave

import "testing"

// Check explores a program with its rules as they are, the zero R, of which every order is to be right, and with each
// of some mutants of them, of which one order is to be wrong.
func Check[R any](t testing.TB, program func(rules R) *Program, mutants map[string]R) {
	t.Helper()
	var rules R
	r, err := Explore(program(rules))
	if err != nil {
		t.Error(err)
	}
	t.Logf("%+v", r)
	for name, rules := range mutants {
		if r, err := Explore(program(rules)); err == nil {
			t.Errorf("%s: not found in %+v", name, r)
		}
	}
}
