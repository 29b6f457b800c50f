package main

import (
	"bytes"
	"go/types"
	"path/filepath"
	"slices"
	"testing"

	"github.com/weft-fabric/weft/internal/generated"
)

const root = "../../.."

// TestCommitted holds the committed files to the Go declarations.
func TestCommitted(t *testing.T) {
	all, err := generate(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range generated.Stale(root, all) {
		t.Errorf("%s is not what package hot makes; run make generate", path)
	}
}

// TestEveryStructure finds structures of package hot that are laid out for C and that no header has.
func TestEveryStructure(t *testing.T) {
	s, err := load(filepath.Join(root, "internal/hot"), "internal/hot")
	if err != nil {
		t.Fatal(err)
	}
	made, err := generate(root)
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, name := range s.pkg.Scope().Names() {
		st, ok := s.pkg.Scope().Lookup(name).Type().Underlying().(*types.Struct)
		if !ok || st.NumFields() == 0 || st.Field(0).Name() != "_" ||
			st.Field(0).Type().String() != "structs.HostLayout" {
			continue
		}
		found++
		c, ok := s.cname[name]
		in := slices.ContainsFunc(made,
			func(o generated.File) bool { return bytes.Contains(o.Text, []byte("\n"+c+" {\n")) })
		if !ok || !in {
			t.Errorf("%s is in no header", name)
		}
	}
	if found < 30 {
		t.Errorf("%d structures", found)
	}
}

func TestSnake(t *testing.T) {
	for name, want := range map[string]string{
		"Seq": "seq", "RingStride": "ring_stride", "NRings": "nrings", "EPs": "eps", "OLen": "olen", "AMID": "am_id",
		"AMRTS":     "am_rts",
		"AMMsgData": "am_msg_data", "PIDNamespace": "pid_namespace", "Log2Slots": "log2_slots",
		"RingLog2": "ring_log2", "TxCQ": "tx_cq",
		"CQEError": "cqe_error", "SegAnyIPv4": "seg_any_ipv4", "EPCtxShift": "ep_ctx_shift",
		"AMCollRTS": "am_coll_rts", "ID": "id",
	} {
		if got := snake(name); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}
