// Package watch follows the pages of counters of the processes that use weft:
// what "weft top" shows and "weft export" serves.
package watch

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os/user"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weft-fabric/weft/internal/proc"
	"github.com/weft-fabric/weft/internal/stats"
)

// Watcher reads the pages in one directory, time and again. It belongs to one
// goroutine.
type Watcher struct {
	Dir string
	// All includes the processes of other users. Only root can read their pages.
	All bool

	host  proc.Host
	last  map[Key]*stats.Snapshot
	users map[uint32]string
}

// Key names a process for good, also where another pid namespace has its id.
type Key struct {
	pid   uint32
	start uint64
	ns    uint64
}

// Key is the process's.
func (p *Process) Key() Key { return keyOf(p.Snapshot) }

func keyOf(s *stats.Snapshot) Key { return Key{s.PID, s.Start, s.PIDNS} }

// Process is a process as it is now, and what it did since the last sample.
type Process struct {
	*stats.Snapshot
	User string
	// Ended says that the process is gone and these are its last counters.
	Ended bool
	// Idle says that the process lives and has no page of counters now, as one without an endpoint; these are its
	// last counters.
	Idle bool
	// Strange says why the counters are not known, empty where they are.
	Strange string
	// Before is the process in the last sample, nil in the first.
	Before *stats.Snapshot
}

// Here reports whether this program's pid namespace has the process under its id.
func (w *Watcher) Here(p *Process) bool { return p.PIDNS == w.host.PIDNS && !w.host.Blind }

// Sample is what one read of all pages gives.
type Sample struct {
	Taken     time.Time
	Processes []Process
	// Problems are pages that could not be read.
	Problems []string
}

// New returns a watcher of the pages in dir.
func New(dir string, all bool) (*Watcher, error) {
	host, err := proc.This()
	if err != nil {
		return nil, fmt.Errorf("this host: %w", err)
	}
	return &Watcher{Dir: dir, All: all, host: host, last: map[Key]*stats.Snapshot{}, users: map[uint32]string{}}, nil
}

// Read reads every page. A process that has ended since the last sample is returned once more, with its last counters,
// one that lives and has no page as long as it lives. The error says that the directory cannot be read.
func (w *Watcher) Read() (*Sample, error) {
	paths, err := stats.List(w.Dir, w.host.User, w.All)
	if err != nil {
		return nil, err
	}
	l := &Sample{Taken: time.Now()}
	seen := map[Key]*stats.Snapshot{}
	for _, path := range paths {
		s, err := stats.Read(path)
		switch {
		case err == nil, errors.Is(err, stats.ErrVersion):
		case errors.Is(err, fs.ErrNotExist):
			continue
		default:
			l.Problems = append(l.Problems, err.Error())
			continue
		}
		k := keyOf(s)
		if !s.Alive(&w.host) {
			if w.last[k] == nil {
				continue // it had ended before the first sample; weft doctor reports it
			}
			l.Processes = append(l.Processes, Process{Snapshot: s, User: w.user(s.UID), Ended: true, Before: w.last[k]})
			delete(w.last, k)
			continue
		}
		p := Process{Snapshot: s, User: w.user(s.UID), Before: w.last[k]}
		if err != nil {
			p.Strange = "of weft " + s.Weft
		}
		seen[k] = s
		l.Processes = append(l.Processes, p)
	}
	for k, s := range w.last {
		if seen[k] != nil {
			continue
		}
		p := Process{Snapshot: s, User: w.user(s.UID)}
		if p.Idle = w.Here(&p) && s.Alive(&w.host); p.Idle {
			seen[k] = s
		} else {
			p.Ended = true
		}
		l.Processes = append(l.Processes, p)
	}
	w.last = seen
	slices.SortFunc(l.Processes, func(a, b Process) int { return cmp.Compare(a.PID, b.PID) })
	return l, nil
}

// user returns a user's name, or number.
func (w *Watcher) user(uid uint32) string {
	if name, ok := w.users[uid]; ok {
		return name
	}
	name := strconv.FormatUint(uint64(uid), 10)
	if u, err := user.LookupId(name); err == nil {
		name = u.Username
	}
	w.users[uid] = name
	return name
}

// Seconds is the time between the two samples, 0 if there was only one.
func (p *Process) Seconds() float64 {
	if p.Before == nil {
		return 0
	}
	return p.Taken.Sub(p.Before.Taken).Seconds()
}

// Rate is the growth of a sum of counters in units per second, 0 at the first
// sample. Counters of endpoints that were closed meanwhile make it lower, never
// negative.
func (p *Process) Rate(names ...string) float64 {
	dt := p.Seconds()
	if dt <= 0 || p.Strange != "" {
		return 0
	}
	var now, before uint64
	for _, n := range names {
		now += p.Value(n)
		before += p.Before.Value(n)
	}
	if now < before {
		return 0
	}
	return float64(now-before) / dt
}

// Sum is the sum of counters.
func (p *Process) Sum(names ...string) float64 {
	var n uint64
	for _, name := range names {
		n += p.Value(name)
	}
	return float64(n)
}

// RTT is the longest smoothed round-trip time of the process's peers, ns, 0
// where none is measured.
func (p *Process) RTT() float64 {
	longest := uint64(0)
	for i, c := range stats.Table() {
		if c.Name != "peer_rtt" {
			continue
		}
		for _, e := range p.Endpoints {
			for _, peer := range e.Peers {
				longest = max(longest, peer.Values[i])
			}
		}
	}
	return float64(longest)
}

// Match reports whether a process has a filter's text in its id, user, command or
// an endpoint's name. An empty filter matches all.
func (p *Process) Match(filter string) bool {
	if filter == "" || strconv.FormatUint(uint64(p.PID), 10) == filter {
		return true
	}
	filter = strings.ToLower(filter)
	for _, t := range []string{p.User, p.Command} {
		if strings.Contains(strings.ToLower(t), filter) {
			return true
		}
	}
	return slices.ContainsFunc(p.Endpoints, func(e stats.EndpointSnapshot) bool {
		return strings.Contains(e.Name,
			filter)
	})
}

// Groups of counters that belong together, by name.
var (
	Sent      = named("tx_inline", "tx_bounce", "tx_eager", "tx_sync", "tx_rendezvous", "matched_sent")
	SentBytes = named("tx_inline_bytes", "tx_bounce_bytes", "tx_eager_bytes", "tx_sync_bytes", "tx_rendezvous_bytes",
		"matched_sent_bytes")
	Received      = named("rx_direct", "rx_eager", "rx_rendezvous", "matched_received")
	ReceivedBytes = named("rx_direct_bytes", "rx_eager_bytes", "rx_rendezvous_bytes", "matched_received_bytes")
	OneSided      = named("rma_writes", "rma_reads", "atomics", "matched_writes", "matched_reads",
		"matched_atomics")
	OneSidedBytes = named("rma_write_bytes", "rma_read_bytes", "matched_write_bytes", "matched_read_bytes")
	Listed        = named("list_ipc", "list_rdma", "list_message")
	Notes         = named("notes_sent", "notes_received")
	Again         = prefixed("eagain_")
	Errors        = append(prefixed("errors_"), "malformed", "post_errors")
	// Stopped counts that a NIC took no messages any more, or left matching to software.
	Stopped = named("matched_no_events", "matched_no_buffers", "matched_no_entries", "matched_no_requests",
		"matched_by_software", "matched_stopped_else", "matched_soft_unexpected", "matched_soft_receive")
)

// named returns names that the table must have.
func named(names ...string) []string {
	for _, n := range names {
		if stats.Find(n) == nil {
			panic("watch: no counter " + n)
		}
	}
	return names
}

func prefixed(prefix string) []string {
	var names []string
	for _, c := range stats.Table() {
		if strings.HasPrefix(c.Name, prefix) {
			names = append(names, c.Name)
		}
	}
	return names
}
