package seam

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// rings reports whether a function rings, each time with a barrier before the doorbell (a store of 8 bytes) and one
// behind it, and gives the lock back behind these.
func rings(text string) bool {
	const barrier, store, lock = "dmb oshst", "str\tx", "stlr\tw"
	order := ""
	for line := range strings.Lines(text) {
		switch line = strings.TrimSpace(line); {
		case line == barrier:
			order += "b"
		case strings.HasPrefix(line, store) && regexp.MustCompile(`, \[x[0-9]+\]$`).MatchString(line):
			order += "s"
		case strings.HasPrefix(line, lock):
			order += "l"
		}
	}
	return regexp.MustCompile(`^[sl]*(bs+bs*l[sl]*)+$`).MatchString(order)
}

// TestRing: in each function of C's that rings, as compiled for arm64, what it rings for is in memory before the
// doorbell, and the doorbell comes before the next one of another thread (D1 and D2 of package nic). A source without
// that is found, and so is each barrier that is missing.
func TestRing(t *testing.T) {
	const compiler = "aarch64-linux-gnu-gcc"
	if _, err := exec.LookPath(compiler); err != nil {
		t.Skipf("no compiler for arm64: %v", err)
	}
	source, err := os.ReadFile("seam.c")
	if err != nil {
		t.Fatal(err)
	}
	here, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	without := func(what, by string) string { return strings.Replace(string(source), what, by, 1) }
	for _, c := range []struct {
		name, source string
		kept         bool
	}{
		{"whole", string(source), true},
		{"no fence before", without("\tfence();\n\t*(volatile", "\t*(volatile"), false},
		{"no fence behind", without("b->value;\n\tfence();", "b->value;"), false},
		{"lock given back in any order",
			without("b->lock, 0, memory_order_release", "b->lock, 0, memory_order_relaxed"), false},
	} {
		gcc := exec.Command(compiler, "-O2", "-std=gnu11", "-iquote", here, "-idirafter", "/usr/include", "-x", "c",
			"-S", "-o", "-", "-")
		gcc.Stdin = strings.NewReader(c.source)
		out, err := gcc.Output()
		if err != nil {
			t.Fatal(err)
		}
		kept := true
		for _, function := range []string{"path_send", "transport_next", "transport_take", "transport_flush",
			"match_ring"} {
			text := string(regexp.MustCompile(`(?ms)^` + function + `:\n.*?^\t\.size\t` + function).Find(out))
			kept = kept && rings(text)
			parts := strings.Split(text, "dmb oshst")
			for n := 1; n < len(parts) && c.kept; n++ {
				if rings(strings.Join(parts[:n], "dmb oshst") + strings.Join(parts[n:], "dmb oshst")) {
					t.Errorf("%s: barrier %d of %d is not missed", function, n, len(parts)-1)
				}
			}
		}
		if kept != c.kept {
			t.Errorf("%s: that the order is kept is %v\n%s", c.name, kept, out)
		}
	}
}
