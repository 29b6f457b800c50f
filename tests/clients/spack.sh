#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Spack's recipe (packaging/spack): its steps are run on a copy of the tree, and what they install
# is used; by Spack itself where it is installed, too.
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source-path=SCRIPTDIR source=lib.sh
. tests/clients/lib.sh

prefix=$work/prefix

copy() {
	mkdir "$work/tree" && git ls-files -z --cached --others --exclude-standard | xargs -0 cp --parents -t "$work/tree" 2>/dev/null
}

steps() {
	local recipe=$PWD/packaging/spack/package.py stand_in=$PWD/tests/packaging/spack.py

	(cd "$work/tree" && /usr/bin/python3 "$stand_in" "$recipe" "$prefix") >"$work/environment" 2>"$work/log"
}

used() {
	env "$(grep '^FI_PROVIDER_PATH=' "$work/environment")" fi_info -p weft &&
		"$prefix/bin/weft" version && PKG_CONFIG_PATH=$prefix/lib/pkgconfig pkg-config --libs weft | grep -F "$prefix/lib"
}

by_spack() {
	spack repo create "$work/repo" weft && mkdir -p "$work"/repo/packages/weft &&
		cp packaging/spack/package.py "$work/repo/packages/weft/" && spack repo add "$work/repo" &&
		(cd "$work/tree" && spack dev-build weft@main)
}

if have "Spack's recipe" /usr/bin/python3; then
	if copy && steps; then ok "its steps"; else not_ok "its steps" "$work/log"; fi
	if used >"$work/log" 2>&1; then ok "what they install is found and used"; else not_ok "what they install is found and used" "$work/log"; fi
	if have "by Spack" spack; then
		if by_spack >"$work/log" 2>&1; then ok "by Spack"; else not_ok "by Spack" "$work/log"; fi
	fi
fi
closing
