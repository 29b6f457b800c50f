# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# Shared by the scripts beside it: where things are, and counting checks.
# Source it with the working directory at the root of the repository.

export WEFT_TEST_PROV=${WEFT_TEST_PROV:-weft}
export FI_PROVIDER_PATH=${FI_PROVIDER_PATH:-$PWD/build/lib}
# libpsm installs crash handlers and writes files; neither belongs here.
export IPATH_NO_BACKTRACE=1

passed=0
failed=0
skipped=0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

ok() {
	passed=$((passed + 1))
	echo "ok - $1"
}

# not_ok NAME LOG shows the end of the log, too.
not_ok() {
	failed=$((failed + 1))
	echo "not ok - $1"
	[ -n "${2:-}" ] && [ -f "$2" ] && {
		grep -B 8 '^not ok' "$2" | grep -v fi_getinfo | tail -n 60 # the tests of a program that failed
		tail -n 25 "$2"
	} | sed 's/^/#   /'
	return 0
}

skip() {
	skipped=$((skipped + 1))
	echo "ok - $1 # SKIP $2"
}

# have NAME COMMAND: skips the check when the program is not installed.
have() {
	command -v "$2" >/dev/null && return 0
	skip "$1" "$2 is not installed"
	return 1
}

# listening PORT PID [COMMAND...]: waits until a process listens at a TCP port, at most until
# process PID, which is to, ends. COMMAND runs another where that is, as in a namespace.
listening() {
	local pid=$2 port

	port=$(printf '%04X' "$1")
	shift 2
	until "$@" cat /proc/net/tcp /proc/net/tcp6 2>/dev/null | grep -qE "^ *[0-9]+: [0-9A-F]+:$port [0-9A-F]+:[0-9A-F]+ 0A "; do
		kill -0 "$pid" 2>/dev/null || return 1
		sleep 0.05
	done
}

# The closing line, and the status.
closing() {
	echo "$passed passed, $failed failed, $skipped skipped"
	((failed == 0 && passed > 0))
}

# for_any_user has programs load a copy of the libraries that any user may read: one may not be let into this folder.
for_any_user() {
	chmod 755 "$work" && mkdir "$work/lib" && cp build/lib/*.so "$work/lib" && export FI_PROVIDER_PATH=$work/lib
}
