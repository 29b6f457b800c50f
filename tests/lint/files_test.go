package lint

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// root is the repository's, seen from this folder.
const root = "../.."

// maxLines is the most lines a hand-written source file may have.
const maxLines = 600

// files returns the repository's files: those git knows and those it would
// not ignore. Without git every file outside build/ counts.
func files(t *testing.T) []string {
	t.Helper()
	cmd := exec.Command("git", "ls-files", "--cached", "--others", "--exclude-standard", "--deduplicate")
	cmd.Dir = root
	if out, err := cmd.Output(); err == nil {
		return strings.Fields(string(out))
	}
	var list []string
	err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		name, _ := filepath.Rel(root, path)
		switch {
		case err != nil:
			return err
		case d.IsDir() && name == "build":
			return filepath.SkipDir
		case d.Type().IsRegular():
			list = append(list, name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// read returns a file's text; a file that was deleted but not yet committed
// is empty.
func read(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, name))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return text
}

var source = regexp.MustCompile(`\.(go|c|h|sh|py)$|(^|/)(Makefile|run)$`)

// generated matches the line that marks a file written by a program.
var generated = regexp.MustCompile(`(?m)^(//| \*) Code generated .* DO NOT EDIT\.$`)

// TestFileSize keeps files short enough to read.
func TestFileSize(t *testing.T) {
	for _, name := range files(t) {
		if !source.MatchString(name) {
			continue
		}
		text := read(t, name)
		if lines := bytes.Count(text, []byte("\n")); lines > maxLines && !generated.Match(text) {
			t.Errorf("%s has %d lines, more than %d", name, lines, maxLines)
		}
	}
}

// machinePath matches absolute paths that exist on one machine only.
var machinePath = regexp.MustCompile(`(^|[^A-Za-z0-9_./$}-])/(work|root|home|Users)/[A-Za-z0-9._-]`)

// TestMachinePaths finds paths that mean nothing to others.
func TestMachinePaths(t *testing.T) {
	for _, name := range files(t) {
		if under(name, "tests/lint") {
			continue
		}
		for i, line := range bytes.Split(read(t, name), []byte("\n")) {
			if machinePath.Match(line) {
				t.Errorf("%s:%d names a path of one machine", name, i+1)
			}
		}
	}
}

// TestMachinePathPattern shows what the pattern finds.
func TestMachinePathPattern(t *testing.T) {
	for text, want := range map[string]bool{
		"cd /" + "root/x":          true,
		`"/` + `home/ada/weft"`:    true,
		"$PREFIX/" + "root/x":      false,
		"a net/" + "work/drive":    false,
		"/tmp/x and /dev/shm/work": false,
	} {
		if got := machinePath.MatchString(text); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}

// TestLicense wants the license line in every C file and script.
func TestLicense(t *testing.T) {
	wants := regexp.MustCompile(`\.(c|h|sh|py)$`)
	for _, name := range files(t) {
		text := read(t, name)
		head := text[:min(len(text), 200)]
		if len(text) > 0 && wants.MatchString(name) &&
			!bytes.Contains(head, []byte("SPDX-License-Identifier: BSD-2-Clause")) {
			t.Errorf("%s: no license line at the top", name)
		}
	}
}
