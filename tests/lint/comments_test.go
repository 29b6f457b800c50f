package lint

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strings"
	"testing"
)

// undocumented returns the exported functions, methods of exported types, and types of a file without a comment, and
// constants and variables without one of their own, their group or their line.
func undocumented(t *testing.T, name string, text []byte) (list []string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), name, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	for _, decl := range file.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			if d.Name.IsExported() && d.Doc == nil && exportedReceiver(d) {
				list = append(list, d.Name.Name)
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				list = append(list, undocumentedIn(d, spec)...)
			}
		}
	}
	return list
}

func undocumentedIn(d *ast.GenDecl, spec ast.Spec) (list []string) {
	switch s := spec.(type) {
	case *ast.TypeSpec:
		if s.Name.IsExported() && d.Doc == nil && s.Doc == nil {
			list = append(list, s.Name.Name)
		}
	case *ast.ValueSpec:
		for _, name := range s.Names {
			if name.IsExported() && d.Doc == nil && s.Doc == nil && s.Comment == nil {
				list = append(list, name.Name)
			}
		}
	}
	return list
}

// exportedReceiver reports whether a function is one, or the method of an exported type.
func exportedReceiver(d *ast.FuncDecl) bool {
	if d.Recv == nil {
		return true
	}
	typ := d.Recv.List[0].Type
	for {
		switch x := typ.(type) {
		case *ast.StarExpr:
			typ = x.X
		case *ast.IndexExpr:
			typ = x.X
		case *ast.Ident:
			return x.IsExported()
		default:
			return true
		}
	}
}

// TestComments wants a comment at every exported identifier of hand-written code that ships.
func TestComments(t *testing.T) {
	for _, name := range files(t) {
		text := read(t, name)
		if !strings.HasSuffix(name, ".go") || len(text) == 0 || !production(name, text) {
			continue
		}
		for _, id := range undocumented(t, name, text) {
			t.Errorf("%s: %s has no comment", name, id)
		}
	}
}

// TestUndocumented shows what the check finds.
func TestUndocumented(t *testing.T) {
	text := "package a\n\nfunc A() {}\n\n// B is.\nfunc B() {}\n\ntype t int\n\nfunc (t) C() {}\n\ntype D int\n\n" +
		"func (*D) E() {}\n\nconst (\n\tF = 1\n\tG = 2 // is\n)\n\n// These are.\nvar (\n\tH int\n)\n"
	if got := strings.Join(undocumented(t, "a.go", []byte(text)), " "); got != "A D E F" {
		t.Errorf("found %q", got)
	}
}
