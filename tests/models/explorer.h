// Explorer is a model checker for small concurrent programs on C++ atomics. It runs a scenario
// again and again on fibers, until it has tried every order of turns of its threads and every value
// that a load may return. The threads call production code, compiled against machine.h.
//
// The memory model is that of C++20's atomics, operationally (views, as in Kang et al., "A
// promising semantics for relaxed-memory concurrency", POPL 2017, without promises). Each word
// keeps all its values in the order of their stores. A thread has a view: for each word the oldest
// value that it may still see. A value that was stored with release carries the storing thread's
// view, and a load with acquire that sees the value takes that view over. Read-modify-writes see
// the newest value and continue the release sequence. A load with seq_cst sees at least the newest
// value that was stored with seq_cst. Vector clocks, which travel as views do, find races on plain
// memory.
//
// membarrier gives every other thread, one after the other, the caller's view of the words, and
// gives the caller the view of each. A thread that has stored and has passed no compiler fence
// since may not have executed the store when the barrier came, so the barrier and the store are
// tried in either order.
//
// futex_wait compares with the newest value and sleeps in one turn. Time stands still while any
// thread can move. If no thread can, that is a lost wake-up and a fault. If the scenario allows
// time-outs, the clock moves on to the first deadline instead, and every store has arrived by then.
//
// Orders that differ only by swapping independent turns are tried once (sleep sets: Godefroid,
// "Partial-order methods for the verification of concurrent systems", 1996). A load that sees an
// older value than a store's does not depend on that store, so after the store only the store's
// value is tried. Optionally, only orders with a bounded number of preemptions are tried (Musuvathi
// & Qadeer, PLDI 2007).
//
// Limits: the explorer does not see loads that are executed after later stores of their thread
// (load buffering), or stores that enter a word's history in another order than the program's
// (2+2W). seq_cst on several words is somewhat stronger than in C++20 between loads, and weaker if
// mixed with other orders. A failed compare-exchange sees the newest value. The scenario bounds
// loops, and a thread that sleeps in a loop does not look twice at a value that it has seen there.
// Time-outs come only if no thread can move. No thread is ever found to have ended inside a call.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/fibers.h"
#include "tests/models/machine.h"

namespace rankine::model {

enum class Kind : std::uint8_t { load, store, read_modify_write };

// A place in the source where a word is used with a memory order.
struct Use {
  std::string file;
  unsigned line = 0, column = 0;
  Kind kind = Kind::load;
  std::memory_order order = std::memory_order_relaxed;

  auto operator<=>(const Use&) const = default;
};
std::string name_of(std::memory_order order);
// The next weaker orders: none for relaxed, two for acq_rel.
std::vector<std::memory_order> weaker(Kind kind, std::memory_order order);

// Faults of the machine; tests check that scenarios notice each of them.
enum class Flaw : std::uint8_t {
  none,
  no_barrier,         // membarrier does nothing
  no_compiler_fence,  // the compiler may move a load before a store
  sleeps_unseen,      // futex_wait does not compare
  wakes_nobody,       // futex_wake does nothing
};

class Explorer final : public Machine {
 public:
  struct Options {
    bool may_time_out = false;
    int preemptions = -1;  // the most per execution; -1: any number
    std::uint64_t most_executions = 20'000'000;
    Use weakened{};  // this use gets the order below; line 0: none
    std::memory_order weakened_to = std::memory_order_relaxed;
    Flaw flaw = Flaw::none;
  };
  struct Outcome {
    std::uint64_t executions = 0;  // complete ones
    std::uint64_t cut = 0;         // executions that turned out to repeat another one
    bool exhausted = false;
    std::string fault;               // the first execution with a fault: text
    std::vector<std::string> turns;  // and turns
  };

  explicit Explorer(const Options& options);
  ~Explorer() override;

  // Calls `scenario` for each execution. It makes its state, calls run() once and checks the
  // result. It must be deterministic except for the threads' turns.
  Outcome explore(const std::function<void(Explorer&)>& scenario);
  // Called by a scenario: runs the threads, from first to last turn.
  void run(std::vector<std::function<void()>> threads);
  // Called by a scenario or its threads.
  void require(bool holds, const char* what);
  // Tries every number below `count`. Only a scenario may call it, before run().
  std::size_t choose(std::size_t count);

  // All uses of words in any execution.
  const std::map<Use, std::uint64_t>& uses() const { return uses_; }

  // --- Machine
  void come_to(Act act, const void* word) override;
  std::uint64_t load(const void* word, std::uint64_t newest, std::memory_order order,
                     const Site& site) override;
  void store(const void* word, std::uint64_t former, std::uint64_t value, bool reads,
             std::memory_order order, const Site& site) override;
  void lock(const void* mutex) override;
  void unlock(const void* mutex) override;
  void compiler_fence() override;
  void barrier_everywhere() override;
  void futex_wait(const void* word, const std::uint32_t& newest, std::uint32_t seen,
                  std::int64_t until_ns) override;
  void futex_wake_all(const void* word) override;
  void yield() override {}
  void sleep(std::int64_t ns) override;
  std::int64_t now() override { return now_; }
  std::int64_t look_about() override { return 50'000'000; }
  int thread() override { return self_ + 1; }
  bool has_ended(int) override { return false; }
  void will_read(const void* memory, std::size_t bytes) override;
  void will_write(const void* memory, std::size_t bytes) override;
  void fault_point() override {}

 private:
  static constexpr std::size_t kThreads = 4;
  static constexpr std::size_t kWords = 64;

  struct View {
    std::array<std::uint8_t, kWords> oldest{};    // by word: the oldest visible value
    std::array<std::uint32_t, kThreads> clock{};  // for plain memory
    void join_words(const View& other);
    void join(const View& other);
  };
  struct Value {
    std::uint64_t bits = 0;
    View view;
  };
  struct Word {
    std::vector<Value> values;  // the first `count`
    std::size_t count = 0;
    std::size_t sequential = 0;  // the newest value stored with seq_cst
  };
  struct Seen {
    std::size_t word = 0, value = 0;
  };
  enum class State : std::uint8_t { ready, locking, asleep, dozing, ended };
  struct Thread {
    State state = State::ready;
    Act act = Act::nothing;
    Act last_act = Act::nothing;
    const void* word = nullptr;
    std::uint8_t tried = 0;  // a load: the values before this one have been tried
    std::int64_t until = 0;  // asleep, dozing
    bool unfenced = false;   // has stored since the last compiler fence
    View view;
    View settled;              // the view at its last compiler fence
    View late;                 // views from later barriers, for its next fence
    std::array<Seen, 8> seen;  // values of its last loads
    std::size_t loads = 0;
  };
  struct Lock {
    bool held = false;
    View view;
  };
  struct Cell {  // four bytes of plain memory
    std::uint32_t write = 0;
    std::size_t writer = 0;
    std::array<std::uint32_t, kThreads> read{};
  };
  struct Choice {
    std::uint8_t index = 0, count = 0;
    std::array<std::uint8_t, kThreads> threads{};
    std::uint32_t sleep = 0;
    std::array<std::uint8_t, kThreads> tried{};
  };
  struct KnownUse {
    const char* file = nullptr;
    unsigned line = 0, column = 0;
    std::memory_order order{}, effective{};
    std::uint64_t* counter = nullptr;
  };

  bool backtrack();
  void begin_execution();
  void fail(const std::string& what);
  int pick();
  bool can_move(const Thread& thread) const;
  static bool stays_tried(const Thread& tried, const Thread& moved);
  bool has_news(const Thread& thread) const;
  void pass_on();
  void wait_for_time();
  void settle();
  std::size_t place_of(const void* word) const;
  const Word* find(const void* word) const;
  std::size_t index_of(const void* word, std::uint64_t newest);
  std::memory_order effective(Kind kind, std::memory_order order, const Site& site);
  void touch(const void* memory, std::size_t bytes, bool writes);
  void note(std::string_view what);
  Thread& self() { return threads_[static_cast<std::size_t>(self_)]; }

  const Options options_;
  Fibers fibers_;
  std::vector<Choice> path_;
  std::size_t depth_ = 0;
  bool free_run_ = false;  // runs to the end without choices
  bool cut_ = false, tracing_ = false;
  std::string fault_;
  std::vector<std::string> turns_;
  std::uint64_t turns_taken_ = 0;

  std::vector<Thread> threads_;
  int self_ = 0;
  int preemptions_ = 0;
  std::uint32_t sleep_ = 0;  // the threads that were tried in this state
  std::int64_t now_ = 0;
  std::vector<Word> words_;
  std::size_t words_used_ = 0;
  std::array<std::pair<const void*, std::size_t>, 256> word_table_{};
  std::map<const void*, Lock> locks_;
  std::map<std::uintptr_t, Cell> cells_;
  std::array<KnownUse, 512> known_uses_{};
  std::map<Use, std::uint64_t> uses_;
};

// The scenarios: small programs of two or three ranks that run the production code of mailboxes,
// counters, parking, abort and leave. Each checks its own result; the explorer adds data races and
// lost wake-ups.
struct Scenario {
  std::string name;
  bool may_time_out = false;
  bool is_large = false;  // takes many seconds and adds little to smaller ones
  std::function<void(Explorer&)> play;
  int preemptions = -1;  // as in Options
  Explorer::Options options() const {
    return {.may_time_out = may_time_out, .preemptions = preemptions};
  }
};

std::vector<Scenario> scenarios();

// Faults in the growth of a communicator; tests check that its scenarios notice each of them.
enum class GrowthFlaw : std::uint8_t {
  none,
  admits_early,     // a member admits the new rank before it has confirmed
  needs_no_admit,   // the new rank does not wait for that
  goes_on_alone,    // a member does not count the members that confirm
  tells_nobody,     // a member that has failed does not end the larger communicator
  asks_no_ballot,   // a member does not see that another has given up the meeting
  asks_no_process,  // no rank sees the end of a process
  shares_seats,     // a second process takes a rank's seat
  shares_name,      // a process gives its file a name that is in use
};
std::vector<Scenario> growth_scenarios(GrowthFlaw flaw);

}  // namespace rankine::model
