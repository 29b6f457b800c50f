package cxi

import (
	"strings"
	"testing"
)

// TestMatchModes runs the tests over NICs of other kinds.
func TestMatchModes(t *testing.T) {
	parent(t)
	all := "TestMatch(Sizes|Truncated|Multi|Search|Cancel|Claim|Random|Both|Wakeup)$"
	for _, c := range []struct{ name, run, settings, match string }{
		{"software", all, "", "software"},
		{"software, shuffled, gets by it, second generation", all, "shuffle=1 get=0 version=2", "software"},
		{"software, a thread", "TestMatch(Sizes|Search|Random)$", "mode=threaded", "software"},
		{"hybrid", all, "", "hybrid"},
		{"hybrid, shuffled, gets by software, second generation", all, "shuffle=1 get=0 version=2", "hybrid"},
		{"gets by software, shuffled", "TestMatch(Sizes|Truncated|Multi|Random)$", "get=0 shuffle=1", ""},
		{"restricted gets, shuffled", "TestMatch(Sizes|Truncated|Multi|Random)$", "get=0 shuffle=1", "restricted"},
		{"restricted gets of which the NIC does without", "TestMatch(Sizes|Truncated)$", "", "restricted"},
		{"shuffled, second generation", "TestMatch(Sizes|Multi|Cancel|Random)$", "shuffle=1 version=2", ""},
		{"a thread", "TestMatch(Sizes|Search|Random)$", "mode=threaded", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			onlyThreads(t, c.settings)
			out, err := child(t, c.run, c.settings, "WEFT_TEST_CXI_MATCH="+c.match).CombinedOutput()
			if err != nil || !strings.Contains(string(out), "--- PASS: TestMatchSizes") {
				t.Fatalf("%v\n%s", err, out)
			}
		})
	}
}
