#include "engine/tools/output_stream.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>

namespace rankine::tools {

DescriptorBuffer::DescriptorBuffer(int descriptor, std::string name)
    : descriptor_(descriptor), name_(std::move(name)), collected_(std::size_t{64} << 10) {
  setp(collected_.data(), collected_.data() + collected_.size());
}

void DescriptorBuffer::write_out() {
  const char* from = pbase();
  const char* const end = pptr();
  setp(collected_.data(), collected_.data() + collected_.size());
  while (from < end) {
    const ssize_t written = write(descriptor_, from, static_cast<std::size_t>(end - from));
    if (written >= 0) {
      from += written;
    } else if (errno == EAGAIN) {  // somebody else made it non-blocking
      pollfd room{.fd = descriptor_, .events = POLLOUT, .revents = 0};
      static_cast<void>(poll(&room, 1, -1));
    } else if (errno != EINTR) {
      throw OutputError(name_ + " cannot be written: " + std::strerror(errno));
    }
  }
}

DescriptorBuffer::int_type DescriptorBuffer::overflow(int_type c) {
  write_out();
  if (!traits_type::eq_int_type(c, traits_type::eof())) {
    *pptr() = traits_type::to_char_type(c);
    pbump(1);
  }
  return traits_type::not_eof(c);
}

int DescriptorBuffer::sync() {
  write_out();
  return 0;
}

}  // namespace rankine::tools
