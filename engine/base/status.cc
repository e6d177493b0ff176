#include "engine/base/status.h"

namespace rankine {

std::string_view name_of(Code code) {
  switch (code) {
    case Code::ok:
      return "ok";
    case Code::invalid_argument:
      return "invalid argument";
    case Code::mismatch:
      return "mismatch";
    case Code::timeout:
      return "timeout";
    case Code::rank_lost:
      return "rank lost";
    case Code::remote_error:
      return "remote error";
    case Code::aborted:
      return "aborted";
    case Code::out_of_memory:
      return "out of memory";
    case Code::forked:
      return "forked";
    case Code::system:
      return "system";
  }
  return "unknown";
}

}  // namespace rankine
