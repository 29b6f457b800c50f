package fabric

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestSettings(t *testing.T) {
	path := filepath.Join(t.TempDir(), confName)
	env := func(pairs map[string]string) func(string) (string, bool) {
		return func(n string) (string, bool) { v, ok := pairs[n]; return v, ok }
	}
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("FI_A=1\nFI_A=2\n# FI_B=3\nFI_C = 4\nno line\nFI_D=x=y")
	s := settings(path, env(map[string]string{"FI_D": "env", "FI_E": ""}))
	for name, want := range map[string]struct {
		value  string
		inFile bool
		ok     bool
	}{
		"FI_A": {"1", true, true}, "FI_B": {}, "FI_C": {}, "FI_D": {"env", false, true}, "FI_E": {"", false, true},
	} {
		if v, inFile, ok := s.Find(name); v != want.value || inFile != want.inFile || ok != want.ok {
			t.Errorf("%s: %q %t %t", name, v, inFile, ok)
		}
	}
	if !slices.Contains(s.Names(), "FI_A") || s.File != path {
		t.Errorf("%q of %q", s.Names(), s.File)
	}
	write("FI_D=x=y\nFI_PREFER_SYSCONFIG=yes\n")
	if v, ok := settings(path, env(map[string]string{"FI_D": "env"})).Lookup("FI_D"); v != "x=y" || !ok {
		t.Errorf("the file is preferred: %q", v)
	}
	if v, _ := settings(path, env(map[string]string{"FI_D": "env", preferFile: "0"})).Lookup("FI_D"); v != "env" {
		t.Errorf("the environment says not to: %q", v)
	}
	s = settings(path+".none", env(map[string]string{"FI_D": "env"}))
	if v, ok := s.Lookup("FI_D"); v != "env" || !ok || s.File != "" {
		t.Errorf("no file: %q", v)
	}
}

// A library of this host that is no libfabric, and what is none at all.
func TestConfPath(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{self, "/proc/self/maps", "/nowhere"} {
		if got := (Library{Path: path}).ConfPath(); got != "" {
			t.Errorf("%s has %q", path, got)
		}
	}
	for _, l := range Find(Roots()) {
		if got := l.ConfPath(); got != "" && filepath.Base(got) != confName {
			t.Errorf("%s has %q", l.Path, got)
		}
	}
}
