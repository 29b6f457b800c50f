package cxi

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/weft-fabric/weft/internal/race"
)

// model is the software model of the NIC, built once.
var model struct {
	once sync.Once
	dir  string
	file string
	err  error
}

// library is the model's libcxi, or the one that WEFT_TEST_CXI names.
func library(t testing.TB) string {
	t.Helper()
	model.once.Do(func() {
		if model.file = os.Getenv("WEFT_TEST_CXI"); model.file != "" {
			return
		}
		if model.dir, model.err = os.MkdirTemp("", "weft-cxi"); model.err != nil {
			return
		}
		model.file = filepath.Join(model.dir, "libcxi.so.1")
		model.err = buildModel("../../tests/cassini", model.file)
	})
	if model.err != nil {
		t.Fatal(model.err)
	}
	return model.file
}

// buildModel compiles the model.
func buildModel(folder, to string) error {
	sources, err := filepath.Glob(filepath.Join(folder, "*.c"))
	if err != nil || len(sources) == 0 {
		return errors.Join(err, fmt.Errorf("no model in %s", folder))
	}
	args := []string{"-O1", "-g", "-std=gnu11", "-D_GNU_SOURCE", "-fPIC", "-shared", "-pthread",
		"-Wl,-soname,libcxi.so.1",
		"-Wl,--version-script=" + filepath.Join(folder, "libcxi.map"), "-o", to}
	out, err := exec.Command("gcc", append(args, sources...)...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("gcc: %w: %s", err, out)
	}
	return nil
}

func TestMain(m *testing.M) {
	code := m.Run()
	if model.dir != "" {
		_ = os.RemoveAll(model.dir)
	}
	os.Exit(code)
}

// child is this test program, which runs the tests that match run over a model with settings.
func child(t *testing.T, run, settings string, env ...string) *exec.Cmd {
	t.Helper()
	args := []string{"-test.run=" + run, "-test.timeout=5m", "-test.v"}
	if testing.Short() {
		args = append(args, "-test.short")
	}
	cmd := exec.Command(os.Args[0], args...)
	// With the race detector a process would sleep for a second at its end.
	env = append(env, "GORACE=atexit_sleep_ms=0 "+os.Getenv("GORACE"))
	cmd.Env = append(os.Environ(), append(env, "CASSINI="+settings, "WEFT_TEST_CXI="+library(t),
		"WEFT_TEST_CXI_CHILD=1")...)
	return cmd
}

// alone runs this subtest over a model with settings of its own, in a child, and returns what that prints.
func alone(t *testing.T, settings string, env ...string) string {
	t.Helper()
	out, err := child(t, "^"+strings.ReplaceAll(t.Name(), "/", "$/^")+"$", settings, env...).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
		t.Fatalf("%v\n%s", err, out)
	}
	return string(out)
}

// parent skips a test in a child of another.
func parent(t *testing.T) {
	t.Helper()
	if os.Getenv("WEFT_TEST_CXI_CHILD") != "" {
		t.Skip("this is a part of another test")
	}
}

// few are the tests of two interfaces, of five list entries each.
const few = "TestConformance/small/^(Address|Order|FullShort|FullBcopy|Random|SendInHandler|Keep|PutGet|Atomics|Driven)$"

// onlyThreads leaves settings that change the order of events and no thread to runs without the race detector.
func onlyThreads(t *testing.T, settings string) {
	t.Helper()
	if race.Enabled && testing.Short() && !strings.Contains(settings, "mode=threaded") {
		t.Skip("the short form with the race detector has the NIC's own thread only")
	}
}

// TestModes runs the suite over NICs of other kinds: of those that take long a part, all with
// WEFT_TEST_CXI_MODES=whole.
func TestModes(t *testing.T) {
	parent(t)
	for _, c := range []struct{ name, whole, part, settings string }{
		{"shuffled", "TestConformance", "TestConformance/(default|small)", "shuffle=1"},
		{"second generation", "TestConformance", "TestConformance/small", "version=2"},
		{"threads", "TestConformance", "TestConformance/default/^(Address|Order|FullBcopy|SendInHandler|Keep|PutGet|Atomics|Wakeup|SenderCloses|Driven)$", "mode=threaded"},
		{"steps", "TestConformance", "TestConformance/small/^(Address|FullShort|FullBcopy|SendInHandler|PutGet|Atomics|Driven|DrivenStops)$", "mode=stepped"},
		{"16 entries", few, few, "les=16 shuffle=1 version=2"},
	} {
		run := c.part
		if os.Getenv("WEFT_TEST_CXI_MODES") == "whole" {
			run = c.whole
		}
		t.Run(c.name, func(t *testing.T) {
			onlyThreads(t, c.settings)
			out, err := child(t, run, c.settings).CombinedOutput()
			if err != nil || !strings.Contains(string(out), "--- PASS: TestConformance") {
				t.Fatalf("%v\n%s", err, out)
			}
		})
	}
}
