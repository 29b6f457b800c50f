package doctor

import (
	"bytes"
	"context"
	"debug/elf"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	soname   = "libfabric.so.1"
	provider = "libweft-fi.so"
)

// libraryRoots are the directories where libfabric may be, those that the
// loader looks at first first.
func libraryRoots() []string {
	list := filepath.SplitList(os.Getenv("LD_LIBRARY_PATH"))
	list = append(list, "/usr/local/lib", "/usr/lib/"+multiarch(), "/lib/"+multiarch(), "/usr/lib64", "/usr/lib")
	for _, pattern := range []string{"/opt/*/lib", "/opt/*/lib64", "/usr/local/*/lib"} {
		found, _ := filepath.Glob(pattern) // the patterns are well formed
		list = append(list, found...)
	}
	return list
}

// multiarch is Debian's name of this architecture's directory.
func multiarch() string {
	return machine + "-linux-gnu"
}

// library is a libfabric that was found.
type library struct {
	path    string // resolved
	dir     string // as it was found
	version string // of the library, empty if nothing tells
	abi     string // newest symbol version
}

// findLibraries returns each libfabric once, in the order of the roots.
func findLibraries(ctx context.Context, roots []string) []library {
	var list []library
	for _, dir := range roots {
		path, err := filepath.EvalSymlinks(filepath.Join(dir, soname))
		if err != nil || slices.ContainsFunc(list, func(l library) bool { return l.path == path }) {
			continue
		}
		list = append(list, library{path, dir, versionOf(ctx, dir), abiOf(path)})
	}
	return list
}

// abiOf returns the newest FABRIC_ version of the library's symbols.
func abiOf(path string) string {
	f, err := elf.Open(path)
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

// versionOf asks the fi_info that was installed with the library.
func versionOf(ctx context.Context, dir string) string {
	for _, bin := range []string{filepath.Join(dir, "../bin/fi_info"), filepath.Join(dir, "../../bin/fi_info")} {
		if out, err := run(ctx, []string{"LD_LIBRARY_PATH=" + dir}, bin, "--version"); err == nil {
			for line := range strings.Lines(out) {
				if v, ok := strings.CutPrefix(line, "libfabric:"); ok {
					return strings.TrimSpace(v)
				}
			}
		}
	}
	return ""
}

// run runs a program, for at most ten seconds, with more in its environment, and
// returns what it writes.
func run(ctx context.Context, env []string, program string, args ...string) (string, error) {
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

func checkLibfabric(ctx context.Context, h *host) []Finding {
	found := findLibraries(ctx, h.roots)
	if len(found) == 0 {
		return []Finding{{"libfabric", Note, "not found; programs that link libweft need none", "apt install libfabric1 libfabric-bin"}}
	}
	var list []Finding
	for _, l := range found {
		what := l.path
		if l.version != "" {
			what += ", version " + l.version
		}
		if l.abi != "" {
			what += ", symbols up to " + l.abi
		}
		list = append(list, good("libfabric", "%s", what)...)
	}
	return list
}

// providerPaths are the directories where a libfabric looks for providers.
func providerPaths(h *host) []string {
	path, _ := h.lookup("FI_PROVIDER_PATH")
	list := filepath.SplitList(strings.TrimPrefix(path, "@"))
	for _, dir := range h.roots {
		list = append(list, filepath.Join(dir, "libfabric"))
	}
	return list
}

// findProvider returns the first directory with the provider, and whether
// FI_PROVIDER_PATH names it.
func findProvider(h *host) (dir string, named bool) {
	path, _ := h.lookup("FI_PROVIDER_PATH")
	n := len(filepath.SplitList(strings.TrimPrefix(path, "@")))
	for i, d := range providerPaths(h) {
		if _, err := os.Stat(filepath.Join(d, provider)); err == nil {
			abs, err := filepath.Abs(d)
			if err != nil {
				abs = d
			}
			return abs, i < n
		}
	}
	return "", false
}

// checkProvider sees whether each libfabric loads the provider.
func checkProvider(ctx context.Context, h *host) []Finding {
	dir, named := findProvider(h)
	if dir == "" {
		if p, _ := h.lookup("FI_PROVIDER_PATH"); p != "" {
			return []Finding{{"provider", Fail, "FI_PROVIDER_PATH=" + p + " has no " + provider, "set it to the directory that has it, build/lib of weft's sources or PREFIX/lib/libfabric"}}
		}
		return []Finding{{"provider", Fail, provider + " was not found", "make install, or export FI_PROVIDER_PATH=<directory of " + provider + ">"}}
	}
	list := good("provider", "%s", filepath.Join(dir, provider))
	for _, l := range findLibraries(ctx, h.roots) {
		list = append(list, loads(ctx, l, dir, named))
	}
	return list
}

// loads asks the fi_info of a libfabric for the provider.
func loads(ctx context.Context, l library, dir string, named bool) Finding {
	for _, bin := range []string{filepath.Join(l.dir, "../bin/fi_info"), filepath.Join(l.dir, "../../bin/fi_info")} {
		if _, err := os.Stat(bin); err != nil {
			continue
		}
		env := []string{"LD_LIBRARY_PATH=" + l.dir}
		if _, err := run(ctx, env, bin, "-p", "weft"); err == nil {
			return Finding{Check: "provider", Verdict: Good, What: l.path + " loads it"}
		}
		out, err := run(ctx, append(env, "FI_PROVIDER_PATH="+dir), bin, "-p", "weft")
		if err == nil {
			return Finding{"provider", Warn, l.path + " looks elsewhere for providers", "export FI_PROVIDER_PATH=" + dir}
		}
		first, _, _ := strings.Cut(strings.TrimSpace(out), "\n")
		return Finding{"provider", Fail, fmt.Sprintf("%s does not load it: %s", l.path, first), "FI_LOG_LEVEL=info FI_PROVIDER_PATH=" + dir + " " + filepath.Clean(bin) + " -p weft says why"}
	}
	f := Finding{Check: "provider", Verdict: Note, What: l.path + " has no fi_info beside it: whether it loads the provider was not tried"}
	if !named {
		f.Remedy = "export FI_PROVIDER_PATH=" + dir
	}
	return f
}
