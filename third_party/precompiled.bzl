"""Headers that GCC reads once for all files that include them: they take more than half of the time of each file."""

load("@bazel_tools//tools/build_defs/cc:action_names.bzl", "ACTION_NAMES")
load("@bazel_tools//tools/cpp:toolchain_utils.bzl", "find_cpp_toolchain")

def _precompiled_header_impl(ctx):
    toolchain = find_cpp_toolchain(ctx)
    features = cc_common.configure_features(
        ctx = ctx,
        cc_toolchain = toolchain,
        requested_features = ctx.features,
        unsupported_features = ctx.disabled_features,
    )
    own = CcInfo(compilation_context = cc_common.create_compilation_context(headers = depset([ctx.file.header])))
    context = cc_common.merge_cc_infos(cc_infos = [own] + [d[CcInfo] for d in ctx.attr.deps]).compilation_context

    # No source has this name, since GCC takes the first match.
    header = ctx.actions.declare_file(ctx.label.name + ".h")
    headers = [header]
    action = ACTION_NAMES.cpp_compile
    compiler = cc_common.get_tool_for_action(feature_configuration = features, action_name = action)
    if "gcc" in compiler.split("/")[-1]:
        ctx.actions.write(header, "#error \"GCC has refused its precompiled header\"\n")
        precompiled = ctx.actions.declare_file(ctx.label.name + ".h.gch")
        headers.append(precompiled)
        variables = cc_common.create_compile_variables(
            feature_configuration = features,
            cc_toolchain = toolchain,
            source_file = ctx.file.header.path,
            output_file = precompiled.path,
            user_compile_flags = ctx.fragments.cpp.copts + ctx.fragments.cpp.cxxopts + ctx.attr.copts + ["-x", "c++-header"],
            include_directories = context.includes,
            quote_include_directories = context.quote_includes,
            system_include_directories = context.system_includes,
            preprocessor_defines = context.defines,
            use_pic = True,
        )
        ctx.actions.run(
            mnemonic = "CppPrecompile",
            executable = compiler,
            arguments = cc_common.get_memory_inefficient_command_line(
                feature_configuration = features,
                action_name = action,
                variables = variables,
            ),
            env = cc_common.get_environment_variables(
                feature_configuration = features,
                action_name = action,
                variables = variables,
            ),
            inputs = depset(transitive = [context.headers, toolchain.all_files]),
            outputs = [precompiled],
        )
    else:
        ctx.actions.write(header, "")  # other compilers read the headers in each file
    return [
        DefaultInfo(files = depset(headers)),
        CcInfo(compilation_context = cc_common.create_compilation_context(headers = depset(headers))),
    ]

precompiled_header = rule(
    implementation = _precompiled_header_impl,
    doc = "Dependents find the header as -include PACKAGE/NAME.h. Flags that change the meaning of code must be equal.",
    attrs = {
        "copts": attr.string_list(doc = "flags of the files that include it"),
        "deps": attr.label_list(providers = [CcInfo], doc = "targets of the headers that it includes"),
        "header": attr.label(allow_single_file = [".h"], mandatory = True),
        "_cc_toolchain": attr.label(default = Label("@bazel_tools//tools/cpp:current_cc_toolchain")),
    },
    fragments = ["cpp"],
    toolchains = ["@bazel_tools//tools/cpp:toolchain_type"],
)
