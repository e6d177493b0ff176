"""Debian's -dev packages as Bazel repositories.

Each repository holds links to the headers and archives of one library and nothing else. `-isystem /usr/include` would put the
C headers before libstdc++'s own and break its `#include_next`; a folder with one library's headers in it cannot.
"""

# The only file that knows the system's library folders.
_PREFIX = "/usr"
_LIBRARY_FOLDERS = [
    _PREFIX + "/lib/x86_64-linux-gnu",
    _PREFIX + "/lib/aarch64-linux-gnu",
    _PREFIX + "/lib64",
    _PREFIX + "/lib",
]

def _library(packages, headers, archives = [], optional = False, folders = [_PREFIX + "/include"]):
    return struct(archives = archives, folders = folders, headers = headers, optional = optional, packages = packages)

# Names as in the Bazel registry; headers are below the system's include folder. <name>.BUILD links shared libraries by -l, since the
# system's linker and loader find them. Headers included by a listed header need no entry (Boost has 15,000 files): the compiler finds
# them in the system's folder. If an optional library is not installed, <name>_absent.BUILD has its targets as empty ones.
_LIBRARIES = {
    "boost": _library(["libboost-dev"], ["boost/lockfree"], optional = True),
    "cli11": _library(["libcli11-dev"], ["CLI"]),
    "fmt": _library(["libfmt-dev"], ["fmt"]),
    "google_benchmark": _library(["libbenchmark-dev"], ["benchmark"], ["libbenchmark_main.a"]),
    "googletest": _library(
        ["libgmock-dev", "libgtest-dev"],
        ["gmock", "gtest"],
        ["libgmock.a", "libgmock_main.a", "libgtest.a"],
    ),
    "gloo": _library(["libgloo-dev"], ["gloo"], optional = True),
    "hwloc": _library(["libhwloc-dev"], ["hwloc", "hwloc.h"]),
    "nlohmann_json": _library(["nlohmann-json3-dev"], ["nlohmann"]),
    # Both MPIs have a header of this name, each in its own folder.
    "mpich": _library(
        ["libmpich-dev"],
        ["mpi.h", "mpi_proto.h", "mpio.h"],
        folders = [f.replace("/lib", "/include", 1) + "/mpich" for f in _LIBRARY_FOLDERS],
    ),
    "numactl": _library(["libnuma-dev"], ["numa.h", "numacompat1.h", "numaif.h"]),
    "onetbb": _library(["libtbb-dev"], ["oneapi", "tbb"]),
    "openmpi": _library(
        ["libopenmpi-dev"],
        ["mpi.h", "mpi_portable_platform.h"],
        folders = [f + "/openmpi/include" for f in _LIBRARY_FOLDERS],
    ),
    "rapidcheck": _library(["librapidcheck-dev"], ["rapidcheck", "rapidcheck.h"], ["librapidcheck.a"]),
    "readerwriterqueue": _library(["libreaderwriterqueue-dev"], ["readerwriterqueue"]),
    "simgrid": _library(["libsimgrid-dev"], ["simgrid", "smpi", "xbt", "xbt.h"], optional = True),
    "tomlplusplus": _library(["libtomlplusplus-dev"], ["toml++"]),
    # Includes the headers for a Python module.
    "torch": _library(
        ["libpython3-dev", "libtorch-dev", "pybind11-dev"],
        ["ATen", "c10", "caffe2", "pybind11", "python3.11", "torch"],
    ),
}

def _link_first(ctx, packages, wanted, candidates):
    for candidate in candidates:
        path = ctx.path(candidate)
        if path.exists:
            ctx.symlink(path, wanted)
            return
    fail("%s is not installed; third_party/bazel installs it, or: apt-get install %s" % (wanted, " ".join(packages)))

def _debian_library_impl(ctx):
    library = _LIBRARIES[ctx.attr.library]
    if library.optional and not all([ctx.path(library.folders[0] + "/" + header).exists for header in library.headers]):
        ctx.symlink(Label("//third_party:%s_absent.BUILD" % ctx.attr.library), "BUILD.bazel")
        return
    for header in library.headers:
        _link_first(ctx, library.packages, "include/" + header, [f + "/" + header for f in library.folders])
    for archive in library.archives:
        _link_first(ctx, library.packages, "lib/" + archive, [f + "/" + archive for f in _LIBRARY_FOLDERS])
    ctx.symlink(Label("//third_party:%s.BUILD" % ctx.attr.library), "BUILD.bazel")

debian_library = repository_rule(
    implementation = _debian_library_impl,
    attrs = {
        "library": attr.string(
            doc = "The library. The repository's own name says it too, but newer Bazels decorate that name.",
            mandatory = True,
            values = sorted(_LIBRARIES.keys()),
        ),
    },
    doc = "One library of the system, and only its headers.",
    # Each new server looks again, so that a package may come and go.
    local = True,
)

def debian_repositories():
    """Declares all libraries, each under its name in the registry."""
    for name in sorted(_LIBRARIES.keys()):
        debian_library(
            name = name,
            library = name,
        )
