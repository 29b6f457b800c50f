package netsim

import "time"

// Dumbbell is senders on one side and receivers on the other of one link, the
// bottleneck. Every pair has links of its own on both sides.
type Dumbbell struct {
	// Bottleneck is the link that all share forth; answers come back over a
	// link of the same rate that nothing else uses.
	Bottleneck *Link

	net    *Net
	access Link
	back   *Link
}

// Dumbbell makes one: bottleneck is the shared link, access a host's own.
func (n *Net) Dumbbell(bottleneck, access Link) *Dumbbell {
	back := bottleneck
	back.Mark, back.Limit = 0, 0
	return &Dumbbell{Bottleneck: n.Link(bottleneck), net: n, access: access, back: n.Link(back)}
}

// Pair adds a sender and a receiver and returns the routes between them. extra
// is added to the delay of the sender's link, each way.
func (d *Dumbbell) Pair(extra time.Duration) (forth, back Route) {
	access := d.access
	access.Delay += extra
	forth = Route{d.net.Link(access), d.Bottleneck, d.net.Link(d.access)}
	back = Route{d.net.Link(d.access), d.back, d.net.Link(access)}
	return forth, back
}

// Star is hosts around a switch that is not itself a bottleneck: a packet
// crosses its sender's link up and its receiver's link down.
type Star struct {
	Up, Down []*Link
}

// Star makes one of n hosts with equal links.
func (n *Net) Star(hosts int, link Link) *Star {
	s := &Star{}
	for range hosts {
		s.Up = append(s.Up, n.Link(link))
		s.Down = append(s.Down, n.Link(link))
	}
	return s
}

// Route returns the way from one host to another.
func (s *Star) Route(from, to int) Route { return Route{s.Up[from], s.Down[to]} }
