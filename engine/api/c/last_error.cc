#include "engine/api/c/last_error.h"

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

void refuse_number(const char* name, int number, std::size_t rows) {
  throw Refusal{rkInvalidArgument, std::string(name) + " is " + std::to_string(number) +
                                       "; allowed are 0 to " + std::to_string(rows - 1)};
}

rkResult_t result_of(Code code) noexcept {
  switch (code) {
    case Code::ok:
      return rkSuccess;
    case Code::invalid_argument:
      return rkInvalidArgument;
    case Code::mismatch:
      return rkMismatch;
    case Code::timeout:
      return rkTimeout;
    case Code::rank_lost:
      return rkRankLost;
    case Code::remote_error:
      return rkRemoteError;
    case Code::aborted:
      return rkAborted;
    case Code::out_of_memory:
      return rkOutOfMemory;
    case Code::system:
      return rkSystemError;
    case Code::forked:
      return rkForked;
  }
  return rkInternalError;
}

}  // namespace rankine

extern "C" {

const char* rkGetLastError(rkComm_t) noexcept {
  return rankine::last_error.lost ? rankine::kNoMemory : rankine::last_error.text.c_str();
}

const char* rkGetErrorString(rkResult_t result) noexcept {
  switch (result) {
    case rkSuccess:
      return "no error";
    case rkSystemError:
      return "the operating system refused a necessary resource";
    case rkInternalError:
      return "internal error";
    case rkInvalidArgument:
      return "invalid argument";
    case rkInvalidUsage:
      return "invalid usage";
    case rkRemoteError:
      return "another rank failed";
    case rkMismatch:
      return "ranks made different calls";
    case rkTimeout:
      return "a deadline passed";
    case rkRankLost:
      return "a rank left while others needed it";
    case rkAborted:
      return "aborted";
    case rkOutOfMemory:
      return "out of memory";
    case rkForked:
      return "this process was forked from the rank's process";
  }
  return "unknown result";
}

}  // extern "C"
