package nic

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/weft-fabric/weft/internal/race"
)

// orderPoint is a function and instructions of arm64 that it has in this order (package comment, "Order"), and what has
// its source lose them.
type orderPoint struct {
	name, function string
	want           []string // regular expressions
	file           string
	from, to       string
}

const events, queues = "event_unsafe.go", "queue_unsafe.go"

var orderPoints = []orderPoint{
	{"D1", "Bell", []string{`DMB \$2`, `MOVD R1, \(R0\)`}, "store_arm64.s",
		"\tDMB  $2\n\tMOVD R1", "\tMOVD R1"},
	{"D2", "Bell", []string{`MOVD R1, \(R0\)`, `DMB \$2`}, "store_arm64.s", "(R0)\n\tDMB  $2\n", "(R0)\n"},
	{"D2", "(*EventQueue).Return", []string{`CALL .*Bell`, `STLRW`}, events,
		"order.Store32(&q.lock, 0)", "q.lock = 0"},
	{"D3", "(*Queue).read", []string{`LDAR `}, queues,
		"q.free(2 * uint32(atomic.LoadUint64((*uint64)(q.ring))&",
		"q.free(2 * uint32(*(*uint64)(q.ring)&"},
	{"E1", "(*EventQueue).PeekAny", []string{`LDAR `, `LDAR `}, events,
		"atomic.LoadUint64(&e.w[1<<n-1])", "e.w[1<<n-1]"},
	{"E1", "(*EventQueue).PeekAny", []string{`LDAR `, `LDAR `}, events,
		"n := atomic.LoadUint64(&e.w[1])", "n := e.w[1]"},
	{"E2", "(*EventQueue).Free", []string{`STP \(ZR, ZR\)|MOVD ZR, `, `STLR `}, events,
		"order.Store64(&q.next, uint64(uintptr(q.base))+uint64(q.off)+8)",
		"q.next = uint64(uintptr(q.base)) + uint64(q.off) + 8"},
	{"E3", "(*EventQueue).Waiting", []string{`LDAR `, `LDAR `}, events,
		"return atomic.LoadUint64(word)", "return *word"},
	{"E3", "(*EventQueue).Unread", []string{`LDAR `, `LDAR `}, events, "if atomic.LoadUint64(&w[1])", "if w[1]"},
	{"E3", "(*EventQueue).Dropped", []string{`LDAR `}, events, "status := atomic.LoadUint64(w)", "status := *w"},
}

// found reports whether the instructions are in a function's text, in order.
func (p *orderPoint) found(text string) bool {
	for _, w := range p.want {
		at := regexp.MustCompile(w).FindStringIndex(text)
		if at == nil {
			return false
		}
		text = text[at[1]:]
	}
	return true
}

// disassembled is what the compiler makes of the package for arm64, by function. Files may have others in their place.
func disassembled(t *testing.T, overlay map[string]string) map[string]string {
	t.Helper()
	folder := t.TempDir()
	replaced := map[string]string{}
	for name, text := range overlay {
		path, err := filepath.Abs(name)
		if err != nil {
			t.Fatal(err)
		}
		replaced[path] = filepath.Join(folder, name)
		if err := os.WriteFile(replaced[path], []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	list, err := json.Marshal(map[string]any{"Replace": replaced})
	if err != nil {
		t.Fatal(err)
	}
	file, library := filepath.Join(folder, "overlay.json"), filepath.Join(folder, "nic.a")
	if err := os.WriteFile(file, list, 0o600); err != nil {
		t.Fatal(err)
	}
	build := exec.Command("go", "build", "-overlay", file, "-o", library, ".")
	build.Env = append(os.Environ(), "GOARCH=arm64", "CGO_ENABLED=0", "GOFLAGS=")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	unpack := exec.Command("go", "tool", "pack", "x", library)
	unpack.Dir = folder
	if out, err := unpack.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	functions := map[string]string{}
	for _, object := range []string{"_go_.o", "store_arm64.o"} {
		out, err := exec.Command("go", "tool", "objdump", filepath.Join(folder, object)).Output()
		if err != nil {
			t.Fatal(err)
		}
		for part := range strings.SplitSeq("\n"+string(out), "\nTEXT ") {
			name, text, _ := strings.Cut(part, "\n")
			name, _, _ = strings.Cut(name, "(SB)")
			functions[strings.TrimPrefix(name[strings.LastIndex(name, "/")+1:], "nic.")] = text
		}
	}
	return functions
}

// TestOrder: what is compiled for arm64 has the instructions that keep the order between processor and NIC, and each
// point is found missing where its source has lost them.
func TestOrder(t *testing.T) {
	if race.Enabled {
		t.Skip("what is tested is compiled without the race detector")
	}
	whole := disassembled(t, nil)
	for _, p := range orderPoints {
		if text, ok := whole[p.function]; !ok || !p.found(text) {
			t.Errorf("%s: %s has not %q\n%s", p.name, p.function, p.want, text)
		}
	}
	for rest := orderPoints; len(rest) > 0; {
		rest = losing(t, rest)
	}
}

// losing has each function lose the first of its points, which is to be found missing, and returns the others.
func losing(t *testing.T, points []orderPoint) (rest []orderPoint) {
	t.Helper()
	overlay, lost := map[string]string{}, map[string]orderPoint{}
	for _, p := range points {
		if _, ok := lost[p.function]; ok {
			rest = append(rest, p)
			continue
		}
		lost[p.function] = p
		if overlay[p.file] == "" {
			b, err := os.ReadFile(p.file)
			if err != nil {
				t.Fatal(err)
			}
			overlay[p.file] = string(b)
		}
		if strings.Count(overlay[p.file], p.from) != 1 {
			t.Fatalf("%s has not one %q", p.file, p.from)
		}
		overlay[p.file] = strings.Replace(overlay[p.file], p.from, p.to, 1)
	}
	without := disassembled(t, overlay)
	for _, p := range lost {
		if text, ok := without[p.function]; !ok || p.found(text) {
			t.Errorf("%s: %s is said to have %q, which it has not\n%s", p.name, p.function, p.want, text)
		}
	}
	return rest
}
