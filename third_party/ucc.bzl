"""UCC, if installed: in the folder UCC_HOME, as for builds of PyTorch, or else in the folders that pkg-config names. No package of
Debian 12 has it, and UCC installs a file for pkg-config only since version 1.4."""

load(":debian.bzl", "headers_and_flags", "write_build_file")

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
    # Each new server looks again, so that UCC may come and go.
    local = True,
)
