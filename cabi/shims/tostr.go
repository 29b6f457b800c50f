package main

import (
	"bytes"
	_ "embed"
	"fmt"
	"strings"
)

//go:embed tostr.txt
var tostrText string

// shown is a block of tostr.txt: an enumeration, bits, or an attribute.
type shown struct {
	sort string   // "enum", "flags", "attr"
	args []string // behind that
	rows [][]string
}

// parseTostr reads tostr.txt.
func parseTostr(text string) ([]shown, error) {
	want := map[string][2]int{"enum": {1, 2}, "flags": {2, 2}, "attr": {2, 2}}
	var list []shown
	for n, line := range strings.Split(text, "\n") {
		words := strings.Fields(line)
		if len(words) == 0 || words[0][0] == '#' {
			continue
		}
		if line[0] != '\t' {
			if w, ok := want[words[0]]; !ok || len(words)-1 < w[0] || len(words)-1 > w[1] {
				return nil, fmt.Errorf("tostr.txt:%d: %s", n+1, line)
			}
			list = append(list, shown{sort: words[0], args: words[1:]})
			continue
		}
		if len(list) == 0 {
			return nil, fmt.Errorf("tostr.txt:%d: a row of nothing", n+1)
		}
		last := &list[len(list)-1]
		if last.sort == "attr" {
			last.rows = append(last.rows, words)
			continue
		}
		for _, w := range words {
			last.rows = append(last.rows, []string{w})
		}
	}
	return list, nil
}

// variable is the name of a block's array in C.
func (s *shown) variable() string {
	name := s.args[0]
	if s.sort == "attr" {
		name = s.args[1]
	}
	return strings.ToLower(strings.TrimPrefix(name, "FI_TYPE_")) + "_" + s.sort
}

// array writes the rows of a block.
func (s *shown) array(b *bytes.Buffer) error {
	types := map[string]string{"enum": "const char *const", "flags": "const struct flag", "attr": "const struct member"}
	fmt.Fprintf(b, "\nstatic %s %s[] = {\n", types[s.sort], s.variable())
	for _, r := range s.rows {
		switch s.sort {
		case "enum":
			value, text, ok := strings.Cut(r[0], "=")
			if !ok {
				text = value
			}
			fmt.Fprintf(b, "\t[%s] = \"%s\",\n", value, text)
		case "flags":
			fmt.Fprintf(b, "\t{ %s, \"%s\" },\n", r[0], r[0])
		default:
			line, err := memberRow("struct "+s.args[0], r)
			if err != nil {
				return err
			}
			b.WriteString(line)
		}
	}
	b.WriteString("};\n")
	return nil
}

// memberRow writes how a member of an attribute is shown.
func memberRow(of string, r []string) (string, error) {
	if len(r) < 2 {
		return "", fmt.Errorf("tostr.txt: how is %s of %s shown", r[0], of)
	}
	row := fmt.Sprintf("\t{ MEMBER(%s, %s), .how = %s", of, r[0], strings.ToUpper(r[1]))
	with := map[string]string{"hex": ".digits = %s", "enum": ".type = %s", "flags": ".type = %s", "attr": ".type = %s",
		"address": ".length = offsetof(" + of + ", %s)"}
	if f, ok := with[r[1]]; ok != (len(r) == 3) || len(r) > 3 {
		return "", fmt.Errorf("tostr.txt: %s of %s", strings.Join(r, " "), of)
	} else if ok {
		row += ", " + fmt.Sprintf(f, r[2])
	}
	return row + " },\n", nil
}

// tostrSource is what direct_tostr.c includes.
func tostrSource() ([]byte, error) {
	list, err := parseTostr(tostrText)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	file(&b, "What fi_tostr shows (direct_tostr.c).")
	tables := map[string]*bytes.Buffer{"enum": {}, "flags": {}, "attr": {}}
	for i := range list {
		s := &list[i]
		if err := s.array(&b); err != nil {
			return nil, err
		}
		v, t := s.variable(), tables[s.sort]
		switch s.sort {
		case "enum":
			fmt.Fprintf(t, "\t{ %s, %s, count_of(%s), %t },\n", s.args[0], v, v, len(s.args) > 1)
		case "flags":
			fmt.Fprintf(t, "\t{ %s, %s, count_of(%s), %s },\n", s.args[0], v, v, s.args[1])
		default:
			fmt.Fprintf(t, "\t{ %s, \"%s\", %s, count_of(%s) },\n", s.args[1], s.args[0], v, v)
		}
	}
	fmt.Fprintf(&b, "\nstatic const struct enum_names enums[] = {\n%s};\n", tables["enum"])
	fmt.Fprintf(&b, "\nstatic const struct flag_names flags[] = {\n%s};\n", tables["flags"])
	fmt.Fprintf(&b, "\nstatic const struct attr attrs[] = {\n%s};\n", tables["attr"])
	return b.Bytes(), nil
}
