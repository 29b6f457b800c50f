package provider

import (
	"slices"
	"testing"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/provider/names"
)

// openTestSet makes a set that is closed at the end of the test.
func openTestSet(t *testing.T, a *AV, attr fi.AVSetAttr) *AVSet {
	t.Helper()
	s, err := a.OpenSet(&attr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

var emptySet = fi.AVSetAttr{Start: fi.AddrNotAvail, End: fi.AddrNotAvail}

func wantMembers(t *testing.T, s *AVSet, want ...fi.Addr) {
	t.Helper()
	if got := s.Members(); !slices.Equal(got, want) {
		t.Errorf("members %v, want %v", got, want)
	}
}

func TestAVSet(t *testing.T) {
	d := openTestDomain(t, testInfo())
	a := openTestAV(t, d, fi.AVAttr{Type: fi.AVTable})
	var list []names.Name
	for i := range uint16(10) {
		list = append(list, mustParse(t, "127.0.0.1:1000").WithPort(1000+i))
	}
	insertAll(t, a, list...)
	if err := a.Remove([]fi.Addr{4}, 0); err != nil {
		t.Fatal(err)
	}
	wantMembers(t, openTestSet(t, a, emptySet))
	wantMembers(t, openTestSet(t, a, fi.AVSetAttr{Start: fi.AddrNotAvail, End: fi.AddrNotAvail,
		Flags: fi.Universe | fi.BarrierSet}),
		0, 1, 2, 3, 5, 6, 7, 8, 9)
	wantMembers(t, openTestSet(t, a, fi.AVSetAttr{Start: 2, End: 8, Stride: 2}), 2, 6, 8)
	wantMembers(t, openTestSet(t, a, fi.AVSetAttr{Start: 8, End: fi.AddrNotAvail - 1, Stride: 1}), 8, 9)
	wantMembers(t, openTestSet(t, a, fi.AVSetAttr{Start: 3, End: 3, Stride: 1, Count: 1}), 3)

	s, o := openTestSet(t, a, fi.AVSetAttr{Start: 5, End: 9, Stride: 2}), openTestSet(t, a, emptySet)
	for _, i := range []fi.Addr{9, 0, 7, 1} {
		if err := o.Insert(i); err != nil {
			t.Fatal(err)
		}
	}
	check := func(op func(*AVSet) error, src *AVSet, dst *AVSet, want ...fi.Addr) {
		t.Helper()
		if err := op(src); err != nil {
			t.Fatal(err)
		}
		wantMembers(t, dst, want...)
	}
	check(s.Union, o, s, 5, 7, 9, 0, 1)
	check(s.Diff, openTestSet(t, a, fi.AVSetAttr{Start: 7, End: 8, Stride: 1}), s, 5, 9, 0, 1)
	check(s.Intersect, o, s, 9, 0, 1)
	if err := s.Remove(0); err != nil {
		t.Fatal(err)
	}
	wantMembers(t, s, 9, 1)
	check(s.Union, s, s, 9, 1)
	check(s.Diff, s, s)
	wantErrno(t, a.Close(), fi.EBUSY, "close an address vector with sets")
}

func TestAVSetRefused(t *testing.T) {
	d := openTestDomain(t, testInfo())
	a, b := openTestAV(t, d, fi.AVAttr{Type: fi.AVTable}), openTestAV(t, d, fi.AVAttr{Type: fi.AVMap})
	insertAll(t, a, mustParse(t, "127.0.0.1:1000"), mustParse(t, "127.0.0.1:1001"))
	for _, c := range []struct {
		attr fi.AVSetAttr
		want fi.Errno
	}{
		{fi.AVSetAttr{Start: 0, End: 1, Stride: 1, Flags: 1 << 3}, fi.EBADFLAGS},
		{fi.AVSetAttr{Start: 0, End: fi.AddrNotAvail, Stride: 1}, fi.EINVAL},
		{fi.AVSetAttr{Start: fi.AddrNotAvail, End: 1, Stride: 1}, fi.EINVAL},
		{fi.AVSetAttr{Start: 1, End: 0, Stride: 1}, fi.EINVAL},
		{fi.AVSetAttr{Start: 0, End: 1}, fi.EINVAL},
		{fi.AVSetAttr{Start: 0, End: 2, Stride: 1, Count: 2}, fi.EINVAL},
		{fi.AVSetAttr{Start: fi.AddrNotAvail, End: fi.AddrNotAvail, Stride: 1}, fi.EINVAL},
		{fi.AVSetAttr{Start: fi.AddrNotAvail, End: fi.AddrNotAvail, CommKey: []byte{1}}, fi.EOPNOTSUPP},
	} {
		_, err := a.OpenSet(&c.attr)
		wantErrno(t, err, c.want, "open set")
	}
	_, err := b.OpenSet(&fi.AVSetAttr{Start: 0, End: 1, Stride: 1})
	wantErrno(t, err, fi.EINVAL, "range in an AV_MAP")
	s, o := openTestSet(t, a, fi.AVSetAttr{Start: 0, End: 0, Stride: 1}), openTestSet(t, b, emptySet)
	wantErrno(t, s.Insert(0), fi.EINVAL, "insert a member")
	wantErrno(t, s.Insert(7), fi.EINVAL, "insert what is not in the address vector")
	wantErrno(t, s.Remove(1), fi.EINVAL, "remove what is no member")
	wantErrno(t, s.Union(o), fi.EINVAL, "union across address vectors")
	wantErrno(t, s.Intersect(o), fi.EINVAL, "intersection across address vectors")
	wantErrno(t, s.Diff(o), fi.EINVAL, "difference across address vectors")
	wantMembers(t, s, 0)
}

func mustParse(t *testing.T, s string) names.Name {
	t.Helper()
	n, err := names.Parse("fi_sockaddr_in://" + s)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
