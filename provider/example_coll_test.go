package provider_test

import (
	"errors"
	"fmt"
	"runtime"

	"github.com/weft-fabric/weft/cq"
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/provider"
)

// Three members, each of which has words of different lengths for the others. Between processes it is the same: each
// joins with the names of all, in the same order.
func ExampleEndpoint_AllToAllV() {
	given := [3]string{"a>a;from a to b;a>c;", "b>a;b>b;from b to c;", "from c to a;c>b;c>c;"}
	counts := [3][]uint64{{4, 12, 4}, {4, 4, 12}, {12, 4, 4}}
	var members [3]member
	for rank := range members {
		m := &members[rank]
		if err := m.open(fi.Collective); err != nil {
			fmt.Println(err)
			return
		}
		defer m.close()
	}
	var text [3][]byte
	for rank := range members {
		m := &members[rank]
		if err := m.join(members[:]); err != nil {
			fmt.Println(err)
			return
		}
		defer m.group.Close()
	}
	progress(members[:], func(m *member) bool { return m.joined() })
	for rank := range members {
		in, out := []byte(given[rank]), make([]byte, 20)
		text[rank] = out
		a := &provider.AllToAllVArgs{
			Buf: bytesOf(in)[0].Base, Counts: counts[rank], Displs: places(counts[rank]),
			Result: bytesOf(out)[0].Base, ResultCounts: make([]uint64, 3),
			Elem: 1, Group: members[rank].group.Addr(),
		}
		for from := range counts {
			a.ResultCounts[from] = counts[from][rank]
		}
		a.ResultDispls = places(a.ResultCounts)
		if err := members[rank].ep.AllToAllV(a); err != nil {
			fmt.Println(err)
			return
		}
		defer runtime.KeepAlive(in) // what is given is the operation's until it completes
	}
	progress(members[:], func(m *member) bool { return m.completed() })
	for _, t := range text {
		fmt.Printf("%s\n", t)
	}
	fmt.Println(members[0].seen())
	fmt.Println(members[0].way(1))
	// Output:
	// a>a;b>a;from c to a;
	// from a to b;b>b;c>b;
	// a>c;from b to c;c>c;
	// on one host no order follows the network
	// nothing is measured on one host
}

// seen says what the group knows of its last all-to-all that followed the network.
func (m *member) seen() string {
	r := m.group.Report()
	if r.Took == 0 {
		return "on one host no order follows the network"
	}
	return fmt.Sprintf("%d bytes sent and %d received in %v, where the own link would take %v; %d chunks, %d deferrals",
		r.Out, r.Received, r.Took, r.Bound, r.Chunks, r.Deferrals)
}

// way says what is measured of the path to a member.
func (m *member) way(rank int) string {
	p, err := m.ep.Path(m.peers[rank])
	switch {
	case errors.Is(err, fi.EOPNOTSUPP):
		return "nothing is measured on one host"
	case err != nil: // fi.ENODATA: nothing yet
		return err.Error()
	}
	return fmt.Sprintf("round trip %v, %v of it queueing; %d packets lost", p.Smoothed, p.Queue, p.Lost)
}

// member is an endpoint that joins a group.
type member struct {
	peer
	group *provider.Group
	peers []fi.Addr // of all members, by rank
	done  bool
}

// join begins to join a group of all members.
func (m *member) join(all []member) error {
	set, err := m.av.OpenSet(&fi.AVSetAttr{Start: fi.AddrNotAvail, End: fi.AddrNotAvail})
	if err != nil {
		return err
	}
	defer set.Close()
	for i := range all {
		name, err := all[i].ep.Name()
		if err != nil {
			return err
		}
		addr := make([]fi.Addr, 1)
		if _, err := m.av.Insert(name, 1, &provider.Insertion{Addrs: addr}); err != nil {
			return err
		}
		if err := set.Insert(addr[0]); err != nil {
			return err
		}
		m.peers = append(m.peers, addr[0])
	}
	if m.group, err = m.ep.Join(set.Addr(), set, fi.Collective, 0); err != nil {
		return err
	}
	m.group.Notify(0) // the event names the group by this
	return nil
}

// joined reports whether the event has come that the group is joined.
func (m *member) joined() bool {
	var event [24]byte
	number, _, err := m.events.Read(event[:], 0)
	return err == nil && fi.EQEvent(number) == fi.JoinComplete
}

// completed reports whether an operation has completed.
func (m *member) completed() bool {
	var entry [1]cq.Entry
	n, _ := m.queue.Read(entry[:])
	return n == 1
}

// progress makes some at all members until each is done, as each process does by itself.
func progress(all []member, done func(*member) bool) {
	for left := len(all); left != 0; {
		left = 0
		for i := range all {
			m := &all[i]
			m.ep.Progress()
			if !m.done && !done(m) {
				left++
			} else {
				m.done = true
			}
		}
	}
	for i := range all {
		all[i].done = false
	}
}

// places are those of parts that lie one behind another.
func places(counts []uint64) []uint64 {
	at := make([]uint64, len(counts))
	for i := 1; i < len(counts); i++ {
		at[i] = at[i-1] + counts[i-1]
	}
	return at
}
