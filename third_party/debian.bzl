"""Debian's -dev packages as Bazel repositories.

Each repository holds links to the headers of one library and nothing else. `-isystem /usr/include` would put the
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

def headers_and_flags(defines = [], deps = [], headers = True, includes = ["include"], linkopts = [], srcs = []):
    """Returns attributes of a library for write_build_file; its headers, if it has some, are all files below include/."""
    attributes = {"defines": defines, "deps": deps, "linkopts": linkopts, "srcs": srcs}
    return dict(attributes, hdrs = "glob([\"include/**\"])", includes = includes) if headers else attributes

def write_build_file(ctx, libraries):
    """Writes the repository's BUILD file.

    Args:
      ctx: the context of the repository's rule.
      libraries: the attributes of each public C++ library, by its name; {} for an empty one.
    """
    text = "load(\"@rules_cc//cc:defs.bzl\", \"cc_library\")\n\npackage(default_visibility = [\"//visibility:public\"])\n"
    for name, attributes in libraries.items():
        lines = ["name = %r" % name] + ["%s = %s" % attribute for attribute in attributes.items()]
        text += "\ncc_library(\n%s)\n" % "".join(["    %s,\n" % line for line in lines])
    ctx.file("BUILD.bazel", text)

def _library(packages, headers, optional = False, folders = [_PREFIX + "/include"], **targets):
    return struct(folders = folders, headers = headers, optional = optional, packages = packages, targets = targets)

# Names of repositories and targets are those of the Bazel registry; headers are below the system's include folder. Targets link libraries
# by -l, since the system's linker and loader find them, also for another machine (third_party/arm64). Headers included by a listed header
# need no entry (Boost has 15,000 files): the compiler finds them in the system's folder. If an optional library is not installed, its
# targets are empty: nothing to include, and macros such as RANKINE_HAS_GLOO stay undefined.
_LIBRARIES = {
    "boost": _library(["libboost-dev"], ["boost/lockfree"], optional = True, lockfree = headers_and_flags()),
    "cli11": _library(["libcli11-dev"], ["CLI"], cli11 = headers_and_flags()),
    "fmt": _library(["libfmt-dev"], ["fmt"], fmt = headers_and_flags(srcs = ["@rankine//third_party:fmt.cc"])),
    "gloo": _library(
        ["libgloo-dev"],
        ["gloo"],
        optional = True,
        gloo = headers_and_flags(defines = ["RANKINE_HAS_GLOO=1"], linkopts = ["-lgloo"]),
    ),
    "google_benchmark": _library(
        ["libbenchmark-dev"],
        ["benchmark"],
        benchmark = headers_and_flags(linkopts = ["-lbenchmark"]),
        benchmark_main = headers_and_flags(linkopts = ["-lbenchmark_main"], deps = [":benchmark"], headers = False),
    ),
    # GoogleMock is part of :gtest, as in the registry's module.
    "googletest": _library(
        ["libgmock-dev", "libgtest-dev"],
        ["gmock", "gtest"],
        gtest = headers_and_flags(linkopts = ["-lgmock", "-lgtest", "-pthread"]),
        gtest_main = headers_and_flags(linkopts = ["-lgmock_main"], deps = [":gtest"], headers = False),
    ),
    # Only tests link hwloc: the product opens it while it runs, if it is installed (numa/system_calls.h).
    "hwloc": _library(
        ["libhwloc-dev"],
        ["hwloc", "hwloc.h"],
        hwloc_headers = headers_and_flags(),
        hwloc = headers_and_flags(linkopts = ["-lhwloc"]),
    ),
    # Both MPIs have a header of this name, each in its own folder. Without the C++ bindings, which MPI has removed. Linked by the name of
    # the runtime library: the name without a number belongs to the MPI that the system prefers.
    "mpich": _library(
        ["libmpich-dev"],
        ["mpi.h", "mpi_proto.h", "mpio.h"],
        folders = [f.replace("/lib", "/include", 1) + "/mpich" for f in _LIBRARY_FOLDERS],
        mpich = headers_and_flags(defines = ["MPICH_SKIP_MPICXX=1"], linkopts = ["-l:libmpich.so.12"]),
    ),
    "nlohmann_json": _library(["nlohmann-json3-dev"], ["nlohmann"], json = headers_and_flags()),
    "numactl": _library(["libnuma-dev"], ["numa.h", "numacompat1.h", "numaif.h"], numa = headers_and_flags(linkopts = ["-lnuma"])),
    "openmpi": _library(
        ["libopenmpi-dev"],
        ["mpi.h", "mpi_portable_platform.h"],
        folders = [f + "/openmpi/include" for f in _LIBRARY_FOLDERS],
        openmpi = headers_and_flags(defines = ["OMPI_SKIP_MPICXX=1"], linkopts = ["-l:libmpi.so.40"]),
    ),
    # For a Python module: the interpreter that loads it has Python's own functions.
    "python": _library(["libpython3-dev"], ["python3"], python = headers_and_flags(includes = ["include", "include/python3"])),
    # rapidcheck_gtest has RC_GTEST_PROP and its like: #include <rapidcheck/gtest.h>
    "rapidcheck": _library(
        ["librapidcheck-dev"],
        ["rapidcheck", "rapidcheck.h"],
        rapidcheck = headers_and_flags(linkopts = ["-lrapidcheck"]),
        rapidcheck_gtest = headers_and_flags(deps = [":rapidcheck"], headers = False),
    ),
    "readerwriterqueue": _library(["libreaderwriterqueue-dev"], ["readerwriterqueue"], readerwriterqueue = headers_and_flags()),
    # smpi is SimGrid's MPI, with all ranks in one process (third_party/mpi --test smpi_ranks). It has its own malloc() for memory shared by
    # programs.
    "simgrid": _library(
        ["libsimgrid-dev"],
        ["simgrid", "smpi", "xbt", "xbt.h"],
        optional = True,
        simgrid = headers_and_flags(defines = ["RANKINE_HAS_SIMGRID=1"], linkopts = ["-lsimgrid"]),
        smpi = headers_and_flags(
            defines = ["SMPI_NO_OVERRIDE_MALLOC=1"],
            includes = ["include", "include/smpi"],
            linkopts = ["-lsimgrid"],
        ),
    ),
    "tomlplusplus": _library(["libtomlplusplus-dev"], ["toml++"], tomlplusplus = headers_and_flags()),
}

# The system's folder of a header's entry has the version in its name; the newest is taken.
_NAMES = {"python3": ["python3.%d" % minor for minor in range(30, 8, -1)]}

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
        write_build_file(ctx, {name: {} for name in library.targets})
        return
    for header in library.headers:
        names = _NAMES.get(header, [header])
        _link_first(ctx, library.packages, "include/" + header, [f + "/" + name for f in library.folders for name in names])
    if ctx.attr.library == "python":
        # Its generated header includes that of the target's machine, which is equal for x86-64 and, by the cross compiler, 64-bit Arm.
        for name in _NAMES["python3"]:
            generated = ctx.path(_PREFIX + "/include/x86_64-linux-gnu/" + name)
            if generated.exists:
                ctx.symlink(generated, "include/aarch64-linux-gnu/" + name)
    write_build_file(ctx, library.targets)

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
