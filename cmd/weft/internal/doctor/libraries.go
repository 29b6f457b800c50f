package doctor

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/weft-fabric/weft/cmd/weft/internal/fabric"
	"github.com/weft-fabric/weft/internal/config"
)

// The file that libfabric loads, and the one that this loads from the same folder.
const (
	provider = "libweft-fi.so"
	core     = "libweft-core.so"
)

func checkLibfabric(ctx context.Context, h *host) []Finding {
	found := fabric.Find(h.roots)
	if len(found) == 0 {
		return []Finding{{"libfabric", Note, "not found; programs that link libweft need none",
			"apt install libfabric1 libfabric-bin"}}
	}
	var list []Finding
	for _, l := range found {
		what := l.Path
		if v := l.Version(ctx); v != "" {
			what += ", version " + v
		}
		if v := l.ABI(); v != "" {
			what += ", symbols up to " + v
		}
		list = append(list, good("libfabric", "%s", what)...)
	}
	return list
}

// findProvider returns the directory of the provider, the first of FI_PROVIDER_PATH, beside this
// command and of the libfabrics, and whether FI_PROVIDER_PATH names it.
func findProvider(h *host) (dir string, named bool) {
	value, _ := h.lookup("FI_PROVIDER_PATH")
	folders := fabric.ProviderFolders(value)
	path := fabric.FindWeft(provider, folders, h.roots)
	if path == "" {
		return "", false
	}
	dir = filepath.Dir(path)
	return dir, slices.ContainsFunc(folders, func(f string) bool {
		abs, err := filepath.Abs(f)
		return err == nil && abs == dir
	})
}

// beside reports whether the core lies where the provider in dir finds it: in the same
// directory, or in that of the file that the provider is a symbolic link to.
func beside(dir string) bool {
	if _, err := os.Stat(filepath.Join(dir, core)); err == nil {
		return true
	}
	target, err := filepath.EvalSymlinks(filepath.Join(dir, provider))
	if err == nil {
		_, err = os.Stat(filepath.Join(filepath.Dir(target), core))
	}
	return err == nil
}

// checkProvider sees whether each libfabric loads the provider.
func checkProvider(ctx context.Context, h *host) []Finding {
	dir, named := findProvider(h)
	if dir == "" {
		if p, _ := h.lookup("FI_PROVIDER_PATH"); p != "" {
			return []Finding{{"provider", Fail, "FI_PROVIDER_PATH=" + p + " has no " + provider,
				"set it to the directory that has it, build/lib of weft's sources or PREFIX/lib/libfabric"}}
		}
		return []Finding{{"provider", Fail, provider + " was not found", "make install, or export " +
			"FI_PROVIDER_PATH=<directory of " + provider + ">"}}
	}
	if !beside(dir) {
		return []Finding{{"provider", Fail, filepath.Join(dir, provider) + " has no " + core + " beside it",
			"make install, or put both files of one build into one directory"}}
	}
	list := append(good("provider", "%s", filepath.Join(dir, provider)), checkName(h, dir)...)
	list = append(list, checkFilter(h)...)
	if h.bad != nil {
		return append(list, Finding{Check: "provider", Verdict: Note,
			What: "no libfabric loads it with the settings that there are, so none was tried"})
	}
	for _, l := range fabric.Find(h.roots) {
		list = append(list, loads(ctx, l, dir, named))
	}
	return list
}

// checkName finds whether the name of another provider can be had: libfabric takes weft in that
// one's place only if FI_PROVIDER_PATH prefers it.
func checkName(h *host, dir string) []Finding {
	name := h.cfg.Name
	if path, _ := h.lookup("FI_PROVIDER_PATH"); name == config.Default().Name || strings.HasPrefix(path, "@") ||
		strings.Contains(path, "+") {
		return nil
	}
	return []Finding{{"provider", Warn, "FI_WEFT_NAME is " + name + ", but libfabric's own " + name +
		" goes before weft",
		"export FI_PROVIDER_PATH=@" + dir + ", or from libfabric 1.21 on FI_PROVIDER_PATH=+" +
			filepath.Join(dir, provider)}}
}

// checkFilter finds whether FI_PROVIDER hides the provider from programs: it has the names that are
// shown, or after "^" those that are not.
func checkFilter(h *host) []Finding {
	value, _ := h.lookup("FI_PROVIDER")
	list, hides := strings.CutPrefix(value, "^")
	name := h.cfg.Name
	is := func(s string) bool { return strings.EqualFold(s, name) }
	named := slices.ContainsFunc(strings.Split(list, ","), is)
	if value == "" || named != hides {
		return nil
	}
	remedy := "unset FI_PROVIDER, or export FI_PROVIDER=" + name
	if hides {
		remedy = "unset FI_PROVIDER, or leave " + name + " out of it"
	}
	return []Finding{{"provider", Fail, "FI_PROVIDER=" + value + " hides " + name + " from programs", remedy}}
}

// loads asks the fi_info of a libfabric for the provider, whatever FI_PROVIDER is.
func loads(ctx context.Context, l fabric.Library, dir string, named bool) Finding {
	for _, bin := range l.Programs() {
		if _, err := os.Stat(bin); err != nil {
			continue
		}
		env := []string{"LD_LIBRARY_PATH=" + l.Dir, "FI_WEFT_NAME=weft", "FI_PROVIDER=weft"}
		if _, err := fabric.Run(ctx, env, bin, "-p", "weft"); err == nil {
			return Finding{Check: "provider", Verdict: Good, What: l.Path + " loads it"}
		}
		out, err := fabric.Run(ctx, append(env, "FI_PROVIDER_PATH="+dir), bin, "-p", "weft")
		if err == nil {
			return Finding{"provider", Warn, l.Path + " finds providers elsewhere", "export FI_PROVIDER_PATH=" + dir}
		}
		first, _, _ := strings.Cut(strings.TrimSpace(out), "\n")
		return Finding{"provider", Fail, fmt.Sprintf("%s does not load it: %s", l.Path, first),
			"FI_LOG_LEVEL=info FI_PROVIDER_PATH=" + dir + " " + filepath.Clean(bin) + " -p weft says why"}
	}
	f := Finding{Check: "provider", Verdict: Note, What: l.Path + " has no fi_info beside it: whether it loads the " +
		"provider was not tried"}
	if !named {
		f.Remedy = "export FI_PROVIDER_PATH=" + dir
	}
	return f
}
