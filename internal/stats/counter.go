package stats

// Kind says how a counter behaves.
type Kind int

// Kinds of counters.
const (
	Sum   Kind = iota // grows; what matters is the rate
	Gauge             // goes up and down
	Peak              // the highest value so far
)

// String returns the kind's name in the documentation.
func (k Kind) String() string { return [...]string{"sum", "gauge", "peak"}[k] }

// Area is a part of the page, which has one kind of owner.
type Area int

// Areas of the page.
const (
	Process Area = iota // of the process; locked additions
	Thread              // lines of threads, per endpoint
	Stripe              // lines of stripes, per endpoint
	Rx                  // of the progress lease's holder, per endpoint
	Shared              // locked additions, per endpoint
	Peer                // of the progress lease's holder, per peer
	areas
)

// String returns what counts, for the documentation.
func (a Area) String() string {
	return [...]string{"process", "endpoint", "endpoint", "endpoint", "endpoint", "peer"}[a]
}

// Place is a word of the page.
type Place struct {
	Area Area
	Word int
}

// Counter describes one counter.
type Counter struct {
	// Name is unique, in snake case: the key in JSON, and with "weft_" in
	// front and "_total" after a Sum the name of the Prometheus metric.
	Name string
	Unit string
	Kind Kind
	Help string
	// At are the words whose sum the counter is.
	At []Place
}

// Level is where the counter counts: Process, Rx (an endpoint) or Peer.
func (c *Counter) Level() Area {
	switch c.At[0].Area {
	case Process:
		return Process
	case Peer:
		return Peer
	}
	return Rx
}

// Metric is the name of the Prometheus metric.
func (c *Counter) Metric() string {
	if c.Kind == Sum {
		return "weft_" + c.Name + "_total"
	}
	return "weft_" + c.Name
}
