#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# version.sh [deb|numbers]: the version that is built, from the git tag v1.2.3: 1.2.3,
# or 1.2.3-4-gabcdef0 four commits later. Without a tag or without git it is the
# one in internal/version; WEFT_VERSION overrides all. With deb it is spelled for Debian: 1.2.3+4.gabcdef0,
# and what comes before a release sorts before it. With numbers it is the major and
# the minor one: 1, 2.
set -eu
cd "$(dirname "$0")/.."

release=$(sed -n 's/^const release = "\(.*\)"$/\1/p' internal/version/version.go)
version=${WEFT_VERSION:-}
[ -n "$version" ] || version=$(git describe --tags --match 'v[0-9]*' 2>/dev/null) || version=$release-dev
version=${version#v}
[ "${1:-}" != numbers ] || {
	numbers() { echo "$1" | sed -n 's/^\([0-9]\{1,4\}\)\.\([0-9]\{1,4\}\)\([.-].*\)*$/\1, \2/p'; }
	found=$(numbers "$version")
	echo "${found:-$(numbers "$release")}"
	exit 0
}
[ "${1:-}" = deb ] || {
	echo "$version"
	exit 0
}
case $version in
*-dev) echo "${version%-dev}~dev" ;;
*-rc*) echo "$version" | sed 's/-rc/~rc/; s/-\([0-9]*\)-g/+\1.g/' ;;
*) echo "$version" | sed 's/-\([0-9]*\)-g/+\1.g/' ;;
esac
