// Command callcheck reads the disassembly of a library (go tool objdump) and checks that what it calls from given
// functions on needs nothing of the Go runtime (package direct):
//
//	go tool objdump build/lib/libweft-core.so | callcheck FUNCTION...
//
// It follows direct calls and jumps from one function to another. It fails where it meets a function of the runtime
// that is not allowed, a call through a register but in direct.Call, or an access to the thread's storage, and prints
// how it got there. What direct.Call calls is to be among the given functions, which nothing here shows: so only one
// file of the data plane and one of package mem may call it, wherever the compiler has that inlined.
// The last line is the number of functions that were walked.
package main

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
)

// allowed are the functions of the runtime that need no goroutine, and those that are never reached: the stack limit
// of direct calls is 0, so no stack grows, and an index out of bounds is a defect that ends the process on every
// route.
var allowed = map[string]string{
	"runtime.memmove":                 "copies",
	"runtime.memclrNoHeapPointers":    "clears",
	"runtime.memequal":                "compares",
	"runtime.duffcopy":                "copies",
	"runtime.duffzero":                "clears",
	"runtime.morestack_noctxt.abi0":   "not reached",
	"runtime.morestack_noctxt":        "not reached",
	"runtime.panicBounds":             "ends the process",
	"runtime.panicdivide":             "ends the process",
	"runtime.panicshift":              "ends the process",
	"runtime.panicunsafeslicelen":     "ends the process",
	"runtime.panicunsafeslicenilptr":  "ends the process",
	"runtime.panicunsafeslicenilptr1": "ends the process",
}

// caller is the function that may call through a register, through how such a call is reported.
const (
	caller  = "/internal/direct.Call"
	through = "calls through "
)

// callers are the files from which caller may be called, and of which package the functions are that do.
var callers = map[string]string{
	"matched_unsafe.go": "/internal/dataplane.",
	"by_asm.go":         "/internal/mem.",
}

var (
	text   = regexp.MustCompile(`^TEXT (.+)\(SB\)`)
	branch = regexp.MustCompile(`\t(CALL|JMP|B|BL)\s+(.+?)\s*$`)
	source = regexp.MustCompile(`^\s*(\S+):\d+\t`)
	tls    = regexp.MustCompile(`\bFS:|TPIDR_EL0|MRS\b`)
)

// function is what matters of one: which others it calls, and what is wrong with it.
type function struct {
	calls    []string
	problems []string
	callers  []string // files from which it calls caller
}

func main() {
	if err := run(os.Stdin, os.Stdout, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "callcheck:", err)
		os.Exit(1)
	}
}

func run(in io.Reader, out io.Writer, roots []string) error {
	functions, err := parse(in)
	if err != nil {
		return err
	}
	w := walker{functions: functions, seen: map[string]bool{}}
	for _, root := range roots {
		if functions[root] == nil {
			return fmt.Errorf("no function %s in the library", root)
		}
		w.walk(root, nil)
	}
	w.callers()
	for _, p := range w.found {
		fmt.Fprintln(out, p)
	}
	fmt.Fprintf(out, "%d functions walked from %d\n", len(w.seen), len(roots))
	if len(w.found) != 0 {
		return fmt.Errorf("%d uses of the runtime, or of what may lead to it", len(w.found))
	}
	return nil
}

// parse reads the disassembly.
func parse(in io.Reader) (map[string]*function, error) {
	functions := map[string]*function{}
	var f *function
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := lines.Text()
		if m := text.FindStringSubmatch(line); m != nil {
			f = &function{}
			functions[m[1]] = f
			continue
		}
		if f != nil {
			f.read(line)
		}
	}
	return functions, lines.Err()
}

// read takes in one instruction.
func (f *function) read(line string) {
	if tls.MatchString(line) {
		f.problems = append(f.problems, "uses the thread's storage")
	}
	m := branch.FindStringSubmatch(line)
	if m == nil {
		return
	}
	target, named := strings.CutSuffix(m[2], "(SB)")
	switch {
	case named:
		f.calls = append(f.calls, target)
		if strings.HasSuffix(target, caller) {
			f.callers = append(f.callers, sourceOf(line))
		}
	case m[1] == "CALL" || m[1] == "BL":
		f.problems = append(f.problems, through+m[2])
	case strings.HasPrefix(m[2], "0x") || strings.HasSuffix(m[2], "(PC)"): // within the function
	default:
		f.problems = append(f.problems, "jumps through "+m[2])
	}
}

// sourceOf is the file that an instruction is from, empty: the disassembly does not say.
func sourceOf(line string) string {
	if m := source.FindStringSubmatch(line); m != nil {
		return m[1]
	}
	return ""
}

// callers reports the functions of the library that call caller and may not, walked or not.
func (w *walker) callers() {
	for _, name := range slices.Sorted(maps.Keys(w.functions)) {
		for _, file := range w.functions[name].callers {
			if of := callers[file]; !strings.HasSuffix(name, caller) && (of == "" || !strings.Contains(name, of)) {
				w.report([]string{name}, "calls direct.Call from "+file)
			}
		}
	}
}

// walker follows calls.
type walker struct {
	functions map[string]*function
	seen      map[string]bool
	found     []string
}

func (w *walker) walk(name string, path []string) {
	if w.seen[name] || allowed[name] != "" {
		return
	}
	w.seen[name] = true
	path = append(slices.Clone(path), name)
	f := w.functions[name]
	switch {
	case f == nil:
		w.report(path, "is not in the library")
		return
	case strings.HasPrefix(name, "runtime."):
		w.report(path, "belongs to the runtime")
		return
	}
	for _, p := range f.problems {
		if !strings.HasSuffix(name, caller) || !strings.HasPrefix(p, through) {
			w.report(path, p)
		}
	}
	for _, c := range f.calls {
		w.walk(c, path)
	}
}

func (w *walker) report(path []string, what string) {
	w.found = append(w.found, strings.Join(path, " -> ")+" "+what)
}
