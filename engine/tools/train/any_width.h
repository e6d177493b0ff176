// Functions that are compiled once for each width of registers. The bits are the same, because no
// product is contracted with its sum (-ffp-contract=off). What chooses among them runs before
// sanitizers are ready.
#pragma once

#if defined(__x86_64__) && !defined(__clang__) && !defined(__SANITIZE_THREAD__) && \
    !defined(__SANITIZE_ADDRESS__)
#define RANKINE_ANY_WIDTH __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define RANKINE_ANY_WIDTH
#endif
