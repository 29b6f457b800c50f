#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# rpm.sh OUT: builds the rpm package from the last commit's files. What it needs to be built is
# found by the build itself, not in rpm's database, which other systems than rpm's do not fill.
set -eu
cd "$(dirname "$0")/.."

out=$1
upstream=$(scripts/version.sh)
version=$(scripts/version.sh deb) # rpm's versions are written as Debian's
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || stat -c %Y CHANGELOG.md)}
export SOURCE_DATE_EPOCH

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$out" "$work/SOURCES"
git archive --prefix="weft-$version/" -o "$work/SOURCES/weft-$version.tar.gz" HEAD
sed -e "s/@VERSION@/$version/" -e "s/@UPSTREAM@/$upstream/" packaging/rpm/weft.spec.in >"$work/weft.spec"
rpmbuild --nodeps -bb --define "_topdir $work" --define "_rpmdir $work/RPMS" "$work/weft.spec" >"$work/log" 2>&1 || {
	tail -n 40 "$work/log" >&2
	exit 1
}
find "$work/RPMS" -name 'weft-*.rpm' -exec cp {} "$out/" \; -exec basename {} \;
