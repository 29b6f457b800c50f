package lint

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/weft-fabric/weft/"

// rootPackage stands for the package in the module's root, package weft.
const rootPackage = "."

// inModule returns the folder of an import path of the module.
func inModule(path string) (folder string, ours bool) {
	if path+"/" == module {
		return rootPackage, true
	}
	return strings.CutPrefix(path, module)
}

// layers holds the folders from the bottom up. A package imports from layers
// below its own and from its own folder, nothing else.
var layers = [][]string{
	{"internal", "fi"},
	{"internal/hot", "internal/config"},
	{"mpsc", "internal/congestion"},
	{"internal/copies", "internal/cqring", "internal/exchange", "internal/match"},
	{"hw", "internal/netsim"},
	{"hw/internal", "internal/devaddr", "internal/outbound", "internal/regcache"},
	{"hw/cxi", "hw/hwtest", "hw/loopback", "hw/udp", "hw/verbs", "internal/memwatch"},
	{"cq", "eq", "stripe", "internal/proxy"},
	{
		"internal/matched", "internal/probe", "provider/atomics", "provider/internal/claim", "provider/collective",
		"provider/internal/cm", "provider/internal/ordering", "provider/internal/deferred", "provider/internal/lease",
		"provider/internal/outcome", "provider/internal/pages", "provider/internal/refs", "provider/internal/service",
		"provider/internal/tables", "provider/internal/tally", "provider/internal/vector", "provider/internal/watch",
		"provider/names",
	},
	{"internal/dataplane"},
	{"internal/addrs", "internal/info", "provider/internal/hmem", "provider/internal/threads",
		"provider/internal/wire", "provider/token"},
	{"provider/internal/authkey"},
	{
		"provider/internal/av", "provider/internal/conn", "provider/internal/control", "provider/internal/flow",
		"provider/internal/note", "provider/internal/peers",
		"provider/internal/pieces", "provider/internal/region", "provider/internal/rkey", "provider/internal/target",
	},
	{"provider/internal/backends", "provider/internal/coll", "provider/internal/list", "provider/internal/onesided",
		"provider/internal/rendezvous"},
	{"provider/internal/mapping", "provider/internal/members", "provider/internal/rma", "provider/internal/tokens"},
	{"provider/internal/links"},
	{"provider/internal/messages", "provider/internal/receive"},
	{"provider"},
	{"cabi", rootPackage},
	{"cmd", "tests", "examples"},
}

// backend folders know no libfabric word.
var backend = []string{
	"hw", "mpsc", "internal/congestion", "internal/copies", "internal/devaddr", "internal/hot", "internal/libcxi",
	"internal/mem",
	"internal/memwatch", "internal/order", "internal/outbound", "internal/regcache", "internal/sock",
}

// cgo are the packages that call C: libfabric's callers, and the libraries of
// devices.
var cgo = []string{
	"cabi", "internal/memwatch", "internal/shlib", "hw/internal/drive", "hw/verbs/internal/ibv",
	"hw/verbs/internal/ibv/null", "internal/libcxi", "hw/cxi/internal/seam", "hw/cxi/internal/step",
	"internal/cuda", "tests/hosts",
}

// siblings are imports inside one layer that are meant: event queues wait on
// the wait objects of completion queues.
var siblings = map[string]string{"eq": "cq"}

type goPackage struct {
	ImportPath string
	Name       string
	Imports    []string
	CgoFiles   []string
}

// listPackages returns the packages of the provider's module and of the command's.
func listPackages(t *testing.T) []goPackage {
	t.Helper()
	list := append(packagesOf(t, root), packagesOf(t, filepath.Join(root, "cmd/weft"))...)
	if len(list) < 10 {
		t.Fatalf("go list shows %d packages only", len(list))
	}
	return list
}

func packagesOf(t *testing.T, folder string) (list []goPackage) {
	t.Helper()
	cmd := exec.Command("go", "list", "-e", "-json=ImportPath,Name,Imports,CgoFiles", "./...")
	cmd.Dir = folder
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list in %s: %v", folder, err)
	}
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p goPackage
		err := d.Decode(&p)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("go list: %v", err)
		}
		list = append(list, p)
	}
	return list
}

// under reports whether path is folder or lies in it.
func under(path, folder string) bool {
	return path == folder || strings.HasPrefix(path, folder+"/")
}

// place returns a package's layer and the longest folder of layers that it
// lies in, -1 for a package without layer.
func place(path string) (layer int, folder string) {
	layer = -1
	for i, folders := range layers {
		for _, f := range folders {
			if under(path, f) && len(f) > len(folder) {
				layer, folder = i, f
			}
		}
	}
	return layer, folder
}

// mayImport judges an import between packages of the module.
func mayImport(from, to string) bool {
	fromLayer, fromFolder := place(from)
	toLayer, toFolder := place(to)
	if fromLayer < 0 || toLayer < 0 {
		return false
	}
	for _, b := range backend {
		if under(from, b) && under(to, "fi") {
			return false
		}
	}
	return toLayer < fromLayer || toFolder == fromFolder || siblings[fromFolder] == toFolder
}

// TestLayers holds the imports to the layers.
func TestLayers(t *testing.T) {
	for _, p := range listPackages(t) {
		from, _ := inModule(p.ImportPath)
		if layer, _ := place(from); layer < 0 {
			t.Errorf("%s: no layer; add its folder to layers", from)
		}
		for _, imported := range p.Imports {
			to, ours := inModule(imported)
			if ours && !mayImport(from, to) {
				t.Errorf("%s imports %s, which is not below it", from, to)
			}
		}
		if len(p.CgoFiles) > 0 && !slices.Contains(cgo, from) {
			t.Errorf("%s: %s uses cgo, which only %v may", from, filepath.Join(from, p.CgoFiles[0]), cgo)
		}
	}
}

// TestMayImport shows that the check refuses what it should.
func TestMayImport(t *testing.T) {
	for _, c := range []struct {
		from, to string
		want     bool
	}{
		{"cabi", "provider", true},
		{"cabi", "internal/hot", true},
		{"provider", "internal/match", true},
		{"provider/internal/deferred", "cq", true},
		{"provider/internal/deferred", "provider/names", false},
		{"provider/internal/av", "provider/internal/authkey", true},
		{"provider/internal/av", "provider/internal/conn", false},
		{"provider/internal/flow", "provider/internal/wire", true},
		{"provider", "cabi", false},
		{"cq", "fi", true},
		{"mpsc", "internal/order", true},
		{"internal/config", "fi", true},
		{"internal/log", "internal/config", false},
		{"cq", "stripe", false},
		{"hw/loopback", "hw", true},
		{"hw/loopback", "fi", false},
		{"hw", "cq", false},
		{"mpsc", "hw", false},
		{"fi", "hot", false},
		{"elsewhere", "fi", false},
		{rootPackage, "provider", true},
		{"provider", rootPackage, false},
		{"examples/gopair", rootPackage, true},
	} {
		if got := mayImport(c.from, c.to); got != c.want {
			t.Errorf("mayImport(%s, %s) = %v", c.from, c.to, got)
		}
	}
}
