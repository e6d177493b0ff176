#include "bench/server/line.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "engine/base/status.h"

namespace rankine::server {
namespace {

template <class Call>
auto uninterrupted(const Call& call) {
  auto result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}

}  // namespace

std::pair<Line, Line> Line::make() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    throw Error(Code::system, std::string("socketpair: ") + std::strerror(errno));
  }
  return {Line(ends[0]), Line(ends[1])};
}

bool Line::send(const void* bytes, std::size_t n) const {
  const auto sent = uninterrupted([&] { return ::send(socket_, bytes, n, MSG_NOSIGNAL); });
  return sent == static_cast<ssize_t>(n);
}

bool Line::receive(void* bytes, std::size_t n) const {
  return uninterrupted([&] { return recv(socket_, bytes, n, 0); }) == static_cast<ssize_t>(n);
}

bool Line::has_news(std::chrono::milliseconds within) const {
  pollfd poll_for{.fd = socket_, .events = POLLIN, .revents = 0};
  const int most = static_cast<int>(std::max<std::chrono::milliseconds::rep>(within.count(), 0));
  return uninterrupted([&] { return poll(&poll_for, 1, most); }) > 0;
}

void Line::hang_up() {
  if (socket_ >= 0) close(socket_);
  socket_ = -1;
}

}  // namespace rankine::server
