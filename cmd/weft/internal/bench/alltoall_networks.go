package bench

import (
	"fmt"
	"math"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
)

// labNetwork is a network that all-to-alls are measured on: hosts around a switch.
type labNetwork struct {
	name, title string
	reach       string // what is to be reached
	// ofStep is what of it is a share of step's time, 0: nothing, or less than the bound allows, as with relays.
	ofStep float64

	hosts int // 0: one, which is this one
	ranks int
	in    []int // Mbit/s of what the switch sends to each host
	out   []int // of what each sends, 0 for no limit; nil: for none
	// path is the Mbit/s of a slow path from one host to another, 0: there is none.
	path func(from, to int) float64
	// share is what one rank has for another, in slices; nil: one.
	share func(from, to int) float64
	// late is by how many ms ranks come late, another one in each round.
	late []int
	// others sends beside the all-to-all, or changes the rates of ports; nil: nothing does.
	others func(l *lab, w *labNetwork, sw string) (others, error)

	slices []int64
	rounds int
}

// labQueue is what each port keeps, in bytes; labHosts are the hosts of most networks,
// and labMbit is the rate of their ports.
const (
	labQueue = 256 << 10
	labHosts = 8
	labMbit  = 100
)

// wireShare is how many bytes are on the wire for one of payload: a packet has 1472 bytes
// behind IP and UDP, of which weft's header takes 21, and Ethernet's 14 count for the port.
const wireShare = 1514.0 / 1451

// alike are n ports of one rate.
func alike(n, mbit int) []int { return slices.Repeat([]int{mbit}, n) }

// Lengths of slices: those of most networks, and of those whose bound is long.
var (
	bothSlices  = []int64{256 << 10, 1 << 20}
	shortSlices = []int64{256 << 10}
)

// zipf is a rank's share for another by Zipf's law: the greatest is 3, another rank for each.
func zipf(from, to int) float64 { return 3 / float64(1+(to-from-1+2*labHosts+3*from)%labHosts) }

// hot is that rank 3 gets four times what others get.
func hot(_, to int) float64 {
	if to == 3 {
		return 4
	}
	return 1
}

// sparse leaves out three of ten pairs.
func sparse(from, to int) float64 {
	if (from*5+to*3)%10 < 3 {
		return 0
	}
	return 1
}

// labNetworks are those of the table.
var labNetworks = []labNetwork{
	{name: "alike", title: "all alike", reach: "1.08 x bound, not above step, 1.02 x fixed",
		hosts: labHosts, in: alike(labHosts, labMbit), slices: bothSlices},
	{name: "slow", title: "two hosts at 1/4, two at 1/2 of the rate", reach: "1.08 x bound",
		hosts: labHosts, in: []int{100, 25, 100, 50, 100, 25, 100, 50}, out: []int{0, 25, 0, 50, 0, 25, 0, 50},
		slices: bothSlices},
	{name: "halves", title: "half of the hosts slow out, half slow in (1/2)", reach: "1.08 x bound",
		hosts: labHosts, in: []int{50, 100, 50, 100, 50, 100, 50, 100}, out: []int{0, 50, 0, 50, 0, 50, 0, 50},
		slices: bothSlices},
	{name: "paths", title: "one slow path (1/8) out of each host", reach: "1.12 x bound, 0.3 x step", ofStep: 0.3,
		hosts: labHosts, in: alike(labHosts, labMbit), slices: bothSlices,
		path: func(from, to int) float64 {
			if to == (from+3)%labHosts {
				return labMbit / 8.0
			}
			return 0
		}},
	{name: "path", title: "one path at 1/20", reach: "0.5 x bound (relays), 0.4 x step, 0.5 x fixed",
		hosts: labHosts, in: alike(labHosts, labMbit), slices: shortSlices,
		path: func(from, to int) float64 {
			if from == 1 && to == 6 {
				return labMbit / 20.0
			}
			return 0
		}},
	{name: "ports", title: "receivers' ports at 1/10, a quarter each 100 ms", reach: "1.15 x bound, 0.45 x step",
		ofStep: 0.45, hosts: labHosts, in: alike(labHosts, labMbit), slices: bothSlices, others: portsInTurn},
	{name: "bursts", title: "bursts of strangers into each port", reach: "1.25 x bound, 0.5 x step", ofStep: 0.5,
		hosts: labHosts, in: alike(labHosts, labMbit), slices: bothSlices, others: burstsIntoAll},
	{name: "tcp", title: "two TCP flows of strangers", reach: "0.9 x step, strangers keep 0.9", ofStep: 0.9,
		hosts: labHosts, in: alike(labHosts, labMbit), slices: shortSlices, others: lastingFlows},
	{name: "zipf", title: "alltoallv, Zipf", reach: "1.08 x bound",
		hosts: labHosts, in: alike(labHosts, labMbit), slices: shortSlices, share: zipf},
	{name: "hot", title: "alltoallv, a hot rank", reach: "1.08 x bound",
		hosts: labHosts, in: alike(labHosts, labMbit), slices: shortSlices, share: hot},
	{name: "sparse", title: "alltoallv, 30 % sparse", reach: "1.08 x bound",
		hosts: labHosts, in: alike(labHosts, labMbit), slices: shortSlices, share: sparse},
	{name: "late", title: "members 0 to 300 ms late", reach: "last arrival + 1.15 x the rest",
		hosts: labHosts, in: alike(labHosts, labMbit), slices: bothSlices,
		late: []int{0, 300, 40, 210, 0, 120, 260, 80}},
	{name: "four", title: "4 ranks on each of 4 hosts, 25 Mbit/s", reach: "1.08 x bound, 1.02 x fixed",
		hosts: 4, ranks: 16, in: alike(4, 25), slices: []int64{64 << 10, 256 << 10}, rounds: 5},
	{name: "one", title: "one host, 4 ranks", reach: "1.02 x off",
		ranks: 4, slices: []int64{64 << 10, 256 << 10}, rounds: 200},
	{name: "short", title: "short slices between hosts", reach: "1.02 x off",
		hosts: labHosts, in: alike(labHosts, labMbit), slices: []int64{1 << 10}, rounds: 100},
}

func init() {
	for i := range labNetworks {
		w := &labNetworks[i]
		if w.ranks == 0 {
			w.ranks = w.hosts
		}
		if w.rounds == 0 {
			w.rounds = 15
		}
	}
}

// host is where a rank is.
func (w *labNetwork) host(rank int) int { return rank * max(w.hosts, 1) / w.ranks }

// bytes are what one rank has for another.
func (w *labNetwork) bytes(slice int64, from, to int) int64 {
	if w.share == nil {
		return slice
	}
	return int64(math.Round(float64(slice) * w.share(from, to)))
}

// lastArrival is when the last rank has come, in ns after the beginning.
func (w *labNetwork) lastArrival() int64 { return int64(slices.Max(append([]int{0}, w.late...))) * 1e6 }

// arrival is when a rank comes in a round, in ns after the beginning.
func (w *labNetwork) arrival(rank, round int) int64 {
	if len(w.late) == 0 {
		return 0
	}
	return int64(w.late[(rank+round)%w.ranks]) * 1e6
}

// args are those of the measuring program.
func (w *labNetwork) args(l *lab, slice int64) []string {
	args := []string{"-r", strconv.Itoa(w.ranks)}
	if w.hosts != 0 {
		args = append(args, "-n", strings.Join(l.hosts[:w.hosts], ","))
	}
	lengths := []string{strconv.FormatInt(slice, 10)}
	if w.share != nil {
		lengths = nil
		for i := range w.ranks * w.ranks {
			lengths = append(lengths, strconv.FormatInt(w.bytes(slice, i/w.ranks, i%w.ranks), 10))
		}
	}
	args = append(args, "-z", strings.Join(lengths, ","))
	if len(w.late) != 0 {
		var late []string
		for _, ms := range w.late {
			late = append(late, strconv.Itoa(ms))
		}
		args = append(args, "-l", strings.Join(late, ","))
	}
	return args
}

// build makes the network in a lab. Where strangers send, they have a host of their own
// behind the others.
func (w *labNetwork) build(l *lab) (others, error) {
	if w.hosts == 0 {
		return quiet{}, nil
	}
	in, out := slices.Clone(w.in), slices.Clone(w.out)
	if w.others != nil {
		in = append(in, 0)
	}
	sw, err := l.star(in, out, labQueue)
	if err != nil {
		return nil, err
	}
	for from := range w.hosts {
		for to := range w.hosts {
			if w.path == nil || w.path(from, to) == 0 {
				continue
			}
			if err := l.slowPath(sw, from, to, w.path(from, to)); err != nil {
				return nil, err
			}
		}
	}
	if w.others == nil {
		return quiet{}, nil
	}
	return w.others(l, w, sw)
}

// star makes hosts around a switch, which keeps up to queue bytes for each: in and out are
// the rates to and from every host in Mbit/s, 0 for no limit. It returns the switch.
func (l *lab) star(in, out []int, queue int) (string, error) {
	var hosts []string
	for range in {
		h, err := l.host()
		if err != nil {
			return "", err
		}
		hosts = append(hosts, h)
	}
	sw, err := l.join(hosts, in, queue)
	if err != nil {
		return "", err
	}
	for i, mbit := range out {
		if mbit == 0 {
			continue
		}
		if err := l.shape(hosts[i], port, float64(mbit), queue); err != nil {
			return "", err
		}
	}
	return sw, nil
}

// slowPath gives what one host sends to another a cable of its own into the switch. It does not
// answer for the host's address there, so that nothing comes back that way.
func (l *lab) slowPath(sw string, from, to int, mbit float64) error {
	const side = "eth1"
	host := l.hosts[from]
	if err := l.cable(host, side, sw, fmt.Sprintf("side%d", from)); err != nil {
		return err
	}
	if err := l.run("ip", "-n", sw, "link", "set", fmt.Sprintf("side%d", from), "master", "bridge"); err != nil {
		return err
	}
	if err := inNamespace(host, func() error {
		for file, value := range map[string]string{
			side + "/arp_ignore": "8", port + "/rp_filter": "0", "all/rp_filter": "0",
		} {
			if err := os.WriteFile("/proc/sys/net/ipv4/conf/"+file, []byte(value), 0); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		return err
	}
	mac, err := l.address(l.hosts[to])
	if err != nil {
		return err
	}
	peer, own := fmt.Sprintf("10.98.0.%d", to+1), fmt.Sprintf("10.98.0.%d", from+1)
	if err := l.all(
		[]string{"ip", "-n", host, "link", "set", side, "gso_max_segs", "1"},
		[]string{"ip", "-n", host, "neigh", "replace", peer, "lladdr", mac, "dev", side, "nud", "permanent"},
		[]string{"ip", "-n", host, "route", "replace", peer + "/32", "dev", side, "src", own},
	); err != nil {
		return err
	}
	return l.shape(host, side, mbit, labQueue)
}

// address is the hardware address of a host's port.
func (l *lab) address(host string) (mac string, err error) {
	err = inNamespace(host, func() error {
		i, err := net.InterfaceByName(port)
		if err == nil {
			mac = i.HardwareAddr.String()
		}
		return err
	})
	return mac, err
}
