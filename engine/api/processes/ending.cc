#include "engine/api/processes/ending.h"

#include <algorithm>
#include <cstring>

namespace rankine {

void SharedEnding::end(const Status& reason) noexcept {
  bool over = false;
  if (!ended_.compare_exchange_strong(over, true, std::memory_order_seq_cst)) return;
  say(reason.code(), reason.text().c_str());
}

void SharedEnding::say(Code code, const char* text) noexcept {
  code_ = static_cast<std::uint32_t>(code);
  const std::size_t length = std::min(std::strlen(text), sizeof(text_) - 1);
  std::memcpy(text_, text, length);
  text_[length] = '\0';
  said_.store(true, std::memory_order_release);  // pairs with why()
}

Status SharedEnding::why() const noexcept {
  constexpr std::int64_t kPatienceNs = 200'000'000;
  const std::int64_t until = now_ns() + kPatienceNs;
  while (!said_.load(std::memory_order_acquire)) {  // pairs with say()
    if (now_ns() >= until) {
      return make_error(Code::rank_lost, [] {
        return "the process that ended the communicator has ended before it could say why";
      });
    }
    sleep_ns(20'000);
  }
  return make_error(code_ < kCodes ? static_cast<Code>(code_) : Code::aborted,
                    [this] { return std::string(text_, strnlen(text_, sizeof(text_))); });
}

}  // namespace rankine
