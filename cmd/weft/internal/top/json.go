package top

import (
	"os"
	"time"

	"github.com/weft-fabric/weft/cmd/weft/internal/watch"
	"github.com/weft-fabric/weft/internal/nic"
	"github.com/weft-fabric/weft/internal/stats"
)

// The JSON of --json. Keys of counters are the names of the table in
// internal/stats; rates are per second, of the counters that grow.
type (
	jsonSample struct {
		Taken     time.Time     `json:"taken"`
		Processes []jsonProcess `json:"processes"`
		Problems  []string      `json:"problems,omitempty"`
		Slingshot []jsonNIC     `json:"slingshot,omitempty"`
	}
	jsonNIC struct {
		nic.CXIDevice
		Telemetry map[string]uint64 `json:"telemetry"`
	}
	jsonProcess struct {
		PID       uint32             `json:"pid"`
		UID       uint32             `json:"uid"`
		User      string             `json:"user"`
		Command   string             `json:"command"`
		Weft      string             `json:"weft"`
		Problem   string             `json:"problem,omitempty"`
		Ended     bool               `json:"ended,omitempty"`
		Idle      bool               `json:"idle,omitempty"`
		Seconds   float64            `json:"seconds"`
		Totals    map[string]uint64  `json:"totals,omitempty"`
		Rates     map[string]float64 `json:"rates,omitempty"`
		Endpoints []jsonEndpoint     `json:"endpoints"`
	}
	jsonEndpoint struct {
		Name     string            `json:"name"`
		Counters map[string]uint64 `json:"counters"`
		Peers    []jsonPeer        `json:"peers"`
	}
	jsonPeer struct {
		Name     string            `json:"name"`
		Up       bool              `json:"up"`
		Counters map[string]uint64 `json:"counters"`
	}
)

func toJSON(l *watch.Sample, list []watch.Process, host nic.Host) jsonSample {
	out := jsonSample{Taken: l.Taken, Processes: []jsonProcess{}, Problems: l.Problems}
	for _, d := range host.CXIDevices(os.Getenv) {
		out.Slingshot = append(out.Slingshot, jsonNIC{d, host.Telemetry(d.Name)})
	}
	for i := range list {
		out.Processes = append(out.Processes, processJSON(&list[i]))
	}
	return out
}

func processJSON(p *watch.Process) jsonProcess {
	out := jsonProcess{
		PID: p.PID, UID: p.UID, User: p.User, Command: p.Command, Weft: p.Weft, Problem: p.Strange,
		Ended: p.Ended, Idle: p.Idle,
		Seconds: p.Seconds(), Endpoints: []jsonEndpoint{},
	}
	if p.Strange != "" {
		return out
	}
	out.Totals, out.Rates = map[string]uint64{}, map[string]float64{}
	for _, c := range stats.Table() {
		if c.Level() == stats.Peer {
			continue
		}
		out.Totals[c.Name] = p.Value(c.Name)
		if c.Kind == stats.Sum && p.Before != nil {
			out.Rates[c.Name] = p.Rate(c.Name)
		}
	}
	for _, e := range p.Endpoints {
		j := jsonEndpoint{Name: e.Name, Counters: byName(e.Values, stats.Rx), Peers: []jsonPeer{}}
		for _, peer := range e.Peers {
			j.Peers = append(j.Peers, jsonPeer{peer.Name, peer.Up, byName(peer.Values, stats.Peer)})
		}
		out.Endpoints = append(out.Endpoints, j)
	}
	return out
}

func byName(values []uint64, level stats.Area) map[string]uint64 {
	m := map[string]uint64{}
	for i, c := range stats.Table() {
		if c.Level() == level {
			m[c.Name] = values[i]
		}
	}
	return m
}
