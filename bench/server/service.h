// The service of a server sends requests to a crew of ranks and receives their tokens. This header
// also declares the lines between clients and ranks, generated loads, a desk for many clients, and
// the scheduler that forms the batches of the ranks.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "bench/server/decoder.h"
#include "engine/base/status.h"

namespace rankine::server {

inline constexpr int kMostPrompt = 512, kMostWanted = 512;
inline constexpr int kPositions = kMostPrompt + kMostWanted;

// Request and Event are plain bytes: a Line sends them.
struct Request {
  int id = 0;             // the client's; not negative
  int wanted = 0;         // tokens of the answer: 1 .. kMostWanted
  int prompt_tokens = 0;  // 1 .. kMostPrompt
  int prompt[kMostPrompt] = {};

  std::span<const int> tokens() const { return {prompt, static_cast<std::size_t>(prompt_tokens)}; }
};

// A token of an answer. If `request` is kLost, all unanswered requests are lost and `why` is the
// reason.
struct Event {
  static constexpr int kLost = -1;

  int request = 0;
  int token = 0;
  int left = 0;             // tokens of the answer that follow
  double step_seconds = 0,  // seconds of rank 0 so far: steps, and sums of all ranks in them
      sum_seconds = 0;
  std::array<char, 256> why{};  // ends with a zero
};

inline Event lost(std::string_view why) {
  Event event{.request = Event::kLost};
  why.copy(event.why.data(), event.why.size() - 1);
  return event;
}

// Line is one of two ends that exchange messages of plain bytes, whole and in order, among threads
// and processes. One thread at a time may hear on an end; any number of threads may say.

class Line {
 public:
  // Errors: throws Error (system).
  static std::pair<Line, Line> make();

  // Hands this end over to a process that was not forked from this one: that process calls
  // collect() with the same path and owns the end afterwards. No file may exist at the path; both
  // processes belong to one user. Each call waits at most `within` for the other. Errors: throws
  // Error (system).
  void hand_over(const std::string& path, std::chrono::milliseconds within);
  static Line collect(const std::string& path, std::chrono::milliseconds within);

  Line(Line&& other) noexcept : socket_(std::exchange(other.socket_, -1)) {}
  Line& operator=(Line&& other) noexcept {
    std::swap(socket_, other.socket_);
    return *this;
  }
  ~Line() { hang_up(); }

  // False: the other end has hung up. say() waits if the other end has not yet heard many messages.
  template <class Message>
  bool say(const Message& message) const {
    return send(&message, sizeof(message));
  }
  // Waits for a message. False: the other end has hung up and no message is left.
  template <class Message>
  bool hear(Message& message) const {
    return receive(&message, sizeof(message));
  }
  // Whether hear() would return now or within this time.
  bool has_news(std::chrono::milliseconds within) const;
  // The other end notices it when no forked process has a copy of this end.
  void hang_up();

 private:
  explicit Line(int socket) : socket_(socket) {}
  bool send(const void* bytes, std::size_t n) const;
  bool receive(void* bytes, std::size_t n) const;

  int socket_;
};

// A Crew is a server's ranks at work (work() in crews.h), as threads or processes. Its destructor
// waits for the ranks; before that, the clients must have hung up.
class Crew {
 public:
  virtual ~Crew() = default;
};
// Creates a crew. Its rank 0 gets the end `line` of the clients' line; if the crew is lost, it says
// the reason on it (lost()). Forked processes hang up `clients`, the other end.
using Hire = std::function<std::unique_ptr<Crew>(Line line, Line& clients)>;

// A server as its clients see it: they submit requests and receive tokens. If the ranks are lost,
// the service reports it and starts a new crew. Not thread-safe.
class Service {
 public:
  explicit Service(Hire hire);
  ~Service();
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  // Requires a request within the bounds of Request. next() reports a lost crew.
  void submit(const Request& request);
  // Returns the next event; nothing if none comes within this time. After an event with kLost, no
  // further events of earlier requests come and a new crew is running.
  std::optional<Event> next(std::chrono::milliseconds within);

 private:
  void begin();
  void end();

  Hire hire_;
  std::optional<Line> line_;
  std::unique_ptr<Crew> crew_;
};

// An inclusive range of the random numbers of a load.
struct Bounds {
  int least = 1, most = 1;
};

// A generated load: requests that come at random times.
struct Load {
  int requests = 64;
  double rate = 8;                        // per second, on average: a Poisson process
  Bounds prompt{16, 128}, answer{8, 64};  // tokens
  int vocabulary = 0;
  std::uint64_t seed = 1;
};

// The result of a request. Times are seconds since the first request was due.
struct Answer {
  double due = 0, first = 0, last = 0;  // times of its tokens
  std::vector<int> tokens{};
  bool is_done = false, is_lost = false;  // all tokens came; or the request was lost
};

// A loss of the ranks, with the number of requests that were lost.
struct Loss {
  double time = 0;
  int requests = 0;
  std::string why{};
};

// The results of one load.
struct Record {
  std::vector<Answer> answers{};             // by request
  int over = 0;                              // requests that are done or lost
  double seconds = 0;                        // time of the last token so far
  double step_seconds = 0, sum_seconds = 0;  // by rank 0: steps, and sums in them
  std::vector<Loss> losses{};
};

// The requests of a load, each with its due time; equal for equal loads.
std::vector<std::pair<double, Request>> requests_of(const Load& load);

// Submits all requests of the load, each at its due time, and waits until all are answered or lost.
// Calls `progress` after every token.
Record play(Service& service, const Load& load, const std::function<void(const Record&)>& progress);

// Serves many clients with one service: each client waits on its own thread, and one clerk thread
// talks to the ranks.

class Desk {
 public:
  explicit Desk(const Hire& hire);
  // Requires that no client waits.
  ~Desk();

  // Returns the tokens of the answer. The desk sets `request.id`; the rest must be within the
  // bounds of Request. Thread-safe. Throws Error (rank_lost) if the ranks are lost during the
  // request.
  std::vector<int> answer(const Request& request);

 private:
  // A value, not an exception: client and clerk would share an exception and free it on two
  // threads.
  using Answer = std::promise<Result<std::vector<int>>>;
  struct Waiting {
    std::vector<int> tokens;
    Answer answer;
  };

  void work();
  void submit_new();
  void take(const Event& event);

  Service service_;  // used by the clerk only
  std::map<int, Waiting> waiting_;
  std::mutex mutex_;  // guards come_: requests that are not yet submitted
  std::vector<std::pair<Request, Answer>> come_;
  std::atomic<bool> closes_{false};
  std::thread clerk_;
};

// Chooses the tokens that the ranks compute in the next step: continuous batching (Yu et al., Orca,
// 2022). Every request in its answer gets its next token in each step. The rest of the step goes to
// prompts, the earliest first, in pieces as large as fit (Agrawal et al., Sarathi, 2023). A
// completed request frees its place for the next step. A value type without clock or ranks.

class Scheduler {
 public:
  // The greatest numbers of active requests and of tokens in a step; tokens >= sequences.
  explicit Scheduler(int sequences = kMostSequences, int tokens = kMostTokens);

  void add(const Request& request);  // the request waits for a free place
  bool is_idle() const { return waiting_.empty() && running_.empty(); }

  // Returns the next step; without pieces if no request is active.
  Batch next();
  // Takes the tokens of the step of next(): one for each piece with wants_next, in the order of the
  // pieces. Returns the events for the clients.
  std::vector<Event> take(std::span<const int> tokens);

 private:
  struct Running {
    int id, place, wanted;
    std::vector<int> tokens;  // prompt and answer so far
    int done = 0;             // number of computed tokens
    bool wants_next = false;  // in the current step
  };

  int most_tokens_;
  std::vector<int> places_;  // free places
  std::deque<Request> waiting_;
  std::vector<Running> running_;  // the earliest first
};

}  // namespace rankine::server
