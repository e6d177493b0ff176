#include "bench/server/line.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <thread>

#include "engine/base/status.h"

namespace rankine::server {
namespace {

template <class Call>
auto uninterrupted(const Call& call) {
  auto result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}

Error failed(const std::string& what) { return {Code::system, what + ": " + std::strerror(errno)}; }

sockaddr_un address_of(const std::string& path) {
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  if (path.size() >= sizeof(address.sun_path)) {
    errno = ENAMETOOLONG;
    throw failed(path);
  }
  path.copy(address.sun_path, path.size());
  return address;
}

// A socket is what one message carries beside a byte.
struct Parcel {
  char byte = 0;
  iovec bytes{.iov_base = &byte, .iov_len = 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{.msg_name = nullptr,
                 .msg_namelen = 0,
                 .msg_iov = &bytes,
                 .msg_iovlen = 1,
                 .msg_control = control,
                 .msg_controllen = sizeof(control),
                 .msg_flags = 0};
};

}  // namespace

std::pair<Line, Line> Line::make() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) throw failed("socketpair");
  return {Line(ends[0]), Line(ends[1])};
}

void Line::hand_over(const std::string& path, std::chrono::milliseconds within) {
  const sockaddr_un address = address_of(path);
  const Line door(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (bind(door.socket_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0 ||
      listen(door.socket_, 1) != 0) {
    throw failed(path);
  }
  errno = ETIMEDOUT;
  const Line caller(door.has_news(within) ? accept(door.socket_, nullptr, nullptr) : -1);
  if (caller.socket_ < 0) throw failed(path);
  Parcel parcel;
  cmsghdr* const rights = CMSG_FIRSTHDR(&parcel.message);
  *rights = {.cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
  std::memcpy(CMSG_DATA(rights), &socket_, sizeof(int));
  if (sendmsg(caller.socket_, &parcel.message, MSG_NOSIGNAL) != 1) throw failed(path);
  hang_up();
}

Line Line::collect(const std::string& path, std::chrono::milliseconds within) {
  const sockaddr_un address = address_of(path);
  const Line door(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  const auto until = std::chrono::steady_clock::now() + within;
  while (connect(door.socket_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    if (std::chrono::steady_clock::now() > until) throw failed(path);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  Parcel parcel;
  errno = ETIMEDOUT;
  if (!door.has_news(within) || recvmsg(door.socket_, &parcel.message, MSG_CMSG_CLOEXEC) != 1 ||
      CMSG_FIRSTHDR(&parcel.message) == nullptr) {
    throw failed(path);
  }
  int socket = -1;
  std::memcpy(&socket, CMSG_DATA(CMSG_FIRSTHDR(&parcel.message)), sizeof(int));
  return Line(socket);
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
