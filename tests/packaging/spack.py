# SPDX-License-Identifier: BSD-2-Clause
"""Runs Spack's recipe without Spack: its build and install steps, with a stand-in for the module
that Spack gives to recipes. Arguments: the recipe, the prefix to install into.

Dependencies are those of the system. It prints the environment of those who run programs."""

import importlib.util
import os
import subprocess
import sys
import types


class Path(str):
    """A folder whose folders are its attributes."""

    def __getattr__(self, name):
        return Path(f"{self}/{name}")


class Environment(dict):
    def prepend_path(self, name, value):
        self[name] = value


def make(*arguments):
    subprocess.run(["make", "-s", *arguments], check=True)


def stand_in():
    module = types.ModuleType("spack.package")
    declared = []
    for name in ("version", "depends_on", "license"):
        setattr(module, name, lambda *a, _name=name, **_: declared.append((_name, *a)))
    module.MakefilePackage = type("MakefilePackage", (), {})
    module.make = make
    module.env = os.environ
    sys.modules["spack"] = types.ModuleType("spack")
    sys.modules["spack.package"] = module
    return declared


def main():
    recipe, prefix = sys.argv[1], Path(sys.argv[2])
    declared = stand_in()
    spec = importlib.util.spec_from_file_location("recipe", recipe)
    module = importlib.util.module_from_spec(spec)
    sys.dont_write_bytecode = True
    spec.loader.exec_module(module)
    needs = {d[1].split("@")[0] for d in declared if d[0] == "depends_on"}
    if not {"c", "go", "libfabric", "rdma-core"} <= needs:
        sys.exit(f"the recipe depends on {needs}")
    package = module.Weft()
    package.prefix = prefix
    system = {name: types.SimpleNamespace(prefix=Path("/usr")) for name in needs}
    package.edit(system, prefix)
    package.build(system, prefix)
    package.install(system, prefix)
    run = Environment()
    package.setup_run_environment(run)
    for name, value in run.items():
        print(f"{name}={value}")


main()
