package trace

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// TestLibraries reads the libraries that make has built. Every traced function
// begins with an instruction that the kernel runs by itself under a probe.
func TestLibraries(t *testing.T) {
	nop := map[string][]byte{"amd64": {0x90}, "arm64": {0x1f, 0x20, 0x03, 0xd5}}[runtime.GOARCH]
	for _, name := range []string{"libweft-core.so", "libweft.so"} {
		path := filepath.Join("../../../../build/lib", name)
		text, err := os.ReadFile(path)
		if os.IsNotExist(err) {
			t.Skip("no libraries: make lib builds them")
		}
		if err != nil {
			t.Fatal(err)
		}
		lib, err := readLibrary(path)
		if err != nil {
			t.Fatal(err)
		}
		if len(lib.points) < 50 {
			t.Errorf("%s has %d calls to trace", name, len(lib.points))
		}
		for _, p := range lib.points {
			if !bytes.HasPrefix(text[p.offset:], nop) {
				t.Errorf("%s: %s begins with % x", name, p.name, text[p.offset:p.offset+4])
			}
		}
	}
}
