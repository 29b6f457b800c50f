package netsim

import (
	"time"

	"github.com/weft-fabric/weft/internal/congestion"
)

// Point is a value at a time in seconds since the start.
type Point struct{ X, Y float64 }

// Series is one line of a plot.
type Series struct {
	Name   string
	Points []Point
}

// Trace is what a scenario shows over time: windows in KiB, round-trip times and
// the queue at the bottleneck in microseconds.
type Trace struct {
	Windows, RTTs, Queue []Series
}

// Scenario is a run to be plotted.
type Scenario struct {
	// Name is for a file, Title for people.
	Name, Title string

	run func(tr *tracer)
}

// Run runs the scenario.
func (s Scenario) Run() Trace {
	tr := &tracer{net: New(1)}
	s.run(tr)
	return tr.trace
}

// Scenarios returns the runs that the plots in docs/ show.
func Scenarios() []Scenario {
	var all []Scenario
	for _, a := range []congestion.Algorithm{congestion.Delay, congestion.BBR, congestion.AIMD} {
		all = append(all, Scenario{
			Name:  "flows-" + a.String(),
			Title: "four flows on 1 Gbit/s, one more each second: " + a.String(),
			run:   func(tr *tracer) { fourFlows(tr, a) },
		})
	}
	return append(all, Scenario{
		Name:  "pingpong-delay",
		Title: "bulk from 0.5 s on beside a ping-pong, 100 Mbit/s: delay",
		run:   func(tr *tracer) { besidePingPong(tr, congestion.Delay) },
	}, Scenario{
		Name:  "loss-delay",
		Title: "1 Gbit/s that loses 5 % of packets from 1 s on: delay",
		run:   func(tr *tracer) { loseFrom(tr, congestion.Delay) },
	})
}

func scenarioConfig(a congestion.Algorithm) congestion.Config {
	cfg := congestion.DefaultConfig(1500)
	cfg.Algorithm = a
	return cfg
}

func fourFlows(tr *tracer, a congestion.Algorithm) {
	link := Link{Rate: 125e6, Delay: 50 * time.Microsecond, Limit: 4 << 20}
	d := tr.net.Dumbbell(link, Link{Rate: 1250e6, Delay: 5 * time.Microsecond})
	tr.watch(d.Bottleneck, 10*time.Millisecond)
	for i := range 4 {
		forth, back := d.Pair(0)
		tr.flow("flow "+string(rune('1'+i)), tr.net.Flow(scenarioConfig(a), forth, back, -1))
		tr.net.Run(time.Second)
	}
}

func besidePingPong(tr *tracer, a congestion.Algorithm) {
	link := Link{Rate: 12.5e6, Delay: 50 * time.Microsecond, Limit: 1 << 20}
	d := tr.net.Dumbbell(link, Link{Rate: 125e6, Delay: 5 * time.Microsecond})
	tr.watch(d.Bottleneck, 5*time.Millisecond)
	small, answer := d.Pair(0)
	tr.pingPong("ping-pong", tr.net.PingPong(small, answer, 80))
	tr.net.Run(500 * time.Millisecond)
	forth, back := d.Pair(0)
	tr.flow("bulk", tr.net.Flow(scenarioConfig(a), forth, back, -1))
	tr.net.Run(1500 * time.Millisecond)
}

func loseFrom(tr *tracer, a congestion.Algorithm) {
	link := Link{Rate: 125e6, Delay: 50 * time.Microsecond, Limit: 4 << 20}
	d := tr.net.Dumbbell(link, Link{Rate: 1250e6, Delay: 5 * time.Microsecond})
	tr.watch(d.Bottleneck, 5*time.Millisecond)
	forth, back := d.Pair(0)
	tr.flow("flow", tr.net.Flow(scenarioConfig(a), forth, back, -1))
	tr.net.Run(time.Second)
	d.Bottleneck.Loss = 0.05
	tr.net.Run(time.Second)
}

// tracer takes samples of a simulation.
type tracer struct {
	net   *Net
	step  time.Duration
	trace Trace
}

// at is the time of a point.
func (tr *tracer) at(now congestion.Time) float64 {
	return now.Sub(congestion.Time(time.Second)).Seconds()
}

// watch follows a queue: the longest wait in each step.
func (tr *tracer) watch(l *Link, step time.Duration) {
	tr.step = step
	tr.trace.Queue = append(tr.trace.Queue, Series{Name: "queue"})
	series := &tr.trace.Queue[0]
	var worst time.Duration
	l.OnQueue = func(_ congestion.Time, wait time.Duration) { worst = max(worst, wait) }
	tr.net.Every(step, func(now congestion.Time) {
		series.Points = append(series.Points, Point{tr.at(now), micro(worst)})
		worst = 0
	})
}

func micro(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// flow follows a flow: its window, and the mean RTT of each step.
func (tr *tracer) flow(name string, f *Flow) {
	w, r := len(tr.trace.Windows), len(tr.trace.RTTs)
	tr.trace.Windows = append(tr.trace.Windows, Series{Name: name})
	tr.trace.RTTs = append(tr.trace.RTTs, Series{Name: name})
	var sum time.Duration
	count := 0
	f.OnRTT = func(_ congestion.Time, rtt time.Duration) {
		sum += rtt
		count++
	}
	tr.net.Every(tr.step, func(now congestion.Time) {
		window := float64(f.Path.Control().Inspect().Window) / 1024
		tr.trace.Windows[w].Points = append(tr.trace.Windows[w].Points, Point{tr.at(now), window})
		if count > 0 {
			mean := sum / time.Duration(count)
			tr.trace.RTTs[r].Points = append(tr.trace.RTTs[r].Points, Point{tr.at(now), micro(mean)})
		}
		sum, count = 0, 0
	})
}

// pingPong follows a ping-pong: the longest round trip of each step.
func (tr *tracer) pingPong(name string, p *PingPong) {
	r := len(tr.trace.RTTs)
	tr.trace.RTTs = append(tr.trace.RTTs, Series{Name: name})
	seen := 0
	tr.net.Every(tr.step, func(now congestion.Time) {
		worst := Quantile(p.Times[seen:], 1)
		seen = len(p.Times)
		tr.trace.RTTs[r].Points = append(tr.trace.RTTs[r].Points, Point{tr.at(now), micro(worst)})
	})
}
