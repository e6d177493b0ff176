// Runs a switch with a delay: every Ethernet frame comes out a fixed time after it went in, as over
// a long wire. Any number of frames may be in flight.
//
//   relay MICROSECONDS DEVICE NETNS...
//
// makes a tap named DEVICE in each of these network namespaces (files such as those in /run/netns),
// prints "ready" and runs until it is ended; then the taps vanish. A frame goes to the port that
// last sent from its destination address, or to all ports but its own. For kernels without netem;
// cluster.py starts it.
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <poll.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <deque>
#include <map>
#include <string>
#include <vector>

namespace {

constexpr std::size_t kLongestFrame = 65536, kMac = 6;
constexpr int kFramesAtOnce = 64;  // from one port, before other ports

std::int64_t now_ns() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

[[noreturn]] void fail(const std::string& what) {
  std::fprintf(stderr, "relay: %s: %s\n", what.c_str(), std::strerror(errno));
  std::exit(1);
}

int tap_in(const char* netns, const char* device) {
  const int ns = open(netns, O_RDONLY | O_CLOEXEC);
  if (ns < 0 || setns(ns, CLONE_NEWNET) != 0) fail(netns);
  close(ns);
  const int tap = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
  if (tap < 0) fail("/dev/net/tun");
  ifreq request{};
  request.ifr_flags = IFF_TAP | IFF_NO_PI;
  std::strncpy(request.ifr_name, device, IFNAMSIZ - 1);
  if (ioctl(tap, TUNSETIFF, &request) != 0) fail(std::string(device) + " in " + netns);
  return tap;
}

class Relay {
 public:
  Relay(std::vector<int> taps, std::int64_t delay_ns) : delay_ns_(delay_ns) {
    for (const int tap : taps) ports_.push_back({tap, POLLIN, 0});
  }

  [[noreturn]] void run() {
    while (true) {
      timespec left{};
      const std::int64_t wait = under_way_.empty() ? 0 : under_way_.front().due - now_ns();
      if (wait > 0) left = {wait / 1'000'000'000, wait % 1'000'000'000};
      if (ppoll(ports_.data(), ports_.size(), under_way_.empty() ? nullptr : &left, nullptr) < 0 &&
          errno != EINTR) {
        fail("ppoll");
      }
      for (std::size_t i = 0; i < ports_.size(); ++i) {
        if (ports_[i].revents != 0) take_in(i);
      }
      // Delays are equal, so frames leave in the order in which they came.
      while (!under_way_.empty() && under_way_.front().due <= now_ns()) {
        hand_out(under_way_.front());
        under_way_.pop_front();
      }
    }
  }

 private:
  struct Frame {
    std::int64_t due;
    std::size_t from;
    std::string bytes;
  };

  void take_in(std::size_t port) {
    for (int i = 0; i < kFramesAtOnce; ++i) {
      const ssize_t length = read(ports_[port].fd, buffer_, sizeof buffer_);
      if (length < static_cast<ssize_t>(2 * kMac)) return;
      std::string bytes(buffer_, static_cast<std::size_t>(length));
      heard_[bytes.substr(kMac, kMac)] = port;
      under_way_.push_back({now_ns() + delay_ns_, port, std::move(bytes)});
    }
  }

  // A full port loses the frame, as in a switch.
  void hand_out(const Frame& frame) {
    const auto known = heard_.find(frame.bytes.substr(0, kMac));
    for (std::size_t port = 0; port < ports_.size(); ++port) {
      const bool wanted = known == heard_.end() ? port != frame.from : port == known->second;
      if (!wanted) continue;
      [[maybe_unused]] const ssize_t sent =
          write(ports_[port].fd, frame.bytes.data(), frame.bytes.size());
    }
  }

  const std::int64_t delay_ns_;
  std::vector<pollfd> ports_;
  std::map<std::string, std::size_t> heard_;  // by address
  std::deque<Frame> under_way_;
  char buffer_[kLongestFrame];
};

}  // namespace

int main(int argc, char** argv) {
  char* end = nullptr;
  const long delay_us = argc > 3 ? std::strtol(argv[1], &end, 10) : -1;
  if (delay_us < 0 || delay_us > 1'000'000 || *end != '\0') {
    std::fprintf(stderr, "relay: usage: relay MICROSECONDS DEVICE NETNS..., with 0 to 1000000\n");
    return 2;
  }
  prctl(PR_SET_PDEATHSIG, 9);      // ends with its parent
  prctl(PR_SET_TIMERSLACK, 1000);  // ns; the default of 50 us is as long as short delays
  std::vector<int> taps;
  for (int i = 3; i < argc; ++i) taps.push_back(tap_in(argv[i], argv[2]));
  std::printf("ready\n");
  std::fflush(stdout);
  static Relay relay(taps, delay_us * 1000);
  relay.run();
}
