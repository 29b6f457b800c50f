package top

import "testing"

// TestDirectory: the directory is that of its variable, whatever others say; a wrong one is an error.
func TestDirectory(t *testing.T) {
	values := map[string]string{shmDir: "/somewhere", "FI_WEFT_TX_STRIPES": "x", "FI_WEFT_EAGER_SIZE": "1t"}
	lookup := func(name string) (string, bool) { v, ok := values[name]; return v, ok }
	if dir, err := directory(lookup); err != nil || dir != "/somewhere" {
		t.Errorf("%q, %v", dir, err)
	}
	values[shmDir] = "not/absolute"
	if dir, err := directory(lookup); err == nil {
		t.Errorf("%q", dir)
	}
	delete(values, shmDir)
	if dir, err := directory(lookup); err != nil || dir == "" {
		t.Errorf("without the variable: %q, %v", dir, err)
	}
	if dir, err := Directory("/elsewhere"); err != nil || dir != "/elsewhere" {
		t.Errorf("%q, %v", dir, err)
	}
}
