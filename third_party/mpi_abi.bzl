"""The MPI that has MPI 5's standard ABI, where there is one: that of the `mpicc_abi` on the PATH, which knows where its header and library
lie. No package of Debian 12 has it."""

def _flags(words, flag):
    return [word[len(flag):] for word in words if word.startswith(flag)]

def _mpi_abi_library_impl(ctx):
    compiler = ctx.which("mpicc_abi")
    if compiler == None:
        fail("there is no mpicc_abi on the PATH: no MPI that has the standard ABI is installed")
    shown = ctx.execute([compiler, "-show"])
    words = [word for word in shown.stdout.split(" ") if word]
    folders = [ctx.path(folder) for folder in _flags(words, "-I") if ctx.path(folder + "/mpi.h").exists]
    if shown.return_code != 0 or not folders:
        fail("%s -show names no folder of an mpi.h: %s%s" % (compiler, shown.stdout, shown.stderr))

    # Beside it may lie headers of anything.
    for header in folders[0].readdir():
        if header.basename.startswith("mpi") and header.basename.endswith(".h"):
            ctx.symlink(header, "include/" + header.basename)
    linked = []
    for folder in _flags(words, "-L"):
        linked += ["-L" + folder, "-Wl,-rpath," + folder]
    ctx.file("flags.bzl", "DEFINES = %r\nLINKOPTS = %r\n" % (_flags(words, "-D"), linked))
    ctx.symlink(Label("//third_party:mpi_abi.BUILD"), "BUILD.bazel")

mpi_abi_library = repository_rule(
    implementation = _mpi_abi_library_impl,
    doc = "The headers of that MPI, with only its own in sight, and its library.",
    environ = ["PATH"],
    # Looked at again by every new server, so that it may come and go.
    local = True,
)
