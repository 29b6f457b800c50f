package main

import (
	"fmt"
	"go/ast"
	"go/build"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"path/filepath"
	"regexp"
	"strings"
	"unicode"
)

// source is a Go package whose declarations go to C.
type source struct {
	fset  *token.FileSet
	files map[string]*ast.File
	info  types.Info
	pkg   *types.Package
	only  bool              // only what has a directive goes to C
	cname map[string]string // of constants, and of types with "struct " before it
}

// load parses a package without its tests. Imports that only code needs are not read.
func load(dir, name string) (*source, error) {
	p, err := build.ImportDir(dir, 0)
	if err != nil {
		return nil, err
	}
	s := &source{fset: token.NewFileSet(), files: map[string]*ast.File{}, cname: map[string]string{},
		only: name != "internal/hot",
		info: types.Info{Defs: map[*ast.Ident]types.Object{}}}
	var list []*ast.File
	for _, n := range p.GoFiles {
		f, err := parser.ParseFile(s.fset, filepath.Join(dir, n), nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		s.files[n] = f
		list = append(list, f)
	}
	conf := types.Config{Importer: importer.ForCompiler(s.fset, "source", nil), Sizes: types.SizesFor("gc", "amd64"),
		IgnoreFuncBodies: true, Error: func(error) {}}
	s.pkg, err = conf.Check(name, s.fset, list, &s.info)
	if err != nil && !s.only {
		return nil, err
	}
	for _, f := range list {
		s.names(f)
	}
	return s, nil
}

// names records what the declarations of a file are called in C.
func (s *source) names(f *ast.File) {
	for _, d := range f.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok {
			continue
		}
		for _, spec := range g.Specs {
			switch spec := spec.(type) {
			case *ast.TypeSpec:
				if n := directive("name", g.Doc, spec.Doc); n != "" {
					s.cname[spec.Name.Name] = "struct " + n
				}
			case *ast.ValueSpec:
				if n := s.constName(g, spec); g.Tok == token.CONST && n != "" {
					s.cname[spec.Names[0].Name] = n
				}
			}
		}
	}
}

// constName is the C name of a constant, "" for one that stays in Go.
func (s *source) constName(g *ast.GenDecl, spec *ast.ValueSpec) string {
	doc := spec.Doc
	if doc == nil && !g.Lparen.IsValid() {
		doc = g.Doc
	}
	if n := directive("name", doc, spec.Comment); n != "" || s.only {
		return n
	}
	return "WEFT_" + strings.ToUpper(snake(spec.Names[0].Name))
}

// directive returns what follows //weft:KEY in comments.
func directive(key string, groups ...*ast.CommentGroup) string {
	for _, g := range groups {
		if g == nil {
			continue
		}
		for _, c := range g.List {
			if v, ok := strings.CutPrefix(c.Text, "//weft:"+key+" "); ok {
				return strings.TrimSpace(v)
			}
		}
	}
	return ""
}

// words are the parts of names that the case of their letters does not separate.
var words = regexp.MustCompile(`^(AM|IPv4|IPv6|EPs|NRings|OLen)`)

// snake writes a Go name in snake case.
func snake(name string) string {
	var parts []string
	for name != "" {
		n := len(words.FindString(name))
		if n == 0 || n < len(name) && unicode.IsLower(rune(name[n])) {
			n = word(name)
		}
		parts = append(parts, strings.ToLower(name[:n]))
		name = name[n:]
	}
	return strings.Join(parts, "_")
}

// word is the length of the first word: capitals up to the one that begins the next word, or one capital and what
// follows.
func word(name string) int {
	upper := 1
	for upper < len(name) && unicode.IsUpper(rune(name[upper])) {
		upper++
	}
	if upper > 1 && upper < len(name) && unicode.IsLower(rune(name[upper])) {
		return upper - 1
	}
	for upper < len(name) && !unicode.IsUpper(rune(name[upper])) {
		upper++
	}
	return upper
}

var (
	bracket  = regexp.MustCompile(`\[(\w+)\](?:\.(\w+))?`)
	wildcard = regexp.MustCompile(`\b([A-Z]\w*)\*`)
	ident    = regexp.MustCompile(`\b[A-Z]\w+\b`)
)

// translate gives a comment C's names of what it names.
func (s *source) translate(text string, fields map[string]bool) string {
	text = bracket.ReplaceAllStringFunc(text, func(m string) string {
		p := bracket.FindStringSubmatch(m)
		c, ok := s.cname[p[1]]
		switch {
		case p[1] == "KeyPlace":
			return "weft_key_place"
		case !ok:
			return p[0]
		case p[2] != "":
			return strings.TrimPrefix(c, "struct ") + "." + snake(p[2])
		}
		return c
	})
	text = wildcard.ReplaceAllStringFunc(text, func(m string) string {
		for name, c := range s.cname {
			if prefix := strings.TrimSuffix(m, "*"); strings.HasPrefix(name, prefix) && strings.HasPrefix(c, "WEFT_") {
				return "WEFT_" + strings.ToUpper(snake(prefix)) + "_*"
			}
		}
		return m
	})
	return ident.ReplaceAllStringFunc(text, func(m string) string {
		if c, ok := s.cname[m]; ok && strings.HasPrefix(c, "WEFT_") {
			return c
		}
		if fields[m] {
			return snake(m)
		}
		return m
	})
}

// cType is the C type of a Go type without the length of an array, and that.
func (s *source) cType(e ast.Expr) (base, suffix string, err error) {
	switch e := e.(type) {
	case *ast.ArrayType:
		base, suffix, err = s.cType(e.Elt)
		switch n := e.Len.(type) {
		case *ast.BasicLit:
			return base, "[" + n.Value + "]" + suffix, err
		case *ast.Ident:
			return base, "[" + s.cname[n.Name] + "]" + suffix, err
		}
	case *ast.Ident:
		switch e.Name {
		case "uint8", "uint16", "uint32", "uint64", "int32", "int64":
			return e.Name + "_t", "", nil
		case "byte":
			return "uint8_t", "", nil
		case "uintptr":
			return "", "", nil
		}
		if c := s.cname[e.Name]; strings.HasPrefix(c, "struct ") {
			return c, "", nil
		}
	}
	return "", "", fmt.Errorf("%s: a type that C does not have", s.fset.Position(e.Pos()))
}
