package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// goapi declares in C the functions that the Go files of a folder export. cgo compares both sides, since the Go files
// include the header.
func goapi(dir string) ([]byte, error) {
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, err
	}
	var body bytes.Buffer
	structs := map[string]bool{}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		head := fmt.Sprintf("\n/* ---- %s ---- */\n", filepath.Base(name))
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || !exported(fn) {
				continue
			}
			body.WriteString(head)
			head = ""
			if text := strings.TrimSpace(fn.Doc.Text()); text != "" {
				fmt.Fprintf(&body, "/* %s */\n", strings.ReplaceAll(text, "\n", "\n * "))
			}
			line, err := prototypeOf(fn, structs)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", filepath.Base(name), err)
			}
			body.WriteString(line + ";\n")
		}
	}
	var b bytes.Buffer
	file(&b, "The Go functions that the C files call. Unless said otherwise each returns 0 or a negative errno, and "+
		"none may\n"+
		" * be called in a forked process.")
	b.WriteString("#ifndef WEFT_GOAPI_GEN_H\n#define WEFT_GOAPI_GEN_H\n\n#include <stdbool.h>\n#include <stddef.h>\n" +
		"#include <stdint.h>\n\n#include <rdma/fabric.h>\n\n")
	var sorted []string
	for s := range structs {
		sorted = append(sorted, s)
	}
	slices.Sort(sorted)
	for _, s := range sorted {
		fmt.Fprintf(&b, "struct %s;\n", s)
	}
	b.Write(body.Bytes())
	b.WriteString("\n#endif\n")
	return b.Bytes(), nil
}

// exported reports whether cgo gives a function to C.
func exported(f *ast.FuncDecl) bool {
	if f.Doc == nil {
		return false
	}
	return slices.ContainsFunc(f.Doc.List, func(c *ast.Comment) bool { return c.Text == "//export "+f.Name.Name })
}

// prototypeOf writes a function's declaration in C.
func prototypeOf(f *ast.FuncDecl, structs map[string]bool) (string, error) {
	var params []string
	for _, p := range f.Type.Params.List {
		t, err := goType(p.Type, structs)
		if err != nil {
			return "", fmt.Errorf("%s: %w", f.Name.Name, err)
		}
		for _, n := range p.Names {
			params = append(params, joined(t, n.Name))
		}
	}
	if len(params) == 0 {
		params = []string{"void"}
	}
	ret := "void"
	if r := f.Type.Results; r != nil && len(r.List) > 0 {
		var err error
		if ret, err = goType(r.List[0].Type, structs); err != nil {
			return "", fmt.Errorf("%s: %w", f.Name.Name, err)
		}
	}
	return joined(ret, f.Name.Name) + "(" + strings.Join(params, ", ") + ")", nil
}

// joined puts a name behind a type.
func joined(t, name string) string {
	if strings.HasSuffix(t, "*") {
		return t + name
	}
	return t + " " + name
}

var structName = regexp.MustCompile(`^struct_(\w+)$`)

// goType is the C type that a Go type of an exported function stands for.
func goType(e ast.Expr, structs map[string]bool) (string, error) {
	switch e := e.(type) {
	case *ast.StarExpr:
		t, err := goType(e.X, structs)
		if err != nil {
			return "", err
		}
		if strings.HasSuffix(t, "*") {
			return t + "*", nil
		}
		return t + " *", nil
	case *ast.SelectorExpr:
		from, _ := e.X.(*ast.Ident)
		switch {
		case from == nil:
		case from.Name == "unsafe" && e.Sel.Name == "Pointer":
			return "void *", nil
		case from.Name != "C":
		case e.Sel.Name == "uint":
			return "unsigned", nil
		default:
			if m := structName.FindStringSubmatch(e.Sel.Name); m != nil {
				structs[m[1]] = true
				return "struct " + m[1], nil
			}
			return e.Sel.Name, nil
		}
	}
	return "", fmt.Errorf("%T is no type of C", e)
}
