package doctor

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weft-fabric/weft/internal/config"
)

// TestSlingshot takes one thing after the other away from a made-up host on which a program can use a NIC of Slingshot.
func TestSlingshot(t *testing.T) {
	for _, c := range []struct {
		name, without, device string
		env                   map[string]string
		verdict               Verdict
		want                  string
	}{
		{"usable", "", "", nil, Good, "cxi0: NID 0x1a, link up, 200000 Mbit/s; service: "},
		{"launched", "", "", map[string]string{"SLINGSHOT_VNIS": "7", "SLINGSHOT_DEVICES": "cxi0",
			"SLINGSHOT_SVC_IDS": "3"}, Good, "service 3, VNI 7: "},
		{"launched badly", "", "", map[string]string{"SLINGSHOT_VNIS": "x", "SLINGSHOT_DEVICES": "cxi0",
			"SLINGSHOT_SVC_IDS": "3"}, Warn, "SLINGSHOT_VNIS=x"},
		{"no library", "lib", "", nil, Warn, "libcxi.so.1 is not installed"},
		{"no file", "dev/cxi0", "", nil, Warn, "dev/cxi0"},
		{"no link", "class/cxi/cxi0/device/properties/link", "", nil, Warn, "the link is down"},
		{"none", "class/cxi", "", nil, Note, "no NIC of Slingshot"},
		{"another", "", "cxi7", nil, Note, "no NIC of Slingshot"},
	} {
		t.Run(c.name, func(t *testing.T) {
			root := t.TempDir()
			for path, content := range map[string]string{
				"class/cxi/cxi0/device/properties/nid": "0x1a", "class/cxi/cxi0/device/properties/link": "1",
				"class/cxi/cxi0/device/properties/speed": "200000", "dev/cxi0": "", "lib/libcxi.so.1": "",
			} {
				file := filepath.Join(root, path)
				if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if c.without != "" {
				if err := os.RemoveAll(filepath.Join(root, c.without)); err != nil {
					t.Fatal(err)
				}
			}
			t.Setenv("LD_LIBRARY_PATH", filepath.Join(root, "lib"))
			h := &host{cfg: config.Default(), sys: root, dev: filepath.Join(root, "dev"),
				lookup: func(n string) (string, bool) { v, ok := c.env[n]; return v, ok }}
			h.cfg.CXIDevice = c.device
			list := checkSlingshot(t.Context(), h)
			if len(list) != 1 || list[0].Verdict != c.verdict || !strings.Contains(list[0].What, c.want) {
				t.Errorf("%+v, want %s: %s", list, c.verdict, c.want)
			}
		})
	}
}
