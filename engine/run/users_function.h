// Calls into functions of the user's, which may throw where the engine must not.
#pragma once

#include <exception>
#include <string>

namespace rankine {

inline void say_what_it_threw(std::string& why, const char* what) noexcept {
  try {
    why = what;
  } catch (...) {  // without a text, then
  }
}

// Whether f() returned; where it threw, `why` says what.
template <class F>
bool returns(const F& f, std::string& why) noexcept {
  try {
    f();
    return true;
  } catch (const std::exception& error) {
    say_what_it_threw(why, error.what());
  } catch (...) {
    say_what_it_threw(why, "what is no std::exception");
  }
  return false;
}

}  // namespace rankine
