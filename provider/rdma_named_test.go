package provider

import (
	"strings"
	"testing"

	"github.com/weft-fabric/weft/internal/config"
)

// A device that is named and not there is not passed over in silence.
func TestNamedDeviceMissing(t *testing.T) {
	for setting, set := range map[string]func(c *config.Config){
		`FI_WEFT_VERBS_DEVICE="nosuch"`: func(c *config.Config) { c.VerbsDevice = "nosuch" },
		`FI_WEFT_CXI_DEVICE="nosuch"`:   func(c *config.Config) { c.CXIDevice = "nosuch" },
		"":                              func(*config.Config) {},
	} {
		cfg := testConfig(t)
		set(cfg)
		warned := warnings(t)
		d := openTestDomainWith(t, testInfo(), cfg)
		if device, err := d.rdmaDevice(); err == nil {
			t.Fatalf("%s: %v", setting, device)
		}
		seen := warned()
		if (setting != "") != (len(seen) == 1) || setting != "" && !strings.Contains(seen[0], setting) {
			t.Errorf("%s: warnings %q", setting, seen)
		}
	}
}
