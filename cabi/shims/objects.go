package main

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
)

// object is a class of libfabric's objects.
type object struct {
	class  string   // FI_CLASS_*
	typ    string   // its structure
	table  string   // of struct fi_ops, empty where several structures have the class
	text   string   // what fi_tostr says
	tables []placed // the others
	more   []string // members of the structure that few classes have
}

// placed is a table of an object.
type placed struct {
	member string
	table  *table
}

// transfers are the members of struct fid_ep whose tables post.
var transfers = []string{"msg", "rma", "tagged", "atomic", "collective"}

// parseObjects reads the objects of tables.txt.
func parseObjects(text string, tables []*table) ([]*object, error) {
	var list []*object
	var last *object
	for n, line := range strings.Split(text, "\n") {
		words := strings.Fields(line)
		switch {
		case len(words) == 0 || words[0][0] == '#':
			continue
		case line[0] != '\t':
			last = nil
			if words[0] != "object" {
				continue
			}
			if len(words) < 5 {
				return nil, fmt.Errorf("tables.txt:%d: want object CLASS STRUCT TABLE TEXT", n+1)
			}
			last = &object{class: words[1], typ: words[2], table: strings.Trim(words[3], "-"),
				text: strings.Join(words[4:], " ")}
			list = append(list, last)
			continue
		case last == nil:
			continue
		case len(words) == 1:
			last.more = append(last.more, words[0])
			continue
		case len(words) != 3 || words[1] != "=":
			return nil, fmt.Errorf("tables.txt:%d: want MEMBER = TABLE", n+1)
		}
		members := []string{words[0]}
		if words[0] == "*" {
			members = transfers
		}
		for _, m := range members {
			name := words[2]
			if words[0] == "*" {
				name += m
			}
			i := slices.IndexFunc(tables, func(t *table) bool { return t.name == name })
			if i < 0 {
				return nil, fmt.Errorf("tables.txt:%d: there is no table %s", n+1, name)
			}
			last.tables = append(last.tables, placed{m, tables[i]})
		}
	}
	return list, nil
}

// objectOf returns the object of a class, nil if there is none.
func objectOf(list []*object, class string) *object {
	for _, o := range list {
		if o.class == class {
			return o
		}
	}
	return nil
}

// objectsSource writes what is known about each class, and where its tables are.
func objectsSource(b *bytes.Buffer, list []*object) {
	b.WriteString("\nconst struct weft_class weft_classes[] = {\n")
	for _, o := range list {
		fmt.Fprintf(b, "\t[%s] = { .name = \"%s\", ", o.class, o.text)
		if o.table != "" {
			fmt.Fprintf(b, ".ops = &%s, ", o.table)
		}
		fmt.Fprintf(b, ".size = sizeof(struct %s),\n\t\t"+
			".handle = offsetof(struct %[1]s, handle), .link = offsetof(struct %[1]s, link)", o.typ)
		for _, m := range o.more {
			fmt.Fprintf(b, ", .%s = offsetof(struct %s, %[1]s)", m, o.typ)
		}
		b.WriteString(" },\n")
	}
	b.WriteString("};\n\nconst size_t weft_class_count = count_of(weft_classes);\n\n" +
		"const struct weft_place weft_places[] = {\n")
	for _, o := range list {
		for _, p := range o.tables {
			fmt.Fprintf(b, "\t{ %s, offsetof(struct %s, fid.%s), &%s, &weft_forked_%s },\n", o.class, o.typ, p.member,
				p.table.name, p.table.kind.name)
		}
	}
	b.WriteString("};\n\nconst size_t weft_place_count = count_of(weft_places);\n")
}

// opening is how a member of a table opens an object.
type opening struct {
	class   string
	threads string // the call's name, where it may need threads
	then    string // a function of C that the object is given to
	last    string // a function of Go that is called with the handle and the object when it is open
}

// parseOpening reads what is behind the function of Go, and returns the checks.
func parseOpening(class string, words []string) (*opening, []string, bool) {
	w := &opening{class: class}
	var checks []string
	for i := 0; i < len(words); i++ {
		to := map[string]*string{"threads": &w.threads, "then": &w.then, "last": &w.last}[words[i]]
		if to == nil {
			checks = append(checks, words[i])
			continue
		}
		if i++; i == len(words) {
			return nil, nil, false
		}
		*to = words[i]
	}
	return w, checks, true
}

// open writes a function that opens an object.
func open(b *bytes.Buffer, t *table, o *op, e entry, objects []*object) error {
	made := objectOf(objects, e.opens.class)
	var out *param
	context := "NULL"
	var args []string
	for i := range o.params {
		switch p := &o.params[i]; {
		case i == 0 && t.object != "-":
			args = append(args, fmt.Sprintf("WEFT_OBJ(%s, struct %s)->handle", p.name, t.object))
		case strings.HasSuffix(p.typ, "**"):
			out = p
		case p.name == "context":
			context = p.name
		default:
			args = append(args, t.argument(*p))
		}
	}
	if made == nil || out == nil {
		return fmt.Errorf("tables.txt: %s.%s opens no object", t.name, o.name)
	}
	fmt.Fprintf(b, "\nstatic %s%s\n{\n\tstruct weft_opened opened = { 0 };\n\tstruct %s *o;\n\tint rc = 0;\n\n",
		traced(t, o), o.declare(t.name+"_"+o.name, true), made.typ)
	if t.object == "-" {
		b.WriteString("\tif (weft_forked())\n\t\treturn weft_fork_refusal();\n")
	}
	check(b, append(slices.Clone(e.checks), out.name), "-FI_EINVAL")
	if e.opens.threads != "" {
		fmt.Fprintf(b, "\trc = weft_spares_need(\"%s\");\n\tif (rc)\n\t\treturn rc;\n", e.opens.threads)
	}
	fmt.Fprintf(b, "\to = weft_object_new(%s, %s);\n\tif (!o)\n\t\treturn -FI_ENOMEM;\n\trc = %s(%s, o, &opened);\n",
		made.class, context,
		e.goName, strings.Join(args, ", "))
	if e.opens.then != "" {
		fmt.Fprintf(b, "\tif (!rc)\n\t\t%s(o, &opened);\n", e.opens.then)
	}
	b.WriteString("\trc = weft_object_open(o, rc, &opened);\n")
	object := "&o->fid"
	if t.object == "-" {
		object = "(void *)o"
	}
	if e.opens.last != "" {
		fmt.Fprintf(b, "\tif (rc)\n\t\treturn rc;\n\t*%s = %s;\n\treturn %s(o->handle, o);\n}\n", out.name, object,
			e.opens.last)
	} else {
		fmt.Fprintf(b, "\tif (!rc)\n\t\t*%s = %s;\n\treturn rc;\n}\n", out.name, object)
	}
	return nil
}

// sameWithout writes a function that does what another one does, once its flags are 0.
func sameWithout(b *bytes.Buffer, t *table, o *op, e entry, function string) error {
	other := t.kind.find(e.same)
	var args []string
	for _, p := range o.params {
		if p.name != "flags" {
			args = append(args, p.name)
		}
	}
	if other == nil || len(args) < len(other.params) || len(args) == len(o.params) {
		return fmt.Errorf("tables.txt: %s.%s is not %s with flags", t.name, o.name, e.same)
	}
	fmt.Fprintf(b, "\nstatic %s\n{\n", o.declare(t.name+"_"+o.name, true))
	for _, a := range args[len(other.params):] {
		fmt.Fprintf(b, "\t(void)%s;\n", a)
	}
	fmt.Fprintf(b, "\treturn flags ? %s : %s(%s);\n}\n", e.result, function,
		strings.Join(args[:len(other.params)], ", "))
	return nil
}
