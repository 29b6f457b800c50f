package congestion

// fixed is a window that nothing changes.
type fixed struct {
	window int64
}

// NewFixed returns a window of l.Initial units that never changes and does not
// pace.
func NewFixed(l Limits) Controller { return &fixed{window: l.initial()} }

func (f *fixed) OnSend(Time, int64, int64) {}
func (f *fixed) OnAck(Time, *Sample)       {}
func (f *fixed) OnLoss(Time, *Loss)        {}
func (f *fixed) OnTimeout(Time)            {}
func (f *fixed) Reduce(Time, float64)      {}
func (f *fixed) Window() int64             { return f.window }
func (f *fixed) PacingRate() int64         { return 0 }
func (f *fixed) Inspect() Inspection       { return Inspection{Phase: "fixed", Window: f.window} }
