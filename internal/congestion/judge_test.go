package congestion

import (
	"math/rand/v2"
	"testing"
	"time"
)

// TestJudge goes through the verdicts.
func TestJudge(t *testing.T) {
	const base, slow = 100 * us, 500 * us
	now := Time(time.Second)
	for _, c := range []struct {
		name          string
		probe, inline []time.Duration // 0 in probe: lost
		age           time.Duration
		want          Verdict
	}{
		{"nothing", nil, nil, 0, Unknown},
		{"old", []time.Duration{base, slow, slow}, []time.Duration{slow}, time.Second, Unknown},
		{"idle", []time.Duration{base, base}, []time.Duration{base}, 0, Clear},
		{"probes queue", []time.Duration{base, slow, slow}, nil, 0, Shared},
		{"both queue", []time.Duration{base, slow, slow}, []time.Duration{base, slow, slow}, 0, Shared},
		{"one late probe", []time.Duration{base, base, slow}, nil, 0, Clear},
		{"first probe", []time.Duration{slow}, []time.Duration{base}, 0, Clear},
		{"lost probes", []time.Duration{base, 0, 0}, nil, 0, Shared},
		{"one lost probe", []time.Duration{base, base, 0}, nil, 0, Clear},
		{"data queues", []time.Duration{base, base}, []time.Duration{base, slow, slow}, 0, Bulk},
		{"data queues, no probes", nil, []time.Duration{base, slow, slow}, 0, Inline},
		{"one late segment", []time.Duration{base}, []time.Duration{base, slow}, 0, Clear},
	} {
		cfg := DefaultConfig(1500)
		j := NewJudge(&cfg, 300*ms)
		for _, rtt := range c.probe {
			if rtt == 0 {
				j.OnProbeLost(now)
			} else {
				j.OnProbe(now, rtt)
			}
		}
		for _, rtt := range c.inline {
			j.OnInline(now, rtt)
		}
		if got := j.Verdict(now.Add(c.age)); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
	if Shared.Factor() != 0.75 || Bulk.Factor() != 0.5 || Clear.Factor() != 1 || Inline.Factor() != 1 {
		t.Error("factors")
	}
}

// TestJudgeApart: probes count as in a row that come as far apart as those before, for there
// are many peers, or because each was given up after a second.
func TestJudgeApart(t *testing.T) {
	const base, slow, lost = 100 * us, 500 * us, 0
	type probe struct {
		after, rtt time.Duration
	}
	for _, c := range []struct {
		name   string
		probes []probe
		want   Verdict
	}{
		{"lost, each after a second", []probe{{0, base}, {100 * ms, base}, {1100 * ms, lost}, {1100 * ms, lost}},
			Shared},
		{"lost, an echo between", []probe{{0, base}, {time.Second, lost}, {100 * ms, base}, {time.Second, lost}},
			Clear},
		{"queue, of fifty peers", []probe{{0, base}, {5 * time.Second, slow}, {5 * time.Second, slow}}, Shared},
		{"queue, after a pause", []probe{{0, base}, {100 * ms, base}, {100 * ms, slow}, {5 * time.Second, slow}},
			Clear},
		{"queue, minutes apart", []probe{{0, base}, {time.Minute, slow}, {time.Minute, slow}}, Clear},
		{"the first that queues", []probe{{0, base}, {5 * time.Second, slow}}, Clear},
	} {
		cfg := DefaultConfig(1500)
		j := NewJudge(&cfg, 300*ms)
		now := Time(time.Second)
		for _, p := range c.probes {
			if now = now.Add(p.after); p.rtt == lost {
				j.OnProbeLost(now)
			} else {
				j.OnProbe(now, p.rtt)
			}
		}
		if got := j.Verdict(now); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// TestPathProbe: probes give a silent path its timer and reduce its window once
// for each, and leave a path alone whose own samples have reduced it.
func TestPathProbe(t *testing.T) {
	for _, a := range []Algorithm{AIMD, Delay, BBR, Fixed} {
		cfg := DefaultConfig(1000)
		cfg.Algorithm, cfg.Initial = a, 100
		p, err := NewPath(cfg, rand.NewPCG(1, 2), nil)
		if err != nil {
			t.Fatal(err)
		}
		if p.RTT().RTO() != time.Second {
			t.Errorf("%v: RTO %v", a, p.RTT().RTO())
		}
		now := Time(time.Second)
		probe := func(rtt time.Duration) Verdict {
			now = now.Add(100 * ms)
			return p.OnProbe(now, rtt)
		}
		if v := probe(100 * us); v != Clear || p.RTT().RTO() != cfg.MinRTO || p.Control().Window() != 100000 {
			t.Errorf("%v: %v, RTO %v, window %d", a, v, p.RTT().RTO(), p.Control().Window())
		}
		probe(ms)
		want := int64(75000)
		if a == Fixed {
			want = 100000
		}
		if v := probe(ms); v != Shared || p.Control().Window() != want {
			t.Errorf("%v: %v, window %d", a, v, p.Control().Window())
		}
		p.Control().OnLoss(now, &Loss{Bytes: 1000, Sent: now + 1})
		p.Control().OnTimeout(now)
		before := p.Control().Window()
		if probe(ms); p.Control().Window() != before {
			t.Errorf("%v: reduced twice: %d, %d", a, before, p.Control().Window())
		}
		if v := p.Verdict(now.Add(time.Second)); v != Unknown {
			t.Errorf("%v: after a second %v", a, v)
		}
	}
}
