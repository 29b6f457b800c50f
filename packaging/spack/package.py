# SPDX-License-Identifier: BSD-2-Clause
"""Spack's recipe of weft. Put it into packages/weft of a repository of yours; docs/packages.md
says how."""

from spack.package import *


class Weft(MakefilePackage):
    """Libfabric provider without locks on its data path: messages, one-sided operations, atomics
    and collectives through shared memory, RDMA devices and UDP."""

    homepage = "https://github.com/weft-fabric/weft"
    git = "https://github.com/weft-fabric/weft.git"

    license("BSD-2-Clause")

    version("main", branch="main")

    depends_on("c", type="build")
    depends_on("go@1.26:", type="build")
    depends_on("gmake", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("libfabric@1.17:")
    depends_on("rdma-core", type="build")

    def edit(self, spec, prefix):
        # The benchmark program takes libfabric from here; MPI programs are not built.
        env["LIBFABRIC"] = spec["libfabric"].prefix
        env["CGO_CFLAGS"] = " ".join(
            f"-O2 -I{spec[name].prefix.include}" for name in ("libfabric", "rdma-core")
        )

    def build(self, spec, prefix):
        make("build", "bench-program", "MPICC=none", f"LIBFABRIC={spec['libfabric'].prefix}")

    def install(self, spec, prefix):
        make("install-files", f"PREFIX={prefix}", f"LIBDIR={prefix.lib}")

    def setup_run_environment(self, env):
        # libfabric 1.17 and later look for providers there.
        env.prepend_path("FI_PROVIDER_PATH", self.prefix.lib.libfabric)

    def setup_dependent_run_environment(self, env, dependent_spec):
        self.setup_run_environment(env)
