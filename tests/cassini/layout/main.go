// Layout writes what layout.def says for both languages: a C header for the model of the NIC and a Go
// file for hw/cxi.
//
//	layout layout.def layout.h > layout.h
//	layout layout.def values.go > values.go
package main

import (
	"bufio"
	"bytes"
	"fmt"
	"go/format"
	"io"
	"os"
	"strconv"
	"strings"
)

// A Field is a range of bits of a structure.
type Field struct {
	Name  string
	Bit   int // from the structure's first
	Width int
}

// A Group is a structure, the header of a packet or an enumeration.
type Group struct {
	Kind   string // struct, packet, enum
	Name   string
	About  string
	Size   int // bytes; 0 for an enum
	Fields []Field
	Values []Value
}

// A Value is one name of an enumeration.
type Value struct {
	Name   string
	Number uint64
}

// Parse reads a table. The error names the line.
func Parse(r io.Reader) ([]Group, error) {
	var (
		groups []Group
		about  string
		lines  = bufio.NewScanner(r)
	)
	for n := 1; lines.Scan(); n++ {
		line := lines.Text()
		words := strings.Fields(line)
		var err error
		switch {
		case len(words) == 0:
			about = ""
		case words[0] == "#":
			about = strings.TrimPrefix(line, "# ")
		case line[0] != '\t':
			var g Group
			g, err = parseHead(words)
			g.About = about
			groups = append(groups, g)
		case len(groups) == 0:
			err = fmt.Errorf("a field outside a group")
		default:
			err = groups[len(groups)-1].parseLine(words)
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
	}
	return groups, lines.Err()
}

// parseHead reads the first line of a group.
func parseHead(words []string) (g Group, err error) {
	if len(words) < 2 || len(words) > 3 {
		return g, fmt.Errorf("a group has a kind, a name and a size")
	}
	g = Group{Kind: words[0], Name: words[1]}
	switch g.Kind {
	case "enum":
		return g, nil
	case "struct", "packet":
		if len(words) == 3 {
			g.Size, err = strconv.Atoi(words[2])
			return g, err
		}
	}
	return g, fmt.Errorf("%s %s: an unknown kind, or no size", g.Kind, g.Name)
}

// parseLine reads a field or a value.
func (g *Group) parseLine(words []string) error {
	if g.Kind == "enum" {
		if len(words) != 2 {
			return fmt.Errorf("%s: a value is a name and a number", g.Name)
		}
		v, err := strconv.ParseUint(words[1], 0, 64)
		g.Values = append(g.Values, Value{words[0], v})
		return err
	}
	f, err := parseField(words)
	if err != nil {
		return fmt.Errorf("%s: %w", g.Name, err)
	}
	if f.Bit+f.Width > 8*g.Size {
		return fmt.Errorf("%s.%s ends behind the structure", g.Name, f.Name)
	}
	if g.Kind == "struct" && f.Bit/64 != (f.Bit+f.Width-1)/64 {
		return fmt.Errorf("%s.%s crosses a multiple of 64 bits", g.Name, f.Name)
	}
	for _, o := range g.Fields {
		if f.Bit < o.Bit+o.Width && o.Bit < f.Bit+f.Width {
			return fmt.Errorf("%s: %s overlaps %s", g.Name, f.Name, o.Name)
		}
	}
	g.Fields = append(g.Fields, f)
	return nil
}

// parseField reads NAME BYTE.BIT WIDTH.
func parseField(words []string) (f Field, err error) {
	if len(words) != 3 {
		return f, fmt.Errorf("a field is a name, a place and a width")
	}
	byteText, bitText, _ := strings.Cut(words[1], ".")
	at, err := strconv.Atoi(byteText)
	if err != nil {
		return f, err
	}
	bit, err := strconv.Atoi(bitText)
	if err != nil {
		return f, err
	}
	width, err := strconv.Atoi(words[2])
	if err == nil && (width < 1 || width > 64 || bit > 7) {
		err = fmt.Errorf("%s: no such range of bits", words[0])
	}
	return Field{words[0], 8*at + bit, width}, err
}

// WriteC writes a header file: structures, or enumerations.
func WriteC(groups []Group, enums bool) []byte {
	var b bytes.Buffer
	guard := "CASSINI_LAYOUT_H"
	if enums {
		guard = "CASSINI_VALUES_H"
	}
	fmt.Fprintf(&b, "/* SPDX-License-Identifier: BSD-2-Clause\n *\n"+
		" * Written by \"make generate\" from layout.def: do not edit. A field is its first bit and its width.\n */\n"+
		"#ifndef %s\n#define %[1]s\n", guard)
	for _, g := range groups {
		if (g.Kind == "enum") != enums {
			continue
		}
		up := strings.ToUpper(g.Name)
		fmt.Fprintf(&b, "\n/* %s */\n", g.About)
		if enums {
			fmt.Fprintf(&b, "enum {\n")
			for _, v := range g.Values {
				fmt.Fprintf(&b, "\t%s_%s = %d,\n", up, strings.ToUpper(v.Name), v.Number)
			}
			b.WriteString("};\n")
			continue
		}
		fmt.Fprintf(&b, "#define %s_BYTES %d\n", up, g.Size)
		for _, f := range g.Fields {
			fmt.Fprintf(&b, "#define %s_%s %d, %d\n", up, strings.ToUpper(f.Name), f.Bit, f.Width)
		}
	}
	b.WriteString("\n#endif\n")
	return b.Bytes()
}

// goName makes a Go name of one with underscores.
func goName(name string) string {
	var b strings.Builder
	for _, part := range strings.Split(strings.ToLower(name), "_") {
		b.WriteString(strings.ToUpper(part[:1]) + part[1:])
	}
	return b.String()
}

// packageDoc stands in the file of the structures.
const packageDoc = `// Package wire has the formats of the NIC's commands and events. A field F of a structure is FWord,
// its 64-bit word, FShift, its first bit in that word, and FMask, the most that it holds; one of a packet's header is
// FBit, its first bit, and FWidth.
`

// WriteGo writes a Go file: structures, or enumerations.
func WriteGo(groups []Group, enums bool) ([]byte, error) {
	var b bytes.Buffer
	b.WriteString("// Code generated by \"make generate\" from tests/cassini/layout.def. DO NOT EDIT.\n\n")
	if !enums {
		b.WriteString(packageDoc)
	}
	b.WriteString("package wire\n")
	for _, g := range groups {
		if (g.Kind == "enum") != enums {
			continue
		}
		name := goName(g.Name)
		fmt.Fprintf(&b, "\n// %s: %s.\nconst (\n", name, g.About)
		for _, v := range g.Values {
			fmt.Fprintf(&b, "\t%s%s = %d\n", name, goName(v.Name), v.Number)
		}
		if !enums {
			fmt.Fprintf(&b, "\t%sSize = %d // bytes\n", name, g.Size)
		}
		for _, f := range g.Fields {
			field := name + goName(f.Name)
			if g.Kind == "packet" {
				fmt.Fprintf(&b, "\t%sBit, %[1]sWidth = %d, %d\n", field, f.Bit, f.Width)
				continue
			}
			fmt.Fprintf(&b, "\t%sWord, %[1]sShift, %[1]sMask = %d, %d, %#x\n",
				field, f.Bit/64, f.Bit%64, ^uint64(0)>>(64-f.Width))
		}
		b.WriteString(")\n")
	}
	return format.Source(b.Bytes())
}

// run does what the command line says.
func run(args []string, out io.Writer) error {
	if len(args) != 2 {
		return fmt.Errorf("usage: layout layout.def layout.h|values.h|layout.go|values.go")
	}
	table, err := os.ReadFile(args[0])
	if err != nil {
		return err
	}
	groups, err := Parse(bytes.NewReader(table))
	if err != nil {
		return fmt.Errorf("%s: %w", args[0], err)
	}
	var text []byte
	switch enums := strings.HasPrefix(args[1], "values"); args[1] {
	case "layout.h", "values.h":
		text = WriteC(groups, enums)
	case "layout.go", "values.go":
		text, err = WriteGo(groups, enums)
	default:
		err = fmt.Errorf("%s: no such file", args[1])
	}
	if err != nil {
		return err
	}
	_, err = out.Write(text)
	return err
}

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "layout:", err)
		os.Exit(1)
	}
}
