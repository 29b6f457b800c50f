package main

import (
	"strings"
	"testing"
)

const sample = `{"Action":"output","Package":"p","Test":"TestA","Output":"fine\n"}
{"Action":"pass","Package":"p","Test":"TestA","Elapsed":0.1}
{"Action":"output","Package":"p","Test":"TestB","Output":"=== RUN   TestB\n"}
{"Action":"output","Package":"p","Test":"TestB","Output":"    b_test.go:3: broken\n"}
{"Action":"fail","Package":"p","Test":"TestB"}
{"Action":"output","Package":"p","Test":"TestC","Output":"    c_test.go:4: no such device\n"}
{"Action":"skip","Package":"p","Test":"TestC"}
{"Action":"fail","Package":"p"}
{"Action":"build-output","ImportPath":"q","Output":"q.go:1: syntax error\n"}
{"Action":"fail","Package":"q"}
{"Action":"pass","Package":"r","Elapsed":1.5}
{"Action":"skip","Package":"s"}
`

func TestRun(t *testing.T) {
	var out strings.Builder
	c, err := run(strings.NewReader(sample), &out)
	if err != nil {
		t.Fatal(err)
	}
	if c.passed != 1 || c.failed != 2 || c.skipped != 1 {
		t.Errorf("%d passed, %d failed, %d skipped", c.passed, c.failed, c.skipped)
	}
	for _, want := range []string{"broken", "no such device", "syntax error", "ok r (1.5 s)"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing in:\n%s", want, out.String())
		}
	}
	if strings.Contains(out.String(), "fine") {
		t.Error("shows the output of a test that passed")
	}
}

func TestRunCrash(t *testing.T) {
	const crash = `{"Action":"output","Package":"p","Test":"TestA","Output":"panic: boom\n"}
{"Action":"fail","Package":"p"}
`
	var out strings.Builder
	c, _ := run(strings.NewReader(crash), &out)
	if c.failed != 1 || !strings.Contains(out.String(), "boom") {
		t.Errorf("%d failed; %s", c.failed, out.String())
	}
}
