package top

import (
	"fmt"
	"os"
	"time"

	"github.com/weft-fabric/weft/cmd/weft/internal/text"
	"github.com/weft-fabric/weft/internal/nic"
	"github.com/weft-fabric/weft/internal/stats"
)

// nics are the NICs of Slingshot of a host, with their counters of two samples.
type nics struct {
	host  nic.Host
	list  []nicSample
	taken time.Time     // of the last sample
	since time.Duration // between the last two, 0: there was one
}

// nicSample is what was found at a NIC, and the one before.
type nicSample struct {
	nic.CXIDevice
	now, before map[string]uint64
}

// read reads the NICs, at a time that the caller knows.
func (n *nics) read(at time.Time) {
	before := map[string]map[string]uint64{}
	for _, d := range n.list {
		before[d.Name] = d.now
	}
	n.since = 0
	if !n.taken.IsZero() {
		n.since = at.Sub(n.taken)
	}
	n.taken, n.list = at, nil
	for _, d := range n.host.CXIDevices(os.Getenv) {
		n.list = append(n.list, nicSample{d, n.host.Telemetry(d.Name), before[d.Name]})
	}
}

// lines shows the NICs; counters that are 0 only if asked.
func (n *nics) lines(s text.Style, zeros bool) []string {
	if len(n.list) == 0 {
		return []string{"no NIC of Slingshot on this host"}
	}
	var lines []string
	for _, d := range n.list {
		head := fmt.Sprintf("%s  NID %#x  link %s  %d Mbit/s", d.Name, d.NID, d.Link, d.Mbps)
		if d.Problem != "" {
			head += "  " + s.Warn(d.Problem)
		}
		lines = append(lines, s.Bold(head))
		t := &text.Table{Right: []bool{false, true, true}}
		for _, c := range nic.CXITelemetry {
			v, there := d.now[c.Name]
			if !there || v == 0 && !zeros {
				continue
			}
			row := []string{c.Name, stats.FormatValue("", float64(v)), "", s.Dim(c.Help)}
			if was, known := d.before[c.Name]; known && n.since > 0 && v >= was {
				row[2] = stats.FormatValue("", float64(v-was)/n.since.Seconds()) + "/s"
			}
			t.Row(row...)
		}
		switch rows := t.Lines("  "); {
		case len(d.now) == 0:
			lines = append(lines, "  "+s.Dim("the kernel shows no telemetry of it"))
		case len(rows) == 0:
			lines = append(lines, "  "+s.Dim("all counters are 0"))
		default:
			lines = append(lines, rows...)
		}
		lines = append(lines, "")
	}
	return lines
}
