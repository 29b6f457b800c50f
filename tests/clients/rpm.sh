#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The rpm package: built from a commit's files, it has what make install installs, and is
# installed, used and removed without a trace, in a folder that is a root of its own for rpm.
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source-path=SCRIPTDIR source=lib.sh
. tests/clients/lib.sh

root=$work/root

# check NAME COMMAND...
check() {
	local name=$1
	shift
	if "$@" >"$work/log" 2>&1; then ok "$name"; else not_ok "$name" "$work/log"; fi
}

# Scriptlets need programs of a whole system, which the root has not.
in_root() { rpm --root "$root" --dbpath /var/lib/rpm "$@"; }
install() { mkdir -p "$root" && in_root --nodeps --noscripts -i "$work"/weft-*.rpm; }

# What make install installs, and what the package has, but for documents and compression.
same_files() {
	local lib

	lib=$(rpm --eval '%{_libdir}')
	make -s install-files DESTDIR="$work/made" PREFIX=/usr LIBDIR="$lib" || return
	(cd "$work/made" && find usr -type f -o -type l) | sed 's|^|/|' | sort >"$work/want"
	rpm -qlp "$work"/weft-*.rpm | grep -v '^/usr/share/\(doc\|licenses\)/' | sed '/\/man\//s/\.gz$//' | sort >"$work/all"
	while read -r f; do
		[ -d "$root$f" ] || echo "$f"
	done <"$work/all" >"$work/has"
	diff "$work/want" "$work/has"
}

needs() { rpm -qp --requires "$work"/weft-*.rpm | grep '^libc.so.6'; }
used() { FI_PROVIDER_PATH=$root$(rpm --eval '%{_libdir}')/libfabric fi_info -p weft | grep 'provider: weft'; }
version() { "$root/usr/bin/weft" version | grep -F "weft $(scripts/version.sh)"; }
unchanged() { in_root -V --nodeps weft; }
removed() {
	in_root --noscripts -e weft || return
	find "$root" -path "$root/var/lib/rpm" -prune -o \( -type f -o -type l \) -print >"$work/left"
	cat "$work/left"
	! [ -s "$work/left" ]
}

if have "the package" rpmbuild && have "the package" git; then
	check "scripts/rpm.sh" scripts/rpm.sh "$work"
	if ((failed == 0)) && [ "$(id -u)" = 0 ]; then
		check "rpm -i" install
		check "the files of make install" same_files
		check "it needs glibc" needs
		check "the provider is found" used
		check "weft version" version
		check "every file is as packaged" unchanged
		check "rpm -e leaves nothing" removed
	elif ((failed == 0)); then
		skip "install and remove" "not root"
	fi
fi
echo "$passed passed, $failed failed, $skipped skipped"
((failed == 0))
