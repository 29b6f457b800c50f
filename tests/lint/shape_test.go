package lint

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// shaped are the packages whose shape is bounded: the fields and methods of their largest types, and how many of the
// calls between their files go against the order of the files that fits the calls best.
var shaped = []string{
	"provider", "provider/internal/coll", "provider/internal/links", "provider/internal/list",
	"provider/internal/mapping", "provider/internal/messages", "provider/internal/onesided",
	"provider/internal/receive",
	"provider/internal/rendezvous", "provider/internal/rma", "provider/internal/tokens",
	"cq",
	"internal/dataplane", "internal/exchange", "hw/loopback", "hw/udp",
}

// againstSlack is how many percent of calls may go against the order beyond the bound: the order that is found may be
// another one when a file is added.
const againstSlack = 1

// shape is the shape of one package.
type shape struct {
	fields, methods         int    // of the type that has most; embedded types count as one field
	fieldsType, methodsType string // which those are
	against                 int    // calls between files against the order, in percent
	// The same with what embedded types promote, at any depth: their fields count, the embedded types do not.
	allFields, allMethods         int
	allFieldsType, allMethodsType string
	large                         int // types with more than 40 fields or 90 methods in all
}

// listed is what go list shows of a package.
type listed struct {
	ImportPath, Dir, Export string
	CompiledGoFiles         []string
}

// exportOf returns what go list shows of packages and of what they import, by import path.
func exportOf(t *testing.T, folders []string) map[string]listed {
	t.Helper()
	args := []string{"list", "-compiled", "-export", "-deps", "-json=ImportPath,Dir,Export,CompiledGoFiles"}
	for _, f := range folders {
		args = append(args, "./"+f)
	}
	cmd := exec.Command("go", args...)
	cmd.Dir = root
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	sources := map[string]listed{}
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var s listed
		if err := d.Decode(&s); errors.Is(err, io.EOF) {
			return sources
		} else if err != nil {
			t.Fatalf("go list: %v", err)
		}
		sources[s.ImportPath] = s
	}
}

// checked is a package with its types.
type checked struct {
	files *token.FileSet
	trees []*ast.File
	info  *types.Info
}

// check parses a package and finds its types. Errors are those of the parser and of the type checker.
func check(path string, names []string, imports types.Importer) (*checked, error) {
	c := &checked{files: token.NewFileSet(), info: &types.Info{
		Defs: map[*ast.Ident]types.Object{}, Uses: map[*ast.Ident]types.Object{},
	}}
	for _, name := range names {
		tree, err := parser.ParseFile(c.files, name, nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		c.trees = append(c.trees, tree)
	}
	config := types.Config{Importer: imports}
	_, err := config.Check(path, c.files, c.trees, c.info)
	return c, err
}

// fileOf returns the number of the file at pos.
func (c *checked) fileOf(pos token.Pos) int {
	return slices.IndexFunc(c.trees, func(f *ast.File) bool { return f.FileStart <= pos && pos <= f.FileEnd })
}

// shape measures the package.
func (c *checked) shape() (s shape) {
	for _, object := range c.info.Defs {
		name, is := object.(*types.TypeName)
		if !is || name.IsAlias() {
			continue
		}
		named, is := name.Type().(*types.Named)
		if !is {
			continue
		}
		if n := named.NumMethods(); n > s.methods || n == s.methods && name.Name() < s.methodsType {
			s.methods, s.methodsType = n, name.Name()
		}
		methods, fields := 0, 0
		if !types.IsInterface(named) {
			methods = types.NewMethodSet(types.NewPointer(named)).Len()
		}
		if methods > s.allMethods || methods == s.allMethods && name.Name() < s.allMethodsType {
			s.allMethods, s.allMethodsType = methods, name.Name()
		}
		if structure, is := named.Underlying().(*types.Struct); is {
			if n := structure.NumFields(); n > s.fields || n == s.fields && name.Name() < s.fieldsType {
				s.fields, s.fieldsType = n, name.Name()
			}
			fields = promoted(structure)
			if fields > s.allFields || fields == s.allFields && name.Name() < s.allFieldsType {
				s.allFields, s.allFieldsType = fields, name.Name()
			}
		}
		if fields > 40 || methods > 90 {
			s.large++
		}
	}
	against, all := againstOrder(c.calls())
	if all != 0 {
		s.against = (100*against + all/2) / all
	}
	return s
}

// promoted counts the fields of a structure with those that it has by embedding structures of the module.
func promoted(structure *types.Struct) (n int) {
	for field := range structure.Fields() {
		of := field.Type()
		if p, is := of.Underlying().(*types.Pointer); is {
			of = p.Elem()
		}
		inner, is := of.Underlying().(*types.Struct)
		named, isNamed := of.(*types.Named)
		ours := isNamed && named.Obj().Pkg() != nil &&
			(field.Pkg() == named.Obj().Pkg() || strings.HasPrefix(named.Obj().Pkg().Path(), module))
		if field.Embedded() && is && ours {
			n += promoted(inner)
			continue
		}
		n++
	}
	return n
}

// calls counts the uses of functions and methods of the package, by the file that uses one and the file that has it.
func (c *checked) calls() [][]int {
	calls := make([][]int, len(c.trees))
	for i := range calls {
		calls[i] = make([]int, len(c.trees))
	}
	for use, object := range c.info.Uses {
		f, is := object.(*types.Func)
		if !is {
			continue
		}
		if to := c.fileOf(f.Origin().Pos()); to >= 0 {
			if from := c.fileOf(use.Pos()); from != to {
				calls[from][to]++
			}
		}
	}
	return calls
}

// againstOrder returns how many of the calls go up in the best order of files that moving one file at a time finds, and
// how many there are. In an order without cycles each file calls those behind it only.
func againstOrder(calls [][]int) (against, all int) {
	order := make([]int, 0, len(calls))
	for i := range calls {
		order = append(order, i)
		for _, n := range calls[i] {
			all += n
		}
	}
	for better := true; better; {
		better = false
		for _, file := range slices.Clone(order) {
			better = sift(calls, order, file) || better
		}
	}
	for i, from := range order {
		for _, to := range order[:i] {
			against += calls[from][to]
		}
	}
	return against, all
}

// sift moves a file to the place of the order where fewest calls of its own go up, and reports whether it gained.
func sift(calls [][]int, order []int, file int) bool {
	at := slices.Index(order, file)
	rest := slices.Delete(slices.Clone(order), at, at+1)
	cost := 0 // of the first place, less what is the same everywhere
	best, place, here := 0, 0, 0
	for i, other := range rest {
		if i == at {
			here = cost
		}
		cost += calls[file][other] - calls[other][file]
		if cost < best {
			best, place = cost, i+1
		}
	}
	if at == len(rest) {
		here = cost
	}
	if best >= here {
		return false
	}
	copy(order, slices.Insert(rest, place, file))
	return true
}

// shapes measures the packages of shaped.
func shapes(t *testing.T) map[string]shape {
	t.Helper()
	sources := exportOf(t, shaped)
	open := func(path string) (io.ReadCloser, error) { return os.Open(sources[path].Export) }
	result := map[string]shape{}
	for _, folder := range shaped {
		s := sources[module+folder]
		names := make([]string, len(s.CompiledGoFiles))
		for i, name := range s.CompiledGoFiles {
			if names[i] = name; !filepath.IsAbs(name) {
				names[i] = filepath.Join(s.Dir, name)
			}
		}
		c, err := check(s.ImportPath, names, importer.ForCompiler(token.NewFileSet(), "gc", open))
		if err != nil {
			t.Fatal(err)
		}
		result[folder] = c.shape()
	}
	return result
}

// countShapes adds the shapes of packages to n.
func countShapes(t *testing.T, n map[string]int) {
	for folder, s := range shapes(t) {
		n["fields."+folder], n["methods."+folder], n["against."+folder] = s.fields, s.methods, s.against
		n["promoted.fields."+folder], n["promoted.methods."+folder] = s.allFields, s.allMethods
		n["promoted.large."+folder] = s.large
		t.Logf("%s: %d fields (%s), %d methods (%s), %d %% of calls against the order of files; "+
			"with what embedding promotes %d fields (%s), %d methods (%s), and %d types with more than 40 or 90",
			folder, s.fields, s.fieldsType, s.methods, s.methodsType, s.against,
			s.allFields, s.allFieldsType, s.allMethods, s.allMethodsType, s.large)
	}
}

// TestShape shows what is measured.
func TestShape(t *testing.T) {
	folder := t.TempDir()
	var names []string
	for i, text := range []string{
		"type A struct { x, y int; B }\nfunc (A) one() { two() }\nfunc (A) four() { two(); B{}.three() }",
		"type B struct { z int }\nfunc two() { B{}.three() }",
		"func (B) three() { two() }",
	} {
		name := filepath.Join(folder, fmt.Sprintf("%d.go", i))
		if err := os.WriteFile(name, []byte("package p\n"+text), 0o644); err != nil {
			t.Fatal(err)
		}
		names = append(names, name)
	}
	c, err := check("p", names, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := shape{
		fields: 3, fieldsType: "A", methods: 2, methodsType: "A", against: 20,
		allFields: 3, allFieldsType: "A", allMethods: 3, allMethodsType: "A",
	}
	if got := c.shape(); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if against, all := againstOrder([][]int{{0, 0, 1}, {2, 0, 5}, {0, 3, 0}}); against != 3 || all != 11 {
		t.Errorf("%d of %d against the order", against, all)
	}
}
