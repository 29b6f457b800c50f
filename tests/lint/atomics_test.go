package lint

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strings"
	"testing"
)

// atomicFields are the fields of the structs of a file that several threads use at once: those of types of sync/atomic,
// and those whose addresses the file gives to its functions, by name.
type atomicFields struct {
	set   *token.FileSet
	named map[string]bool
}

// calls notes the fields whose addresses calls of sync/atomic are given.
func (a *atomicFields) calls(file *ast.File) {
	ast.Inspect(file, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || len(call.Args) == 0 || !ofAtomic(call.Fun) {
			return true
		}
		if at, ok := call.Args[0].(*ast.UnaryExpr); ok && at.Op == token.AND {
			if field, ok := at.X.(*ast.SelectorExpr); ok {
				a.named[field.Sel.Name] = true
			}
		}
		return true
	})
}

// ofAtomic reports whether an expression is a name of sync/atomic, an array, slice or pointer of one, or an instance.
func ofAtomic(e ast.Expr) bool {
	switch x := e.(type) {
	case *ast.SelectorExpr:
		id, ok := x.X.(*ast.Ident)
		return ok && id.Name == "atomic"
	case *ast.IndexExpr:
		return ofAtomic(x.X)
	case *ast.ArrayType:
		return ofAtomic(x.Elt)
	case *ast.StarExpr:
		return ofAtomic(x.X)
	}
	return false
}

// fixedWidth reports whether an expression is a type that functions of sync/atomic take, or an array of it.
func fixedWidth(e ast.Expr) bool {
	if array, ok := e.(*ast.ArrayType); ok {
		e = array.Elt
	}
	id, ok := e.(*ast.Ident)
	return ok && slices.Contains([]string{"uint32", "uint64", "int32", "int64", "uintptr"}, id.Name)
}

// explained is in the comment of a struct whose fields have their comments in C.
const explained = "fields are explained"

// bare returns the atomic fields of the structs of a file without a comment. One that stands right before a field, with
// no line between, is that of the next one, too, and that of a type is one of its only field.
func (a *atomicFields) bare(file *ast.File) (list []*ast.Field) {
	a.calls(file)
	ast.Inspect(file, func(n ast.Node) bool {
		if d, ok := n.(*ast.GenDecl); ok && d.Tok == token.TYPE && d.Doc != nil {
			s, ok := d.Specs[0].(*ast.TypeSpec).Type.(*ast.StructType)
			doc := strings.ReplaceAll(d.Doc.Text(), "\n", " ")
			if ok && (len(s.Fields.List) == 1 || strings.Contains(doc, explained)) {
				return false
			}
		}
		if s, ok := n.(*ast.StructType); ok {
			list = append(list, a.bareIn(s)...)
		}
		return true
	})
	return list
}

func (a *atomicFields) bareIn(s *ast.StructType) (list []*ast.Field) {
	covered, end := false, 0
	for _, f := range s.Fields.List {
		line := a.set.Position(f.Pos()).Line
		atomic := ofAtomic(f.Type)
		for _, name := range f.Names {
			atomic = atomic || a.named[name.Name] && fixedWidth(f.Type)
		}
		covered = f.Doc != nil || f.Comment != nil || covered && line == end+1
		if atomic && !covered {
			list = append(list, f)
		}
		end = a.set.Position(f.End()).Line
		if f.Comment != nil && f.Doc == nil { // it is of its own line
			covered = false
		}
	}
	return list
}

// TestAtomics wants a comment at every field that threads share by atomic operations: it says which writes it, which
// read it, and in which order.
func TestAtomics(t *testing.T) {
	for _, name := range files(t) {
		text := read(t, name)
		if !strings.HasSuffix(name, ".go") || len(text) == 0 || !production(name, text) {
			continue
		}
		a := &atomicFields{token.NewFileSet(), map[string]bool{}}
		file, err := parser.ParseFile(a.set, name, text, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range a.bare(file) {
			what := "an embedded field"
			if len(f.Names) > 0 {
				what = f.Names[0].Name
			}
			t.Errorf("%s:%d: %s is atomic and does not say which write it and which read it",
				name, a.set.Position(f.Pos()).Line, what)
		}
	}
}

// TestAtomicsFinds: the rule finds fields of all kinds, and only those without a comment.
func TestAtomicsFinds(t *testing.T) {
	const text = `package p
type s struct {
	plain int
	a, b atomic.Uint32
	// c and d are set by one thread, and read by any.
	c [4]atomic.Bool
	d *atomic.Pointer[int]

	e []atomic.Int64
	f uint64
	g atomic.Uint32 // set by one, read by any
	h atomic.Uint32
}
// one is set by one, and read by any.
type one struct{ i atomic.Bool }
type two struct{ j atomic.Bool }
func (x *s) use() { atomic.AddUint64(&x.f, 1); atomic.LoadUint64(&x.f); use(&x.plain) }
`
	a := &atomicFields{token.NewFileSet(), map[string]bool{}}
	file, err := parser.ParseFile(a.set, "p.go", text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range a.bare(file) {
		got = append(got, f.Names[0].Name)
	}
	if list := strings.Join(got, " "); list != "a e f h j" {
		t.Errorf("found %q", list)
	}
}
