package fabric

import (
	"bytes"
	"debug/elf"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// From 2.0 on libfabric reads variables from a file, too, with its path built into
// the library: lines NAME=VALUE without spaces around the "=". The environment
// goes before it, unless FI_PREFER_SYSCONFIG is on, there or in the file. See
// load_conf and fi_param_get_ in libfabric's src/var.c.
const (
	confName   = "libfabric.conf"
	preferFile = "FI_PREFER_SYSCONFIG"
)

// ConfPath returns the file that the library reads, empty if it reads none.
func (l Library) ConfPath() string {
	f, err := elf.Open(l.Path)
	if err != nil {
		return ""
	}
	defer f.Close()
	section := f.Section(".rodata")
	if section == nil {
		return ""
	}
	text, err := section.Data()
	if err != nil {
		return ""
	}
	for s := range bytes.SplitSeq(text, []byte{0}) {
		if path := string(s); filepath.IsAbs(path) && filepath.Base(path) == confName && len(path) < 4096 {
			return path
		}
	}
	return ""
}

// Settings are the variables of programs on one libfabric.
type Settings struct {
	// File is the path of the library's file, empty if there is none.
	File   string
	env    func(string) (string, bool)
	values map[string]string // of the file
	first  bool              // the file goes before the environment
}

// SettingsOf returns those of the programs on a library in an environment.
func SettingsOf(l Library, env func(string) (string, bool)) *Settings {
	return settings(l.ConfPath(), env)
}

// OwnSettings are those of the library that the loader takes, or of the environment
// alone where there is none.
func OwnSettings(roots []string, env func(string) (string, bool)) *Settings {
	if found := Find(roots); len(found) != 0 {
		return SettingsOf(found[0], env)
	}
	return settings("", env)
}

func settings(file string, env func(string) (string, bool)) *Settings {
	s := &Settings{env: env, values: map[string]string{}}
	text, err := os.ReadFile(file)
	if err != nil {
		return s // none, or one that programs cannot read either
	}
	s.File = file
	for line := range strings.Lines(string(text)) {
		name, value, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
		if _, twice := s.values[name]; ok && !twice {
			s.values[name] = value
		}
	}
	prefer, _ := s.Lookup(preferFile)
	s.first = slices.Contains([]string{"1", "true", "yes", "on"}, strings.ToLower(prefer))
	return s
}

// Lookup returns a variable's value and whether it is set.
func (s *Settings) Lookup(name string) (value string, ok bool) {
	value, _, ok = s.Find(name)
	return value, ok
}

// Find is Lookup, and says whether the value is the file's.
func (s *Settings) Find(name string) (value string, inFile, ok bool) {
	value, ok = s.env(name)
	if v, set := s.values[name]; set && (!ok || s.first) {
		return v, true, true
	}
	return value, false, ok
}

// Names are the variables of the file, sorted.
func (s *Settings) Names() []string {
	var names []string
	for n := range s.values {
		names = append(names, n)
	}
	slices.Sort(names)
	return names
}
