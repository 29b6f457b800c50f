package interleave

import (
	"errors"
	"testing"
)

// counted counts what a check reports.
type counted struct {
	testing.TB
	errors int
}

func (c *counted) Helper()               {}
func (c *counted) Logf(string, ...any)   {}
func (c *counted) Error(...any)          { c.errors++ }
func (c *counted) Errorf(string, ...any) { c.errors++ }

// TestCheck: a program that is wrong is reported, and each mutant that is right.
func TestCheck(t *testing.T) {
	program := func(right bool) func(int) *Program {
		return func(mutant int) *Program {
			return &Program{Names: []string{"word"}, Final: func(Memory, []bool) error {
				if (mutant == 0) != right {
					return errors.New("wrong")
				}
				return nil
			}}
		}
	}
	mutants := map[string]int{"one": 1, "two": 2}
	for right, want := range map[bool]int{true: 0, false: 1 + len(mutants)} {
		c := &counted{TB: t}
		if Check(c, program(right), mutants); c.errors != want {
			t.Errorf("right: %t, %d errors, not %d", right, c.errors, want)
		}
	}
}
