package fi

import (
	"bufio"
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"
)

// number returns a constant of any integer type as C's unsigned long long.
func number(v any) uint64 {
	r := reflect.ValueOf(v)
	if r.CanInt() {
		return uint64(r.Int())
	}
	return r.Uint()
}

// compile builds and runs a C program against the installed headers, and
// returns what it prints. The test is skipped without gcc or headers.
func compile(t *testing.T, program string) []byte {
	t.Helper()
	gcc, err := exec.LookPath("gcc")
	if err != nil {
		t.Skip("gcc is not installed")
	}
	probe := exec.Command(gcc, "-E", "-x", "c", "-o", os.DevNull, "-")
	probe.Stdin = strings.NewReader("#include <rdma/fabric.h>\n#include <rdma/providers/fi_log.h>\n")
	if err := probe.Run(); err != nil {
		t.Skip("libfabric's headers are not installed")
	}
	bin := filepath.Join(t.TempDir(), "constants")
	cc := exec.Command(gcc, "-w", "-x", "c", "-o", bin, "-")
	cc.Stdin = strings.NewReader(program)
	if out, err := cc.CombinedOutput(); err != nil {
		t.Fatalf("compile: %v\n%s", err, out)
	}
	out, err := exec.Command(bin).Output()
	if err != nil {
		t.Fatalf("run: %v", err)
	}
	return out
}

// TestValuesEqualC compares every constant with the installed headers. To
// compare with others, name their include directory in CPATH.
func TestValuesEqualC(t *testing.T) {
	var p strings.Builder
	for _, h := range []string{"stdio.h", "rdma/fabric.h", "rdma/fi_errno.h", "rdma/fi_domain.h",
		"rdma/fi_endpoint.h", "rdma/fi_eq.h", "rdma/fi_cm.h", "rdma/fi_atomic.h", "rdma/fi_tagged.h"} {
		fmt.Fprintf(&p, "#include <%s>\n", h)
	}
	p.WriteString("int main(void) {\nprintf(\"version=%u\\n\", FI_MAJOR_VERSION);\n")
	write := func(list []pair) {
		for _, c := range list {
			fmt.Fprintf(&p, "printf(\"%s=%%llu\\n\", (unsigned long long)(%s));\n", c.c, c.c)
		}
	}
	write(inBoth)
	p.WriteString("#if FI_MAJOR_VERSION < 2\n")
	write(in1x)
	p.WriteString("#else\n")
	write(in2x)
	p.WriteString("#endif\nreturn 0;\n}\n")

	got := map[string]uint64{}
	sc := bufio.NewScanner(bytes.NewReader(compile(t, p.String())))
	for sc.Scan() {
		name, value, _ := strings.Cut(sc.Text(), "=")
		n, err := strconv.ParseUint(value, 10, 64)
		if err != nil {
			t.Fatalf("output %q: %v", sc.Text(), err)
		}
		got[name] = n
	}
	want := append([]pair(nil), inBoth...)
	if got["version"] < 2 {
		want = append(want, in1x...)
	} else {
		want = append(want, in2x...)
	}
	for _, c := range want {
		if v, ok := got[c.c]; !ok || v != number(c.value) {
			t.Errorf("%s is %#x in C, %#x in Go", c.c, v, number(c.value))
		}
	}
	if len(got) != len(want)+1 {
		t.Errorf("C printed %d constants, want %d", len(got)-1, len(want))
	}
}

// TestEveryConstantIsCompared holds the tables of the comparison complete.
func TestEveryConstantIsCompared(t *testing.T) {
	// These have no counterpart in C.
	own := map[string]bool{"ProtoWeft": true, "ProvSpecific": true}
	compared := namesIn(t, "pairs_test.go", func(f *ast.File, use func(string)) {
		ast.Inspect(f, func(n ast.Node) bool {
			if l, ok := n.(*ast.CompositeLit); ok && len(l.Elts) == 2 {
				if id, ok := l.Elts[1].(*ast.Ident); ok {
					use(id.Name)
				}
			}
			return true
		})
	})
	for _, file := range []string{"flags.go", "enums.go", "objects.go", "later.go", "errno.go", "nic.go"} {
		declared := namesIn(t, file, func(f *ast.File, use func(string)) {
			for _, d := range f.Decls {
				g, ok := d.(*ast.GenDecl)
				if !ok || g.Tok != token.CONST {
					continue
				}
				for _, s := range g.Specs {
					for _, id := range s.(*ast.ValueSpec).Names {
						use(id.Name)
					}
				}
			}
		})
		if len(declared) == 0 {
			t.Errorf("%s declares no constant", file)
		}
		for name := range declared {
			if !compared[name] && !own[name] {
				t.Errorf("%s: %s is not compared with C", file, name)
			}
		}
	}
}

func namesIn(t *testing.T, file string, walk func(*ast.File, func(string))) map[string]bool {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	set := map[string]bool{}
	walk(f, func(name string) { set[name] = true })
	return set
}

// TestFieldsExistInC compiles a C program that names the counterpart of every
// field of the structures, and thereby checks that Go has no field that C has
// not, and by count that it misses none.
func TestFieldsExistInC(t *testing.T) {
	for _, s := range []struct {
		c      string
		goType any
		rename map[string]string
		later  []string // fields that came after 1.17
		extra  int      // fields of C that Go expresses otherwise
	}{
		{"fi_tx_attr", TxAttr{}, map[string]string{"TClass": "tclass"}, nil, 0},
		{"fi_rx_attr", RxAttr{}, nil, nil, 0},
		{"fi_ep_attr", EPAttr{}, nil, nil, 0},
		{"fi_domain_attr", DomainAttr{}, map[string]string{"TClass": "tclass"},
			[]string{"MaxEPAuthKey", "MaxGroupID", "MaxCntrValue", "MaxErrCntrValue"}, 0},
		{"fi_fabric_attr", FabricAttr{}, nil, nil, 0},
		{"fi_info", Info{}, map[string]string{"SrcAddr": "src_addr", "DestAddr": "dest_addr",
			"Tx": "tx_attr", "Rx": "rx_attr", "EP": "ep_attr", "Domain": "domain_attr",
			"Fabric": "fabric_attr", "NIC": "nic"}, nil, 3}, // next, two lengths
		{"fi_av_attr", AVAttr{}, nil, nil, 0},
		{"fi_cq_attr", CQAttr{}, nil, nil, 0},
		{"fi_cntr_attr", CntrAttr{}, nil, nil, 0},
		{"fi_eq_attr", EQAttr{}, nil, nil, 0},
		{"fi_wait_attr", WaitAttr{}, nil, nil, 0},
		{"fi_poll_attr", PollAttr{}, nil, nil, 0},
		{"fi_mr_attr", MRAttr{}, map[string]string{"IOV": "mr_iov"}, []string{"DMABuf", "AV", "Src"}, 1}, // IOV's count
	} {
		t.Run(s.c, func(t *testing.T) {
			rt := reflect.TypeOf(s.goType)
			var p strings.Builder
			p.WriteString("#include <stdio.h>\n#include <sys/uio.h>\n#include <rdma/fi_domain.h>\n#include " +
				"<rdma/fi_eq.h>\n")
			fmt.Fprintf(&p, "static struct %s s;\nint main(void) {\nvolatile const void *p;\n", s.c)
			count := s.extra
			for i := range rt.NumField() {
				name := rt.Field(i).Name
				later := false
				for _, l := range s.later {
					later = later || l == name
				}
				if later {
					fmt.Fprintf(&p, "#if FI_MAJOR_VERSION >= 2\np = &s.%s;\n#endif\n", cField(name, s.rename))
					continue
				}
				fmt.Fprintf(&p, "p = &s.%s;\n", cField(name, s.rename))
				count++
			}
			fmt.Fprintf(&p, "printf(\"%d\");\nreturn 0;\n}\n", count)
			compile(t, p.String())
			if have, ok := cFieldCount(t, s.c); ok && have != count {
				t.Errorf("C has %d fields, Go covers %d", have, count)
			}
		})
	}
}

// cField returns a field's name in C.
func cField(name string, rename map[string]string) string {
	if c, ok := rename[name]; ok {
		return c
	}
	r := strings.NewReplacer("IOVLimit", "IovLimit", "RMAIOV", "RmaIov", "RAW", "Raw", "WAR", "War",
		"WAW", "Waw", "MRKey", "MrKey", "MRIOV", "MrIov", "MRMode", "MrMode", "MRCnt", "MrCnt",
		"AVType", "AvType", "CQData", "CqData", "CQCnt", "CqCnt", "EPCnt", "EpCnt", "EPPer", "EpPer",
		"EPTxCtx", "EpTxCtx", "EPRxCtx", "EpRxCtx", "EPSTx", "EpStx", "EPSRx", "EpSrx",
		"EPAuthKey", "EpAuthKey", "GroupID", "GroupId", "APIVersion", "ApiVersion", "RMA", "Rma", "IOV", "Iov")
	var out strings.Builder
	for i, c := range r.Replace(name) {
		if c >= 'A' && c <= 'Z' {
			if i > 0 {
				out.WriteByte('_')
			}
			c += 'a' - 'A'
		}
		out.WriteRune(c)
	}
	return out.String()
}

// cFieldCount counts the fields of a structure in the installed 1.x headers.
func cFieldCount(t *testing.T, name string) (int, bool) {
	t.Helper()
	gcc := exec.Command("gcc", "-E", "-P", "-x", "c", "-")
	gcc.Stdin = strings.NewReader("#include <sys/uio.h>\n#include <rdma/fi_domain.h>\n#include <rdma/fi_eq.h>\nint " +
		"major = FI_MAJOR_VERSION;\n")
	out, err := gcc.Output()
	if err != nil {
		t.Fatalf("preprocess: %v", err)
	}
	text := string(out)
	if !strings.Contains(text, "int major = 1;") {
		return 0, false
	}
	_, text, ok := strings.Cut(text, "struct "+name+" {")
	if !ok {
		t.Fatalf("struct %s is not in the headers", name)
	}
	count, depth := 0, 0
	for _, c := range text {
		switch c {
		case '{':
			depth++
		case '}':
			if depth == 0 {
				return count, true
			}
			depth--
		case ';':
			if depth == 0 {
				count++
			}
		}
	}
	t.Fatalf("struct %s has no end", name)
	return 0, false
}
