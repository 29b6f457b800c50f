package main

import (
	"io"
	"strings"
	"testing"
)

// TestCallers: direct.Call is called from one file of the data plane and one of package mem alone, also where that is
// inlined, and whether the calls from the roots lead there or not.
func TestCallers(t *testing.T) {
	const call = "0x10\t\te8\t\tCALL example.org/weft/internal/direct.Call(SB)\t"
	roots := []string{"example.org/weft/internal/dataplane.Receive"}
	whole := []string{
		"TEXT example.org/weft/internal/direct.Call(SB) x/table_unsafe.go",
		"  table_unsafe.go:17\t0x1\t\tff\t\tCALL DX\t",
		"  table_unsafe.go:16\t0x2\t\teb\t\tJMP example.org/weft/internal/direct.Call(SB)\t",
		"TEXT example.org/weft/internal/dataplane.Receive(SB) x/postrecv_unsafe.go", "  matched_unsafe.go:75\t" + call,
	}
	for _, c := range []struct{ what, function, file, said string }{
		{"whole", "", "", "2 functions walked from 1\n"},
		{"another function of the file", "dataplane.sendMatched", "matched_unsafe.go", "2 functions walked from 1\n"},
		{"the file of package mem", "mem.CopyBy", "by_asm.go", "2 functions walked from 1\n"},
		{"that file in another package", "dataplane.Send", "by_asm.go", "calls direct.Call from by_asm.go\n"},
		{"another file", "dataplane.Send", "post_unsafe.go", "calls direct.Call from post_unsafe.go\n"},
		{"another package", "cabi.x", "matched_unsafe.go", "calls direct.Call from matched_unsafe.go\n"},
		{"a function literal", "dataplane.Receive.func1", "x.go", "calls direct.Call from x.go\n"},
	} {
		lines := whole
		if c.function != "" {
			lines = append(lines[:len(lines):len(lines)], "TEXT example.org/weft/internal/"+c.function+"(SB) x",
				"  "+c.file+":1\t"+call)
		}
		var out strings.Builder
		err := run(strings.NewReader(strings.Join(lines, "\n")), &out, roots)
		if bad := strings.Contains(c.said, "calls"); (err != nil) != bad || !strings.Contains(out.String(), c.said) {
			t.Errorf("%s: %v\n%s", c.what, err, out.String())
		}
	}
	if err := run(strings.NewReader(strings.Join(whole, "\n")), io.Discard, []string{"example.org/none"}); err == nil {
		t.Error("a root that is not in the library")
	}
}
