#include "tests/models/explorer.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/run/fingerprint.h"
#include "engine/run/interpret.h"
#include "engine/run/mailbox.h"
#include "engine/run/rank_control.h"
#include "engine/run/wait.h"

namespace rankine::model {
namespace {

constexpr std::int64_t kMinute = 60'000'000'000;
constexpr WaitPolicy kParks{.mode = WaitPolicy::Mode::park, .probes = 0};
constexpr WaitPolicy kYields{.mode = WaitPolicy::Mode::yield, .probes = 1, .yield_ns = 0};
constexpr WaitPolicy kSpins{.mode = WaitPolicy::Mode::spin, .probes = 0, .spin_ns = 0};

// Plain memory with reads and writes that the machine sees, like the engine's buffers.
struct Plain {
  std::uint64_t value = 0;
  std::uint64_t get() const {
    will_read(&value, sizeof(value));
    return value;
  }
  void set(std::uint64_t to) {
    will_write(&value, sizeof(value));
    value = to;
  }
};

// A mailbox from rank 0 to rank 1 of `rank_control`; its first message has number `first`.
struct Pair {
  static constexpr std::size_t kStride = 64;
  static constexpr std::uint64_t kFingerprint = 1234567;
  struct alignas(kCacheLine) Slots {
    std::byte bytes[kSlots * kStride];
  };

  Pair(RankControl& rank_control, std::uint32_t first)
      : outbox{{slots.bytes, kStride, &credit}, first, first},
        inbox{{slots.bytes, kStride, &credit}, first},
        sender{.rank_control = &rank_control, .rank = 0, .fingerprint = kFingerprint},
        receiver{.rank_control = &rank_control, .rank = 1, .fingerprint = kFingerprint} {
    for (std::uint32_t i = 0; i < kSlots; ++i) {
      (new (slots.bytes + i * kStride) PostHeader)->flag.store(first);
    }
    credit.value.store(first);
    // A rank in a long wait compares its fingerprint with the one that the peer announced.
    for (Rank r : {0, 1}) rank_control.record(r).of(0).fingerprint.store(kFingerprint);
  }
  bool send(std::uint32_t number, std::uint64_t word) {
    return outbox.send(sender, 1, number, &word, sizeof(word), 1);
  }
  // The word in message `number`, which must have arrived.
  std::uint64_t word_of(std::uint32_t number) const {
    PostHeader& slot = inbox.mailbox.slot(number);
    will_read(&slot.bytes_or_history,
              sizeof(PostHeader) - sizeof(slot.flag) + sizeof(std::uint64_t));
    std::uint64_t word;
    std::memcpy(&word, payload(slot), sizeof(word));
    return slot.fingerprint == kFingerprint && slot.bytes_or_history == sizeof(word)
               ? word
               : ~std::uint64_t{0};
  }

  Slots slots{};
  Counter credit;
  Outbox outbox;
  Inbox inbox;
  Waiter sender, receiver;
};

std::uint32_t near_wrap(std::uint32_t before) { return 0U - before; }

// Several messages; the second has number 0, at which the receiver gives credit.
void stream(Explorer& x, WaitPolicy policy, bool strict, std::uint32_t messages) {
  RankControl rank_control(2, policy, kMinute, strict);
  const std::uint32_t first = near_wrap(1);
  Pair pair(rank_control, first);
  x.run({[&] {
           for (std::uint32_t m = 0; m < messages; ++m) {
             x.require(pair.send(first + m, 10 + m), "send failed");
           }
         },
         [&] {
           for (std::uint32_t m = 0; m < messages; ++m) {
             const bool came = pair.inbox.wait(pair.receiver, 0, first + m, 1) != nullptr;
             x.require(came, "wait failed");
             if (!came) return;
             x.require(pair.word_of(first + m) == 10 + m, "a message is not what was sent");
             pair.inbox.release(pair.receiver, first + m + 1, false);
           }
         }});
}

// The mailbox is full: the next message takes the place of the first one, after its use.
void reuse(Explorer& x, WaitPolicy policy, bool strict) {
  RankControl rank_control(2, policy, kMinute, strict);
  const std::uint32_t first = near_wrap(kUnderWay);  // so that number 0 gives credit for the first
  Pair pair(rank_control, first);
  for (std::uint32_t m = 0; m < kSlots; ++m) pair.send(first + m, 10 + m);
  x.run({[&] { x.require(pair.send(first + kSlots, 99), "send failed"); },
         [&] {
           x.require(pair.inbox.wait(pair.receiver, 0, first, 1) != nullptr, "wait failed");
           x.require(pair.word_of(first) == 10, "the first message was overwritten");
           pair.inbox.release(pair.receiver, first + kUnderWay, false);
           x.require(pair.inbox.wait(pair.receiver, 0, first + kSlots, 1) != nullptr,
                     "wait failed");
           x.require(pair.word_of(first + kSlots) == 99, "a message is not what was sent");
         }});
}

// The sender owns the data at the address again when the credit is back.
void by_address(Explorer& x, WaitPolicy policy, bool strict) {
  RankControl rank_control(2, policy, kMinute, strict);
  const std::uint32_t first = near_wrap(1);
  Pair pair(rank_control, first);
  Plain data;
  x.run({[&] {
           data.set(10);
           x.require(pair.send(first, reinterpret_cast<std::uintptr_t>(&data)), "send failed");
           x.require(pair.outbox.wait_credit(pair.sender, 1, first + 1, 1), "wait failed");
           data.set(11);
         },
         [&] {
           x.require(pair.inbox.wait(pair.receiver, 0, first, 1) != nullptr, "wait failed");
           const auto* there =
               reinterpret_cast<const Plain*>(static_cast<std::uintptr_t>(pair.word_of(first)));
           x.require(there == &data && there->get() == 10, "not the data that was sent");
           pair.inbox.release(pair.receiver, first + 1, true);
         }});
}

// A remembered credit is as good as one from the counter: here the second message's credit may have
// come while the sender looked for the first one's.
void remembered_credit(Explorer& x, WaitPolicy policy, bool strict) {
  RankControl rank_control(2, policy, kMinute, strict);
  const std::uint32_t first = near_wrap(1);
  Pair pair(rank_control, first);
  std::array<Plain, 2> data;
  for (std::uint32_t m = 0; m < 2; ++m) pair.send(first + m, m);
  x.run({[&] {
           for (std::uint32_t m = 0; m < 2; ++m) {
             x.require(pair.outbox.wait_credit(pair.sender, 1, first + m + 1, 1), "wait failed");
             data[m].set(1);
           }
         },
         [&] {
           for (std::uint32_t m = 0; m < 2; ++m) {
             data[m].get();
             pair.inbox.release(pair.receiver, first + m + 1, true);
           }
         }});
}

// One publication, two readers.
void multicast(Explorer& x, WaitPolicy policy, bool strict) {
  const std::uint32_t first = near_wrap(1);
  RankControl rank_control(3, policy, kMinute, strict);
  for (Rank r = 0; r < 3; ++r) rank_control.progress(r).value.store(first);
  Plain data;
  const auto reader = [&](Rank r) {
    Waiter waiter{.rank_control = &rank_control, .rank = r};
    x.require(wait_until(waiter, rank_control.progress(0).value, first + 1, 0, 1), "wait failed");
    x.require(data.get() == 7, "not what was published");
  };
  x.run({[&] {
           data.set(7);
           publish(rank_control, 0, rank_control.progress(0).value, first + 1);
         },
         [&] { reader(1); }, [&] { reader(2); }});
}

// The publisher may write again after both readers have published their progress.
void progress_of_readers(Explorer& x, WaitPolicy policy, bool strict) {
  const std::uint32_t first = near_wrap(1);
  RankControl rank_control(3, policy, kMinute, strict);
  for (Rank r = 0; r < 3; ++r) rank_control.progress(r).value.store(first);
  Plain data;
  const auto reader = [&](Rank r) {
    data.get();
    publish(rank_control, r, rank_control.progress(r).value, first + 1);
  };
  x.run({[&] {
           Waiter waiter{.rank_control = &rank_control, .rank = 0};
           for (const Rank r : {1, 2}) {
             x.require(wait_until(waiter, rank_control.progress(r).value, first + 1, r, 1),
                       "wait failed");
           }
           data.set(8);
         },
         [&] { reader(1); }, [&] { reader(2); }});
}

// A rank waits for the second of two words of one owner; optionally another rank waits for the
// first.
void two_words(Explorer& x, bool strict, bool both) {
  RankControl rank_control(3, kParks, kMinute, strict);
  Counter other;
  const auto waits = [&](Rank r, const Atomic<std::uint32_t>& word) {
    Waiter waiter{.rank_control = &rank_control, .rank = r};
    x.require(wait_until(waiter, word, 1, 0, 1), "wait failed");
  };
  std::vector<std::function<void()>> threads = {[&] {
                                                  publish(rank_control, 0,
                                                          rank_control.progress(0).value, 1);
                                                  publish(rank_control, 0, other.value, 1);
                                                },
                                                [&] { waits(1, other.value); }};
  if (both) threads.push_back([&] { waits(2, rank_control.progress(0).value); });
  x.run(std::move(threads));
  for (Rank r = 0; r < 3; ++r) {
    x.require(rank_control.parked(r).count.load() == 0, "somebody is still counted as parked");
  }
}

// Abort comes from a thread without a rank; the word may be published as well, or never.
void abort_meets_wait(Explorer& x, WaitPolicy policy, bool strict, bool publishes, bool in_signal) {
  RankControl rank_control(2, policy, kMinute, strict);
  Plain data;
  std::vector<std::function<void()>> threads;
  threads.push_back([&] {
    Waiter waiter{.rank_control = &rank_control, .rank = 0};
    if (wait_until(waiter, rank_control.progress(1).value, 1, 1, 1)) {
      x.require(publishes && data.get() == 7, "not what was published");
    } else {
      x.require(rank_control.aborted(), "a wait fails without an abort");
      x.require(rank_control.reason().text() == (in_signal ? "abort() was called" : "now"),
                "another reason");
    }
  });
  threads.push_back([&] {
    in_signal ? rank_control.abort_now() : rank_control.abort({Code::aborted, "now"});
  });
  if (publishes) {
    threads.push_back([&] {
      data.set(7);
      publish(rank_control, 1, rank_control.progress(1).value, 1);
    });
  }
  x.run(std::move(threads));
}

// A rank that sees the abort also sees all that was written before it.
void abort_publishes(Explorer& x, bool in_signal) {
  RankControl rank_control(1, kParks, kMinute, true);
  Plain data;
  x.run({[&] {
           data.set(7);
           in_signal ? rank_control.abort_now() : rank_control.abort({Code::aborted, "over"});
         },
         [&] {
           if (rank_control.aborted())
             x.require(data.get() == 7, "not what was there at the abort");
         }});
}

// The first reason of two is the reason for all ranks.
void two_aborts(Explorer& x) {
  RankControl rank_control(1, kParks, kMinute, true);
  std::array<std::string, 2> seen;
  const auto aborts = [&](std::size_t i) {
    rank_control.abort({Code::aborted, i == 0 ? "first" : "second"});
    x.require(rank_control.aborted(), "aborted and not aborted");
    seen[i] = rank_control.reason().text();
  };
  x.run({[&] { aborts(0); }, [&] { aborts(1); }});
  x.require(seen[0] == seen[1] && !seen[0].empty(), "two reasons");
}

// A wait for a word that a rank published before it left succeeds; a wait for a later one fails.
void leave(Explorer& x, bool strict) {
  RankControl rank_control(2, kParks, kMinute, strict);
  Plain data;
  x.run({[&] {
           Waiter waiter{.rank_control = &rank_control, .rank = 0};
           x.require(wait_until(waiter, rank_control.progress(1).value, 1, 1, 1), "wait failed");
           x.require(data.get() == 7, "not what was published");
           x.require(!wait_until(waiter, rank_control.progress(1).value, 2, 1, 1),
                     "a wait for nothing");
           x.require(rank_control.reason().code() == Code::rank_lost, "another reason");
         },
         [&] {
           data.set(7);
           publish(rank_control, 1, rank_control.progress(1).value, 1);
           rank_control.leave(1);
         }});
}

// A rank that has returned after an abort may use its buffers, because no other rank reads them any
// more.
void quiet(Explorer& x, bool strict, bool in_signal, int calls) {
  RankControl rank_control(2, kParks, kMinute, strict);
  Plain buffer;
  x.run({[&] {
           in_signal ? rank_control.abort_now() : rank_control.abort({Code::aborted, "over"});
           rank_control.wait_until_quiet(0);
           buffer.set(1);
         },
         [&] {
           for (int i = 0; i < calls && rank_control.begin(1); ++i) {
             buffer.get();
             rank_control.end(1);
           }
         }});
}

// Both ranks are inside calls, and one of them finds the abort in a wait.
void quiet_both(Explorer& x, bool strict) {
  RankControl rank_control(2, kParks, kMinute, strict);
  std::array<Plain, 2> buffers;
  const auto rank = [&](Rank r) {
    const auto self = static_cast<std::size_t>(r);
    if (!rank_control.begin(r)) return;
    buffers[1 - self].get();
    if (r == 0) {
      rank_control.abort({Code::aborted, "over"});
    } else {
      Waiter waiter{.rank_control = &rank_control, .rank = r};
      x.require(!wait_until(waiter, rank_control.progress(0).value, 1, 0, 1), "a wait for nothing");
    }
    rank_control.end(r);
    rank_control.wait_until_quiet(r);
    buffers[self].set(1);
  };
  x.run({[&] { rank(0); }, [&] { rank(1); }});
}

// No rank waits for a call that was put down, and a rank that comes back to it finds the abort.
void quiet_put_down(Explorer& x, bool strict) {
  RankControl rank_control(2, kParks, kMinute, strict);
  Plain buffer;
  x.run({[&] {
           rank_control.abort({Code::aborted, "over"});
           rank_control.wait_until_quiet(0);
           buffer.set(1);
         },
         [&] {
           rank_control.record(1).announce(1, 0, 0, "ring", thread_id());
           if (!rank_control.begin(1)) return;
           buffer.get();
           put_down(rank_control.lines(1));
           if (!come_back_to(rank_control, rank_control.lines(1))) return;
           buffer.get();
           rank_control.end(1);
         }});
}

// A thread that plays several ranks does not wait for its other ranks, which cannot run meanwhile.
void quiet_alone(Explorer& x, bool strict) {
  RankControl rank_control(2, kParks, kMinute, strict);
  x.run({[&] {
    for (const Rank r : {0, 1}) {
      rank_control.record(r).announce(1, 0, 0, "ring", thread_id());
      x.require(rank_control.begin(r), "aborted before it is");
    }
    rank_control.abort({Code::aborted, "over"});
    for (const Rank r : {0, 1}) {
      rank_control.end(r);
      rank_control.wait_until_quiet(r);
    }
  }});
}

std::uint64_t fingerprint_of(ReduceOp op, std::uint32_t call) {
  return with_call(make_fingerprint(Collective::all_reduce, DataType::f32, op, false,
                                    Transport::mailbox, 0, 0, 0),
                   call)
      .bits;
}

// The peer makes a different call than this rank, right after a matching one; a rank that waits for
// it finds out when it looks about.
void mismatch(Explorer& x, bool agree) {
  RankControl rank_control(2, kParks, kMinute, true);
  rank_control.record(1).announce(1, fingerprint_of(ReduceOp::sum, 1), 5, "ring", thread_id());
  x.run(
      {[&] {
         Waiter waiter{.rank_control = &rank_control,
                       .rank = 0,
                       .call = 2,
                       .fingerprint = fingerprint_of(ReduceOp::sum, 2)};
         rank_control.record(0).announce(2, waiter.fingerprint, 5, "ring", thread_id());
         const bool done = wait_until(waiter, rank_control.progress(1).value, 1, 1, 1);
         x.require(done == agree, agree ? "calls agree" : "calls disagree");
         if (!agree) {
           x.require(rank_control.reason().text() == "operation is sum at rank 0 and max at rank 1",
                     "another reason");
         }
       },
       [&] {
         const ReduceOp op = agree ? ReduceOp::sum : ReduceOp::max;
         for (std::uint32_t call = 2; call < 4; ++call) {
           rank_control.record(1).announce(call, fingerprint_of(op, call), 5, "ring", thread_id());
           if (!agree) return;
           if (call == 2) publish(rank_control, 1, rank_control.progress(1).value, 1);
         }
       }});
}

// The other work of a rank: it looks again at once, then when something that it looked at last has
// changed, or when the time has come to look about.
void rest() { sleep_ns(look_about_ns()); }
struct Resting : YieldCallback {
  void give_way(int turn) noexcept override {
    if (turn > 0) rest();
  }
};

// Waits in which a rank gives way to its other work: they see the publication, and the abort.
void give_way(Explorer& x, bool strict, bool aborts) {
  RankControl rank_control(2, kParks, kMinute, strict);
  Plain data;
  x.run({[&] {
           Resting others;
           Waiter waiter{.rank_control = &rank_control, .rank = 0, .others = &others};
           if (wait_until(waiter, rank_control.progress(1).value, 1, 1, 1)) {
             x.require(!aborts && data.get() == 7, "not what was published");
           } else {
             x.require(aborts && rank_control.aborted(), "a wait fails without an abort");
             x.require(rank_control.reason().text() == "now", "another reason");
           }
         },
         [&] {
           if (aborts) return rank_control.abort({Code::aborted, "now"});
           data.set(7);
           publish(rank_control, 1, rank_control.progress(1).value, 1);
         }});
}

// A communicator that depends on another one ends with it, in either order of the two events.
void depends(Explorer& x, bool in_signal, bool from_below) {
  RankControl above(1, kParks, kMinute, true), below(1, kParks, kMinute, true);
  x.run({[&] { below.depend_on(above, from_below, "rank 0"); },
         [&] {
           in_signal ? above.abort_now() : above.abort({Code::aborted, "over"});
         }});
  x.require(below.aborted(), "the end was not told");
  // If a dependent arrives too late for a signal handler's call, the reason's text tells it of the
  // end.
  const std::string whole = "the communicator that this one was split from has ended: ";
  const std::string reason = below.reason().text();
  x.require(in_signal ? reason.ends_with("abort() was called") : reason == whole + "over",
            "another reason");
  below.depend_no_more();
}

// One of two communicators ends, or both at once: in both cases both end, and each has a reason.
void end_both_ways(Explorer& x, bool both) {
  RankControl above(1, kParks, kMinute, true), below(1, kParks, kMinute, true);
  below.depend_on(above, true, "rank 0");
  std::vector<std::function<void()>> threads = {[&] { below.abort({Code::aborted, "below"}); }};
  if (both) threads.push_back([&] { above.abort({Code::aborted, "above"}); });
  x.run(std::move(threads));
  x.require(above.aborted() && below.aborted(), "the end was not told");
  x.require(!above.reason().text().empty() && !below.reason().text().empty(), "no reason");
  below.depend_no_more();
}

// Ranks take steps, or shrink their communicator, and declare each rank out that has not come when
// they look. So a rank may be declared out at any time, whether it has died or not; and a rank that
// dies is one that comes no more, which each execution with a late rank contains. Ranks that have a
// decision of a step have the same one, and are among its survivors.
// The first `shrinks` ranks shrink; the others take `steps` steps, and die.
void survivors(Explorer& x, int ranks, std::uint32_t steps, Rank shrinks) {
  RankControl rank_control(ranks, kParks, kMinute, true);
  using Decisions = std::vector<std::optional<Agreement::Decision>>;
  std::array<Decisions, 3> found;
  std::array<std::uint64_t, 3> shrunk_in{};
  std::array<bool, 3> misses{};
  const auto rank = [&](Rank r) {
    Decisions& mine = found[static_cast<std::size_t>(r)];
    mine.resize(10);
    const auto decide = [&](Agreement::Use use, std::uint32_t value) {
      Agreement agreement(rank_control, r);
      std::optional<Agreement::Decision> out;
      if (!agreement.take_step(use, value)) return out;
      x.require(agreement.is_complete([](Rank) { return Agreement::Verdict::lost; }),
                "a look that does not end");
      const Agreement::Decision* decision = agreement.decision();
      if (decision != nullptr) out = *decision;
      misses[static_cast<std::size_t>(r)] = decision == nullptr;
      return mine[agreement.step()] = out;
    };
    if (r < shrinks) {
      const auto done =
          shrink_in_steps(decide, [](const Agreement::Decision&) { return kMade | kMayRepeat; });
      if (done) shrunk_in[static_cast<std::size_t>(r)] = done->step;
      return;
    }
    for (std::uint32_t i = 1; i <= steps; ++i) {
      const std::uint32_t value = ~(std::uint32_t{1} << r | std::uint32_t{8} << i);
      if (!decide(Agreement::Use::agree, shrinks > 0 ? kMade | kMayRepeat : value)) return;
    }
  };
  std::vector<std::function<void()>> threads;
  for (Rank r = 0; r < ranks; ++r) threads.push_back([&rank, r] { rank(r); });
  x.run(std::move(threads));
  for (Rank r = 0; r < ranks; ++r) {
    const bool is_out = (rank_control.ballot(r).state.load() & Ballot::kOut) != 0;
    x.require(is_out || !misses[static_cast<std::size_t>(r)], "a word of the step is missing");
  }
  std::uint32_t last = 0;  // the step in which ranks end their shrink
  for (std::uint32_t i = 1; i < 10; ++i) {
    const Agreement::Decision* first = nullptr;
    for (Rank r = 0; r < ranks; ++r) {
      const auto& one = found[static_cast<std::size_t>(r)][i];
      if (!one) continue;
      const auto& members = one->survivors;
      if (first == nullptr) first = &*one;
      x.require(members == first->survivors && one->value == first->value && one->step == i,
                "two decisions of one step");
      x.require(std::count(members.begin(), members.end(), r) == 1, "a survivor of others alone");
      std::uint32_t said = ~(std::uint32_t{8} << i);
      for (const Rank q : members) said &= ~(std::uint32_t{1} << q);
      x.require(shrinks > 0 || one->value == said, "not what the survivors have said");
    }
    for (Rank r = 0; r < ranks && first != nullptr; ++r) {
      if (shrunk_in[static_cast<std::size_t>(r)] != i) continue;
      x.require(last == 0 || last == i, "two communicators of survivors");
      last = i;
    }
  }
}

// A rank waits for ranks that die: before their step, or after it.
void wait_for_the_dying(Explorer& x, std::array<bool, 2> take_step) {
  RankControl rank_control(3, kParks, kMinute, true);
  std::array<Atomic<bool>, 3> dead{};
  const auto dies = [&](std::size_t r) {
    if (take_step[r - 1])
      Agreement(rank_control, static_cast<Rank>(r)).take_step(Agreement::Use::agree, 0);
    dead[r].store(true, std::memory_order_release);
  };
  x.run({[&] {
           Agreement agreement(rank_control, 0);
           x.require(agreement.take_step(Agreement::Use::agree, 1), "a living rank is out");
           while (!agreement.is_complete([&](Rank q) {
             return dead[static_cast<std::size_t>(q)].load(std::memory_order_acquire)
                        ? Agreement::Verdict::lost
                        : Agreement::Verdict::waits;
           })) {
             rest();
           }
           const Agreement::Decision* decision = agreement.decision();
           const std::size_t others = (take_step[0] ? 1U : 0U) + (take_step[1] ? 1U : 0U);
           x.require(decision != nullptr && decision->survivors.size() == 1 + others &&
                         decision->value == (others == 0 ? 1U : 0U),
                     "not the ranks that have taken the step");
         },
         [&] { dies(1); }, [&] { dies(2); }});
}

// Ranks offer data in steps, and go on without each rank that has not come when they look. So a
// rank may be late at any time, and one with fewer steps dies; if `loses`, rank 0 finds the last
// rank lost. Ranks with a result have the data of the same ranks, each of this step.
void late_ranks(Explorer& x, const std::vector<std::uint64_t>& steps, bool loses) {
  const auto ranks = static_cast<Rank>(steps.size());
  RankControl rank_control(ranks, kParks, kMinute, true);
  std::array<std::array<Atomic<std::uint64_t>, 2>, 3> data{};
  std::array<std::array<std::vector<Rank>, 4>, 3> found{};
  const auto rank = [&](Rank r) {
    const auto i = static_cast<std::size_t>(r);
    const auto data_of = [](Rank q, std::uint64_t step) {
      return 10 * step + static_cast<std::uint64_t>(q);
    };
    for (std::uint64_t step = 1; step <= steps[i]; ++step) {
      Agreement agreement(rank_control, r);
      const std::uint64_t mine = data_of(r, step);
      store_words(&data[i][step & 1], &mine, sizeof(mine));
      if (!agreement.take_step(Agreement::Use::active, 7) && agreement.is_out()) return;
      x.require(agreement.is_complete([&](Rank q) {
        return loses && r == 0 && q == ranks - 1 ? Agreement::Verdict::lost
                                                 : Agreement::Verdict::late;
      }),
                "a look that does not end");
      const Agreement::Decision* decision = agreement.decision();
      if (decision == nullptr) continue;
      const std::vector<Rank> set = decision->survivors;
      bool is_right = decision->same_value;
      for (const Rank q : set) {
        std::uint64_t word = 0;
        load_words(&word, &data[static_cast<std::size_t>(q)][step & 1], sizeof(word));
        is_right = is_right && word == data_of(q, step);
      }
      if (agreement.decision() == nullptr) continue;
      x.require(is_right, "not the data of this step");
      x.require(std::count(set.begin(), set.end(), r) == 1, "a result of others alone");
      found[i][step] = set;
    }
  };
  std::vector<std::function<void()>> threads;
  for (Rank r = 0; r < ranks; ++r) threads.push_back([&rank, r] { rank(r); });
  x.run(std::move(threads));
  for (std::size_t step = 1; step < 4; ++step) {
    const std::vector<Rank>* first = nullptr;
    for (const auto& one : found) {
      if (one[step].empty()) continue;
      if (first == nullptr) first = &one[step];
      x.require(one[step] == *first, "two sets of one step");
    }
  }
}

// A process that ends.
struct Ended {};

// A communicator of ranks 0 and 1 grows by rank 2, a new process. The agreements, the members'
// steps and the waits for arrivals are the engine's; the file's seats and the kernel's list of
// ended processes are modelled. Each rank has a fate: the point at which its process ends, or for a
// member a lack of memory. Time moves, and so passes the deadline of the meeting, only if no rank
// can move.
class Growing {
 public:
  // `late`: only the agreements, in which a member may declare the other one out at any time.
  Growing(Explorer& x, GrowthFlaw flaw, bool late) : x_(x), flaw_(flaw), late_(late) {}

  void play() {
    choose_fates();
    if (!late_) begin();
    std::vector<std::function<void()>> threads;
    for (Rank r = 0; r < 3; ++r) {
      threads.push_back([this, r] {
        try {
          r < kNew ? member(r) : newcomer();
        } catch (const Ended&) {
        }
      });
    }
    x_.run(std::move(threads));
    judge();
  }

 private:
  static constexpr Rank kNew = 2;
  static constexpr std::uint32_t kWanted = 3;
  static constexpr int kSits = 1, kDead = 2;
  enum Fate : std::uint8_t {  // the process ends when it
    comes,
    has_sat,
    is_ready,
    has_confirmed,
    has_decided,
    has_admitted,
    can_make_nothing,  // this and the following live
    lacks_memory,      // for the larger communicator, after the meeting
    lives,
  };
  struct Process {
    Fate fate = lives;
    Atomic<int> seen{0};  // the kernel's list: kSits and kDead
    Plain said{};         // written before the rank is ready
    bool is_in = false;   // its call has succeeded
    bool waited_in_vain = false;
    std::optional<Agreement::Decision> begun{};  // the first step, taken before the threads start
  };

  bool ends(Rank r) const { return of(r).fate < can_make_nothing; }
  void choose_fates() {
    works_ = !late_ || x_.choose(2) == 0;
    if (late_) return;
    // Members are alike, so one order of their fates is enough. Two processes end at most.
    of(0).fate = static_cast<Fate>(lives - x_.choose(1 + lives));
    of(1).fate = static_cast<Fate>(lives - x_.choose(1U + lives - of(0).fate));
    const std::size_t fate = x_.choose(ends(0) && ends(1) ? 1 : 2 + is_ready);
    of(kNew).fate = fate == 0 ? lives : static_cast<Fate>(fate - 1);
  }
  void begin() {
    Agreement first(rank_control_, 0), second(rank_control_, 1);
    for (Agreement* one : {&first, &second}) one->take_step(Agreement::Use::grow, kWanted);
    for (Agreement* one : {&first, &second}) {
      one->is_complete([](Rank) { return Agreement::Verdict::waits; });
      of(one == &first ? 0 : 1).begun = *one->decision();
    }
  }
  void reaches(Rank r, Fate point) {
    if (of(r).fate != point) return;
    of(r).seen.fetch_add(kDead, std::memory_order_seq_cst);
    throw Ended{};
  }

  // As decide() in engine/api/split.cc.
  std::optional<Agreement::Decision> decide(Rank r, Agreement::Use use, std::uint32_t word) {
    if (use == Agreement::Use::grow && !late_) return of(r).begun;
    Agreement agreement(rank_control_, r);
    if (!agreement.take_step(use, word)) return std::nullopt;
    reaches(r, has_confirmed);
    while (!agreement.is_complete([&](Rank q) {
      return late_ || (of(q).seen.load() & kDead) != 0 ? Agreement::Verdict::lost
                                                       : Agreement::Verdict::waits;
    })) {
      rest();
    }
    const Agreement::Decision* const decision = agreement.decision();
    if (decision == nullptr) return std::nullopt;
    Agreement::Decision out = *decision;
    if (flaw_ == GrowthFlaw::goes_on_alone) out.survivors = {0, 1};
    return out;
  }
  // As ProcessLobby::may_wait() and Member::grow().
  Status may_wait(Rank r) {
    const auto error = [](Code code) { return make_error(code, [] { return ""; }); };
    if (ended_.load(std::memory_order_acquire)) return error(Code::rank_lost);
    for (Rank q = 0; q < 3; ++q) {
      if (q == r) continue;
      const int seen = of(q).seen.load();
      const bool asks = flaw_ != GrowthFlaw::asks_no_process;
      if (asks && seen == kSits + kDead) return error(Code::rank_lost);
      if (q == kNew || r == kNew) continue;
      if (flaw_ != GrowthFlaw::asks_no_ballot &&
          rank_control_.ballot(q).has_reached(of(r).begun->step + 1)) {
        return error(Code::rank_lost);
      }
      if (asks && seen == kDead) return error(Code::rank_lost);
    }
    if (now_ns() == begin_ns_) return {};
    of(r).waited_in_vain = true;
    return error(Code::timeout);
  }
  bool wait(Rank r, const Arrivals& arrivals, int ranks) {
    const bool done = arrivals.wait(ranks, [&] { return may_wait(r); }).ok();
    if (!done) ended_.store(true, std::memory_order_release);
    return done;
  }
  // Only the last step of a meeting: all steps wait alike.
  void come(Rank r) {
    of(r).seen.fetch_add(kSits, std::memory_order_seq_cst);
    reaches(r, has_sat);
    of(r).said.set(1);
    ready_.add(1);
    reaches(r, is_ready);
  }
  bool meet(Rank r) {
    if (of(r).fate == can_make_nothing) return false;
    if (late_) return true;
    come(r);
    if (!wait(r, ready_, 3)) return false;
    for (Process& process : processes_) process.said.get();
    return true;
  }

  void member(Rank r) {
    reaches(r, comes);
    bool met = false;
    const bool is_early = flaw_ == GrowthFlaw::admits_early;
    const Growth growth = grow_in_steps(
        kNew, kWanted, works_ || r == 0,
        [&](Agreement::Use use, std::uint32_t word) { return decide(r, use, word); },
        [&](const Agreement::Decision& begun) {
          x_.require(begun.survivors.size() == kNew && works_, "a meeting without all members");
          met = meet(r);
          const bool has_it = met && of(r).fate != lacks_memory;
          if (has_it && is_early) admitted_.add(1);
          return has_it ? kHaveLarger : kHaveLarger - 1;
        },
        [&] {
          reaches(r, has_decided);
          if (!is_early) admitted_.add(1);
          reaches(r, has_admitted);
        });
    of(r).is_in = growth.done;
    const bool tells = flaw_ != GrowthFlaw::tells_nobody;
    if (!growth.done && (met || late_) && tells) ended_.store(true, std::memory_order_release);
  }
  void newcomer() {
    reaches(kNew, comes);
    if (!late_) come(kNew);
    if (flaw_ != GrowthFlaw::needs_no_admit && !wait(kNew, admitted_, 2)) return;
    of(kNew).is_in = true;
  }

  void judge() {
    const auto fate = [&](Rank r) { return of(r).fate; };
    int alive = 0, in = 0;
    for (const Process& one : processes_) {
      alive += one.fate == lives ? 1 : 0;
      in += one.is_in ? 1 : 0;
    }
    x_.require(ends(0) || ends(1) || of(0).is_in == of(1).is_in, "two decisions of members");
    x_.require(late_ || alive < 3 || in == 3, "a failure without a reason");
    const auto makes_it = [&](Rank r) { return ends(r) || fate(r) == lives; };
    x_.require(in == 0 || (makes_it(0) && makes_it(1)), "a communicator that a member cannot make");
    for (Rank r = 0; r < 3; ++r) {
      // The next call of a rank that is in tells it if another one is not.
      x_.require(ends(r) || of(r).is_in || in == 0 || ended_.load(),
                 "nobody knows that a rank failed");
    }
    for (Rank r = 0; r < kNew; ++r) {
      x_.require(!of(kNew).is_in || ends(r) || of(r).is_in,
                 "a new rank in a communicator that a member lacks");
      x_.require(!of(r).waited_in_vain || fate(kNew) == comes, "a member waits in vain");
    }
    const auto comes_not = [&](Rank r) { return ends(r) || fate(r) == can_make_nothing; };
    x_.require(!of(kNew).waited_in_vain || (comes_not(0) && comes_not(1)),
               "the new rank waits in vain");
  }

  Process& of(Rank r) { return processes_[static_cast<std::size_t>(r)]; }
  const Process& of(Rank r) const { return processes_[static_cast<std::size_t>(r)]; }

  Explorer& x_;
  const GrowthFlaw flaw_;
  const bool late_;
  bool works_ = true;  // rank 1's communicator
  const std::int64_t begin_ns_ = x_.now();
  RankControl rank_control_{kNew, kParks, kMinute, true};
  std::array<Process, 3> processes_;
  Arrivals ready_, admitted_;
  Atomic<bool> ended_{false};  // the meeting and the larger communicator: SharedEnding
};

// Two processes meet under one name, or a third one comes that also plays rank 1, as
// ProcessLobby::enter() does: the first one makes a file and gives it the name, the next one takes
// a seat in it. All but the waits is modelled.
void take_seats(Explorer& x, GrowthFlaw flaw, bool with_third) {
  struct File {
    std::array<Atomic<int>, 2> seats{};  // 1 + the process
    Arrivals seated, ready;
    Atomic<bool> ended{false};
  };
  std::array<File, 6> files;  // two for each process
  Atomic<int> name{0};        // 1 + the file; 0: free
  std::array<int, 3> in{};    // by process: 1 + the file of its meeting
  const std::int64_t begin_ns = x.now();
  const auto process = [&](int p) {
    const auto rank = static_cast<std::size_t>(p > 0 ? 1 : 0);
    int next = 2 * p, mine = 0;
    while (mine == 0) {
      int found = name.load(std::memory_order_seq_cst);
      if (found == 0) {
        if (next == 2 * p + 2) return;  // it tries no more
        File& fresh = files[static_cast<std::size_t>(next++)];
        fresh.seats[rank].store(1 + p, std::memory_order_release);
        fresh.seated.add(1);
        if (flaw == GrowthFlaw::shares_name) {
          name.store(next, std::memory_order_seq_cst);
          mine = next;
        } else if (name.compare_exchange_strong(found, next, std::memory_order_seq_cst)) {
          mine = next;
        }
        continue;
      }
      File& file = files[static_cast<std::size_t>(found - 1)];
      if (file.seated.has(2)) {  // its name will be free soon
        if (now_ns() > begin_ns) return;
        rest();
        continue;
      }
      int nobody = 0;
      if (!file.seats[rank].compare_exchange_strong(nobody, 1 + p, std::memory_order_acq_rel) &&
          flaw != GrowthFlaw::shares_seats) {
        file.ended.store(true, std::memory_order_release);
        name.compare_exchange_strong(found, 0, std::memory_order_seq_cst);
        return;
      }
      file.seated.add(1);
      mine = found;
    }
    File& file = files[static_cast<std::size_t>(mine - 1)];
    const auto may_wait = [&]() -> Status {
      const bool may = !file.ended.load(std::memory_order_acquire) && now_ns() == begin_ns;
      return may ? Status() : make_error(Code::timeout, [] { return ""; });
    };
    bool met = file.seated.wait(2, may_wait).ok();
    if (met) file.ready.add(1);
    met = met && file.ready.wait(2, may_wait).ok();
    int named = mine;
    name.compare_exchange_strong(named, 0, std::memory_order_seq_cst);
    if (met) in[static_cast<std::size_t>(p)] = mine;
  };
  std::vector<std::function<void()>> threads = {[&] { process(0); }, [&] { process(1); }};
  if (with_third) threads.push_back([&] { process(2); });
  x.run(std::move(threads));
  x.require(with_third || (in[0] != 0 && in[0] == in[1]), "two processes do not meet");
  x.require(in[1] == 0 || in[2] == 0, "two processes play one rank");
  for (const int file : in) {  // a process that is in finds the end in its next call
    x.require(file == 0 || file == in[0] || files[static_cast<std::size_t>(file - 1)].ended.load(),
              "a meeting of one");
  }
  x.require(name.load() == 0, "a name that stays");
}

struct Told {
  Plain memory;
  int times = 0;
};

// A dependent that was removed is not told any more, and its owner owns its memory.
void taken_out(Explorer& x) {
  AbortListeners<Told> all;
  Told one;
  all.add(one);
  x.run({[&] { all.tell([](Told& told) { told.memory.get(); }); },
         [&] {
           all.remove(one);
           one.memory.set(1);
         }});
}

// A dependent that is added while others are told is told too, or sees that the end came before.
// This also holds when the first block of dependents is full.
void put_in(Explorer& x, int before) {
  AbortListeners<Told> all;
  std::vector<Told> those(static_cast<std::size_t>(before));
  for (Told& one : those) all.add(one);
  Told late;
  Atomic<bool> over{false};
  bool was_over = false;
  x.run({[&] {
           over.store(true, std::memory_order_seq_cst);
           all.tell([](Told& told) { ++told.times; });
         },
         [&] {
           late.memory.set(1);
           all.add(late);
           was_over = over.load(std::memory_order_seq_cst);
         }});
  x.require(was_over || late.times == 1, "was not told, and does not know");
  for (const Told& one : those) x.require(one.times == 1, "was not told");
}

// A deadline ends all waits, with one reason.
void deadline(Explorer& x) {
  RankControl rank_control(3, kParks, 1'000'000, true);
  std::array<std::string, 2> seen;
  const auto rank = [&](Rank r) {
    Waiter waiter{.rank_control = &rank_control, .rank = r};
    x.require(!wait_until(waiter, rank_control.progress(2).value, 1, 2, 1), "a wait for nothing");
    x.require(rank_control.reason().code() == Code::timeout, "another reason");
    seen[static_cast<std::size_t>(r)] = rank_control.reason().text();
  };
  x.run({[&] { rank(0); }, [&] { rank(1); }});
  x.require(seen[0] == seen[1], "two reasons");
}

// The interpreter on a plan of two ranks: on mailboxes and boards each rank takes a word of the
// other.
struct Exchange {
  // `sums`: on boards, a sum of both words, for is_exchange().
  explicit Exchange(Transport transport, bool sums = false) {
    plan.transport = transport;
    plan.ranks = 2;
    plan.rounds = 1;
    plan.rank.resize(2);
    plan.element_bytes = sizeof(std::uint64_t);
    plan.most_operands = 1;
    constexpr std::size_t kBytes = sizeof(std::uint64_t);
    for (std::uint16_t r = 0; r < 2; ++r) {
      const auto peer = static_cast<std::uint16_t>(1 - r);
      RankPlan& mine = plan.rank[r];
      if (transport == Transport::mailbox) {
        mine.ops.push_back({.code = OpCode::send, .operands = 1, .peer = peer, .bytes = kBytes});
        mine.operands.push_back({.rank = r, .memory = Memory::input});
        mine.ops.push_back({.code = OpCode::wait_message, .peer = peer, .bytes = kBytes});
        mine.ops.push_back({.code = OpCode::fold, .operands = 1, .bytes = kBytes});
        mine.operands.push_back({.rank = peer, .memory = Memory::message});
        mine.ops.push_back({.code = OpCode::release, .peer = peer, .value = 1});
        mine.traffic.push_back({peer, 1, 1});
      } else if (transport == Transport::board) {
        constexpr std::size_t kOffset = kPostHeader;
        mine.ops.push_back(
            {.code = OpCode::post, .operands = 1, .offset = kOffset, .bytes = kBytes});
        mine.operands.push_back({.rank = r, .memory = Memory::input});
        mine.ops.push_back({.code = OpCode::wait_post, .peer = peer});
        mine.ops.push_back({.code = OpCode::fold, .operands = 1, .bytes = kBytes});
        mine.operands.push_back({.rank = peer, .memory = Memory::board, .offset = kOffset});
        if (sums) {
          ++mine.ops.back().operands;
          mine.operands.push_back({.rank = r, .memory = Memory::input});
        }
      } else {
        mine.ops.push_back({.code = OpCode::enter});
        // Rank 1 reads rank 0's input; rank 0 owns the input again when rank 1 has published its
        // progress.
        if (r == 1) {
          mine.ops.push_back({.code = OpCode::wait_entry, .peer = peer});
          mine.ops.push_back({.code = OpCode::fold, .operands = 1, .value = 1, .bytes = kBytes});
          mine.operands.push_back({.rank = peer, .memory = Memory::input});
        } else {
          mine.ops.push_back({.code = OpCode::wait_progress, .peer = peer, .value = 1});
        }
      }
      mine.ops.push_back({});
    }
    // The peer's word is the result also of a sum.
    plan.fold = [](void* to, const void* const* from, int, std::size_t, int) noexcept {
      std::memcpy(to, from[0], sizeof(std::uint64_t));
    };
    plan.exchanges = is_exchange(plan);
  }
  Plan plan;
};

// Boards of two ranks, for single words.
struct Boards {
  explicit Boards(std::uint32_t first) {
    for (std::size_t r = 0; r < 2; ++r) {
      board[r] = board_of(2, r, kCacheLine, [&](std::size_t of) { return lines[of]; });
      for (const std::uint32_t number : {0U, 1U}) {
        (new (&board[r].half(number)) PostHeader)->flag.store(first);
      }
    }
  }
  alignas(kCacheLine) std::byte lines[2][kCacheLine]{};
  std::array<Board, 2> board;
};

// The second post overwrites the peer's first one, which the rank has read. The third overwrites
// the rank's first one, which the peer read before its second post.
void board_reuse(Explorer& x) {
  RankControl rank_control(2, kYields, kMinute, true);
  const std::uint32_t first = near_wrap(1);
  const Boards boards(first);
  const auto place = [&](std::size_t r, std::uint32_t number) {
    return boards.board[r].at(number, kPostHeader);
  };
  const auto post = [&](std::size_t r, std::uint32_t number, std::uint64_t word) {
    will_write(place(r, number), sizeof(word));
    std::memcpy(place(r, number), &word, sizeof(word));
    publish(rank_control, static_cast<Rank>(r), boards.board[r].half(number).flag, number + 1);
  };
  const auto wait = [&](std::size_t r, std::uint32_t number) {
    Waiter waiter{.rank_control = &rank_control, .rank = static_cast<Rank>(r)};
    x.require(wait_until(waiter, boards.board[1 - r].half(number).flag, number + 1,
                         static_cast<Rank>(1 - r), 1),
              "wait failed");
  };
  x.run({[&] {
           post(0, first, 10);
           wait(0, first);
           post(0, first + 1, 11);
           wait(0, first + 1);
           post(0, first + 2, 12);
         },
         [&] {
           post(1, first, 20);
           wait(1, first);
           std::uint64_t word = 0;
           will_read(place(0, first), sizeof(word));
           std::memcpy(&word, place(0, first), sizeof(word));
           x.require(word == 10, "not the peer's first post");
           post(1, first + 1, 21);
         }});
}

// Executes the plan as interpret() does, step by step.
bool step_through(const Plan& plan, RankState& state) {
  Cursor cursor;
  for (;;) {
    const Walked walked = interpret_some(plan, state, cursor);
    if (walked != Walked::waiting) return walked == Walked::done;
    rest();
  }
}

enum class Walk : std::uint8_t {
  whole,         // both wait
  steps,         // both step
  left_early,    // rank 0 steps, rank 1 leaves after its part
  never_called,  // rank 0 steps, rank 1 leaves at once
  ended,         // rank 0 steps, rank 1 aborts
  in_one_piece,  // both wait, and sum
};

void call(Explorer& x, Transport transport, bool strict, WaitPolicy policy,
          Walk how = Walk::whole) {
  const Exchange exchange(transport, how == Walk::in_one_piece);
  x.require(exchange.plan.exchanges == (how == Walk::in_one_piece), "another shape");
  const std::uint32_t first = near_wrap(1);
  RankControl rank_control(2, policy, kMinute, strict);
  std::array<std::unique_ptr<Pair>, 2> pairs = {std::make_unique<Pair>(rank_control, first),
                                                std::make_unique<Pair>(rank_control, first)};
  const Boards boards(first);
  std::array<RankState, 2> states;
  struct Buffers {
    std::uint64_t input = 0, output = 0;
  };
  std::array<Buffers, 2> buffers;
  for (std::size_t r = 0; r < 2; ++r) {
    rank_control.progress(static_cast<Rank>(r)).value.store(first);
    rank_control.entries(static_cast<Rank>(r)).count_from(first);
    RankState& state = states[r];
    state.waiter = {.rank_control = &rank_control,
                    .rank = static_cast<Rank>(r),
                    .call = std::uint64_t{first} + 1,
                    .fingerprint = fingerprint_of(ReduceOp::sum, 1)};
    // A call that enters a new stretch is walked.
    state.progress_base = how == Walk::in_one_piece ? first - 1 : first;
    state.outbox.resize(2);
    state.inbox.resize(2);
    state.outbox[1 - r] = {pairs[r]->outbox.mailbox, first, first};
    state.inbox[1 - r] = {pairs[1 - r]->inbox.mailbox, first};
    state.memory.resize(8);
    state.boards.assign(boards.board.begin(), boards.board.end());
    state.posts = first;
    state.operands.resize(3);  // the operands and the target of an op
    state.memory_of(r, Memory::input) = reinterpret_cast<std::byte*>(&buffers[r].input);
    state.memory_of(r, Memory::output) = reinterpret_cast<std::byte*>(&buffers[r].output);
    buffers[r].input = 10 + r;
  }
  const auto rank = [&](std::size_t r) {
    if (r == 1 && how == Walk::never_called) return rank_control.leave(1);
    if (r == 1 && how == Walk::ended) return rank_control.abort({Code::aborted, "now"});
    const bool waits = how == Walk::whole || how == Walk::in_one_piece;
    const bool steps = how == Walk::steps || (!waits && r == 0);
    const bool done =
        steps ? step_through(exchange.plan, states[r]) : interpret(exchange.plan, states[r]);
    if (how == Walk::never_called || how == Walk::ended) {
      x.require(!done && rank_control.aborted(), "a call without the other");
      x.require(
          rank_control.reason().code() == (how == Walk::ended ? Code::aborted : Code::rank_lost),
          "another reason");
      return;
    }
    x.require(done, "a call failed");
    if (how == Walk::left_early && r == 1) rank_control.leave(1);
    Buffers& mine = buffers[r];
    if (transport != Transport::direct || r == 1) {
      x.require(mine.output == 10 + (1 - r), "not the peer's data");
    }
    // The caller owns the buffers again.
    for (std::uint64_t* word : {&mine.input, &mine.output}) {
      will_write(word, sizeof(*word));
      *word = 0;
    }
  };
  x.run({[&] { rank(0); }, [&] { rank(1); }});
}

// Two ranks end a trial. No form of their calls waits, so only the exchange of figures keeps them
// together; rank 1 would decide otherwise by its own figures. Rank 0 then publishes the figures of
// another trial, perhaps before rank 1 has read the first ones.
void trials(Explorer& x, bool steps) {
  constexpr std::int64_t kTimes[2][2] = {{100, 50}, {60, 58}};
  RankControl rank_control(2, kYields, kMinute, true);
  Plan plan;
  plan.ranks = 2;
  plan.rank.resize(2);
  for (RankPlan& mine : plan.rank) {
    mine.ops.assign(kForms, {.code = OpCode::choose, .value = kForms - 1});
    mine.ops.insert(mine.ops.end(), {{.code = OpCode::chosen}, {}});
  }
  plan.trials = {.trial_class = 3, .forms = 3, .bytes = 1};
  const auto rank = [&](std::size_t r) {
    RankState state;
    state.waiter = {.rank_control = &rank_control, .rank = static_cast<Rank>(r)};
    state.trials = std::make_unique<FormTrials>();
    FormTimes& mine = rank_control.form_times(state.waiter.rank);
    std::int64_t now = 0;
    const auto begin_calls = [&](std::uint32_t calls, std::int64_t slower) {
      for (; calls > 0; --calls) {
        state.trials->begin_call(
            plan.trials, ++state.waiter.call, mine, [&] { return now; },
            [&](std::uint32_t exchange) {
              publish(rank_control, state.waiter.rank, mine.exchanges, exchange);
            });
        const bool second = state.trials->form(plan.trials) == Form::reads;
        now += kTimes[r][second ? 1 : 0] * (second ? slower : 1);
      }
    };
    begin_calls(trial_pace(3).concludes(2) - 1, 1);
    ++state.waiter.call;
    x.require(steps && r == 1 ? step_through(plan, state) : interpret(plan, state),
              "a call failed");
    x.require(state.trials->form(plan.trials) == Form::reads, "not the figures of both");
    if (r == 0) begin_calls(trial_pace(3).least, 4);
  };
  x.run({[&] { rank(0); }, [&] { rank(1); }});
}

}  // namespace

std::vector<Scenario> growth_scenarios(GrowthFlaw flaw) {
  std::vector<Scenario> all;
  const auto add = [&](std::string name, int preemptions, std::function<void(Explorer&)> play) {
    all.push_back({std::move(name), true, false, std::move(play), preemptions});
  };
  add("growth: members agree", -1, [=](Explorer& x) { Growing(x, flaw, true).play(); });
  add("growth: two processes meet", -1, [=](Explorer& x) { take_seats(x, flaw, false); });
  add("growth: two processes for a seat", 3, [=](Explorer& x) { take_seats(x, flaw, true); });
  add("growth: processes end", 2, [=](Explorer& x) { Growing(x, flaw, false).play(); });
  return all;
}

std::vector<Scenario> scenarios() {
  std::vector<Scenario> all;
  const auto add = [&](std::string name, std::function<void(Explorer&)> play,
                       bool may_time_out = false) {
    all.push_back({std::move(name), may_time_out, false, std::move(play)});
  };
  for (const bool strict : {true, false}) {
    const std::string mode = strict ? ", strict" : ", membarrier";
    add("mailbox: one message, parking" + mode, [=](Explorer& x) { stream(x, kParks, strict, 1); });
    add("mailbox: two messages, parking" + mode,
        [=](Explorer& x) { stream(x, kParks, strict, 2); });
    add("mailbox: three messages, parking" + mode,
        [=](Explorer& x) { stream(x, kParks, strict, 3); });
    add("mailbox: a slot is used again" + mode, [=](Explorer& x) { reuse(x, kParks, strict); });
    add("mailbox: data by address" + mode, [=](Explorer& x) { by_address(x, kParks, strict); });
    add("mailbox: a credit is remembered" + mode,
        [=](Explorer& x) { remembered_credit(x, kParks, strict); });
    add("multicast: one publication, two readers" + mode,
        [=](Explorer& x) { multicast(x, kParks, strict); });
    add("multicast: two readers say that they have read" + mode,
        [=](Explorer& x) { progress_of_readers(x, kParks, strict); });
    add("parking: two words of one owner" + mode,
        [=](Explorer& x) { two_words(x, strict, false); });
    add("abort while parking" + mode,
        [=](Explorer& x) { abort_meets_wait(x, kParks, strict, false, false); });
    add("abort from a signal handler while parking" + mode,
        [=](Explorer& x) { abort_meets_wait(x, kParks, strict, false, true); });
    add("abort meets publication" + mode,
        [=](Explorer& x) { abort_meets_wait(x, kParks, strict, true, true); });
    add("leave" + mode, [=](Explorer& x) { leave(x, strict); });
    add("quiet after an abort" + mode, [=](Explorer& x) { quiet(x, strict, false, 2); });
    add("quiet after an abort from a signal handler" + mode,
        [=](Explorer& x) { quiet(x, strict, true, 2); });
    add("quiet, both inside calls" + mode, [=](Explorer& x) { quiet_both(x, strict); });
    add("quiet, a call put down" + mode, [=](Explorer& x) { quiet_put_down(x, strict); });
    add("quiet, both ranks of one thread" + mode, [=](Explorer& x) { quiet_alone(x, strict); });
    add("call on mailboxes" + mode,
        [=](Explorer& x) { call(x, Transport::mailbox, strict, kParks); });
    add("direct call" + mode, [=](Explorer& x) { call(x, Transport::direct, strict, kParks); });
    add("call on boards" + mode, [=](Explorer& x) { call(x, Transport::board, strict, kParks); });
    add("exchange" + mode,
        [=](Explorer& x) { call(x, Transport::board, strict, kParks, Walk::in_one_piece); });
    // A rank with other work sleeps until the time to look about, which is no deadline.
    add(
        "giving way" + mode, [=](Explorer& x) { give_way(x, strict, false); }, true);
    add(
        "giving way meets abort" + mode, [=](Explorer& x) { give_way(x, strict, true); }, true);
  }
  for (const Transport transport : {Transport::mailbox, Transport::direct, Transport::board}) {
    const std::string name = std::string(name_of(transport)) + ", strict";
    const auto walk = [&](const std::string& what, Walk how) {
      add(
          what + name, [=](Explorer& x) { call(x, transport, true, kParks, how); }, true);
    };
    walk("steps on ", Walk::steps);
    walk("steps, and the other leaves, on ", Walk::left_early);
    walk("steps to a rank that has left, on ", Walk::never_called);
    walk("steps meet abort, on ", Walk::ended);
  }
  for (Scenario& scenario : all) {
    for (const char* large :
         {"mailbox: three messages, parking, membarrier", "call on mailboxes, membarrier",
          "direct call, membarrier", "call on boards, membarrier", "exchange, membarrier",
          "multicast: one publication, two readers, membarrier"}) {
      scenario.is_large = scenario.is_large || scenario.name == large;
    }
  }
  add("mailbox: two messages, yielding", [](Explorer& x) { stream(x, kYields, true, 2); });
  add("board: a half is used again", board_reuse);
  add("trials of two forms", [](Explorer& x) { trials(x, false); });
  add(
      "trials of two forms, by steps", [](Explorer& x) { trials(x, true); }, true);
  add("mailbox: abort while spinning",
      [](Explorer& x) { abort_meets_wait(x, kSpins, true, false, false); });
  add("parking: two words of one owner, two waiters, strict",
      [](Explorer& x) { two_words(x, true, true); });
  add("abort publishes", [](Explorer& x) { abort_publishes(x, false); });
  add("abort from a signal handler publishes", [](Explorer& x) { abort_publishes(x, true); });
  add("two aborts", two_aborts);
  add(
      "calls that disagree", [](Explorer& x) { mismatch(x, false); }, true);
  add("calls that agree", [](Explorer& x) { mismatch(x, true); });
  add("deadline", deadline, true);
  for (const bool both_ways : {false, true}) {
    const std::string ways = both_ways ? ", both ways" : "";
    add("depending meets abort" + ways, [=](Explorer& x) { depends(x, false, both_ways); });
    add("depending meets abort from a signal handler" + ways,
        [=](Explorer& x) { depends(x, true, both_ways); });
    add(both_ways ? "both end" : "the one below ends",
        [=](Explorer& x) { end_both_ways(x, both_ways); });
  }
  add("survivors: three ranks, a step", [](Explorer& x) { survivors(x, 3, 1, 0); });
  add("survivors: two ranks, three steps", [](Explorer& x) { survivors(x, 2, 3, 0); });
  add("survivors: two ranks shrink", [](Explorer& x) { survivors(x, 2, 0, 2); });
  add("survivors: one of three ranks shrinks", [](Explorer& x) { survivors(x, 3, 1, 1); });
  all.back().is_large = true;
  for (const auto& [one, other] : {std::pair(false, false), std::pair(false, true),
                                   std::pair(true, false), std::pair(true, true)}) {
    add(
        std::string("survivors: ranks die ") + (one ? "after" : "before") + " and " +
            (other ? "after" : "before") + " a step",
        [=](Explorer& x) {
          wait_for_the_dying(x, {one, other});
        },
        true);
  }
  add("late ranks: one of three is lost", [](Explorer& x) { late_ranks(x, {1, 1, 1}, true); });
  add("late ranks: two, three steps", [](Explorer& x) { late_ranks(x, {3, 3}, false); });
  add("late ranks: three, one dies", [](Explorer& x) { late_ranks(x, {2, 2, 1}, false); });
  all.back().is_large = true;
  for (Scenario& scenario : growth_scenarios(GrowthFlaw::none)) all.push_back(std::move(scenario));
  add("dependents: taken out", taken_out);
  add("dependents: put in", [](Explorer& x) { put_in(x, 0); });
  add("dependents: put in behind others", [](Explorer& x) { put_in(x, 7); });
  return all;
}

}  // namespace rankine::model
