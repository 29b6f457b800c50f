#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Runs every test and adds up what they report. Each step prints a line of the
# form "N passed, N failed, N skipped"; so does the whole, as the last line.
set -u
cd "$(dirname "$0")/.." || exit 1

GO=${GO:-go}
passed=0
failed=0
skipped=0
log=$(mktemp -d)
trap 'rm -rf "$log"' EXIT
started=$SECONDS

# step NAME COMMAND... shows the command's output, and how long it took, and takes its closing line.
# A command that fails without one, or prints none, counts as one failure.
step() {
	local name=$1 status line began=$SECONDS
	shift
	echo "== $name"
	"$@" 2>&1 | tee "$log/step"
	status=${PIPESTATUS[0]}
	echo "-- $name: $((SECONDS - began)) s"
	line=$(grep -E '^[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$' "$log/step" | tail -n 1)
	if [[ $line =~ ^([0-9]+)\ passed,\ ([0-9]+)\ failed,\ ([0-9]+)\ skipped$ ]]; then
		passed=$((passed + BASH_REMATCH[1]))
		failed=$((failed + BASH_REMATCH[2]))
		skipped=$((skipped + BASH_REMATCH[3]))
		if ((status != 0 && BASH_REMATCH[2] == 0)); then
			echo "FAILED $name: exit status $status"
			failed=$((failed + 1))
		fi
	else
		echo "FAILED $name: exit status $status, no closing line"
		failed=$((failed + 1))
	fi
}

# gotest FOLDER ARGUMENT... runs Go tests of the module in a folder and counts them, several packages at a time, because
# most wait for timers and peers. lint.sh vets them.
gotest() {
	"$GO" -C "$1" test -vet=off -p 4 -json "${@:2}" 2>&1 | "$GO" run ./tests/count
}

step build scripts/build.sh
step lint scripts/lint.sh quick
step "go test" gotest . -timeout 10m ./...
step "go test cmd/weft" gotest cmd/weft -timeout 10m ./...
# All packages of the library but simulations and generators, which have one thread.
mapfile -t threaded < <("$GO" list . ./examples/... ./mpsc ./cq ./eq ./stripe ./hw/... ./internal/... ./provider/... |
	grep -vE '/internal/(netsim|exchange|generated|hot/headers)(/|$)')
step "go test -race" gotest . -race -short -timeout 10m "${threaded[@]}"
# The same, with all threads on one core.
core=$(taskset -cp $$ | sed 's/.*: *//; s/[-,].*//')
onecore() { taskset -c "$core" "$GO" test -json "$@" 2>&1 | "$GO" run ./tests/count; }
step "go test, one core" onecore -short -timeout 5m -run 'Stress|Many|Progress|Stop|Read|Shared|Lease' ./mpsc ./cq ./stripe ./internal/proxy
step "direct" scripts/lean.sh --proc scripts/direct.sh
# A short form of make test-rdma.
step "virtual machines with RDMA" scripts/lean.sh tests/rdma/run.sh short
for script in tests/clients/*.sh; do
	[ -x "$script" ] || continue
	case $script in
	# Their containers mount /proc.
	*/containers.sh | */pods.sh) step "$script" scripts/lean.sh "$script" ;;
	*) step "$script" scripts/lean.sh --proc "$script" ;;
	esac
done

echo "== $((SECONDS - started)) s"
echo "$passed passed, $failed failed, $skipped skipped"
((failed == 0 && passed > 0))
