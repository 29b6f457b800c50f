#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The Debian package: the same sources give the same bytes wherever they lie,
# and it is installed, used and removed without a trace. That happens on a copy
# of this system, in a mount namespace where changes go to an overlay.
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source-path=SCRIPTDIR source=lib.sh
. tests/clients/lib.sh
unset FI_PROVIDER_PATH # what is installed must be found without it

make=${MAKE:-make}
mounts=$work/mounts
mkdir "$mounts"
clean() {
	umount -l "$mounts" 2>/dev/null
	rm -rf "$work"
}
trap clean EXIT

version=$(scripts/version.sh)
export WEFT_VERSION=$version SOURCE_DATE_EPOCH=1700000000

build() {
	"$make" -s build >"$work/log" 2>&1 && scripts/deb.sh "$work/a" >>"$work/log" 2>&1
}

# The same files in another directory.
build_elsewhere() {
	mkdir "$work/elsewhere"
	git ls-files -z --cached --others --exclude-standard | xargs -0 cp --parents -t "$work/elsewhere" 2>/dev/null
	"$make" -s -C "$work/elsewhere" deb >"$work/log" 2>&1 &&
		cmp "$work"/a/weft_*.deb "$work"/elsewhere/build/weft_*.deb >>"$work/log" 2>&1
}

# inside COMMAND: in the copy of the system.
inside() {
	timeout 120 chroot "$mounts/root" /usr/bin/env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
		HOME=/tmp LANG=C "$@"
}

copy_of_system() {
	mount -t tmpfs tmpfs "$mounts" && mkdir "$mounts/upper" "$mounts/work" "$mounts/root" &&
		mount -t overlay overlay -o "lowerdir=/,upperdir=$mounts/upper,workdir=$mounts/work" "$mounts/root" &&
		mount --rbind /proc "$mounts/root/proc" && mount --rbind /sys "$mounts/root/sys" &&
		mount --rbind /dev "$mounts/root/dev"
}

# check NAME COMMAND...
check() {
	local name=$1
	shift
	if "$@" >"$work/log" 2>&1; then ok "$name"; else not_ok "$name" "$work/log"; fi
}

# finds TEXT COMMAND...: the output has the text.
finds() {
	local text=$1
	shift
	"$@" >"$work/found" 2>&1 || { cat "$work/found" && return 1; }
	grep -qF -- "$text" "$work/found" || { cat "$work/found" && return 1; }
}

# What the package changed and left, without what dpkg and ldconfig keep.
trace() {
	(cd "$mounts/upper" && find . \( -type f -o -type l \) -path '*weft*') | grep -v '^./var/lib/dpkg/\|^./var/log/'
}

use_it() {
	check "the provider is found" finds "provider: weft" inside fi_info -p weft
	check "weft version" finds "weft $version" inside weft version
	check "fi_info has its version" finds "version: $(echo "$version" | cut -d. -f1-2)" inside fi_info -p weft
	check "weft doctor finds it" finds "loads it" inside weft doctor --only provider
	check "manual pages" finds "FI_WEFT_SHM_DIR" inside sh -c 'zcat /usr/share/man/man7/fi_weft.7.gz /usr/share/man/man1/weft.1.gz'
	check "completion" finds "__start_weft weft" inside bash -c '. /usr/share/bash-completion/completions/weft && complete -p weft'
	cp examples/hello.c "$mounts/root/tmp/"
	# shellcheck disable=SC2016 # for the shell inside
	check "a C program with weft.pc" inside sh -c \
		'cd /tmp && gcc -o hello hello.c $(pkg-config --cflags --libs weft) && ./hello'
	check "libfabric's headers are not needed by ours" inside sh -c \
		'echo "#include <weft/hot.h>" | gcc -std=c11 -fsyntax-only -xc -'
}

in_namespace() {
	if ! copy_of_system 2>"$work/log"; then
		skip "install and remove" "no overlay here: $(tail -n 1 "$work/log")"
		return
	fi
	cp "$work"/a/weft_*.deb "$mounts/root/tmp/weft.deb"
	check "dpkg -i" inside dpkg -i /tmp/weft.deb
	use_it
	check "every file is as packaged" inside dpkg --verify weft
	check "dpkg -r" inside dpkg -r weft
	rm -f "$mounts/root/tmp/weft.deb"
	trace >"$work/left"
	if [ -s "$work/left" ]; then not_ok "nothing is left" "$work/left"; else ok "nothing is left"; fi
	if inside fi_info -p weft >/dev/null 2>&1; then not_ok "the provider is gone"; else ok "the provider is gone"; fi
}

if [ "${1:-}" = inside ]; then
	shift
	work=$1
	mounts=$work/mounts
	trap - EXIT
	in_namespace
	closing
	exit
fi

if ! have "the package" dpkg-deb; then
	closing
	exit
fi
if build; then ok "make deb"; else not_ok "make deb" "$work/log"; fi
if build_elsewhere; then ok "the same bytes from another directory"; else not_ok "the same bytes from another directory" "$work/log"; fi
if [ "$(id -u)" = 0 ] && unshare -m true 2>/dev/null; then
	unshare -m --propagation private "$0" inside "$work" | tee "$work/inside" | grep -v '^[0-9]* passed'
	read -r p _ f _ s _ < <(tail -n 1 "$work/inside")
	passed=$((passed + p)) failed=$((failed + ${f:-1})) skipped=$((skipped + ${s:-0}))
else
	skip "install and remove" "not root, or no mount namespaces"
fi
closing
