"""Makes the package of Python. CMake compiles its library, extension module and command, unless third_party/wheel has brought them."""

import ast
import os
import pathlib
import re
import shutil
import subprocess

from setuptools import Distribution, setup
from setuptools.command.build_py import build_py

ROOT = pathlib.Path(__file__).parent
BUILT = pathlib.Path("build/cmake")
PACKAGE = pathlib.Path("engine/api/python/rankine")


class Build(build_py):
    def run(self) -> None:
        if (ROOT / "third_party/cmake").exists():
            options = ["-DRANKINE_PYTHON=ON", "-DRANKINE_TOOL=ON", "-DCMAKE_BUILD_WITH_INSTALL_RPATH=ON"]
            subprocess.run(["cmake", "-S", ROOT / "third_party/cmake", "-B", BUILT, *options], check=True)
            targets = ["rankine", "rankine_tool", "rankine_python"]
            cores = str(len(os.sched_getaffinity(0)))
            subprocess.run(["cmake", "--build", BUILT, "--parallel", cores, "--target", *targets], check=True)
        super().run()
        for name in ("librankine.so.1", "_engine.abi3.so"):
            shutil.copy(BUILT / name, pathlib.Path(self.build_lib) / "rankine")


class WithModule(Distribution):
    def has_ext_modules(self) -> bool:  # so that the wheel's name has the machine
        return True


version = re.search('kVersion = "(.*)"', (ROOT / "engine/api/version.h").read_text())
description = ast.get_docstring(ast.parse((ROOT / PACKAGE / "__init__.py").read_text()))
page = BUILT / "rankine.html"
setup(
    version=version[1],
    long_description=description,
    long_description_content_type="text/markdown",
    cmdclass={"build_py": Build},
    data_files=[("bin", [str(BUILT / "rankine")])] + [("share/doc/rankine", [str(page)])] * page.exists(),
    distclass=WithModule,
    options={"bdist_wheel": {"py_limited_api": "cp39"}},
)
