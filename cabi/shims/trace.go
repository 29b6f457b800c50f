package main

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
)

// point is a call that "weft trace" follows.
type point struct {
	name, table, kind, member string
	operation                 string // that it posts
	role                      string
}

// points are all of them, in the order of the table in the library.
var points = slices.Concat(
	posts("msg", "fi_", "receive", "recv", "recvv", "recvmsg"),
	posts("msg", "fi_", "send", "send", "sendv", "sendmsg", "inject", "senddata", "injectdata"),
	posts("tagged", "fi_t", "tagged receive", "recv", "recvv", "recvmsg"),
	posts("tagged", "fi_t", "tagged send", "send", "sendv", "sendmsg", "inject", "senddata", "injectdata"),
	posts("rma", "fi_", "read", "read", "readv", "readmsg"),
	posts("rma", "fi_", "write", "write", "writev", "writemsg", "inject", "writedata", "injectdata"),
	posts("atomic", "fi_", "atomic", "write", "writev", "writemsg", "inject"),
	posts("atomic", "fi_", "fetch atomic", "readwrite", "readwritev", "readwritemsg"),
	posts("atomic", "fi_", "compare atomic", "compwrite", "compwritev", "compwritemsg"),
	calls("cq", "READ", "read", "readfrom", "sread", "sreadfrom"),
	calls("cq", "READERR", "readerr"),
	calls("cq", "CALL", "signal"),
	calls("cntr", "VALUE", "read", "readerr"),
	calls("cntr", "CALL", "add", "set", "wait"),
	calls("eq", "CALL", "read", "readerr", "write", "sread"),
	calls("av", "CALL", "insert", "insertsvc", "insertsym", "remove", "lookup"),
	calls("mr", "CALL", "reg", "regv", "regattr"),
	tokens("POST", "post", "notify"),
	tokens("CALL", "list", "notes"),
)

// tokens are calls of weft/token.h.
func tokens(role string, members ...string) []point {
	operation := map[string]string{"post": "list", "notify": "notification"}
	var list []point
	for _, m := range members {
		list = append(list, point{
			name: "weft_token_" + m, table: "weft_token_table", kind: "token", member: m, operation: operation[m],
			role: role,
		})
	}
	return list
}

func calls(kind, role string, members ...string) []point {
	var list []point
	for _, m := range members {
		list = append(list, point{name: "fi_" + kind + "_" + m, table: "weft_ops_" + kind, kind: kind, member: m,
			role: role})
	}
	return list
}

// posts are calls that start an operation; those that inject have no context to name it by.
func posts(kind, prefix, operation string, members ...string) []point {
	atomic := strings.NewReplacer("readwrite", "fetch_atomic", "compwrite", "compare_atomic", "write", "atomic",
		"inject", "inject_atomic")
	var list []point
	for _, m := range members {
		p := point{name: prefix + m, table: "weft_ops_" + kind, kind: kind, member: m, operation: operation,
			role: "POST"}
		switch {
		case kind == "atomic":
			p.name = prefix + atomic.Replace(m)
		case kind == "rma" && strings.HasPrefix(m, "inject"):
			p.name = prefix + "inject_write" + strings.TrimPrefix(m, "inject")
		}
		if strings.HasPrefix(m, "inject") {
			p.role, p.operation = "CALL", ""
		}
		list = append(list, p)
	}
	return list
}

// traceSource defines the table of trace.h.
func traceSource(kinds []*kind) []byte {
	var b bytes.Buffer
	file(&b, "The table of trace.h: libfabric's calls, and where the functions for them are.", "hotpath.h", "objects.h",
		"token.h", "trace.h")
	fmt.Fprintf(&b, "\n_Static_assert(WEFT_TRACE_POINTS == %d, \"every call\");\n\n", len(points))
	b.WriteString("#define AT(what, ops, op) .name = what, .table = &(ops), .member = offsetof(__typeof__(ops), op)" +
		"\n\nconst struct weft_trace_table weft_trace = {\n\t.version = WEFT_TRACE_VERSION,\n" +
		"\t.count = WEFT_TRACE_POINTS,\n" +
		"\t.point_bytes = sizeof(struct weft_trace_point),\n\t.cq_hot = offsetof(struct weft_cq_obj, hot),\n" +
		"\t.hot_format = offsetof(struct weft_hot_cq, format),\n\t.points = {\n")
	for _, p := range points {
		k := kindOf(kinds, p.kind)
		ops := p.table
		if k.grown() {
			ops += ".base"
		}
		fmt.Fprintf(&b, "\t\t{ AT(\"%s\", %s, %s), ", p.name, ops, p.member)
		switch o := k.find(p.member); {
		case p.role == "VALUE":
			b.WriteString(".role = WEFT_TRACE_CALL, .no_status = 1")
		case p.role != "POST":
			fmt.Fprintf(&b, ".role = WEFT_TRACE_%s", p.role)
		case o.has("context") != nil:
			at := slices.IndexFunc(o.params, func(q param) bool { return q.name == "context" })
			fmt.Fprintf(&b, ".role = WEFT_TRACE_POST, .operation = \"%s\", .context_arg = %d", p.operation, at+1)
		default:
			msg := strings.TrimSuffix(strings.TrimPrefix(o.has("msg").typ, "const "), " *")
			fmt.Fprintf(&b, ".role = WEFT_TRACE_POST, .operation = \"%s\", .context_offset = offsetof(%s, context)",
				p.operation, msg)
		}
		b.WriteString(" },\n")
	}
	b.WriteString("\t},\n};\n")
	return b.Bytes()
}
