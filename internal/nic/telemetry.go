package nic

import (
	"strings"

	"github.com/weft-fabric/weft/internal/log"
)

// Meter is how much counters of a NIC rise while it is open (FI_WEFT_CXI_TELEMETRY). Its holder serialises the
// calls.
type Meter struct {
	host   Host
	device string
	names  []string          // in the order in which they were asked for
	before map[string]uint64 // at Begin, of those that the kernel has
}

// Begin reads the counters of a comma-separated list; none are read for an empty one.
func (t *Meter) Begin(host Host, device, list string) {
	*t = Meter{host: host, device: device, before: map[string]uint64{}}
	for _, name := range strings.FieldsFunc(list, func(r rune) bool { return r == ',' }) {
		n, ok := host.TelemetryOf(device, name)
		if !ok {
			log.Warnf(log.Domain, "FI_WEFT_CXI_TELEMETRY: %s has no telemetry counter %q", device, name)
			continue
		}
		if _, twice := t.before[name]; !twice {
			t.names = append(t.names, name)
		}
		t.before[name] = n
	}
}

// End says in the log by how much each has risen.
func (t *Meter) End() {
	for _, name := range t.names {
		if n, ok := t.host.TelemetryOf(t.device, name); ok {
			log.Warnf(log.Domain, "telemetry of %s: %s has risen by %d", t.device, name, n-t.before[name])
		}
	}
	t.names = nil
}
