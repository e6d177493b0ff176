// What goes into a server and what comes out of it, as plain bytes.
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

struct Request {
  int id = 0;             // the client's; not negative
  int wanted = 0;         // tokens of the answer: 1 .. kMostWanted
  int prompt_tokens = 0;  // 1 .. kMostPrompt
  int prompt[kMostPrompt] = {};

  std::span<const int> tokens() const { return {prompt, static_cast<std::size_t>(prompt_tokens)}; }
};

// A token of an answer; or, where `request` is kLost, why all requests under way are lost.
struct Event {
  static constexpr int kLost = -1;

  int request = 0;
  int token = 0;
  int left = 0;             // tokens that are still to come
  double step_seconds = 0,  // of rank 0 so far: in steps, and of these in sums of all ranks
      sum_seconds = 0;
  std::array<char, 256> why{};  // ends with a zero
};

inline Event lost(std::string_view why) {
  Event event{.request = Event::kLost};
  why.copy(event.why.data(), event.why.size() - 1);
  return event;
}

// Two ends between which messages of plain bytes go both ways, whole and in order, among threads
// and processes. An end is used by one thread at a time for hearing, by any number for saying.

class Line {
 public:
  // Errors: throws Error (system).
  static std::pair<Line, Line> make();

  // For a process that nobody forks from this one: this end, which is the other's from then on, to
  // whoever of the same user collects it at that path, where no file is yet. Both wait for one
  // another, up to that long. Errors: throws Error (system).
  void hand_over(const std::string& path, std::chrono::milliseconds within);
  static Line collect(const std::string& path, std::chrono::milliseconds within);

  Line(Line&& other) noexcept : socket_(std::exchange(other.socket_, -1)) {}
  Line& operator=(Line&& other) noexcept {
    std::swap(socket_, other.socket_);
    return *this;
  }
  ~Line() { hang_up(); }

  // False: nobody is there any more. say() waits where much has not been heard yet.
  template <class Message>
  bool say(const Message& message) const {
    return send(&message, sizeof(message));
  }
  // Waits for a message. False: nobody is there, and all has been heard.
  template <class Message>
  bool hear(Message& message) const {
    return receive(&message, sizeof(message));
  }
  // Whether hear() would return now, or within that time.
  bool has_news(std::chrono::milliseconds within) const;
  // The other end hears that, once no copy of this one is left in a forked process.
  void hang_up();

 private:
  explicit Line(int socket) : socket_(socket) {}
  bool send(const void* bytes, std::size_t n) const;
  bool receive(void* bytes, std::size_t n) const;

  int socket_;
};

// A server as its clients see it: requests go in, tokens come out, and when its ranks are lost it
// says so and begins again with new ones. Used by one thread.

// Ranks at work (work.h), as threads or processes. Its end waits for theirs; the clients have hung
// up by then.
class Crew {
 public:
  virtual ~Crew() = default;
};
// Makes one, whose rank 0 has this end of the line, and which says on it why it is lost. Processes
// that are forked for it hang up the other end, which is the clients'.
using Hire = std::function<std::unique_ptr<Crew>(Line line, Line& clients)>;

class Service {
 public:
  explicit Service(Hire hire);
  ~Service();
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  // Requires what request.h says of a request. A crew that is lost is told of by next().
  void submit(const Request& request);
  // What came; none: nothing within that time. After an event that says kLost nothing more comes of
  // the requests so far, and a new crew is there.
  std::optional<Event> next(std::chrono::milliseconds within);

 private:
  void begin();
  void end();

  Hire hire_;
  std::optional<Line> line_;
  std::unique_ptr<Crew> crew_;
};

// Clients of a server, made on the spot: requests that come at random times, and what they see.

// Both bounds can be drawn.
struct Bounds {
  int least = 1, most = 1;
};

struct Load {
  int requests = 64;
  double rate = 8;                        // a second, on average: a Poisson process
  Bounds prompt{16, 128}, answer{8, 64};  // tokens
  int vocabulary = 0;
  std::uint64_t seed = 1;
};

// What became of a request. Times are seconds since the first one was due.
struct Answer {
  double due = 0, first = 0, last = 0;  // its tokens
  std::vector<int> tokens{};
  bool is_done = false, is_lost = false;  // all tokens are there; or never will be
};

// That the ranks were lost, and with them so many requests.
struct Loss {
  double time = 0;
  int requests = 0;
  std::string why{};
};

struct Record {
  std::vector<Answer> answers{};             // by request
  int over = 0;                              // of them: done or lost
  double seconds = 0;                        // until the last token so far
  double step_seconds = 0, sum_seconds = 0;  // of rank 0 meanwhile: in steps, and of these in sums
  std::vector<Loss> losses{};
};

// The requests of a load, with when each is due; the same for the same load.
std::vector<std::pair<double, Request>> requests_of(const Load& load);

// All requests of the load, each submitted when it is due and waited for until it is answered or
// lost; `progress` is told of every token.
Record play(Service& service, const Load& load, const std::function<void(const Record&)>& progress);

// Many clients of one service: each waits on a thread of its own, and one clerk talks to the ranks.

class Desk {
 public:
  explicit Desk(const Hire& hire);
  // Nobody may wait any more.
  ~Desk();

  // The tokens of the answer. `request.id` is the desk's to choose; else it is as request.h says.
  // Thread-safe. Throws Error (rank_lost) where the ranks were lost meanwhile.
  std::vector<int> answer(const Request& request);

 private:
  // A value, not an exception: who waits and the clerk would share one, and free it on two threads.
  using Answer = std::promise<Result<std::vector<int>>>;
  struct Waiting {
    std::vector<int> tokens;
    Answer answer;
  };

  void work();
  void submit_new();
  void take(const Event& event);

  Service service_;  // the clerk's
  std::map<int, Waiting> waiting_;
  std::mutex mutex_;  // of what has come and is not submitted
  std::vector<std::pair<Request, Answer>> come_;
  std::atomic<bool> closes_{false};
  std::thread clerk_;
};

// Which tokens of which requests the ranks compute in the next step: continuous batching (Yu et
// al., Orca, 2022). Every request that answers has its next token in each step; what room is left
// goes to prompts, the earliest first, in pieces as large as fit (Agrawal et al., Sarathi, 2023).
// A request that is through makes room in the very next step. A value: it knows no time and no
// rank.

class Scheduler {
 public:
  // At most so many requests at work and tokens in a step; tokens >= sequences.
  explicit Scheduler(int sequences = kMostSequences, int tokens = kMostTokens);

  void add(const Request& request);  // it waits until there is a place
  bool is_idle() const { return waiting_.empty() && running_.empty(); }

  // The next step; no pieces where there is nothing to do.
  Batch next();
  // The tokens that the step of next() gave, one for each piece that wanted one, in their order.
  // Returns what to tell the clients.
  std::vector<Event> take(std::span<const int> tokens);

 private:
  struct Running {
    int id, place, wanted;
    std::vector<int> tokens;  // of the prompt, and of the answer so far
    int done = 0;             // of these computed
    bool wants_next = false;  // in the step under way
  };

  int most_tokens_;
  std::vector<int> places_;  // that are free
  std::deque<Request> waiting_;
  std::vector<Running> running_;  // the earliest first
};

}  // namespace rankine::server
