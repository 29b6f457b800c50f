// Package version says which weft this is. The build sets it from the git tag
// (Makefile); what is built without that is called a development version.
package version

import (
	"strconv"
	"strings"
)

// release is the version that is being developed, and that of a build outside
// git. It has the form major.minor.patch.
const release = "0.1.0"

// tag is set by the linker: -X github.com/weft-fabric/weft/internal/version.tag=1.2.3
var tag string

// String returns the version, such as 1.2.3 for a build of tag v1.2.3 and
// 1.2.3-4-gabcdef0 for one four commits later.
func String() string {
	if tag != "" {
		return strings.TrimPrefix(tag, "v")
	}
	return release + "-dev"
}

// Numbers returns the major and minor version, those of release for a version
// that does not start with two numbers.
func Numbers() (major, minor uint32) {
	if major, minor, ok := parse(String()); ok {
		return major, minor
	}
	major, minor, _ = parse(release)
	return major, minor
}

func parse(s string) (major, minor uint32, ok bool) {
	a, rest, _ := strings.Cut(s, ".")
	b, _, _ := strings.Cut(rest, ".")
	b, _, _ = strings.Cut(b, "-")
	x, err1 := strconv.ParseUint(a, 10, 15)
	y, err2 := strconv.ParseUint(b, 10, 15)
	return uint32(x), uint32(y), err1 == nil && err2 == nil
}
