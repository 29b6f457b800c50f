// Package fabric finds the libfabrics of a host, and the settings that they read
// from a file.
package fabric

import (
	"bytes"
	"context"
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

const soname = "libfabric.so.1"

// Roots are the directories where libfabric may be, those that the
// loader tries first, first.
func Roots() []string {
	list := filepath.SplitList(os.Getenv("LD_LIBRARY_PATH"))
	list = append(list, "/usr/local/lib", "/usr/lib/"+multiarch(), "/lib/"+multiarch(), "/usr/lib64", "/usr/lib")
	for _, pattern := range []string{"/opt/*/lib", "/opt/*/lib64", "/usr/local/*/lib"} {
		found, _ := filepath.Glob(pattern) // the patterns are well formed
		list = append(list, found...)
	}
	return append(list, Beside()...)
}

// Beside are the directories of libraries that belong to this command: those of the prefix that
// it was installed in, or of the folder that it was built in.
func Beside() []string {
	self, err := os.Executable()
	if err != nil {
		return nil
	}
	if self, err = filepath.EvalSymlinks(self); err != nil {
		return nil
	}
	prefix := filepath.Dir(filepath.Dir(self))
	return []string{filepath.Join(prefix, "lib"), filepath.Join(prefix, "lib", multiarch()),
		filepath.Join(prefix, "lib64")}
}

// FindWeft returns where a library of weft is: in one of the folders given, beside this command,
// or where libfabrics search for providers. Empty if it is not found.
func FindWeft(name string, first []string, roots []string) string {
	folders := slices.Clone(first)
	for _, d := range append(Beside(), roots...) {
		folders = append(folders, d, filepath.Join(d, "libfabric"))
	}
	for _, d := range folders {
		path, err := filepath.Abs(filepath.Join(d, name))
		if err != nil {
			continue
		}
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	return ""
}

// ProviderFolders are those of a value of FI_PROVIDER_PATH, in which "@" goes before the first and
// "+" before the path of a library.
func ProviderFolders(value string) []string {
	var list []string
	for _, e := range filepath.SplitList(strings.TrimPrefix(value, "@")) {
		if path, ok := strings.CutPrefix(e, "+"); ok {
			e = filepath.Dir(path)
		}
		list = append(list, e)
	}
	return list
}

// multiarch is Debian's name of this architecture's directory.
func multiarch() string {
	return machine + "-linux-gnu"
}

// Library is a libfabric that was found.
type Library struct {
	Path string // resolved
	Dir  string // as it was found
}

// Find returns each libfabric once, in the order of the roots.
func Find(roots []string) []Library {
	var list []Library
	for _, dir := range roots {
		path, err := filepath.EvalSymlinks(filepath.Join(dir, soname))
		if err != nil || slices.ContainsFunc(list, func(l Library) bool { return l.Path == path }) {
			continue
		}
		list = append(list, Library{path, dir})
	}
	return list
}

// ABI returns the newest FABRIC_ version of the library's symbols, empty if
// there is none.
func (l Library) ABI() string {
	f, err := elf.Open(l.Path)
	if err != nil {
		return ""
	}
	defer f.Close()
	defs, err := f.DynamicVersions()
	if err != nil {
		return ""
	}
	best, newest := "", -1
	for _, d := range defs {
		if minor, ok := strings.CutPrefix(d.Name, "FABRIC_1."); ok {
			if n, err := strconv.Atoi(minor); err == nil && n > newest {
				best, newest = d.Name, n
			}
		}
	}
	return best
}

// Programs are where the fi_info that was installed with the library may be.
func (l Library) Programs() []string {
	return []string{filepath.Join(l.Dir, "../bin/fi_info"), filepath.Join(l.Dir, "../../bin/fi_info")}
}

// Version asks that fi_info, empty if nothing says so.
func (l Library) Version(ctx context.Context) string {
	for _, bin := range l.Programs() {
		if out, err := Run(ctx, []string{"LD_LIBRARY_PATH=" + l.Dir}, bin, "--version"); err == nil {
			for line := range strings.Lines(out) {
				if v, ok := strings.CutPrefix(line, "libfabric:"); ok {
					return strings.TrimSpace(v)
				}
			}
		}
	}
	return ""
}

// Run runs a program, for at most ten seconds, with more in its environment, and
// returns what it writes.
func Run(ctx context.Context, env []string, program string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = append(os.Environ(), env...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.WaitDelay = time.Second
	err := cmd.Run()
	return out.String(), err
}
