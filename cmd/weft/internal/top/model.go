package top

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weft-fabric/weft/cmd/weft/internal/text"
	"github.com/weft-fabric/weft/cmd/weft/internal/watch"
	"github.com/weft-fabric/weft/internal/stats"
)

// mode is what the screen shows.
type mode int

const (
	modeList mode = iota
	modeDetail
	modeThreads
	modeNICs
	modeHelp
)

// model is the state of the screen. It knows nothing of terminals: keys go in,
// lines come out.
type model struct {
	style    text.Style
	by       int
	reverse  bool
	filter   string
	typing   bool // the filter
	typed    string
	paused   bool
	mode     mode
	selected watch.Key
	pid      uint32 // of that process
	scroll   int    // first line of the details
	zeros    bool   // show counters that are 0 too
	interval time.Duration

	sample *watch.Sample
	list   []watch.Process // arranged
	note   string          // an error of the last read
	// threads asks a process what its threads are at.
	threads func(pid int) (string, error)
	// here reports whether a process has its id here, too, by which it can be asked.
	here   func(p *watch.Process) bool
	answer string // of threads, for the selected process
	nics   nics
}

// update takes a sample.
func (m *model) update(l *watch.Sample, err error) {
	m.note = ""
	if err != nil {
		m.note = err.Error()
		return
	}
	m.sample = l
	m.nics.read(l.Taken)
	m.arrange()
	if m.mode == modeThreads {
		m.askThreads()
	}
}

func (m *model) askThreads() {
	if i := m.index(); i >= 0 && !m.here(&m.list[i]) {
		m.answer = "it is of another pid namespace: weft top there can ask it"
		return
	}
	s, err := m.threads(int(m.pid))
	if err != nil {
		s = err.Error()
	}
	m.answer = s
}

// choose selects a process of the list.
func (m *model) choose(i int) { m.selected, m.pid = m.list[i].Key(), m.list[i].PID }

func (m *model) arrange() {
	if m.sample == nil {
		return
	}
	m.list = arrange(m.sample.Processes, m.by, m.reverse, m.filter)
	if m.index() < 0 && len(m.list) != 0 && m.mode != modeDetail && m.mode != modeThreads {
		m.choose(0)
	}
}

// index is the place of the selected process in the list, -1 if it is not there.
func (m *model) index() int {
	return slices.IndexFunc(m.list, func(p watch.Process) bool { return p.Key() == m.selected })
}

// key acts on a key and reports whether to quit.
func (m *model) key(k string) (quit bool) {
	if m.typing {
		m.typeKey(k)
		return false
	}
	switch k {
	case "q", "ctrl-c":
		return true
	case "esc", "left":
		if m.mode == modeList {
			m.filter = ""
		}
		m.mode = modeList
	case "h", "?":
		m.mode = modeHelp
	case "enter", "right":
		if m.index() >= 0 {
			m.mode, m.scroll = modeDetail, 0
		}
	case "d":
		if m.index() >= 0 {
			m.mode, m.scroll = modeThreads, 0
			m.askThreads()
		}
	case "n":
		m.mode, m.scroll = modeNICs, 0
	case "up", "k":
		m.move(-1)
	case "down", "j":
		m.move(1)
	case "pgup":
		m.move(-10)
	case "pgdn", " ":
		m.move(10)
	case "s":
		m.by = (m.by + 1) % len(columns)
	case "S":
		m.by = (m.by + len(columns) - 1) % len(columns)
	case "r":
		m.reverse = !m.reverse
	case "z":
		m.zeros = !m.zeros
	case "p":
		m.paused = !m.paused
	case "/":
		m.typing, m.typed = true, m.filter
	}
	m.arrange()
	return false
}

// typeKey edits the filter.
func (m *model) typeKey(k string) {
	switch {
	case k == "enter":
		m.typing, m.filter = false, m.typed
	case k == "esc", k == "ctrl-c":
		m.typing = false
	case k == "backspace":
		if n := len(m.typed); n > 0 {
			m.typed = m.typed[:n-1]
		}
	case len(k) == 1 && len(m.typed) < 60:
		m.typed += k
	}
	m.arrange()
}

// move moves the selection, or scrolls.
func (m *model) move(n int) {
	if m.mode != modeList {
		m.scroll = max(0, m.scroll+n)
		return
	}
	if len(m.list) == 0 {
		return
	}
	i := min(max(m.index()+n, 0), len(m.list)-1)
	m.choose(i)
}

// view returns the screen: exactly height lines of at most width columns.
func (m *model) view(width, height int) []string {
	var body []string
	switch m.mode {
	case modeHelp:
		body = m.helpLines()
	case modeDetail:
		body = m.detailLines()
	case modeThreads:
		head := m.style.Bold(fmt.Sprintf("threads of weft's in process %d", m.pid))
		body = append([]string{head}, strings.Split(strings.TrimRight(m.answer, "\n"), "\n")...)
	case modeNICs:
		body = m.nics.lines(m.style, m.zeros)
	default:
		body = m.listLines(height-3, width)
	}
	if m.mode != modeList {
		m.scroll = min(m.scroll, max(0, len(body)-(height-3)))
		body = body[m.scroll:]
	}
	lines := append([]string{m.headline()}, body...)
	if len(lines) > height-1 {
		lines = lines[:max(height-1, 1)]
	}
	for len(lines) < height-1 {
		lines = append(lines, "")
	}
	if height > 1 {
		lines = append(lines, m.footline())
	}
	for i := range lines {
		lines[i] = text.Clip(lines[i], width)
	}
	return lines
}

func (m *model) headline() string {
	if m.sample == nil {
		return m.style.Bold("weft top") + "  " + m.note
	}
	var tx, rx, txBytes, rxBytes float64
	for i := range m.sample.Processes {
		p := &m.sample.Processes[i]
		if p.Ended {
			continue
		}
		tx, rx = tx+p.Rate(watch.Sent...), rx+p.Rate(watch.Received...)
		txBytes, rxBytes = txBytes+p.Rate(watch.SentBytes...), rxBytes+p.Rate(watch.ReceivedBytes...)
	}
	plural := "es"
	if len(m.sample.Processes) == 1 {
		plural = ""
	}
	head := fmt.Sprintf("  %s  %d process%s  sent %s msg/s %s/s  received %s msg/s %s/s",
		m.sample.Taken.Format(time.TimeOnly), len(m.sample.Processes), plural, stats.FormatValue("", tx),
		stats.FormatValue(unitBytes, txBytes),
		stats.FormatValue("", rx), stats.FormatValue(unitBytes, rxBytes))
	switch {
	case m.note != "":
		head += "  " + m.style.Bad(m.note)
	case len(m.sample.Problems) != 0:
		head += "  " + m.style.Warn(fmt.Sprintf("%d cannot be read", len(m.sample.Problems)))
	}
	if m.paused {
		head += "  " + m.style.Warn("paused")
	}
	return m.style.Bold("weft top") + head
}

func (m *model) footline() string {
	if m.typing {
		return "filter: " + m.typed + "_"
	}
	foot := "q quit  h help  Enter counters  d threads  n NICs  s sort: " + columns[m.by].key + "  / filter"
	if m.mode != modeList {
		foot = "q quit  Esc back  arrows scroll  z counters that are 0"
	}
	if m.filter != "" {
		foot += ": " + m.filter
	}
	return m.style.Dim(foot)
}

// listLines shows the table, with the selected process among the given number
// of rows.
func (m *model) listLines(rows, width int) []string {
	lines := table(m.list, m.style, m.by, max(width-2, 1))
	if len(m.list) == 0 {
		none := "no process uses weft here"
		if m.filter != "" {
			none = "no process matches the filter"
		}
		return append(lines, none)
	}
	i := m.index()
	first := 0
	if i >= rows && rows > 0 {
		first = i - rows + 1
	}
	for n := range m.list {
		if n != i {
			lines[n+1] = "  " + lines[n+1]
		} else {
			lines[n+1] = "> " + lines[n+1]
		}
	}
	return append([]string{"  " + lines[0]}, lines[1+first:]...)
}

// detailLines shows everything about the selected process.
func (m *model) detailLines() []string {
	i := m.index()
	if i < 0 {
		return []string{fmt.Sprintf("process %d has ended", m.pid)}
	}
	p := &m.list[i]
	head := fmt.Sprintf("%d %s of %s, weft %s", p.PID, p.Command, p.User, p.Weft)
	switch {
	case p.Ended:
		head += "  " + m.style.Warn("ended; its last counters")
	case p.Idle:
		head += "  " + m.style.Dim("has no endpoint now; its last counters")
	}
	lines := []string{m.style.Bold(head)}
	if p.Strange != "" {
		return append(lines, "counters "+p.Strange+" cannot be read by this version")
	}
	t := &text.Table{Right: []bool{false, true, true}}
	for _, c := range stats.Table() {
		if c.Level() == stats.Peer {
			continue
		}
		v := p.Value(c.Name)
		if v == 0 && !m.zeros {
			continue
		}
		row := []string{c.Name, stats.FormatValue(c.Unit, float64(v)), "", m.style.Dim(c.Help)}
		if c.Kind == stats.Sum && p.Before != nil {
			row[2] = stats.FormatValue(c.Unit, p.Rate(c.Name)) + "/s"
		}
		if v == 0 {
			row[0], row[1], row[2] = m.style.Dim(row[0]), m.style.Dim(row[1]), m.style.Dim(row[2])
		}
		t.Row(row...)
	}
	lines = append(lines, t.Lines("")...)
	for _, e := range p.Endpoints {
		lines = append(lines, "", m.style.Bold("endpoint "+e.Name))
		lines = append(lines, peerLines(e.Peers, m.style)...)
	}
	return lines
}

// allPeers shows the peers of all endpoints.
func allPeers(list []watch.Process, s text.Style) (lines []string) {
	for i := range list {
		for _, e := range list[i].Endpoints {
			lines = append(lines, "", s.Bold(fmt.Sprintf("process %d, endpoint %s", list[i].PID, e.Name)))
			lines = append(lines, peerLines(e.Peers, s)...)
		}
	}
	return lines
}

// peerLines shows the peers of an endpoint, without the columns that are 0 for
// all of them.
func peerLines(peers []stats.PeerSnapshot, s text.Style) []string {
	if len(peers) == 0 {
		return []string{"  " + s.Dim("has sent to no peer")}
	}
	t := &text.Table{Right: []bool{false, false}}
	head := []string{"PEER", "STATE"}
	var shown []int
	for i, c := range stats.Table() {
		if c.Level() == stats.Peer &&
			slices.ContainsFunc(peers, func(p stats.PeerSnapshot) bool { return p.Values[i] != 0 }) {
			shown = append(shown, i)
			head = append(head, strings.ToUpper(strings.TrimPrefix(c.Name, "peer_")))
			t.Right = append(t.Right, true)
		}
	}
	t.Row(head...)
	for _, p := range peers {
		row := []string{p.Name, s.Good("up")}
		if !p.Up {
			row[1] = s.Bad("gone")
		}
		for _, i := range shown {
			row = append(row, stats.FormatValue(stats.Table()[i].Unit, float64(p.Values[i])))
		}
		t.Row(row...)
	}
	return t.Lines("  ")
}

func (m *model) helpLines() []string {
	t := &text.Table{}
	for _, k := range [][2]string{
		{"q", "quit"}, {"arrows, j, k", "select a process, or scroll"},
		{"Enter", "all counters and peers of the process"},
		{"d", "what weft's own threads in the process are at"}, {"n", "counters of the NICs of Slingshot"},
		{"Esc", "back; in the list: no filter"}, {"s, S", "sort by the next or previous column"},
		{"r", "sort the other way round"},
		{"/", "filter by id, user, command or address"}, {"p", "pause"}, {"z", "counters that are 0 too"},
		{"ctrl-Z", "suspend"},
	} {
		t.Row(k[0], k[1])
	}
	lines := append([]string{m.style.Bold("Keys")}, t.Lines("  ")...)
	return append(lines, "", m.style.Bold("Columns"),
		"  TX, RX    messages and bytes per second, over the last "+m.interval.String(),
		"  PEERS     peers that it has connected to",
		"  FLIGHT    transmits that wait for an acknowledgement",
		"  POSTED    receives that wait for a message; UNEXP messages that wait for a receive",
		"  RING, CQ  messages in the inbound ring, completions in the receive queue",
		"  EAGAIN    posts refused for now, per second; ERRORS operations that failed, ever",
		"  RTT       longest round-trip time of its peers, where the transport measures it")
}
