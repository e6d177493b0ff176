#include "engine/api/c/last_error.h"

#include <iterator>

namespace rankine {
namespace {

constexpr const char* kNoMemory = "there is no memory for the text of this error";

// One per thread. `lost`: there was no memory for the text.
struct LastError {
  std::string text;
  bool lost = false;
};
thread_local LastError last_error;

}  // namespace

rkResult_t tell(const char* function, rkResult_t result, std::string_view text) noexcept {
  try {
    last_error.text.assign(function).append(": ").append(text);
    last_error.lost = false;
  } catch (const std::exception&) {
    last_error.lost = true;
  }
  return result;
}

rkResult_t tell(const char* function, const Status& status) noexcept {
  return tell(function, result_of(status.code()), status.text());
}

rkResult_t tell_caught(const char* function) noexcept {
  try {
    throw;
  } catch (const Refusal& refusal) {
    return tell(function, refusal.result, refusal.text);
  } catch (const std::bad_alloc&) {
    return tell(function, rkOutOfMemory, "there is no memory");
  } catch (const std::exception& e) {
    return tell(function, rkInternalError, e.what());
  } catch (...) {  // from a C++ function that the caller passed as a C function
    return tell(function, rkInternalError, "an exception of an unknown type was thrown");
  }
}

void refuse_number(const char* name, int number, std::size_t rows) {
  throw Refusal{rkInvalidArgument, std::string(name) + " is " + std::to_string(number) +
                                       "; allowed are 0 to " + std::to_string(rows - 1)};
}

rkResult_t result_of(Code code) noexcept {
  constexpr rkResult_t kResults[] = {rkSuccess,     rkInvalidArgument, rkMismatch, rkTimeout,
                                     rkRankLost,    rkRemoteError,     rkAborted,  rkOutOfMemory,
                                     rkSystemError, rkForked};
  static_assert(std::size(kResults) == kCodes);
  const auto number = static_cast<std::size_t>(code);
  return number < kCodes ? kResults[number] : rkInternalError;
}

}  // namespace rankine

extern "C" {

const char* rkGetLastError(rkComm_t) noexcept {
  return rankine::last_error.lost ? rankine::kNoMemory : rankine::last_error.text.c_str();
}

const char* rkGetErrorString(rkResult_t result) noexcept {
  constexpr const char* kUnknown = "unknown result";
  constexpr const char* kTexts[] = {"no error",
                                    kUnknown,
                                    "the operating system refused a necessary resource",
                                    "internal error",
                                    "invalid argument",
                                    "invalid usage",
                                    "another rank failed",
                                    kUnknown,
                                    "ranks made different calls",
                                    "a deadline passed",
                                    "a rank left while others needed it",
                                    "aborted",
                                    "out of memory",
                                    "this process was forked from the rank's process"};
  const auto number = static_cast<std::size_t>(result);
  return number < std::size(kTexts) ? kTexts[number] : kUnknown;
}

}  // extern "C"
