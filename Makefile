# SPDX-License-Identifier: BSD-2-Clause
#
# make run    see weft work          make test   run every test
# make build  libraries into build/  make help   the other targets

GO      ?= go
CC      ?= gcc
CXX     ?= g++
MPICC   ?= mpicc
PREFIX  ?= /usr/local
DESTDIR ?=
LIBDIR  ?= $(PREFIX)/lib
LIBEXECDIR = $(PREFIX)/libexec
ZSHDIR  ?= $(PREFIX)/share/zsh/site-functions
VERSION := $(shell scripts/version.sh)
SONAME   = libweft.so.0
# A libfabric other than the system's for make bench: a folder with include and lib.
LIBFABRIC ?=
# Folders of MPICH for make bench: built for libfabric (ch4:ofi), and for UCX (Debian's: /usr).
MPICH     ?=
MPICH_UCX ?=

LIB   = build/lib
BIN   = build/bin
BENCH = build/bench

# libweft-fi.so is loaded into every program that uses libfabric: small, and of C alone. It
# loads libweft-core.so, which is the provider, from its own folder.
# A Go library is never unloaded, so the loader must not try. Preemption by
# signal is off: the application's threads would get SIGURG. Stacks do not
# shrink: the application's signal handlers may need the room (cabi/thread.c).
# The runtime's threads are made by cabi/spares.c, its memory comes by cabi/mmap.c, and its signal actions pass
# cabi/signals.c.
# The same sources give the same bytes: no path of this machine, no state of git.
GO_BUILD = $(GO) build -trimpath -buildvcs=false
# What benchmarks spend time in says to the compiler what to inline (make pgo).
PGO = -pgo=$(CURDIR)/cabi/weft.pgo
VERSION_FLAG = -X github.com/weft-fabric/weft/internal/version.tag=$(VERSION)
GO_LDFLAGS = -buildid= $(VERSION_FLAG) -X runtime.godebugDefault=asyncpreemptoff=1,gcshrinkstackoff=1
WRAP = -Wl,--wrap=pthread_create -Wl,--wrap=pthread_attr_init -Wl,--wrap=x_cgo_sigaction -Wl,--wrap=x_cgo_mmap \
	-Wl,--wrap=x_cgo_munmap
LINK_CORE = $(WRAP) -Wl,-z,nodelete -Wl,-z,defs -Wl,-Bsymbolic -Wl,-soname,libweft-core.so -Wl,--version-script=$(CURDIR)/cabi/weft-core.map
LINK    = $(WRAP) -Wl,-z,nodelete -Wl,-z,defs -Wl,-Bsymbolic -Wl,-soname,$(SONAME) -Wl,--version-script=$(CURDIR)/cabi/weft.map

LOADER_FLAGS = -O2 -g -fPIC -fvisibility=hidden -shared -DWEFT_PROV_VERSION='FI_VERSION($(shell scripts/version.sh numbers))' \
	-ffile-prefix-map=$(CURDIR)=. -Wl,--build-id=none -Wl,-z,defs -Wl,-z,noseparate-code -Wl,-soname,libweft-fi.so \
	-Wl,--version-script=$(CURDIR)/cabi/loader/loader.map

WARN = -std=gnu11 -Wall -Wextra -Werror -D_GNU_SOURCE -pthread
ifneq ($(LIBFABRIC),)
FABRIC_FLAGS = -I$(LIBFABRIC)/include -L$(LIBFABRIC)/lib
endif

# NIXL: its source folder, the folder of libraries where it is installed, and abseil's, with include and lib, if it is
# not the system's.
, := ,
NIXL     ?=
NIXL_LIB ?= /opt/nvidia/nvda_nixl/lib
ABSEIL   ?=
PLUGIN    = $(LIB)/nixl
NIXL_LOG = $$(PKG_CONFIG_PATH="$(if $(ABSEIL),$(ABSEIL)/lib/pkgconfig:)$$PKG_CONFIG_PATH" \
	pkg-config --cflags --libs absl_log absl_check | sed 's/-I/-isystem /g')
NIXL_FLAGS = -std=c++20 -Wall -Wextra -Werror -O2 -fPIC -fvisibility=hidden -Iinclude \
	$(addprefix -isystem $(NIXL)/src/,api/cpp core/telemetry infra utils) -DWEFT_VERSION='"$(VERSION)"' $(if $(ABSEIL),-Wl$(,)-rpath$(,)$(ABSEIL)/lib)
NIXL_TEST = $(NIXL_FLAGS) -Iplugins/nixl/tests -L$(NIXL_LIB) -lnixl -lnixl_build -Wl,-rpath,$(NIXL_LIB) -Wl,--allow-shlib-undefined -Wl,--disable-new-dtags

MPI_BENCH = $(addprefix tests/bench/mpi/,mpi_bench.c streams.c together.c)
# The compiler of an MPICH in a folder; Debian's has a name of its own.
# Its MPI_STATUSES_IGNORE is an address that the compiler takes for an array of no length.
MPICH_WARN = -Wno-stringop-overflow
MPICH_CC = $(firstword $(wildcard $(1)/bin/mpicc.mpich) $(1)/bin/mpicc)

.PHONY: help deps build provider-lib lib mpi-lib bin bench-program nixl nixl-check run test test-cxi test-rdma lint bench bench-cxi bench-net bench-rdma bench-scaling plots pgo man generate fuzz \
	install install-files uninstall deb clean

help:
	@sed -n 's/^## //p' Makefile

## make deps       install the packages that are missing (Debian, Ubuntu)
deps:
	@scripts/deps.sh

## make build      build/lib/libweft-fi.so and libweft-core.so, build/lib/libweft.so, libweft-mpi-*.so, build/bin/
build: lib mpi-lib bin

provider-lib:
	@mkdir -p $(LIB)
	$(GO_BUILD) $(PGO) $(if $(TAGS),-tags $(TAGS)) -buildmode=c-shared -ldflags "$(GO_LDFLAGS) -extldflags '$(LINK_CORE)'" \
		-o $(LIB)/libweft-core.so ./cabi
	$(CC) $(WARN) $(LOADER_FLAGS) -o $(LIB)/libweft-fi.so cabi/loader/*.c -ldl

lib: provider-lib
	$(GO_BUILD) $(PGO) -buildmode=c-shared -tags direct -ldflags "$(GO_LDFLAGS) -extldflags '$(LINK)'" \
		-o $(LIB)/libweft.so ./cabi
	@rm -f $(LIB)/*.h
	@ln -sf libweft.so $(LIB)/$(SONAME)

# libweft-mpi, for each MPI that is here.
mpi-lib:
	@mkdir -p $(LIB)
	@MPICC="$(MPICC)" WARN="$(WARN)" scripts/mpilib.sh $(LIB)

bin:
	@mkdir -p $(BIN)
	CGO_ENABLED=0 $(GO) -C cmd/weft build -trimpath -buildvcs=false -ldflags "-buildid= $(VERSION_FLAG)" -o $(CURDIR)/$(BIN)/ .

bench-program:
	@mkdir -p $(BENCH)
	$(CC) $(WARN) -O2 -o $(BENCH)/weft_bench tests/bench/*.c $(FABRIC_FLAGS) -lfabric -lm
	if command -v $(MPICC) >/dev/null; then \
		$(MPICC) $(WARN) -O2 -o $(BENCH)/latency_mt tests/bench/mpi/latency_mt.c && \
		$(MPICC) $(WARN) -O2 -o $(BENCH)/mpi_bench $(MPI_BENCH); \
	fi
	MPICC="$(MPICC)" scripts/mpibench.sh $(BENCH)
	$(if $(MPICH),$(call MPICH_CC,$(MPICH)) $(WARN) $(MPICH_WARN) -O2 -o $(BENCH)/mpi_bench.mpich $(MPI_BENCH))
	$(if $(MPICH_UCX),$(call MPICH_CC,$(MPICH_UCX)) $(WARN) $(MPICH_WARN) -O2 -o $(BENCH)/mpi_bench.mpich-ucx $(MPI_BENCH))

## make run        install what is missing, build, and show weft at work
run: deps
	@scripts/run.sh

## make test       install what is missing, build, and run every test
test: deps
	@scripts/test.sh

## make test-cxi   every program of tests/c over the model of Slingshot's NIC alone, as root
test-cxi: build
	@tests/cxi/programs.sh

## make test-rdma  hw/verbs in virtual machines with a real kernel's RDMA stack
test-rdma: deps
	@tests/rdma/run.sh full

## make lint       formatting, vet, staticcheck, golangci-lint, shellcheck, C warnings, layers, calls of the data plane
lint: lib
	@scripts/lint.sh full

# What make bench measures, and where it keeps it.
SUBJECTS = mpi ucx latency rate bandwidth onesided atomics polling posting memory depth progress peers sizes
WEFT_BENCH = $(BIN)/weft bench --libfabric "$(LIBFABRIC)" --mpich "$(MPICH)" --mpich-ucx "$(MPICH_UCX)" --plots docs/plots --out docs/benchmarks.md

## make nixl       build/lib/nixl/libplugin_WEFT.so, NIXL's backend over weft (NIXL, ABSEIL)
nixl: lib
	@test -f "$(NIXL)/src/api/cpp/nixl.h" || { echo "NIXL= names no source folder of NIXL" >&2; exit 2; }
	@mkdir -p $(PLUGIN)
	$(CXX) $(NIXL_FLAGS) -shared -o $(PLUGIN)/libplugin_WEFT.so plugins/nixl/backend.cpp -L$(LIB) -lweft -Wl,-rpath,'$$ORIGIN/..' \
		$(NIXL_LOG)

## make nixl-check  its tests, between hosts as root (NIXL, NIXL_LIB, ABSEIL)
nixl-check: nixl
	for p in check bench vram; do \
		$(CXX) plugins/nixl/tests/$$p.cpp $(NIXL_TEST) $(NIXL_LOG) -o $(PLUGIN)/$$p || exit 1; done
	$(CXX) plugins/nixl/tests/engine.cpp $(NIXL_TEST) -L$(LIB) -lweft -Wl,-rpath,'$$ORIGIN/..' $(NIXL_LOG) -o $(PLUGIN)/engine
	$(MAKE) -s -C tests/c OUT="$(CURDIR)/build/tests" "$(CURDIR)/build/tests/fake/libcuda.so.1"
	@plugins/nixl/tests/run.sh $(PLUGIN)

## make bench      measure weft beside other providers into docs/benchmarks.md
bench: build bench-program
	$(WEFT_BENCH) --save build/bench.json $(SUBJECTS) $(if $(LIBFABRIC),,netpipe mpi-threads)

## make bench-net  between network namespaces, as root
bench-net: build bench-program
	$(WEFT_BENCH) --save build/net.json net

## make bench-scaling  rates over the number of threads, with a plot
bench-scaling: build bench-program
	$(WEFT_BENCH) --save build/scaling.json --providers weft,shm --rounds 7 threads

## make bench-rdma  weft beside verbs;ofi_rxm in virtual machines, into docs/benchmarks.md
bench-rdma: deps
	@tests/rdma/bench.sh

## make bench-cxi  the host's share of a message over Slingshot's NICs, into docs/benchmarks.md
bench-cxi:
	@GO="$(GO)" scripts/bench-cxi.sh

## make plots      docs/plots: windows, RTTs, queues and all-to-alls in simulation
plots:
	cd internal/netsim/plots && $(GO) run . $(CURDIR)/docs/plots

## make pgo        cabi/weft.pgo, by which the compiler optimises, from benchmarks; as root
pgo: build bench-program
	@GO_LDFLAGS="$(GO_LDFLAGS)" scripts/pgo.sh

## make man        manual pages, docs/counters.md, cabi/loader/table_gen.h from the tables they describe
man:
	@mkdir -p build
	$(GO) run ./internal/config/manpage docs/fi_weft.7.in > build/fi_weft.7
	mv build/fi_weft.7 docs/fi_weft.7
	$(GO) -C cmd/weft run ./internal/manpage man > build/weft.1
	mv build/weft.1 docs/weft.1
	$(GO) -C cmd/weft run ./internal/manpage counters > build/counters.md
	mv build/counters.md docs/counters.md
	$(GO) run ./cabi/loader/table > build/table_gen.h
	mv build/table_gen.h cabi/loader/table_gen.h

## make generate   include/weft from package hot, cabi/*_gen.* from cabi/shims, tests/cassini/layout.def for C and Go
generate:
	$(GO) run ./internal/hot/headers .
	$(GO) run ./cabi/shims .
	@mkdir -p build hw/cxi/internal/wire
	for f in layout.h values.h layout.go values.go; do \
		$(GO) run ./tests/cassini/layout tests/cassini/layout.def $$f > build/$$f || exit 1; done
	mv build/layout.h build/values.h tests/cassini/
	mv build/layout.go build/values.go hw/cxi/internal/wire/

## make fuzz       every fuzz test for a few seconds
fuzz:
	@scripts/fuzz.sh

# What make install puts in place, below DESTDIR.
MPI_LIBS = $(addprefix libweft-mpi-,openmpi.so mpich.so)
HEADERS = $(patsubst include/%,$(PREFIX)/include/%,$(wildcard include/weft/*.h))
BASHDIR = $(PREFIX)/share/bash-completion/completions
FISHDIR = $(PREFIX)/share/fish/vendor_completions.d
MANDIR  = $(PREFIX)/share/man
INSTALLED = $(LIBDIR)/libfabric/libweft-fi.so $(LIBDIR)/libfabric/libweft-core.so $(LIBDIR)/$(SONAME) $(LIBDIR)/libweft.so \
	$(addprefix $(LIBDIR)/,$(MPI_LIBS)) \
	$(LIBDIR)/pkgconfig/weft.pc $(HEADERS) $(PREFIX)/bin/weft $(LIBEXECDIR)/weft/weft_bench $(MANDIR)/man7/fi_weft.7 $(MANDIR)/man1/weft.1 \
	$(BASHDIR)/weft $(ZSHDIR)/_weft $(FISHDIR)/weft.fish

## make install    libraries, headers, weft.pc, command, manual pages (PREFIX, LIBDIR, DESTDIR)
install: lib mpi-lib bin bench-program install-files

# Only copies what make build has built.
install-files:
	install -d $(addprefix $(DESTDIR),$(sort $(dir $(INSTALLED))))
	install -m 755 $(LIB)/libweft-core.so $(DESTDIR)$(LIBDIR)/libfabric/libweft-core.so
	install -m 755 $(LIB)/libweft-fi.so $(DESTDIR)$(LIBDIR)/libfabric/libweft-fi.so
	install -m 755 $(LIB)/libweft.so $(DESTDIR)$(LIBDIR)/$(SONAME)
	ln -sf $(SONAME) $(DESTDIR)$(LIBDIR)/libweft.so
	for f in $(MPI_LIBS); do \
		if [ -f $(LIB)/$$f ]; then install -m 755 $(LIB)/$$f $(DESTDIR)$(LIBDIR)/$$f || exit 1; fi; done
	install -m 644 include/weft/*.h $(DESTDIR)$(PREFIX)/include/weft/
	install -m 755 $(BIN)/weft $(DESTDIR)$(PREFIX)/bin/weft
	install -m 755 $(BENCH)/weft_bench $(DESTDIR)$(LIBEXECDIR)/weft/weft_bench
	install -m 644 docs/fi_weft.7 $(DESTDIR)$(MANDIR)/man7/fi_weft.7
	install -m 644 docs/weft.1 $(DESTDIR)$(MANDIR)/man1/weft.1
	$(BIN)/weft completion bash > $(DESTDIR)$(BASHDIR)/weft
	$(BIN)/weft completion zsh > $(DESTDIR)$(ZSHDIR)/_weft
	$(BIN)/weft completion fish > $(DESTDIR)$(FISHDIR)/weft.fish
	sed -e 's|@PREFIX@|$(PREFIX)|' -e 's|@LIBDIR@|$(LIBDIR)|' -e "s|@VERSION@|$$(scripts/version.sh deb)|" weft.pc.in \
		> $(DESTDIR)$(LIBDIR)/pkgconfig/weft.pc
	chmod 644 $(addprefix $(DESTDIR),$(LIBDIR)/pkgconfig/weft.pc $(BASHDIR)/weft $(ZSHDIR)/_weft $(FISHDIR)/weft.fish)

## make uninstall  remove what make install put in place
uninstall:
	rm -f $(addprefix $(DESTDIR),$(INSTALLED))
	-rmdir $(DESTDIR)$(PREFIX)/include/weft $(DESTDIR)$(LIBDIR)/libfabric $(DESTDIR)$(LIBEXECDIR)/weft 2>/dev/null

## make deb        build/weft_VERSION_ARCH.deb
deb: build bench-program
	@scripts/deb.sh build

## make clean      remove build/
clean:
	rm -rf build
