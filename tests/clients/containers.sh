#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Containers that share nothing but a folder: each rank of programs of tests/c has pid, network and
# mount namespaces of its own, and a user namespace where asked for (tests/c/container.h). They reach each
# other through FI_WEFT_SHM_DIR, a memory file system of 64 MiB. Needs root; skipped without.
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source-path=SCRIPTDIR source=lib.sh
. tests/clients/lib.sh

LIMIT=120
folder=$work/folder

down() {
	umount "$folder" 2>/dev/null
	rm -rf "$work"
}

# inside WORDS PROGRAM...: every test of programs with their ranks in such containers; nothing stays
# in the folder.
inside() {
	local words=$1 program left

	shift
	for program in "$@"; do
		WEFT_TEST_CONTAINERS=$words FI_WEFT_SHM_DIR=$folder timeout $LIMIT "build/tests/$program" >"$work/log" 2>&1
		case $? in
		0) ok "tests/c/$program in containers ($words): $(tail -n 1 "$work/log")" ;;
		*) not_ok "tests/c/$program in containers ($words)" "$work/log" ;;
		esac
		left=$(ls -A "$folder")
		if [ -n "$left" ]; then
			not_ok "tests/c/$program in containers ($words) leaves ${left//$'\n'/, }"
			rm -rf "${folder:?}"/*
		fi
	done
}

# What the folder is chosen for can be refused, too: then those are different hosts.
apart() {
	if WEFT_TEST_CONTAINERS=pid FI_WEFT_SHM_DIR=$folder FI_WEFT_SHM_ACROSS=no FI_WEFT_CONNECT_TIMEOUT=1s \
		timeout $LIMIT build/tests/msg_basic >"$work/log" 2>&1; then
		not_ok "FI_WEFT_SHM_ACROSS=no: containers reach each other" "$work/log"
	else
		ok "FI_WEFT_SHM_ACROSS=no: containers with networks of their own do not reach each other"
	fi
	rm -rf "${folder:?}"/*
}

if [ "$(id -u)" != 0 ]; then
	skip "containers" "namespaces need root"
elif ! make -s -C tests/c OUT="$PWD/build/tests"; then
	not_ok "tests/c is built"
else
	mkdir "$folder"
	for_any_user
	trap down EXIT
	if mount -t tmpfs -o size=64m,mode=1777 none "$folder" 2>"$work/log" &&
		unshare --pid --net --ipc --mount --fork true 2>>"$work/log"; then
		inside pid msg_basic rma rma_small collective scalable authkey trywait fault_limits
		inside blind msg_basic rma
		inside pid,ports msg_basic collective authkey
		inside pid,noattach msg_basic rma rma_order
		WEFT_TEST_KILLS=20 inside pid fault_kill fault_restart
		if unshare --user true 2>"$work/log"; then
			inside user msg_basic rma collective
			WEFT_TEST_KILLS=10 inside user fault_kill
		else
			skip "user namespaces" "$(head -n 1 "$work/log")"
		fi
		apart
	else
		skip "containers" "$(head -n 1 "$work/log")"
	fi
fi
echo "$passed passed, $failed failed, $skipped skipped"
((failed == 0))
