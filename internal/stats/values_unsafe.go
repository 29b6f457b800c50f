package stats

import "unsafe"

// A process reads its own counters without the page's file: blocks that are not
// shown count, too.

// Values writes the endpoint's counters to dst, by index in [Table], as many as
// fit; those of another level are 0. Any thread may call it until the endpoint
// is closed.
func (e *Endpoint) Values(dst []uint64) {
	b := image(unsafe.Slice((*byte)(e.block), blockBytes))
	for i := range table[:min(len(dst), len(table))] {
		dst[i] = 0
		if table[i].Level() != Rx {
			continue
		}
		for _, p := range table[i].At {
			dst[i] += b.sum(p, 0)
		}
	}
}

// ProcessValues writes the process's counters to dst, by index in [Table], as
// many as fit: its own, and those of its open endpoints summed up (of a Peak,
// the highest). Those of peers are 0.
func ProcessValues(dst []uint64) {
	p := &own
	p.mu.Lock()
	defer p.mu.Unlock()
	dst = dst[:min(len(dst), len(table))]
	clear(dst)
	one := make([]uint64, len(dst))
	for _, e := range p.live {
		e.Values(one)
		for i, v := range one {
			if table[i].Kind == Peak {
				dst[i] = max(dst[i], v)
			} else {
				dst[i] += v
			}
		}
	}
	for i := range dst {
		if table[i].Level() != Process {
			continue
		}
		switch word := table[i].At[0].Word; word {
		default:
			dst[i] = processCount(word)
		case ProcEndpoints:
			dst[i] = uint64(p.open)
		case ProcOpened:
			dst[i] = p.opened
		case ProcHidden:
			dst[i] = uint64(p.hidden)
		}
	}
}
