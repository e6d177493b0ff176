"""The repositories that Bazel 4.2.3 needs to build Rankine, in this workspace and in one that depends on it:

    local_repository(name = "rankine", path = "../rankine")
    load("@rankine//third_party:repositories.bzl", "rankine_repositories")
    rankine_repositories()
"""

load(":debian.bzl", "debian_repositories")
load(":mpi_abi.bzl", "mpi_abi_library")
load(":ucc.bzl", "ucc_library")

def _own_folder_impl(ctx):
    folder = ctx.path(Label("//third_party:BUILD.bazel")).dirname.get_child(ctx.name)
    for child in folder.readdir():
        ctx.symlink(child, child.basename)

_own_folder = repository_rule(
    implementation = _own_folder_impl,
    doc = "The folder of third_party with the repository's name, in any workspace.",
    local = True,
)

# Bazel appends its own list of repositories to WORKSPACE and would fetch these; it skips names that are already declared.
_OURS = ["remote_coverage_tools", "rules_cc"]
_OF_DEBIAN = {
    "bazel_skylib": "/usr/share/bazel/tools/skylib",
    "rules_java": "/usr/share/bazel/rules/java",
    "rules_proto": "/usr/share/bazel/rules/proto",
}

def rankine_repositories():
    """Declares the repositories that are not declared yet; downloads nothing."""
    for name in _OURS:
        if not native.existing_rule(name):
            _own_folder(name = name)
    for name, path in _OF_DEBIAN.items():
        if not native.existing_rule(name):
            native.local_repository(name = name, path = path)
    debian_repositories()
    mpi_abi_library(name = "mpi_abi")
    ucc_library(name = "ucc")
