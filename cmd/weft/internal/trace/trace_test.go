package trace

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/rlimit"
	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/cmd/weft/internal/text"
)

func TestBuckets(t *testing.T) {
	for b := lowestBucket; b < histogram; b++ {
		if got := bucketOf(lowest(b)); got != b {
			t.Errorf("%d ns is in bucket %d, not %d", lowest(b), got, b)
		}
		if got := bucketOf(lowest(b+1) - 1); got != b {
			t.Errorf("%d ns is in bucket %d, not %d", lowest(b+1)-1, got, b)
		}
	}
	if bucketOf(0) != lowestBucket || bucketOf(math.MaxUint64) != histogram-1 {
		t.Errorf("the ends are in %d and %d", bucketOf(0), bucketOf(math.MaxUint64))
	}
}

const lowestBucket = subBits << subBits

func TestQuantile(t *testing.T) {
	var c counts
	if c.quantile(0.5) != 0 {
		t.Error("a quantile of nothing")
	}
	for range 990 {
		c.buckets[bucketOf(100)]++
	}
	for range 10 {
		c.buckets[bucketOf(1e6)]++
	}
	for q, ns := range map[float64]uint64{0.5: 100, 0.99: 100, 0.999: 1e6, 1: 1e6, 0: 100} {
		if got := c.quantile(q); bucketOf(got-1) != bucketOf(ns) {
			t.Errorf("quantile %g is %d", q, got)
		}
	}
}

// The kernel's buckets are bucketOf's.
func TestObserve(t *testing.T) {
	_ = rlimit.RemoveMemlock() // loading says what is wrong
	var maps [3]*ebpf.Map
	for i, entries := range []uint32{2 * histogram, 2, lostKinds} {
		m, err := ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.Array, KeySize: 4, ValueSize: 8, MaxEntries: entries,
			Flags: unix.BPF_F_MMAPABLE})
		if errors.Is(err, os.ErrPermission) || errors.Is(err, ebpf.ErrNotSupported) {
			t.Skipf("the kernel refuses eBPF: %v", err)
		}
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		maps[i] = m
	}
	sum := uint64(0)
	var want [2 * histogram]uint64
	for _, ns := range []uint64{0, 3, 4, 5, 7, 8, 100, 1000, 12345, 1<<32 - 1, 1 << 32, 1<<32 + 1<<30, 1<<41 - 1,
		1 << 41, 1 << 62} {
		a := &assembler{kernel: kernel{buckets: maps[0].FD(), sums: maps[1].FD(), lost: maps[2].FD(), threads: -1}}
		a.add(asm.Mov.Imm(asm.R1, 1), asm.StoreMem(asm.RFP, atSlot, asm.R1, asm.DWord),
			asm.LoadImm(asm.R6, int64(ns), asm.DWord))
		a.observe()
		a.exit()
		prog, err := ebpf.NewProgram(&ebpf.ProgramSpec{Type: ebpf.SocketFilter, Instructions: a.ins, License: "GPL"})
		if err != nil {
			t.Fatalf("%d ns: %v", ns, err)
		}
		if _, _, err := prog.Test(make([]byte, 14)); err != nil {
			t.Fatalf("%d ns: %v", ns, err)
		}
		prog.Close()
		want[histogram+bucketOf(ns)]++
		sum += ns
	}
	got, err := words(maps[0], 2*histogram)
	if err != nil {
		t.Fatal(err)
	}
	for i := range got {
		if got[i] != want[i] {
			t.Errorf("bucket %d has %d, not %d", i, got[i], want[i])
		}
	}
	if sums, err := words(maps[1], 2); err != nil || sums[1] != sum {
		t.Errorf("sum %v, %v; want %d", sums, err, sum)
	}
}

func TestMissing(t *testing.T) {
	all := uint64(1<<unix.CAP_BPF | 1<<unix.CAP_PERFMON)
	root := t.TempDir()
	write := func(name, content string) {
		t.Helper()
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	expect := func(what string, caps uint64, parts ...string) {
		t.Helper()
		err := missing(root, caps)
		if (err == nil) != (len(parts) == 0) {
			t.Errorf("%s: %v", what, err)
			return
		}
		for _, p := range parts {
			if !strings.Contains(err.Error(), p) {
				t.Errorf("%s: %v has no %q", what, err, p)
			}
		}
	}
	expect("no uprobes", all, "CONFIG_UPROBE_EVENTS")
	write("sys/bus/event_source/devices/uprobe/type", "8\n")
	expect("all is there", all)
	expect("root", 1<<unix.CAP_SYS_ADMIN)
	expect("no capabilities", 0, "CAP_BPF is missing", "CAP_PERFMON is missing")
	expect("one capability", 1<<unix.CAP_BPF, "CAP_PERFMON is missing")
	write("sys/kernel/security/lockdown", "none [integrity] confidentiality\n")
	expect("integrity", all)
	write("sys/kernel/security/lockdown", "none integrity [confidentiality]\n")
	expect("confidentiality", all, "locked down")
}

func TestExplain(t *testing.T) {
	if err := explain(unix.EPERM); !errors.Is(err, unix.EPERM) ||
		!strings.Contains(err.Error(), "perf_event_paranoid") {
		t.Errorf("got %v", err)
	}
	if err := explain(unix.EINVAL); !errors.Is(err, unix.EINVAL) {
		t.Errorf("got %v", err)
	}
}

func TestChoose(t *testing.T) {
	all := []point{{name: "fi_send"}, {name: "fi_recv"}}
	if got, err := choose(all, []string{"fi_recv"}); err != nil || len(got) != 1 || got[0].name != "fi_recv" {
		t.Errorf("got %v, %v", got, err)
	}
	if got, err := choose(all, nil); err != nil || len(got) != 2 {
		t.Errorf("got %v, %v", got, err)
	}
	if _, err := choose(all, []string{"fi_sned"}); err == nil || !strings.Contains(err.Error(), "fi_send, fi_recv") {
		t.Errorf("got %v", err)
	}
}

func TestReport(t *testing.T) {
	var c counts
	c.buckets[bucketOf(1500)], c.buckets[bucketOf(9000)], c.sum = 3, 1, 13500
	l := &sample{pid: 7, command: "a b;c", names: []string{"fi_send"}, taken: 1e9,
		calls: []line{{"fi_send", "ok", c}}, ops: []line{{"send", "", c}},
		threads: []threadTime{{tid: 8, name: "w 1", slot: resultAgain, ns: 5}}}
	l.lost[failed] = 2
	out := strings.Join(l.text(text.Style{}, true), "\n")
	for _, part := range []string{"process 7", "3.38 us", "post to completion", "fi_send ok\n", "2 operations failed",
		"1.02 us to 2.05 us  ######################################## 3"} {
		if !strings.Contains(out, part) {
			t.Errorf("no %q in\n%s", part, out)
		}
	}
	if got := l.folded(); len(got) != 1 || got[0] != "a_b,c;w_1-8;fi_send;again 5" {
		t.Errorf("folded: %q", got)
	}
	if j := l.json(); j.Calls[0].Count != 4 || len(j.Calls[0].Histogram) != 2 || len(j.Notes) != 1 {
		t.Errorf("JSON: %+v", j)
	}
}

// A point as cabi/trace.h has it.
func encodePoint(name, operation string, table uint64, member uint16, r role, arg uint8) []byte {
	b := make([]byte, pointBytes)
	copy(b, name)
	copy(b[24:], operation)
	binary.LittleEndian.PutUint64(b[40:], table)
	binary.LittleEndian.PutUint16(b[48:], member)
	b[50], b[51] = byte(r), arg
	return b
}

// encodeTable is a table at address 0, and a function pointer behind it.
func encodeTable(points ...[]byte) []byte {
	b := make([]byte, tableHead)
	binary.LittleEndian.PutUint32(b, tableVersion)
	binary.LittleEndian.PutUint32(b[4:], uint32(len(points)))
	binary.LittleEndian.PutUint32(b[8:], pointBytes)
	binary.LittleEndian.PutUint16(b[12:], 40)
	b = append(b, bytes.Join(points, nil)...)
	return append(b, make([]byte, 64)...) // zeros: pointers to address 0, which is code here
}

// imageOf is a file whose bytes are all at their offset, code and data.
func imageOf(b []byte) *image {
	return &image{&elf.File{Progs: []*elf.Prog{{
		ProgHeader: elf.ProgHeader{Type: elf.PT_LOAD, Flags: elf.PF_X, Filesz: uint64(len(b))},
		ReaderAt:   bytes.NewReader(b),
	}}}, nil}
}

func TestTable(t *testing.T) {
	end := uint64(tableHead + 2*pointBytes)
	b := encodeTable(encodePoint("fi_send", "send", end, 8, post, 6), encodePoint("fi_cq_read", "", end, 16, read, 0))
	binary.LittleEndian.PutUint64(b[end+16:], 32)
	lib, err := imageOf(b).table(0)
	if err != nil {
		t.Fatal(err)
	}
	if len(lib.points) != 2 || lib.cqHot != 40 || lib.points[0].contextArg != 6 || lib.points[1].offset != 32 {
		t.Errorf("got %+v", lib)
	}
	for name, p := range map[string][]byte{
		"a name of nothing":       encodePoint("", "send", 0, 0, post, 6),
		"a name that is no text":  encodePoint("fi\x1b[", "send", 0, 0, post, 6),
		"an unknown role":         encodePoint("fi_send", "", 0, 0, 9, 0),
		"a post of nothing":       encodePoint("fi_send", "", 0, 0, post, 6),
		"the 200th argument":      encodePoint("fi_send", "send", 0, 0, post, 200),
		"a table beyond the file": encodePoint("fi_send", "send", 1<<40, 0, post, 6),
	} {
		if _, err := imageOf(encodeTable(p)).table(0); err == nil {
			t.Errorf("%s was taken", name)
		}
	}
}

func FuzzTable(f *testing.F) {
	f.Add(encodeTable(encodePoint("fi_send", "send", 64, 8, post, 6)))
	f.Add(encodeTable())
	f.Fuzz(func(t *testing.T, b []byte) {
		lib, err := imageOf(b).table(0)
		if err != nil {
			return
		}
		for _, p := range lib.points {
			if p.offset >= uint64(len(b)) || p.name == "" || int(p.contextArg) > 32 {
				t.Errorf("got %+v", p)
			}
		}
	})
}
