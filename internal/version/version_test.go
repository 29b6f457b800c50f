package version

import "testing"

func TestVersion(t *testing.T) {
	defer func(old string) { tag = old }(tag)
	for _, c := range []struct {
		tag, want    string
		major, minor uint32
	}{
		{"", release + "-dev", 0, 1},
		{"v1.2.3", "1.2.3", 1, 2},
		{"2.13.0-4-gabcdef0-dirty", "2.13.0-4-gabcdef0-dirty", 2, 13},
		{"3.4-rc1", "3.4-rc1", 3, 4},
		{"nightly", "nightly", 0, 1},
		{"99999999.1", "99999999.1", 0, 1},
	} {
		tag = c.tag
		major, minor := Numbers()
		if String() != c.want || major != c.major || minor != c.minor {
			t.Errorf("%q: %s %d.%d", c.tag, String(), major, minor)
		}
	}
}
