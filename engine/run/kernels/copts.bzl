"""Flags of the kernels, a file per instruction set; third_party/cmake/CMakeLists.txt reads these lines too."""

# No contraction of a * b + c into one rounding: results are the same with every instruction set.
KERNEL_COPTS = {
    "avx2.cc": "-ffp-contract=off -mavx2 -mf16c",
    "avx512.cc": "-ffp-contract=off -mavx512f -mavx512bw -mavx512dq -mavx512vl -mbmi2 -mprefer-vector-width=512",
    "avx512_bf16.cc": "-ffp-contract=off -mavx512f -mavx512bw -mavx512dq -mavx512vl -mbmi2 -mprefer-vector-width=512 -mavx512bf16",
    "portable.cc": "-ffp-contract=off",
    "rows_avx2.cc": "-ffp-contract=off -mavx2 -mf16c",
    "rows_avx512.cc": "-ffp-contract=off -mavx512f -mavx512bw -mavx512dq -mavx512vl -mbmi2 -mprefer-vector-width=512",
    "rows_portable.cc": "-ffp-contract=off",
}
