#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# lint.sh quick|full: quick needs no network, full adds staticcheck and golangci-lint. The libraries are built before.
set -u
cd "$(dirname "$0")/.." || exit 1

GOLANGCI=github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
STATICCHECK=honnef.co/go/tools/cmd/staticcheck@v0.8.2
GO=${GO:-go}
passed=0
failed=0
skipped=0
log=$(mktemp)
output=$(mktemp)
trap 'rm -f "$log" "$output"' EXIT

# check NAME COMMAND... succeeds when the command does and prints nothing. One that exits with 77 lacks its tool.
check() {
	name=$1
	shift
	status=0
	"$@" >"$log" 2>&1 || status=$?
	if [ "$status" = 0 ] && ! [ -s "$log" ]; then
		echo "ok $name"
		passed=$((passed + 1))
	elif [ "$status" = 77 ]; then
		echo "skipped $name: $(head -n 1 "$log")"
		skipped=$((skipped + 1))
	else
		echo "FAILED $name"
		head -n 60 "$log"
		failed=$((failed + 1))
	fi
}

# repository files that match, one a line
files() {
	git ls-files --cached --others --exclude-standard --deduplicate -- "$@" | while read -r f; do
		[ -f "$f" ] && echo "$f"
	done
}

scripts() {
	files '*.sh' .ci/run
}

c_syntax() {
	status=0
	# headers of include/ stand alone; others may need what is included before; the tests build those that
	# need what may be missing
	for f in $(files '*.c' 'include/*.h' ':!mpi' ':!tests/mpi' ':!tests/bench/mpi' ':!examples/ring.c' ':!tests/hosts/java' ':!tests/programs/netcdf.c' ':!tests/programs/fftw.c'); do
		gcc -std=gnu11 -Wall -Wextra -Werror -D_GNU_SOURCE -Iinclude -fsyntax-only -x c "$f" || status=1
	done
	for f in $(files 'mpi/*.c' 'tests/mpi/*.c' 'tests/bench/mpi/*.c' examples/ring.c); do
		mpicc -std=gnu11 -Wall -Wextra -Werror -D_GNU_SOURCE -fsyntax-only "$f" || status=1
	done
	return $status
}

run_shellcheck() {
	# shellcheck disable=SC2046 # names without spaces
	shellcheck $(scripts)
}

run_gofmt() {
	# shellcheck disable=SC2046
	gofmt -l $(files '*.go')
}

# golangci FOLDER PACKAGE... prints nothing where it finds nothing.
golangci() (
	cd "$1" && shift && "$GO" run "$GOLANGCI" run --show-stats=false "$@"
)

repository() {
	"$GO" test -count=1 ./tests/lint ./internal/config/manpage ./internal/hot/headers ./cabi/shims ./cabi/loader/table >"$output" 2>&1 || {
		cat "$output"
		return 1
	}
}

# calls LIBRARY prints nothing where its data plane needs nothing of the Go runtime.
calls() {
	scripts/callcheck.sh "build/lib/$1" >"$output" 2>&1 || {
		cat "$output"
		return 1
	}
}

# Fetches what the checks need, which would be output of theirs on a fresh machine.
fetch() {
	"$GO" mod download
	"$GO" -C cmd/weft mod download
	[ "$1" = quick ] || {
		"$GO" -C internal/netsim/plots mod download
		"$GO" run "$STATICCHECK" -version
		"$GO" run "$GOLANGCI" version
	}
}

fetch "${1:-full}" >"$log" 2>&1 || cat "$log"
check gofmt run_gofmt
check "go vet" "$GO" vet ./...
check "go vet cmd/weft" "$GO" -C cmd/weft vet ./...
check "go vet -tags direct,profile,planted" "$GO" vet -tags direct,profile,planted ./cabi
check shellcheck run_shellcheck
check "gcc -Wall -Wextra" c_syntax
check "clang-format" scripts/clang-format.sh
check "layers, files, generated files" repository
for lib in libweft-core.so libweft.so; do
	check "calls of the data plane of $lib" calls "$lib"
done
if [ "${1:-full}" = full ]; then
	check "go vet plots" env -C internal/netsim/plots "$GO" vet ./...
	check staticcheck "$GO" run "$STATICCHECK" ./...
	check "staticcheck cmd/weft" "$GO" -C cmd/weft run "$STATICCHECK" ./...
	check golangci-lint golangci . ./...
	check "golangci-lint cmd/weft" golangci cmd/weft ./...
fi

echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
