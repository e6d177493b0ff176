// The engine as the page calls it: answers.h across the border of WebAssembly.
#pragma once

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

// The answer to a request, both as UTF-8 that ends with a zero. What it points to, and the numbers,
// stay until the next call. Never NULL. For one thread.
const char* rankine_answer(const char* request);

// The numbers of the last answer.
const double* rankine_numbers(void);
size_t rankine_number_count(void);

#ifdef __cplusplus
}
#endif
