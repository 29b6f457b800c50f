package top

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/weft-fabric/weft/internal/stats"
	"github.com/weft-fabric/weft/internal/tool/text"
	"github.com/weft-fabric/weft/internal/tool/watch"
)

// column is one column of the table of processes.
type column struct {
	key   string // for --sort
	title string
	right bool
	// number is what the column sorts by; nil for text.
	number func(p *watch.Process) float64
	text   func(p *watch.Process) string
}

const unitBytes = "bytes"

// rate makes a column of a sum's growth per second.
func rate(key, title, unit string, names []string) column {
	f := func(p *watch.Process) float64 { return p.Rate(names...) }
	return column{key, title, true, f, func(p *watch.Process) string { return stats.FormatValue(unit, f(p)) }}
}

// level makes a column of a sum of gauges.
func level(key, title, unit string, names ...string) column {
	f := func(p *watch.Process) float64 { return p.Sum(names...) }
	return column{key, title, true, f, func(p *watch.Process) string { return stats.FormatValue(unit, f(p)) }}
}

// columns are in the order of the screen.
var columns = []column{
	{"pid", "PID", true, func(p *watch.Process) float64 { return float64(p.PID) },
		func(p *watch.Process) string { return strconv.FormatUint(uint64(p.PID), 10) }},
	{"user", "USER", false, nil, func(p *watch.Process) string { return p.User }},
	{"command", "COMMAND", false, nil, func(p *watch.Process) string { return p.Command }},
	rate("tx", "TX msg/s", "", watch.Sent),
	rate("txbytes", "TX B/s", unitBytes, watch.SentBytes),
	rate("rx", "RX msg/s", "", watch.Received),
	rate("rxbytes", "RX B/s", unitBytes, watch.ReceivedBytes),
	rate("rma", "RMA op/s", "", watch.OneSided),
	rate("rmabytes", "RMA B/s", unitBytes, watch.OneSidedBytes),
	level("peers", "PEERS", "", "peers"),
	level("flight", "FLIGHT", "", "tx_in_flight"),
	level("posted", "POSTED", "", "posted", "posted_ring"),
	level("unexpected", "UNEXP", "", "unexpected"),
	level("ring", "RING", "", "ring_depth"),
	level("cq", "CQ", "", "rx_cq_depth"),
	rate("eagain", "EAGAIN/s", "", watch.Again),
	level("errors", "ERRORS", "", watch.Errors...),
	{"rtt", "RTT", true, (*watch.Process).RTT,
		func(p *watch.Process) string { return stats.FormatValue("ns", p.RTT()) }},
}

// columnOf returns the column of a key.
func columnOf(key string) (int, bool) {
	i := slices.IndexFunc(columns, func(c column) bool { return c.key == key })
	return i, i >= 0
}

func keys() string {
	var list []string
	for _, c := range columns {
		list = append(list, c.key)
	}
	return strings.Join(list, ", ")
}

// arrange filters and sorts: numbers from the highest, text and ids from the
// lowest, or the other way round with reverse.
func arrange(list []watch.Process, by int, reverse bool, filter string) []watch.Process {
	var out []watch.Process
	for _, p := range list {
		if p.Match(filter) {
			out = append(out, p)
		}
	}
	c := columns[by]
	slices.SortStableFunc(out, func(a, b watch.Process) int {
		order := 0
		switch {
		case c.number == nil:
			order = cmp.Compare(c.text(&a), c.text(&b))
		case c.key == "pid":
			order = cmp.Compare(a.PID, b.PID)
		default:
			order = cmp.Compare(c.number(&b), c.number(&a))
		}
		if reverse {
			order = -order
		}
		if order == 0 {
			order = cmp.Compare(a.PID, b.PID)
		}
		return order
	})
	return out
}

// table lays the processes out.
func table(list []watch.Process, s text.Style, by int) []string {
	t := &text.Table{}
	head := make([]string, len(columns))
	for i, c := range columns {
		t.Right = append(t.Right, c.right)
		head[i] = c.title
		if i == by {
			head[i] = s.Bold(c.title)
		}
	}
	t.Row(head...)
	for i := range list {
		t.Row(cells(&list[i], s)...)
	}
	return t.Lines("")
}

func cells(p *watch.Process, s text.Style) []string {
	row := make([]string, len(columns))
	for i, c := range columns {
		v := c.text(p)
		switch {
		case p.Ended && i > 2:
			v = s.Dim("-")
			if i == 3 {
				v = s.Warn("ended")
			}
		case p.Strange != "" && i > 2:
			v = s.Dim("?")
		case c.key == "errors" && c.number(p) > 0:
			v = s.Bad(v)
		case c.number != nil && c.number(p) == 0 && c.key != "pid":
			v = s.Dim(v)
		}
		row[i] = v
	}
	return row
}
