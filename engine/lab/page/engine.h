// Gives the page's JavaScript access to answers.h through WebAssembly.
#pragma once

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

// The answer to a request; both are UTF-8 with a final zero. The answer and the numbers stay valid
// until the next call. Never NULL. Not thread-safe: for one thread.
const char* rankine_answer(const char* request);

// The numbers of the last answer.
const double* rankine_numbers(void);
size_t rankine_number_count(void);

#ifdef __cplusplus
}
#endif
