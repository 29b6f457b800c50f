package lint

import (
	"bytes"
	"regexp"
	"strings"
	"testing"
)

// ways matches the names of ways (docs/token.md), of their counters and of what they are made of.
var ways = regexp.MustCompile(`(?i)\b(ipc|cma|verbs|udp|messages?|info\.(way|why)|weft_way\w*|\w+_WAYS)\b|rdma`)

// TestNIXLBackend holds NIXL's backend to the memory token's interface: it is short, and knows no ways.
func TestNIXLBackend(t *testing.T) {
	const limit = 600
	found, lines := 0, 0
	for _, name := range files(t) {
		if !under(name, "plugins/nixl") {
			continue
		}
		text := read(t, name)
		found++
		if !under(name, "plugins/nixl/tests") {
			lines += bytes.Count(text, []byte("\n"))
		}
		for i, line := range strings.Split(string(text), "\n") {
			if way := ways.FindString(line); way != "" && !strings.HasPrefix(line, "#include <"+"rdma/") {
				t.Errorf("%s:%d names a way: %s", name, i+1, way)
			}
		}
	}
	if found == 0 || lines > limit {
		t.Errorf("%d files, the backend has %d lines, more than %d", found, lines, limit)
	}
}
