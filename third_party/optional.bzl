"""Libraries that no package of Debian 12 has, if they are installed. Each new Bazel server looks again, so that they may come and go."""

load(":debian.bzl", "headers_and_flags", "write_build_file")

# The MPI with MPI 5's standard ABI: `mpicc_abi` on the PATH names the folders of its header and library.

def _flags(words, flag):
    return [word[len(flag):] for word in words if word.startswith(flag)]

def _mpi_abi_library_impl(ctx):
    compiler = ctx.which("mpicc_abi")
    if compiler == None:
        fail("no mpicc_abi is on the PATH; install an MPI with the standard ABI")
    shown = ctx.execute([compiler, "-show"])
    words = [word for word in shown.stdout.split(" ") if word]
    folders = [ctx.path(folder) for folder in _flags(words, "-I") if ctx.path(folder + "/mpi.h").exists]
    if shown.return_code != 0 or not folders:
        fail("%s -show names no folder of an mpi.h: %s%s" % (compiler, shown.stdout, shown.stderr))

    # The folder may have other headers as well.
    for header in folders[0].readdir():
        if header.basename.startswith("mpi") and header.basename.endswith(".h"):
            ctx.symlink(header, "include/" + header.basename)
    linked = []
    for folder in _flags(words, "-L"):
        linked += ["-L" + folder, "-Wl,-rpath," + folder]

    # The library's name contains the ABI's version, 1. (MPICH 5.0 has 0 by mistake.) The loader finds a program's own MPI before the one in
    # these folders.
    linked.append("-lmpi_abi")
    write_build_file(ctx, {"mpi_abi": headers_and_flags(defines = _flags(words, "-D"), linkopts = linked)})

mpi_abi_library = repository_rule(
    implementation = _mpi_abi_library_impl,
    doc = "The headers of that MPI, and only these, and its library.",
    environ = ["PATH"],
    local = True,
)

# UCC: in the folder UCC_HOME, as for builds of PyTorch, or else in the folders that pkg-config names; UCC installs a file for pkg-config
# only since version 1.4.

_HEADER = "ucc/api/ucc.h"

def _of_home(ctx, home):
    for name in ["lib", "lib64"]:
        if ctx.path("%s/%s/libucc.so" % (home, name)).exists:
            return struct(include = home + "/include", lib = home + "/" + name, told_by = "UCC_HOME")
    fail("UCC_HOME is %s; allowed is a folder with lib/libucc.so or lib64/libucc.so" % home)

def _of_pkg_config(ctx):
    pkg_config = ctx.which("pkg-config")
    if pkg_config == None or ctx.execute([pkg_config, "--exists", "ucc"]).return_code != 0:
        return None
    folders = [ctx.execute([pkg_config, "--variable=" + name, "ucc"]).stdout.strip() for name in ["includedir", "libdir"]]
    return struct(include = folders[0], lib = folders[1], told_by = "pkg-config")

def _ucc_library_impl(ctx):
    home = ctx.os.environ.get("UCC_HOME", "")
    found = _of_home(ctx, home) if home else _of_pkg_config(ctx)
    if found == None:
        write_build_file(ctx, {"ucc": {}})  # RANKINE_HAS_UCC stays undefined
        return
    if not ctx.path(found.include + "/" + _HEADER).exists:
        fail("%s names the folder %s for UCC's headers; it has no %s" % (found.told_by, found.include, _HEADER))
    ctx.symlink(found.include + "/ucc", "include/ucc")
    linkopts = ["-L" + found.lib, "-Wl,-rpath," + found.lib, "-lucc"]
    write_build_file(ctx, {"ucc": headers_and_flags(defines = ["RANKINE_HAS_UCC=1"], linkopts = linkopts)})

ucc_library = repository_rule(
    implementation = _ucc_library_impl,
    doc = "UCC's headers, and only these, and its library; empty if it is not installed.",
    environ = ["PATH", "PKG_CONFIG_PATH", "UCC_HOME"],
    local = True,
)
