package main

import (
	"bytes"
	"os"
	"os/exec"
	"testing"

	"github.com/weft-fabric/weft/internal/stats"
)

const docs = "../../../../docs/"

// TestCommitted holds the committed pages to the commands and the table.
func TestCommitted(t *testing.T) {
	for name, file := range map[string]string{"man": "weft.1", "counters": "counters.md"} {
		got, err := os.ReadFile(docs + file)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, pages[name]()) {
			t.Errorf("docs/%s is not what the commands and the table make; run make man", file)
		}
		for _, c := range stats.Table() {
			if !bytes.Contains(bytes.ReplaceAll(got, []byte(`\-`), []byte("-")), []byte(c.Name)) {
				t.Errorf("docs/%s lacks %s", file, c.Name)
			}
		}
	}
}

// TestRenders has groff read the page.
func TestRenders(t *testing.T) {
	if _, err := exec.LookPath("groff"); err != nil {
		t.Skip("no groff")
	}
	var errs bytes.Buffer
	cmd := exec.Command("groff", "-man", "-Tutf8", "-ww", "-rLL=78n", docs+"weft.1")
	cmd.Stderr = &errs
	if out, err := cmd.Output(); err != nil || errs.Len() != 0 || len(out) < 3000 {
		t.Errorf("groff: %v, %d bytes\n%s", err, len(out), &errs)
	}
}

func TestRoff(t *testing.T) {
	if got := roff(".a-b\\\n'c"); got != "\\&.a\\-b\\e\n\\&'c" {
		t.Errorf("%q", got)
	}
}
