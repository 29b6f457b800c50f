package root

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/weft-fabric/weft/cmd/weft/internal/tooltest"
)

// What a trace shows is tested on a C program: tests/clients/trace.sh.
func TestTraceUsage(t *testing.T) {
	self := fmt.Sprint(os.Getpid())
	for _, c := range []struct {
		args   []string
		status int
		text   string
	}{
		{[]string{"trace"}, 2, "accepts 1 arg"},
		{[]string{"trace", "me"}, 2, `"me" is no process id`},
		{[]string{"trace", "--json", "--folded", self}, 2, "exclude each other"},
		{[]string{"trace", "-d", "-1s", self}, 2, "is negative"},
		{[]string{"trace", "999999999"}, 1, "process 999999999: no such process"},
	} {
		r := tooltest.Run(t, tooltest.Weft(nil, c.args...))
		if r.Status != c.status || !strings.Contains(r.Err, c.text) {
			t.Errorf("%q: status %d, %q; want %d and %q", c.args, r.Status, r.Err, c.status, c.text)
		}
	}
}

// This process is a Go program: it has weft, and nothing that can be traced.
func TestTraceGoProgram(t *testing.T) {
	r := tooltest.Run(t, tooltest.Weft(nil, "trace", fmt.Sprint(os.Getpid())))
	if r.Status != 1 || !strings.Contains(r.Err, "Go programs that import weft") &&
		!strings.Contains(r.Err, "cannot trace here") {
		t.Errorf("status %d, %q", r.Status, r.Err)
	}
}
