package backends

import (
	"errors"
	"strings"
	"testing"

	"github.com/weft-fabric/weft/internal/config"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/internal/log/logtest"
	"github.com/weft-fabric/weft/internal/order"
)

// TestNamedDeviceMissing: a device that is named and not there is not passed over in silence, and is said once.
func TestNamedDeviceMissing(t *testing.T) {
	for setting, set := range map[string]func(c *config.Config){
		`FI_WEFT_VERBS_DEVICE="nosuch"`:       func(c *config.Config) { c.VerbsDevice = "nosuch" },
		`FI_WEFT_CXI_DEVICE="nosuch"`:         func(c *config.Config) { c.CXIDevice = "nosuch" },
		"FI_WEFT_VERBS or FI_WEFT_CXI is yes": func(c *config.Config) { c.VerbsDevice, c.Verbs = "nosuch", config.Yes },
		"":                                    func(*config.Config) {},
	} {
		c := *config.Default()
		set(&c)
		warned := logtest.Capture(t, log.Warn)
		d := NewDevice(&c, "lo", "", false, order.Word{})
		for range 2 {
			if device, err := d.Domain(); err == nil {
				t.Fatalf("%s: %v", setting, device)
			}
		}
		seen := warned()
		if (setting != "") != (len(seen) == 1) || setting != "" && !strings.Contains(seen[0], setting) {
			t.Errorf("%s: warnings %q", setting, seen)
		}
		if d.Cache(nil) != nil {
			t.Errorf("%s: a cache of no device", setting)
		}
		d.Close()
	}
}

// TestNoDevice: where no device is wanted none is opened, and the log has nothing of it.
func TestNoDevice(t *testing.T) {
	c := *config.Default()
	c.Verbs, c.CXI, c.VerbsDevice = config.No, config.No, "nosuch"
	warned := logtest.Capture(t, log.Warn)
	d := NewDevice(&c, "lo", "", false, order.Word{})
	device, err := d.Domain()
	if seen := warned(); device != nil || !errors.Is(err, errNoRDMA) || len(seen) != 0 {
		t.Errorf("%v, %v, warnings %q", device, err, seen)
	}
}
