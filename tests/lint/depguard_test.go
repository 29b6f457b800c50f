package lint

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The lines of .golangci.yml between which the rules of depguard are.
const (
	depguardBegin = "      # written from layers_test.go by WRITE_DEPGUARD=1 go test ./tests/lint -run Depguard\n"
	depguardEnd   = "      # end of what is written\n"
)

// deniedImports are what depguard, which compares beginnings of import paths, is to deny of a folder: all below it, or
// it alone where folders below it have layers of their own.
func deniedImports(folder string) []string {
	if folder == rootPackage {
		return []string{strings.TrimSuffix(module, "/") + "$"}
	}
	alike := false
	for _, other := range slices.Concat(layers...) {
		switch {
		case other == folder:
		case under(other, folder):
			return []string{module + folder + "$"}
		case strings.HasPrefix(other, folder):
			alike = true
		}
	}
	if alike {
		return []string{module + folder + "$", module + folder + "/"}
	}
	return []string{module + folder}
}

// depguardRules returns layers as rules of depguard: of each layer, the folders of those above it are denied. Files of
// a folder with a layer of its own are not those of the folder that it lies in. That folders of one layer do not import
// each other TestLayers holds, which also sees files of every system.
func depguardRules() string {
	var b strings.Builder
	b.WriteString(depguardBegin + "      rules:\n")
	for i, folders := range layers[:len(layers)-1] {
		fmt.Fprintf(&b, "        layer%d:\n          list-mode: lax\n          files:\n            - '!$test'\n", i)
		for _, folder := range folders {
			if folder == rootPackage {
				b.WriteString("            - '${base-path}/*.go'\n")
				continue
			}
			fmt.Fprintf(&b, "            - '${base-path}/%s/**'\n", folder)
			for j, others := range layers {
				for _, other := range others {
					if i != j && other != folder && under(other, folder) {
						fmt.Fprintf(&b, "            - '!${base-path}/%s/**'\n", other)
					}
				}
			}
		}
		b.WriteString("          deny:\n")
		for _, above := range layers[i+1:] {
			for _, folder := range above {
				for _, pkg := range deniedImports(folder) {
					fmt.Fprintf(&b, "            - {pkg: %s, desc: is above}\n", pkg)
				}
			}
		}
	}
	b.WriteString("        backends:\n          list-mode: lax\n          files:\n            - '!$test'\n")
	for _, folder := range backend {
		fmt.Fprintf(&b, "            - '${base-path}/%s/**'\n", folder)
	}
	fmt.Fprintf(&b, "          deny:\n            - {pkg: %sfi, desc: transports know no word of libfabric}\n", module)
	return b.String() + depguardEnd
}

// TestDepguard holds the rules of depguard to layers, which are the same rules. WRITE_DEPGUARD=1 in the environment
// writes them.
func TestDepguard(t *testing.T) {
	const name = ".golangci.yml"
	text := read(t, name)
	from, to := bytes.Index(text, []byte(depguardBegin)), bytes.Index(text, []byte(depguardEnd))
	if from < 0 || to < from {
		t.Fatalf("%s has no place for the rules", name)
	}
	to += len(depguardEnd)
	want := depguardRules()
	if string(text[from:to]) == want {
		return
	}
	if os.Getenv("WRITE_DEPGUARD") == "" {
		t.Fatalf("%s does not have the rules of layers; WRITE_DEPGUARD=1 writes them", name)
	}
	text = slices.Concat(text[:from], []byte(want), text[to:])
	if err := os.WriteFile(filepath.Join(root, name), text, 0o644); err != nil {
		t.Fatal(err)
	}
}
