"""The MPI with MPI 5's standard ABI, if there is one: `mpicc_abi` on the PATH names the folders of its header and library. No package of
Debian 12 has it."""

load(":debian.bzl", "headers_and_flags", "write_build_file")

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
    # Each new server looks again, so that the MPI may come and go.
    local = True,
)
