package fabric

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestProviderFolders(t *testing.T) {
	for value, want := range map[string][]string{
		"": nil, "/a:/b": {"/a", "/b"}, "@/a": {"/a"}, "+/a/libweft-fi.so": {"/a"},
		"@/a:+/b/libx.so:/c": {"/a", "/b", "/c"},
	} {
		if got := ProviderFolders(value); !slices.Equal(got, want) {
			t.Errorf("%q gives %q, want %q", value, got, want)
		}
	}
}

// TestFindWeft puts a library into folders, from the last that is read to the first.
func TestFindWeft(t *testing.T) {
	const name = "libweft-test.so"
	named, root := t.TempDir(), t.TempDir()
	beside := Beside()
	if len(beside) == 0 || filepath.Base(beside[0]) != "lib" {
		t.Fatalf("beside the command: %q", beside)
	}
	if got := FindWeft(name, []string{named}, []string{root}); got != "" {
		t.Fatalf("found before it is there: %s", got)
	}
	for _, dir := range []string{filepath.Join(root, "libfabric"), root, filepath.Join(beside[0], "libfabric"),
		beside[0], named} {
		if _, err := os.Stat(dir); err != nil {
			if err := os.MkdirAll(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { os.RemoveAll(dir) })
		}
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, nil, 0o644); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { os.Remove(path) })
		if got := FindWeft(name, []string{named}, []string{root}); got != path {
			t.Errorf("found %s, want %s", got, path)
		}
	}
}
