// environment_variable() is the only place in Rankine that reads the environment.
//
// A program with more rights than the user who started it (set-user-ID, set-group-ID, file
// capabilities: AT_SECURE, see getauxval(3)) must not obey that user's variables. In such a program
// every variable counts as unset, as with secure_getenv(3).
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace rankine {

// True if this program has more rights than its user. Thread-safe.
bool is_privileged() noexcept;

// The value, or nullptr if the variable is not set or is_privileged(). The text lives until the
// program changes the variable. Thread-safe beside other readers, as getenv(3) is.
const char* environment_variable(const char* name) noexcept;

// The names that begin with `prefix`, in the order of the environment, also if is_privileged().
// Throws std::bad_alloc. Thread-safe as getenv(3) is.
std::vector<std::string> variables_with_prefix(std::string_view prefix);

}  // namespace rankine
