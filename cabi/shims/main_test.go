package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weft-fabric/weft/internal/generated"
)

// TestCommitted holds the committed files to the tables.
func TestCommitted(t *testing.T) {
	all, err := generate("../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range generated.Stale("../..", all) {
		t.Errorf("%s is not what cabi/shims makes; run make generate", path)
	}
}

// TestChecks shows what becomes of a row that calls Go.
func TestChecks(t *testing.T) {
	kinds, err := parseOps("table eq\nssize_t write(struct fid_eq *eq, const void *buf, size_t len, void *to, size_t " +
		"*n)\n")
	if err != nil {
		t.Fatal(err)
	}
	tables, err := parseTables("t eq obj\n\twrite > f buf[len] to[*n]\n", kinds)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	call(&b, tables[0], &kinds[0].ops[0], tables[0].entries["write"])
	want := "\tif ((!buf && len) || !n || (!to && *n))\n\t\treturn -FI_EINVAL;\n\t" +
		"return f(WEFT_OBJ(eq, struct obj)->handle, (void *)buf, len, to, n);\n"
	if !strings.Contains(b.String(), want) {
		t.Errorf("%s", b.String())
	}
}

// TestRows shows the other rows that call Go: with a function of C before, for a text, and of a table that is no
// object's.
func TestRows(t *testing.T) {
	kinds, err := parseOps("table q own\nint bind(struct fid_ep *ep, const struct fid_av *av)\n" +
		"const char *text(struct fid *q, char *buf, size_t *len)\nvoid end(struct fid *q)\n")
	if err != nil {
		t.Fatal(err)
	}
	tables, err := parseTables("a q obj\n\tbind > f first g\n\ttext > f buf[*len]\n\tend > f\nb q -\n\tbind > f\n"+
		"c q obj\n\tbind > f raw\n", kinds)
	if err != nil {
		t.Fatal(err)
	}
	b, err := tablesSource(tables, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"\tint rc;\n\n\trc = g(ep);\n\t" +
			"return rc ? rc : f(WEFT_OBJ(ep, struct obj)->handle, weft_handle_of((const struct fid *)av));\n",
		"\tif (!len || (!buf && *len))\n\t\treturn NULL;\n\t" +
			"return f(WEFT_OBJ(q, struct obj)->handle, buf, len) ? NULL : buf;\n",
		"\n{\n\tf(WEFT_OBJ(q, struct obj)->handle);\n}\n",
		"return weft_fork_refusal();\n\treturn f(weft_token_endpoint(ep), weft_handle_of((const struct fid *)av));\n",
		"return f(WEFT_OBJ(ep, struct obj)->handle, av, WEFT_OBJ(ep, struct obj));\n",
		"(struct fid *) { }\n",
	} {
		if !strings.Contains(string(b), want) {
			t.Errorf("no %s in\n%s", want, b)
		}
	}
}

// TestOpening shows what becomes of a row that opens an object, and of one that is another one with flags.
func TestOpening(t *testing.T) {
	kinds, err := parseOps("table dom\nint q_open(struct fid *d, struct attr *attr, struct fid_q **q, void " +
		"*context)\n" +
		"int q_open2(struct fid *d, struct attr *attr, struct fid_q **q, uint64_t flags, void *context)\n")
	if err != nil {
		t.Fatal(err)
	}
	text := "object C q_obj q_ops queue\n\tops = t\n\twait\nt dom d_obj\n\tq_open + C f attr threads call then g\n\t" +
		"q_open2 ~ q_open -E\n"
	tables, err := parseTables(text, kinds)
	if err != nil {
		t.Fatal(err)
	}
	objects, err := parseObjects(text, tables)
	if err != nil {
		t.Fatal(err)
	}
	b, err := tablesSource(tables, objects)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"if (!attr || !q)\n\t\treturn -FI_EINVAL;\n\trc = weft_spares_need(\"call\");",
		"rc = f(WEFT_OBJ(d, struct d_obj)->handle, attr, o, &opened);\n\tif (!rc)\n\t\tg(o, &opened);\n",
		"return flags ? -E : t_q_open(d, attr, q, context);",
		"[C] = { .name = \"queue\", .ops = &q_ops, .size = sizeof(struct q_obj)",
		".wait = offsetof(struct q_obj, wait)",
		"{ C, offsetof(struct q_obj, fid.ops), &t, &weft_forked_dom }",
	} {
		if !strings.Contains(string(b), want) {
			t.Errorf("no %s in\n%s", want, b)
		}
	}
	for _, bad := range []string{"object C q_obj\n", "object C q_obj q_ops queue\n\tops t\n",
		"object C q_obj q_ops queue\n\tops = u\n"} {
		if _, err := parseObjects(bad, tables); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}

// TestBadTables gives rows that are refused.
func TestBadTables(t *testing.T) {
	kinds, err := parseOps(opsText)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"t nothing\n", "t eq\n\tfly = f\n", "t eq\n\tread\n", "t eq\n\tread > f\n",
		"\tread = f\n", "t eq o\n\tread = f g\n", "t eq o\n\tread + c\n", "t eq o\n\tread + c f then\n"} {
		if _, err := parseTables(text, kinds); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
}

// TestGoAPI shows what C sees of a function that Go exports.
func TestGoAPI(t *testing.T) {
	dir := t.TempDir()
	text := "package p\n\nimport \"C\"\n\n// Says so.\n//\n//export f\n" +
		"func f(a, b C.uint64_t, p **C.struct_s, q *unsafe.Pointer, n C.uint) (rc C.int) { return 0 }\n\n" +
		"func g() {}\n\n//export h\nfunc h() {}\n"
	if err := os.WriteFile(filepath.Join(dir, "p.go"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := goapi(dir)
	if err != nil {
		t.Fatal(err)
	}
	want := "struct s;\n\n/* ---- p.go ---- */\n/* Says so. */\n" +
		"int f(uint64_t a, uint64_t b, struct s **p, void **q, unsigned n);\nvoid h(void);\n"
	if !strings.Contains(string(got), want) {
		t.Errorf("%s", got)
	}
	if err := os.WriteFile(filepath.Join(dir, "p.go"), []byte("package p\n\n//export f\nfunc f(a map[int]int) {}\n"),
		0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := goapi(dir); err == nil {
		t.Error("a map is taken")
	}
}
