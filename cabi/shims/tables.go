package main

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// tablesHeader declares the tables, their types and the functions in them.
func tablesHeader(kinds []*kind, tables []*table) []byte {
	var b bytes.Buffer
	file(&b, "The tables of functions of libfabric's objects, and what stands in them.")
	b.WriteString("#ifndef WEFT_TABLES_GEN_H\n#define WEFT_TABLES_GEN_H\n\n#include <rdma/fabric.h>\n" +
		"#include <rdma/fi_atomic.h>\n" +
		"#include <rdma/fi_cm.h>\n#include <rdma/fi_collective.h>\n#include <rdma/fi_domain.h>\n" +
		"#include <rdma/fi_endpoint.h>\n" +
		"#include <rdma/fi_eq.h>\n#include <rdma/fi_rma.h>\n#include <rdma/fi_tagged.h>\n\n#include \"trace.h\"\n\n" +
		"/* Tables that have grown since libfabric 1.17. The size of a table is that of the whole one, so callers of " +
		"any version\n" +
		" * find the members that they know. */\n")
	for _, k := range kinds {
		switch {
		case k.own:
			fmt.Fprintf(&b, "struct weft_ops_%s {\n\tsize_t size;\n", k.name)
		case k.grown():
			fmt.Fprintf(&b, "struct weft_ops_%s {\n\tstruct fi_ops_%s base;\n", k.name, k.name)
		default:
			continue
		}
		for i := range k.ops {
			if o := &k.ops[i]; o.later || k.own {
				fmt.Fprintf(&b, "\t%s;\n", o.declare("(*"+o.name+")", true))
			}
		}
		b.WriteString("};\n")
	}
	b.WriteString("\n")
	for _, t := range tables {
		if t.kind.public == "" {
			fmt.Fprintf(&b, "extern %s %s;\n", t.kind.ctype(), t.name)
		}
	}
	for _, k := range kinds {
		if k.public == "" {
			fmt.Fprintf(&b, "extern %s weft_forked_%s;\n", k.ctype(), k.name)
		}
	}
	b.WriteString("\n")
	done := map[string]bool{}
	for _, t := range tables {
		for i := range t.kind.ops {
			o := &t.kind.ops[i]
			f := t.entry(o).function
			if f == "" || done[f] || t.kind.public != "" {
				continue
			}
			done[f] = true
			traced := ""
			if isTraced(t.name, o.name) {
				traced = " WEFT_TRACE_ENTRY"
			}
			fmt.Fprintf(&b, "%s%s;\n", o.declare(f, true), traced)
		}
	}
	b.WriteString("\n#endif\n")
	return b.Bytes()
}

// initializer writes a table whose members function names.
func initializer(b *bytes.Buffer, k *kind, name string, function func(o *op) string) {
	fmt.Fprintf(b, "\n%s %s = {\n", k.ctype(), name)
	indent := "\t"
	if k.grown() {
		b.WriteString("\t.base = {\n")
		indent = "\t\t"
	}
	fmt.Fprintf(b, "%s.size = sizeof(%s),\n", indent, k.ctype())
	for i := range k.ops {
		o := &k.ops[i]
		if o.later && indent == "\t\t" {
			b.WriteString("\t},\n")
			indent = "\t"
		}
		fmt.Fprintf(b, "%s.%s = %s,\n", indent, o.name, function(o))
	}
	b.WriteString("};\n")
}

// tablesSource defines the tables and the functions that are generated.
func tablesSource(tables []*table, objects []*object) ([]byte, error) {
	var b bytes.Buffer
	file(&b, "The tables of functions of libfabric's objects. No member of a table is NULL: libfabric's inline "+
		"functions\n"+
		" * call through most of them unchecked.", "goapi.h", "hotpath.h", "thread.h", "token.h")
	r := refusals{}
	for _, t := range tables {
		names := map[string]string{}
		for i := range t.kind.ops {
			o := &t.kind.ops[i]
			e := t.entry(o)
			var err error
			switch {
			case e.function != "":
				names[o.name] = e.function
				continue
			case e.same == "" && e.result != "":
				names[o.name] = r.write(&b, o, e.result)
				continue
			case e.same != "":
				err = sameWithout(&b, t, o, e, names[e.same])
			case e.opens != nil:
				err = open(&b, t, o, e, objects)
			default:
				call(&b, t, o, e)
			}
			if err != nil {
				return nil, err
			}
			names[o.name] = t.name + "_" + o.name
		}
		initializer(&b, t.kind, t.name, func(o *op) string { return names[o.name] })
	}
	objectsSource(&b, objects)
	return b.Bytes(), nil
}

// refusals are functions that return one value, by prototype and value.
type refusals map[string]string

// write returns the name of such a function, which it writes if there is none yet.
func (r refusals) write(b *bytes.Buffer, o *op, result string) string {
	key := o.declare("", false) + result
	if name := r[key]; name != "" {
		return name
	}
	name := fmt.Sprintf("refuse%d_%s", len(r), o.name)
	r[key] = name
	switch {
	case o.ret != "void":
		result = "return " + result + "; "
	case result != " ":
		result += "; "
	}
	fmt.Fprintf(b, "\nstatic %s { %s}\n", o.declare(name, false), strings.TrimLeft(result, " "))
	return name
}

var lengthCheck = regexp.MustCompile(`^(\w+)\[(\*?)(\w+)\]$`)

// check writes checks of arguments. A check is the name of what must not be NULL; or BUF[LEN], which may be NULL if LEN
// is 0, and LEN may be a pointer. result is returned for bad ones.
func check(b *bytes.Buffer, checks []string, result string) {
	var bad []string
	for _, c := range checks {
		switch m := lengthCheck.FindStringSubmatch(c); {
		case m == nil:
			bad = append(bad, "!"+c)
		case m[2] != "":
			bad = append(bad, "!"+m[3], fmt.Sprintf("(!%s && *%s)", m[1], m[3]))
		default:
			bad = append(bad, fmt.Sprintf("(!%s && %s)", m[1], m[3]))
		}
	}
	if len(bad) > 0 {
		fmt.Fprintf(b, "\tif (%s)\n\t\treturn %s;\n", strings.Join(bad, " || "), result)
	}
}

// otherObject matches the type of a pointer to an object that is not the function's own.
var otherObject = regexp.MustCompile(`^(const )?struct (fid\w*|weft_remote|weft_list) \*$|^fid_t$`)

// argument is how a parameter is passed to Go, as a handle if it is an object.
func (t *table) argument(p param) string {
	switch rest, isConst := strings.CutPrefix(p.typ, "const "); {
	case t.object == "-" && p.typ == "struct fid_ep *":
		return "weft_token_endpoint(" + p.name + ")"
	case p.typ == "struct weft_alltoallv_req *":
		return "(uintptr_t)" + p.name
	case otherObject.MatchString(p.typ):
		return "weft_handle_of((const struct fid *)" + p.name + ")"
	case isConst:
		return "(" + rest + ")" + p.name
	}
	return p.name
}

// call writes a function that checks its arguments and passes them to Go, or to another function of C. A text is what
// the argument buf points to.
func call(b *bytes.Buffer, t *table, o *op, e entry) {
	fmt.Fprintf(b, "\nstatic %s%s\n{\n", traced(t, o), o.declare(t.name+"_"+o.name, true))
	if e.first != "" {
		b.WriteString("\tint rc;\n\n")
	}
	if t.object == "-" {
		b.WriteString("\tif (weft_forked())\n\t\treturn weft_fork_refusal();\n")
	}
	bad, text := "-FI_EINVAL", strings.HasSuffix(o.ret, "*")
	if text {
		bad = "NULL"
	}
	check(b, e.checks, bad)
	var args []string
	for i, p := range o.params {
		switch {
		case e.ofC:
			args = append(args, p.name)
		case i == 0 && t.object != "-":
			args = append(args, fmt.Sprintf("WEFT_OBJ(%s, struct %s)->handle", p.name, t.object))
		case e.raw && otherObject.MatchString(p.typ):
			args = append(args, p.name)
		default:
			args = append(args, t.argument(p))
		}
	}
	if e.raw {
		args = append(args, fmt.Sprintf("WEFT_OBJ(%s, struct %s)", o.params[0].name, t.object))
	}
	result := fmt.Sprintf("%s(%s)", e.goName, strings.Join(args, ", "))
	switch {
	case text:
		result = "return " + result + " ? NULL : buf"
	case e.first != "":
		fmt.Fprintf(b, "\trc = %s(%s);\n", e.first, o.params[0].name)
		result = "return rc ? rc : " + result
	case o.ret != "void":
		result = "return " + result
	}
	fmt.Fprintf(b, "\t%s;\n}\n", result)
}

// forkedSource defines the tables for objects that a forked process inherits.
func forkedSource(kinds []*kind) []byte {
	var b bytes.Buffer
	file(&b, "The tables that refuse every call in a forked process (fork.c says why).", "objects.h")
	r := refusals{}
	for _, k := range kinds {
		if k.public != "" {
			continue
		}
		names := map[string]string{}
		for i := range k.ops {
			o := &k.ops[i]
			switch f := forkedMembers[k.name+"."+o.name]; {
			case f == "":
				names[o.name] = r.write(&b, o, "weft_fork_refusal()")
			case f[0] == '-':
				names[o.name] = r.write(&b, o, f)
			default:
				names[o.name] = f
			}
		}
		initializer(&b, k, "weft_forked_"+k.name, func(o *op) string { return names[o.name] })
	}
	return b.Bytes()
}

// forkedMembers are the members that do something else in a forked process.
var forkedMembers = map[string]string{
	"fid.ops_open": "-FI_ENOSYS", "fid.tostr": "weft_tostr", "fid.ops_set": "-FI_ENOSYS",
	"av.straddr": "weft_forked_straddr", "cq.strerror": "weft_cq_strerror", "eq.strerror": "weft_eq_strerror",
	"cntr.read": "weft_forked_cntr_read", "cntr.readerr": "weft_forked_cntr_readerr",
}

// traced is what begins the definition of a function that "weft trace" follows.
func traced(t *table, o *op) string {
	if isTraced(t.name, o.name) {
		return "WEFT_TRACE_ENTRY "
	}
	return ""
}

// isTraced reports whether "weft trace" follows a member of a table.
func isTraced(table, member string) bool {
	return slices.ContainsFunc(points, func(p point) bool { return p.table == table && p.member == member })
}
