"""Flags of the kernels, a file per instruction set; third_party/cmake/CMakeLists.txt reads these lines too."""

# A unit of its own, since its classes have the names of other kernels' classes.
PORTABLE_KERNELS = {
    "portable.cc": "-ffp-contract=off",
}

X86_64_KERNELS = {
    "avx2.cc": "-mavx2 -mf16c",
    "avx512.cc": "-mavx512f -mavx512bw -mavx512dq -mavx512vl -mbmi2 -mprefer-vector-width=512",
    "avx512_bf16.cc": "-mavx512f -mavx512bw -mavx512dq -mavx512vl -mbmi2 -mprefer-vector-width=512 -mavx512bf16",
}

AARCH64_KERNELS = {
    "neon.cc": "-march=armv8-a",
    "neon_bf16.cc": "-march=armv8.2-a+bf16",
}
