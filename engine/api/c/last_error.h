// How the C functions tell what went wrong: a result, and the text that rkGetLastError() gives to
// the same thread. Nothing gets out of guarded() but a result.
#pragma once

#include <exception>
#include <new>
#include <string>
#include <string_view>

#include "engine/api/c/rankine.h"
#include "engine/base/status.h"

namespace rankine {

// Keeps "function: text" for rkGetLastError() and returns the result.
rkResult_t tell(const char* function, rkResult_t result, std::string_view text) noexcept;
rkResult_t tell(const char* function, const Status& status) noexcept;

// The result that a code has in C; its text is not kept.
rkResult_t result_of(Code code) noexcept;

// Why a C function is not begun: rkInvalidUsage, or no handle where one should be. Thrown, since
// what comes after it makes no sense, and caught by guarded().
struct Refusal {
  rkResult_t result;
  std::string text;
};

// Runs the body of a C function, which returns a Status or throws.
template <class Body>
rkResult_t guarded(const char* function, const Body& body) noexcept {
  try {
    const Status status = body();
    return status.ok() ? rkSuccess : tell(function, status);
  } catch (const Refusal& refusal) {
    return tell(function, refusal.result, refusal.text);
  } catch (const std::bad_alloc&) {
    return tell(function, rkOutOfMemory, "there is no memory");
  } catch (const std::exception& e) {
    return tell(function, rkInternalError, e.what());
  } catch (...) {  // of a C++ function that the caller has given as a C one
    return tell(function, rkInternalError, "what was thrown is no std::exception");
  }
}

}  // namespace rankine
