// Count reads the output of "go test -json" and shows what a person wants of
// it: one line per package, the output of tests that failed, and at the end
// how many passed, failed and were skipped. The exit status is 1 when
// something failed.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
)

// event is one line of "go test -json".
type event struct {
	Action     string
	Package    string
	ImportPath string // of build output, "package [test binary]"
	Test       string
	Output     string
	Elapsed    float64
}

// counter adds up results.
type counter struct {
	passed, failed, skipped int
	output                  map[string][]string // by package and test, until it is known to have passed
	broken                  map[string]int      // failed tests by package
	w                       io.Writer
}

func newCounter(w io.Writer) *counter {
	return &counter{output: map[string][]string{}, broken: map[string]int{}, w: w}
}

// add takes an event.
func (c *counter) add(e event) {
	key := e.Package + "\x00" + e.Test
	switch e.Action {
	case "build-output":
		fmt.Fprint(c.w, e.Output)
	case "output":
		c.output[key] = append(c.output[key], e.Output)
	case "pass", "fail", "skip":
		if e.Test == "" {
			c.completePackage(e, key)
		} else {
			c.completeTest(e, key)
		}
		delete(c.output, key)
	}
}

func (c *counter) completeTest(e event, key string) {
	switch e.Action {
	case "pass":
		c.passed++
	case "skip":
		c.skipped++
		fmt.Fprintf(c.w, "skipped %s %s: %s\n", e.Package, e.Test, reason(c.output[key]))
	case "fail":
		c.failed++
		c.broken[e.Package]++
		fmt.Fprintf(c.w, "FAILED %s %s\n%s", e.Package, e.Test, strings.Join(c.output[key], ""))
	}
}

// completePackage counts a package that failed without a test that did: it did
// not build, or it crashed.
func (c *counter) completePackage(e event, key string) {
	switch e.Action {
	case "pass":
		fmt.Fprintf(c.w, "ok %s (%.1f s)\n", e.Package, e.Elapsed)
	case "fail":
		if c.broken[e.Package] == 0 {
			c.failed++
			c.showCutOff(e.Package)
		}
		fmt.Fprintf(c.w, "FAILED %s\n%s", e.Package, strings.Join(c.output[key], ""))
	}
}

// showCutOff prints what the tests said that a crash or a timeout cut off.
func (c *counter) showCutOff(pkg string) {
	for key, lines := range c.output {
		if strings.HasPrefix(key, pkg+"\x00") && key != pkg+"\x00" {
			fmt.Fprint(c.w, strings.Join(lines, ""))
		}
	}
}

// reason finds the line that a test skipped itself with.
func reason(output []string) string {
	for _, line := range output {
		line = strings.TrimSpace(line)
		if line != "" && !strings.HasPrefix(line, "===") && !strings.HasPrefix(line, "---") {
			return line
		}
	}
	return "no reason"
}

func run(r io.Reader, w io.Writer) (*counter, error) {
	c := newCounter(w)
	lines := bufio.NewReader(r)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			var e event
			if json.Unmarshal(line, &e) == nil {
				c.add(e)
			} else {
				fmt.Fprintf(w, "%s", line)
			}
		}
		if err == io.EOF {
			return c, nil
		}
		if err != nil {
			return c, err
		}
	}
}

func main() {
	c, err := run(os.Stdin, os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, "count:", err)
		os.Exit(1)
	}
	fmt.Printf("%d passed, %d failed, %d skipped\n", c.passed, c.failed, c.skipped)
	if c.failed > 0 || c.passed == 0 {
		os.Exit(1)
	}
}
