package main

import (
	"bytes"
	"os"
	"os/exec"
	"testing"

	"github.com/weft-fabric/weft/internal/config"
)

const docs = "../../../docs/"

// TestCommitted holds the committed page to the frame and the table.
func TestCommitted(t *testing.T) {
	frame, err := os.ReadFile(docs + "fi_weft.7.in")
	if err != nil {
		t.Fatal(err)
	}
	want, err := complete(frame)
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(docs + "fi_weft.7")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("docs/fi_weft.7 is not what the frame and the table make; run make man")
	}
	for _, v := range config.Table() {
		if !bytes.Contains(got, []byte(v.Env())) {
			t.Errorf("%s is missing", v.Env())
		}
	}
}

// TestRenders has groff read the page.
func TestRenders(t *testing.T) {
	if _, err := exec.LookPath("groff"); err != nil {
		t.Skip("no groff")
	}
	out, err := exec.Command("groff", "-man", "-Tutf8", "-ww", "-rLL=78n", docs+"fi_weft.7").CombinedOutput()
	if err != nil || bytes.Contains(out, []byte("warning")) || len(out) < 1000 {
		t.Errorf("groff: %v\n%s", err, out)
	}
}

func TestNoPlace(t *testing.T) {
	for _, frame := range []string{"", ".SH NAME\n", place + place} {
		if _, err := complete([]byte(frame)); err == nil {
			t.Errorf("%q is accepted", frame)
		}
	}
}
