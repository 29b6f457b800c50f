package main

import (
	"fmt"
	"regexp"
	"strings"
)

// param is a parameter of a function.
type param struct {
	typ  string // with its stars, "const void *"
	name string
}

// op is a member of a table.
type op struct {
	ret    string
	name   string
	params []param
	later  bool // appended after libfabric 1.17
}

// kind is a table's type: struct fi_ops_NAME.
type kind struct {
	name   string
	own    bool   // struct weft_ops_NAME, which libfabric's headers of 1.17 do not have
	public string // a structure of include/weft, by its name; else empty
	ops    []op
}

// ctype is the type of a whole table: libfabric's, or one of weft's around it.
func (k *kind) ctype() string {
	switch {
	case k.public != "":
		return "struct " + k.public
	case k.own, k.grown():
		return "struct weft_ops_" + k.name
	case k.name == "fid":
		return "struct fi_ops"
	}
	return "struct fi_ops_" + k.name
}

// grown reports whether the table has later members.
func (k *kind) grown() bool { return len(k.ops) > 0 && k.ops[len(k.ops)-1].later }

// find returns a member, nil if there is none.
func (k *kind) find(name string) *op {
	for i := range k.ops {
		if k.ops[i].name == name {
			return &k.ops[i]
		}
	}
	return nil
}

// declare writes a function's head under a name.
func (o *op) declare(name string, named bool) string {
	var b strings.Builder
	b.WriteString(o.ret)
	if !strings.HasSuffix(o.ret, "*") {
		b.WriteString(" ")
	}
	b.WriteString(name + "(")
	for i, p := range o.params {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(strings.TrimSpace(p.typ))
		if named {
			if !strings.HasSuffix(p.typ, "*") {
				b.WriteString(" ")
			}
			b.WriteString(p.name)
		}
	}
	return b.String() + ")"
}

// has returns the parameter of that name, nil if there is none.
func (o *op) has(name string) *param {
	for i := range o.params {
		if o.params[i].name == name {
			return &o.params[i]
		}
	}
	return nil
}

var (
	prototype = regexp.MustCompile(`^(.*?[ *])(\w+)\((.*)\)$`)
	parameter = regexp.MustCompile(`^(.*?[ *]+)(\w+)$`)
)

// parseOps reads ops.txt.
func parseOps(text string) ([]*kind, error) {
	var kinds []*kind
	later := false
	for n, line := range strings.Split(text, "\n") {
		if line == "" || line[0] == '#' {
			continue
		}
		if name, ok := strings.CutPrefix(line, "table "); ok {
			name, of, _ := strings.Cut(name, " ")
			k := &kind{name: name, own: of == "own"}
			if !k.own {
				k.public = of
			}
			kinds = append(kinds, k)
			later = false
			continue
		}
		if line == "later" {
			later = true
			continue
		}
		m := prototype.FindStringSubmatch(line)
		if m == nil || len(kinds) == 0 {
			return nil, fmt.Errorf("ops.txt:%d: no prototype", n+1)
		}
		o := op{ret: strings.TrimSuffix(m[1], " "), name: m[2], later: later}
		for p := range strings.SplitSeq(m[3], ", ") {
			q := parameter.FindStringSubmatch(p)
			if q == nil {
				return nil, fmt.Errorf("ops.txt:%d: %q is no parameter", n+1, p)
			}
			o.params = append(o.params, param{strings.TrimSuffix(q[1], " "), q[2]})
		}
		k := kinds[len(kinds)-1]
		k.ops = append(k.ops, o)
	}
	return kinds, nil
}

// kindOf returns the kind of that name, nil if there is none.
func kindOf(kinds []*kind, name string) *kind {
	for _, k := range kinds {
		if k.name == name {
			return k
		}
	}
	return nil
}

// entry is what stands in a member of a table.
type entry struct {
	function string   // of C; or
	result   string   // what every call returns, an expression; or
	goName   string   // the Go function that is called with the object's handle and the other arguments,
	checks   []string // after these checks of arguments,
	first    string   // and a function of C that is given the object and returns 0 or what the call returns,
	ofC      bool     // goName being a function of C, which takes the arguments as they are; or
	raw      bool     // objects among the arguments being pointers and the function's own an additional one
	opens    *opening // and that opens an object, if not nil; or
	same     string   // the member that does the same without flags, with result for an error
}

// table is a table of functions.
type table struct {
	name    string
	kind    *kind
	object  string // the structure behind the first parameter, for its handle; "-": the table is no object's
	entries map[string]entry
}

// entry returns what stands in a member: what tables.txt says, or what refuses.
func (t *table) entry(o *op) entry {
	if e, ok := t.entries[o.name]; ok {
		return e
	}
	switch {
	case o.name == "tostr":
		return entry{function: "weft_tostr"}
	case o.ret == "void":
		return entry{result: " "}
	case strings.HasSuffix(o.ret, "*"):
		return entry{result: "NULL"}
	case o.ret == "uint64_t":
		return entry{result: "0"}
	}
	return entry{result: "-FI_ENOSYS"}
}

// parseTables reads tables.txt.
func parseTables(text string, kinds []*kind) ([]*table, error) {
	var tables []*table
	inObject := false // parseObjects
	for n, line := range strings.Split(text, "\n") {
		words := strings.Fields(line)
		if len(words) == 0 || words[0][0] == '#' {
			continue
		}
		if line[0] != '\t' {
			if inObject = words[0] == "object"; inObject {
				continue
			}
			t := &table{name: words[0], entries: map[string]entry{}}
			if len(words) > 1 {
				t.kind = kindOf(kinds, words[1])
			}
			if t.kind == nil || len(words) > 3 {
				return nil, fmt.Errorf("tables.txt:%d: want NAME KIND [OBJECT]", n+1)
			}
			if len(words) == 3 {
				t.object = words[2]
			}
			tables = append(tables, t)
			continue
		}
		if inObject {
			continue
		}
		if len(tables) == 0 || len(words) < 3 {
			return nil, fmt.Errorf("tables.txt:%d: want MEMBER = FUNCTION, or MEMBER > GO [CHECK...]", n+1)
		}
		t := tables[len(tables)-1]
		if words[0] == "*" && words[1] == "=" {
			for i := range t.kind.ops {
				t.entries[t.kind.ops[i].name] = entry{function: words[2] + t.kind.ops[i].name}
			}
			continue
		}
		if t.kind.find(words[0]) == nil {
			return nil, fmt.Errorf("tables.txt:%d: %s has no member %s", n+1, t.kind.ctype(), words[0])
		}
		e, ok := parseEntry(words[1], words[2:], t.object)
		if !ok {
			return nil, fmt.Errorf("tables.txt:%d: %s", n+1, strings.TrimSpace(line))
		}
		t.entries[words[0]] = e
	}
	return tables, nil
}

// parseEntry reads what is behind a member: how it stands there, and words. object is the table's,
// which has a handle; empty: it has none.
func parseEntry(how string, words []string, object string) (entry, bool) {
	handled := object != ""
	switch {
	case how == ">" && handled:
		e := entry{goName: words[0], checks: words[1:]}
		if n := len(e.checks); n > 0 && e.checks[n-1] == "raw" {
			e.raw, e.checks = true, e.checks[:n-1]
		}
		if n := len(e.checks); n > 1 && e.checks[n-2] == "first" {
			e.first, e.checks = e.checks[n-1], e.checks[:n-2]
		}
		return e, true
	case how == "+" && handled && len(words) > 1:
		opens, checks, ok := parseOpening(words[0], words[2:])
		return entry{goName: words[1], checks: checks, opens: opens}, ok
	case how == "~" && len(words) == 2:
		return entry{same: words[0], result: words[1]}, true
	case how == "=" && len(words) == 1 && words[0][0] == '-':
		return entry{result: words[0]}, true
	case how == "=" && len(words) == 1:
		return entry{function: words[0]}, true
	case how == "=" && object == "-":
		return entry{goName: words[0], checks: words[1:], ofC: true}, true
	}
	return entry{}, false
}
