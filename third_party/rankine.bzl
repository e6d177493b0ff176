"""Rankine's C++ rules: one dialect, one set of warnings, one way to link.

The flags live here and not in .bazelrc, because a project that depends on Rankine does not read our .bazelrc.
"""

load("@rules_cc//cc:defs.bzl", "cc_binary", "cc_library", "cc_test")
load(":precompiled.bzl", "precompiled_header")

# The MPIs for which engine/api/mpi is built, one target each, since their headers cannot be mixed.
MPIS = {
    "abi": "@mpi_abi",  # any MPI with the standard ABI
    "mpich": "@mpich",
    "openmpi": "@openmpi",
}

_COPTS = [
    "-std=c++20",
    "-pthread",
    "-Wall",
    "-Wextra",
    "-Wcast-align",
    "-Wconversion",
    "-Wextra-semi",
    "-Wnon-virtual-dtor",
    "-Woverloaded-virtual",
    "-Wshadow",
    "-Wundef",
    "-Wvla",
    # No fused a * b + c: numbers are equal on all processors, in kernels and in simulations.
    "-ffp-contract=off",
    # No -Wpedantic: it objects to __int128 and _Float16. No -Wsign-conversion: more casts than bugs.
    # Our code may use -fPIC and yet inline its own functions, as a program's code does.
    "-fno-semantic-interposition",
    # Clang does not know all of GCC's names, and GCC ignores -Wno- names that it does not know.
    "-Wno-unknown-warning-option",
]

# GCC 12 finds these in correct code once it has inlined enough of libstdc++; they stay visible, they stop nothing.
_FALSE_ALARMS = [
    "array-bounds",
    "maybe-uninitialized",
    "restrict",
    "stringop-overflow",
    "stringop-overread",
]

_LINKOPTS = ["-pthread"]

def _is_main_repository():
    if hasattr(native, "repo_name"):  # newer Bazels
        return native.repo_name() == ""
    return native.repository_name() == "@"

def _copts(copts):
    # A warning is an error at home. In a project that depends on us, a newer compiler's new warning must not break the build.
    return _COPTS + ["-Wno-error=" + alarm for alarm in _FALSE_ALARMS] + (["-Werror"] if _is_main_repository() else []) + copts

# A test compiles in two thirds of the time, and runs the engine's own code as it is.
_TEST_COPTS = ["-O1"]

def _with_precompiled(name, copts):
    """Flags and dependencies that give a target the precompiled headers.

    Empty outside this repository, whose compiler is unknown, and for targets with copts, which might choose another language.
    """
    if copts or not _is_main_repository():
        return [], []

    # A precompiled header loses the pragmas by which libstdc++ turns off warnings.
    flags = ["-include", "third_party/%s.h" % name] + ["-Wno-" + alarm for alarm in _FALSE_ALARMS]
    return flags, ["//third_party:" + name]

def rankine_precompiled_headers():
    """The headers that all of the targets below include first: `precompiled` and, for tests, `precompiled_for_tests`."""
    precompiled_header(
        name = "precompiled",
        copts = _copts([]),
        header = "standard.h",
    )
    precompiled_header(
        name = "precompiled_for_tests",
        copts = _copts(_TEST_COPTS),
        header = "standard_and_gtest.h",
        deps = [":standard", "@googletest//:gtest"],
    )

def _units(name, srcs, alone, copts):
    """Compiles the sources of a library as one unit per folder, so that headers are read once: (sources, included sources)."""
    together = [s for s in srcs if s.endswith(".cc") and s not in alone]
    if len(together) < 2 or copts:
        return srcs, []
    folders = {}
    for s in together:
        folders.setdefault(s.rpartition("/")[0], []).append(s)
    units = []
    for folder, sources in folders.items():
        unit = "_".join([name] + [p for p in folder.split("/") if p])
        native.genrule(
            name = unit + "_unit",
            outs = [unit + ".unit.cc"],
            cmd = "printf '#include \"%s\"\\n' " + " ".join([native.package_name() + "/" + s for s in sources]) + " >$@",
        )
        units.append(unit + ".unit.cc")
    return units + [s for s in srcs if s not in together], together

def rankine_cc_library(name, srcs = [], alone = [], copts = [], linkopts = [], deps = [], **kwargs):
    """A cc_library; includes are written from the workspace root: `#include "engine/run/mailbox.h"`.

    Args:
      name: the target.
      srcs: sources; the .cc files of a folder but for those in `alone` are compiled as one unit, unless there are copts.
      alone: sources that are compiled one by one, because of their size or because inlining across them costs speed.
      copts: added after the common ones.
      linkopts: added after the common ones.
      deps: libraries.
      **kwargs: hdrs, visibility, ... as in cc_library.
    """
    flags, precompiled = _with_precompiled("precompiled", copts)
    kwargs.setdefault("linkstatic", True)  # else every file is compiled a second time, for shared objects that nobody loads
    srcs, together = _units(name, srcs, alone, copts)
    cc_library(
        name = name,
        srcs = srcs,
        textual_hdrs = together + kwargs.pop("textual_hdrs", []),
        # In a unit, a class with a member of an anonymous namespace's type looks like one in a header.
        copts = _copts(copts) + (["-Wno-subobject-linkage"] if together else []) + flags,
        linkopts = _LINKOPTS + linkopts,
        deps = deps + precompiled,
        **kwargs
    )

def rankine_cc_binary(name, deps = [], copts = [], linkopts = [], **kwargs):
    """A cc_binary, also with linkshared = True.

    Args:
      name: the target.
      deps: libraries.
      copts: added after the common ones.
      linkopts: added after the common ones.
      **kwargs: srcs, data, args, tags, visibility, ... as in cc_binary.
    """
    flags, precompiled = _with_precompiled("precompiled", copts)
    cc_binary(
        name = name,
        copts = _copts(copts) + flags,
        linkopts = _LINKOPTS + linkopts,
        deps = deps + precompiled,
        **kwargs
    )

def rankine_cc_test(name, deps = [], main = True, copts = [], linkopts = [], size = "small", **kwargs):
    """A cc_test on GoogleTest. A test that starts threads carries tags = ["concurrency"] and then also runs under TSan.

    Args:
      name: the target.
      deps: libraries; GoogleTest is added.
      main: whether GoogleTest brings main(); with False the test brings its own (and only gtest itself is added).
      copts: added after the common ones.
      linkopts: added after the common ones.
      size: small (a minute, the default here), medium, large, enormous.
      **kwargs: srcs, tags, timeout, data, args, env, shard_count, ... as in cc_test.
    """
    gtest = ["@googletest//:gtest_main" if main else "@googletest//:gtest"]
    if native.package_name().startswith("tests"):
        gtest.append("//tests:testing")
    kwargs.setdefault("linkstatic", True)  # as the libraries
    flags, precompiled = _with_precompiled("precompiled_for_tests", copts)
    cc_test(
        name = name,
        size = size,
        copts = _copts(_TEST_COPTS + copts) + flags,
        linkopts = _LINKOPTS + linkopts,
        deps = deps + [d for d in gtest if d not in deps] + precompiled,
        **kwargs
    )

def rankine_sources(exclude = []):
    """The filegroup `sources` of a room, whose includes tests/rooms_test reads.

    Args:
      exclude: patterns of files that are no code of the room.
    """
    native.filegroup(
        name = "sources",
        srcs = native.glob(
            [
                "**/*.cc",
                "**/*.h",
            ],
            exclude = exclude,
        ),
        visibility = ["//tests:__subpackages__"],
    )
