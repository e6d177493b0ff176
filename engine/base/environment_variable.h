// The one place where Rankine reads the environment.
//
// A program that has more rights than the user who started it (set-user-ID, set-group-ID, file
// capabilities: AT_SECURE, see getauxval(3)) must not obey that user's variables. In such a program
// no variable is set, as secure_getenv(3) has it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace rankine {

// Whether this program has more rights than the user who started it. Thread-safe.
bool is_privileged() noexcept;

// The value, or nullptr if the variable is not set or is_privileged(). The text lives until the
// program changes the variable. Thread-safe as getenv(3) is: beside other readers.
const char* environment_variable(const char* name) noexcept;

// The names that begin with `prefix`, in the order of the environment, also if is_privileged().
// Throws std::bad_alloc. Thread-safe as getenv(3) is.
std::vector<std::string> variables_that_begin(std::string_view prefix);

}  // namespace rankine
