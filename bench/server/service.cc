#include "bench/server/service.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <thread>
#include <utility>

#include "engine/base/numbers.h"
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

// A message that carries a socket and one byte.
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

Service::Service(Hire hire) : hire_(std::move(hire)) { begin(); }

Service::~Service() { end(); }

void Service::begin() {
  auto [ours, theirs] = Line::make();
  line_.emplace(std::move(ours));
  crew_ = hire_(std::move(theirs), *line_);
}

void Service::end() {
  line_->hang_up();
  crew_.reset();
}

void Service::submit(const Request& request) {
  // If the send fails, the ranks are lost: next() then reports the loss.
  static_cast<void>(line_->say(request));
}

std::optional<Event> Service::next(std::chrono::milliseconds within) {
  if (!line_->has_news(within)) return std::nullopt;
  Event event;
  if (!line_->hear(event)) event = lost("all ranks have ended");
  if (event.request == Event::kLost) {
    end();
    begin();
  }
  return event;
}

namespace {

class Draw {
 public:
  explicit Draw(std::uint64_t seed) : state_(seed) {}
  int between(Bounds bounds) {
    const auto range = static_cast<std::uint64_t>(bounds.most - bounds.least) + 1;
    return bounds.least + static_cast<int>(next() % range);
  }
  // A random gap between events with a mean of `rate` events per second.
  double gap(double rate) {
    const double above_zero = (static_cast<double>(next() >> 11) + 1) / 0x1p53;
    return -std::log(above_zero) / rate;
  }

 private:
  std::uint64_t next() { return splitmix(state_ += kSplitMixStep); }
  std::uint64_t state_;
};

}  // namespace

std::vector<std::pair<double, Request>> requests_of(const Load& load) {
  Draw draw(load.seed);
  std::vector<std::pair<double, Request>> all;
  double due = 0;
  for (int id = 0; id < load.requests; ++id) {
    Request request{
        .id = id, .wanted = draw.between(load.answer), .prompt_tokens = draw.between(load.prompt)};
    for (int i = 0; i < request.prompt_tokens; ++i) {
      request.prompt[i] = draw.between({0, load.vocabulary - 1});
    }
    all.emplace_back(due, request);
    due += draw.gap(load.rate);
  }
  return all;
}

Record play(Service& service, const Load& load,
            const std::function<void(const Record&)>& progress) {
  using Clock = std::chrono::steady_clock;
  const auto requests = requests_of(load);
  const auto begin = Clock::now();
  const auto now = [begin] { return std::chrono::duration<double>(Clock::now() - begin).count(); };
  Record record;
  int submitted = 0;
  double steps_before = 0, sums_before = 0;  // of lost crews
  double steps = 0, sums = 0;
  while (record.over < load.requests) {
    const double time = now();
    for (; submitted < load.requests; ++submitted) {
      const auto& [due, request] = requests[static_cast<std::size_t>(submitted)];
      if (due > time) break;
      record.answers.push_back({.due = due});
      service.submit(request);
    }
    double patience = 0.1;
    if (submitted < load.requests) {
      patience = std::clamp(requests[static_cast<std::size_t>(submitted)].first - time, 0.0, 0.1);
    }
    const auto event =
        service.next(std::chrono::milliseconds(static_cast<int>(std::ceil(patience * 1e3))));
    if (!event) continue;
    if (event->request == Event::kLost) {
      record.losses.push_back({.time = now(), .why = event->why.data()});
      steps_before += std::exchange(steps, 0), sums_before += std::exchange(sums, 0);
      for (Answer& answer : record.answers) {
        if (answer.is_lost || answer.is_done) continue;
        answer.is_lost = true;
        ++record.losses.back().requests;
      }
      record.over += record.losses.back().requests;
    } else {
      Answer& answer = record.answers[static_cast<std::size_t>(event->request)];
      answer.last = now();
      if (answer.tokens.empty()) answer.first = answer.last;
      answer.tokens.push_back(event->token);
      answer.is_done = event->left == 0;
      if (answer.is_done) ++record.over;
      steps = event->step_seconds, sums = event->sum_seconds;
    }
    record.seconds = now();
    progress(record);
  }
  record.step_seconds = steps_before + steps;
  record.sum_seconds = sums_before + sums;
  return record;
}

Desk::Desk(const Hire& hire) : service_(hire), clerk_([this] { work(); }) {}

Desk::~Desk() {
  closes_ = true;
  clerk_.join();
}

std::vector<int> Desk::answer(const Request& request) {
  std::future<Result<std::vector<int>>> answer;
  {
    const std::lock_guard lock(mutex_);
    answer = come_.emplace_back(request, Answer()).second.get_future();
  }
  return answer.get().value();
}

void Desk::work() {
  while (!closes_) {
    submit_new();
    // A new request waits at most this long.
    if (const auto event = service_.next(std::chrono::milliseconds(1))) take(*event);
  }
}

void Desk::submit_new() {
  decltype(come_) come;
  {
    const std::lock_guard lock(mutex_);
    come.swap(come_);
  }
  for (auto& [request, answer] : come) {
    request.id = waiting_.empty() ? 0 : waiting_.rbegin()->first + 1;
    waiting_[request.id].answer = std::move(answer);
    service_.submit(request);
  }
}

void Desk::take(const Event& event) {
  if (event.request == Event::kLost) {
    const Status lost(Code::rank_lost, event.why.data());
    for (auto& [id, waiting] : waiting_) waiting.answer.set_value(lost);
    waiting_.clear();
    return;
  }
  const auto found = waiting_.find(event.request);
  found->second.tokens.push_back(event.token);
  if (event.left > 0) return;
  found->second.answer.set_value(std::move(found->second.tokens));
  waiting_.erase(found);
}

Scheduler::Scheduler(int sequences, int tokens) : most_tokens_(tokens) {
  for (int place = sequences; place-- > 0;) places_.push_back(place);
}

void Scheduler::add(const Request& request) { waiting_.push_back(request); }

Batch Scheduler::next() {
  for (; !waiting_.empty() && !places_.empty(); waiting_.pop_front(), places_.pop_back()) {
    const Request& first = waiting_.front();
    running_.push_back({.id = first.id,
                        .place = places_.back(),
                        .wanted = first.wanted,
                        .tokens{first.tokens().begin(), first.tokens().end()}});
  }
  // An earlier prompt always has its tokens computed before a later one. So requests in their
  // answer stand first, and a batch has room for all of them.
  Batch batch;
  for (Running& one : running_) {
    const int missing = static_cast<int>(one.tokens.size()) - one.done;
    const int now = std::min(missing, most_tokens_ - batch.tokens);
    one.wants_next = now == missing;
    if (now == 0) continue;
    batch.add(
        {.sequence = one.place, .position = one.done, .tokens = now, .wants_next = one.wants_next},
        std::span(one.tokens)
            .subspan(static_cast<std::size_t>(one.done), static_cast<std::size_t>(now)));
    one.done += now;
  }
  return batch;
}

std::vector<Event> Scheduler::take(std::span<const int> tokens) {
  std::vector<Event> events;
  for (Running& one : running_) {
    if (!one.wants_next) continue;
    const int token = tokens[events.size()];
    one.tokens.push_back(token);
    events.push_back({.request = one.id, .token = token, .left = --one.wanted});
    if (one.wanted == 0) places_.push_back(one.place);
  }
  std::erase_if(running_, [](const Running& one) { return one.wanted == 0; });
  return events;
}

}  // namespace rankine::server
