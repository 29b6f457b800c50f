package top

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/weft-fabric/weft/cmd/weft/internal/text"
	"github.com/weft-fabric/weft/cmd/weft/internal/watch"
	"github.com/weft-fabric/weft/internal/stats"
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
func rate(key, title string, names []string) column {
	f := func(p *watch.Process) float64 { return p.Rate(names...) }
	return column{key, title, true, f, func(p *watch.Process) string { return stats.FormatValue("", f(p)) }}
}

// level makes a column of a sum of gauges.
func level(key, title string, names ...string) column {
	f := func(p *watch.Process) float64 { return p.Sum(names...) }
	return column{key, title, true, f, func(p *watch.Process) string { return stats.FormatValue("", f(p)) }}
}

// columns are in the order of the screen.
var columns = []column{
	{"pid", "PID", true, func(p *watch.Process) float64 { return float64(p.PID) },
		func(p *watch.Process) string { return strconv.FormatUint(uint64(p.PID), 10) }},
	{"user", "USER", false, nil, func(p *watch.Process) string { return p.User }},
	{"command", "COMMAND", false, nil, func(p *watch.Process) string { return p.Command }},
	rate("tx", "TX msg/s", watch.Sent),
	rate("txbytes", "TX B/s", watch.SentBytes),
	rate("rx", "RX msg/s", watch.Received),
	rate("rxbytes", "RX B/s", watch.ReceivedBytes),
	rate("rma", "RMA op/s", watch.OneSided),
	rate("rmabytes", "RMA B/s", watch.OneSidedBytes),
	rate("list", "LIST el/s", watch.Listed),
	rate("notes", "NOTES/s", watch.Notes),
	rate("chunks", "CHUNKS/s", []string{"exchange_chunks"}),
	rate("deferred", "DEFER/s", []string{"exchange_deferrals"}),
	rate("forced", "FORCED/s", []string{"exchange_forced"}),
	rate("credits", "CREDITS/s", []string{"exchange_credits"}),
	level("partners", "PARTNERS", "exchange_peers"),
	rate("relayed", "RELAYED/s", []string{"exchange_relayed"}),
	level("peers", "PEERS", "peers"),
	level("flight", "FLIGHT", "tx_in_flight"),
	level("posted", "POSTED", "posted", "posted_ring"),
	level("unexpected", "UNEXP", "unexpected"),
	level("ring", "RING", "ring_depth"),
	level("cq", "CQ", "rx_cq_depth"),
	rate("dropped", "DROPPED/s", []string{"matched_dropped"}),
	rate("stops", "STOPS/s", watch.Stopped),
	rate("soft", "SOFT/s", []string{"matched_software"}),
	rate("eagain", "EAGAIN/s", watch.Again),
	level("errors", "ERRORS", watch.Errors...),
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
		var order int
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

// firstColumns are always shown: which process, and what is sent and received.
const firstColumns = 7

// table lays the processes out. Where that is wider than width, unless that is 0,
// columns go that are 0 for every process, but not the one that is sorted by.
func table(list []watch.Process, s text.Style, by, width int) []string {
	shown := make([]int, len(columns))
	for i := range shown {
		shown[i] = i
	}
	for {
		lines := layout(list, s, by, shown)
		idle := func(i int) bool {
			return i >= firstColumns && i != by &&
				!slices.ContainsFunc(list, func(p watch.Process) bool { return columns[i].number(&p) != 0 })
		}
		n := len(shown) - 1
		for n >= 0 && !idle(shown[n]) {
			n--
		}
		if width == 0 || text.Width(lines[0]) <= width || n < 0 {
			return lines
		}
		shown = slices.Delete(shown, n, n+1)
	}
}

// layout lays out the chosen columns.
func layout(list []watch.Process, s text.Style, by int, shown []int) []string {
	t := &text.Table{}
	var head []string
	for _, i := range shown {
		t.Right = append(t.Right, columns[i].right)
		title := columns[i].title
		if i == by {
			title = s.Bold(title)
		}
		head = append(head, title)
	}
	t.Row(head...)
	for n := range list {
		all := cells(&list[n], s)
		var row []string
		for _, i := range shown {
			row = append(row, all[i])
		}
		t.Row(row...)
	}
	return t.Lines("")
}

func cells(p *watch.Process, s text.Style) []string {
	row := make([]string, len(columns))
	for i, c := range columns {
		v := c.text(p)
		switch {
		case (p.Ended || p.Idle) && i > 2:
			v = s.Dim("-")
			switch {
			case i == 3 && p.Ended:
				v = s.Warn("ended")
			case i == 3:
				v = s.Dim("no endpoint")
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
