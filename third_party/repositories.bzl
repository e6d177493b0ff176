"""The repositories that Bazel 4.2.3 needs to build Rankine, in this workspace and in one that depends on it:

    local_repository(name = "rankine", path = "../rankine")
    load("@rankine//third_party:repositories.bzl", "rankine_repositories")
    rankine_repositories()
"""

load(":debian.bzl", "debian_repositories")
load(":optional.bzl", "mpi_abi_library", "ucc_library")

# Bazel appends its own list of repositories to WORKSPACE and would fetch these; it skips names that are already declared.
_OURS = {
    # Every test depends on this label, also when coverage is off.
    "remote_coverage_tools": {
        "BUILD.bazel": """filegroup(
    name = "coverage_report_generator",
    visibility = ["//visibility:public"],
)
""",
    },
    # The C++ rules inside Bazel 4.2.3, under the label of newer Bazels. Debian's package of rules_cc has files that 4.2.3 cannot load.
    "rules_cc": {
        "BUILD.bazel": "",
        "cc/BUILD.bazel": "",
        "cc/defs.bzl": "\n".join(["%s = native.%s" % (rule, rule) for rule in [
            "cc_binary",
            "cc_import",
            "cc_library",
            "cc_proto_library",
            "cc_test",
            "cc_toolchain",
            "cc_toolchain_suite",
            "fdo_prefetch_hints",
            "fdo_profile",
            "objc_library",
        ]]),
    },
}

def _written_repository_impl(ctx):
    for path, text in ctx.attr.files.items():
        ctx.file(path, text)

_written_repository = repository_rule(
    implementation = _written_repository_impl,
    attrs = {"files": attr.string_dict(doc = "The texts of the files.", mandatory = True)},
    doc = "A repository with these files.",
)

_OF_DEBIAN = {
    "bazel_skylib": "/usr/share/bazel/tools/skylib",
    "rules_java": "/usr/share/bazel/rules/java",
    "rules_proto": "/usr/share/bazel/rules/proto",
}

def rankine_repositories():
    """Declares the repositories that are not declared yet; downloads nothing."""
    for name, files in _OURS.items():
        if not native.existing_rule(name):
            _written_repository(name = name, files = files)
    for name, path in _OF_DEBIAN.items():
        if not native.existing_rule(name):
            native.local_repository(name = name, path = path)
    debian_repositories()
    mpi_abi_library(name = "mpi_abi")
    ucc_library(name = "ucc")
