#include "engine/api/processes/ending.h"

#include <algorithm>
#include <cstring>

#include "engine/base/splitmix.h"

namespace rankine {

void SharedEnding::end(const Status& reason) noexcept {
  bool over = false;
  if (!ended_.compare_exchange_strong(over, true, std::memory_order_seq_cst)) return;
  say(reason.code(), reason.text().c_str());
}

// 0 of what nobody says.
std::uint64_t SharedEnding::check_of_what_is_said() const noexcept {
  const std::size_t length = strnlen(text_, sizeof(text_));
  if (code_ == 0 || code_ >= kCodes || length == sizeof(text_)) return 0;
  std::uint64_t hash = mixed(kSplitMixStep, code_);
  for (std::size_t i = 0; i < length; ++i) hash = mixed(hash, static_cast<unsigned char>(text_[i]));
  return hash | 1;
}

void SharedEnding::say(Code code, const char* text) noexcept {
  code_ = static_cast<std::uint32_t>(code);
  const std::size_t length = std::min(std::strlen(text), sizeof(text_) - 1);
  std::memcpy(text_, text, length);
  text_[length] = '\0';
  check_ = check_of_what_is_said();
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
  const std::uint64_t check = check_;
  if (check != 0 && check == check_of_what_is_said()) {
    return make_error(static_cast<Code>(code_), [this] { return std::string(text_); });
  }
  return make_error(Code::system, [] {
    return "a program has written over the memory that processes share, and over the reason why "
           "the communicator has ended; end its processes, and make a new communicator";
  });
}

}  // namespace rankine
