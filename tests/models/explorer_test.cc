// The explorer itself, on the classic litmus tests: what C++ allows is seen, what it forbids is
// not.
#include "tests/models/explorer.h"

#include <gtest/gtest.h>

#include <functional>
#include <set>
#include <string>
#include <vector>

namespace rankine::model {
namespace {

constexpr auto kRelaxed = std::memory_order_relaxed;
constexpr auto kAcquire = std::memory_order_acquire;
constexpr auto kRelease = std::memory_order_release;
constexpr auto kAcqRel = std::memory_order_acq_rel;
constexpr auto kSeqCst = std::memory_order_seq_cst;

// All that a scenario can come to, as its play() says.
std::set<std::string> outcomes(const std::function<std::string(Explorer&)>& play,
                               int preemptions = -1) {
  std::set<std::string> seen;
  Explorer explorer({.preemptions = preemptions});
  const Explorer::Outcome outcome = explorer.explore([&](Explorer& x) { seen.insert(play(x)); });
  EXPECT_EQ(outcome.fault, "");
  EXPECT_TRUE(outcome.exhausted);
  return seen;
}

std::string fault_of(const std::function<void(Explorer&)>& play) {
  Explorer explorer({});
  return explorer.explore(play).fault;
}

std::string both(int a, int b) { return std::to_string(a) + std::to_string(b); }
using Seen = std::set<std::string>;

Seen store_buffering(std::memory_order store, std::memory_order load) {
  return outcomes([&](Explorer& explorer) {
    Atomic<int> x{0}, y{0};
    int a = 0, b = 0;
    explorer.run({[&] {
                    x.store(1, store);
                    a = y.load(load);
                  },
                  [&] {
                    y.store(1, store);
                    b = x.load(load);
                  }});
    return both(a, b);
  });
}

TEST(Explorer, StoreBuffering) {
  EXPECT_EQ(store_buffering(kRelease, kAcquire), (Seen{"00", "01", "10", "11"}));
  EXPECT_EQ(store_buffering(kSeqCst, kSeqCst), (Seen{"01", "10", "11"}));
  EXPECT_EQ(store_buffering(kSeqCst, kAcquire), (Seen{"00", "01", "10", "11"}));
}

Seen message_passing(std::memory_order store, std::memory_order load) {
  return outcomes([&](Explorer& explorer) {
    Atomic<int> data{0}, flag{0};
    int a = 0, b = 0;
    explorer.run({[&] {
                    data.store(1, kRelaxed);
                    flag.store(1, store);
                  },
                  [&] {
                    a = flag.load(load);
                    b = data.load(kRelaxed);
                  }});
    return both(a, b);
  });
}

TEST(Explorer, MessagePassing) {
  EXPECT_EQ(message_passing(kRelease, kAcquire), (Seen{"00", "01", "11"}));
  EXPECT_EQ(message_passing(kRelaxed, kAcquire), (Seen{"00", "01", "10", "11"}));
  EXPECT_EQ(message_passing(kRelease, kRelaxed), (Seen{"00", "01", "10", "11"}));
}

TEST(Explorer, ReadsOfOneWordDoNotGoBack) {
  const auto seen = outcomes([](Explorer& explorer) {
    Atomic<int> x{0};
    int a = 0, b = 0;
    explorer.run({[&] {
                    x.store(1, kRelaxed);
                    x.store(2, kRelaxed);
                  },
                  [&] {
                    a = x.load(kRelaxed);
                    b = x.load(kRelaxed);
                  }});
    return both(a, b);
  });
  EXPECT_EQ(seen, (Seen{"00", "01", "02", "11", "12", "22"}));
}

// Independent readers may see two stores in different orders, unless all is seq_cst.
TEST(Explorer, IndependentReadsOfIndependentWrites) {
  const auto disagree = [](std::memory_order store, std::memory_order load) {
    return outcomes([&](Explorer& explorer) {
             Atomic<int> x{0}, y{0};
             int a = 0, b = 0, c = 0, d = 0;
             explorer.run({[&] { x.store(1, store); }, [&] { y.store(1, store); },
                           [&] {
                             a = x.load(load);
                             b = y.load(load);
                           },
                           [&] {
                             c = y.load(load);
                             d = x.load(load);
                           }});
             return both(a, b) + both(c, d);
           })
        .contains("1010");
  };
  EXPECT_TRUE(disagree(kRelease, kAcquire));
  EXPECT_FALSE(disagree(kSeqCst, kSeqCst));
}

// A read-modify-write carries on what was released before it; a store does not.
TEST(Explorer, ReleaseSequences) {
  const auto seen = [](bool modify) {
    return outcomes([&](Explorer& explorer) {
             Atomic<int> data{0}, flag{0};
             int a = 0, b = 0;
             explorer.run({[&] {
                             data.store(1, kRelaxed);
                             flag.store(1, kRelease);
                           },
                           [&] {
                             if (flag.load(kRelaxed) != 1) return;
                             modify ? void(flag.fetch_add(1, kRelaxed)) : flag.store(2, kRelaxed);
                           },
                           [&] {
                             a = flag.load(kAcquire);
                             b = data.load(kRelaxed);
                           }});
             return both(a, b);
           })
        .contains("20");
  };
  EXPECT_FALSE(seen(true));
  EXPECT_TRUE(seen(false));
}

TEST(Explorer, ReadModifyWritesLoseNothing) {
  const auto seen = outcomes([](Explorer& explorer) {
    Atomic<int> x{0};
    const auto add = [&] { x.fetch_add(1, kRelaxed); };
    explorer.run({add, add, add});
    return std::to_string(x.load());
  });
  EXPECT_EQ(seen, Seen{"3"});
}

TEST(Explorer, LocksExcludeAndPublish) {
  EXPECT_EQ(fault_of([](Explorer& explorer) {
              Mutex mutex;
              int shared = 0;
              const auto add = [&] {
                mutex.lock();
                will_write(&shared, sizeof(shared));
                ++shared;
                mutex.unlock();
              };
              explorer.run({add, add, add});
              explorer.require(shared == 3, "lost");
            }),
            "");
}

TEST(Explorer, RacesOnPlainMemoryAreSeen) {
  const auto fault = [](std::memory_order store, std::memory_order load) {
    return fault_of([&](Explorer& explorer) {
      Atomic<int> flag{0};
      int data = 0;
      explorer.run({[&] {
                      will_write(&data, sizeof(data));
                      flag.store(1, store);
                    },
                    [&] {
                      if (flag.load(load) == 1) will_read(&data, sizeof(data));
                    }});
    });
  };
  EXPECT_EQ(fault(kRelease, kAcquire), "");
  EXPECT_NE(fault(kRelaxed, kAcquire), "");
  EXPECT_NE(fault(kRelease, kRelaxed), "");
}

// One side publishes and looks, the other runs the barrier for both.
TEST(Explorer, BarrierEverywhere) {
  const auto seen = [](bool fence) {
    return outcomes([&](Explorer& explorer) {
      Atomic<int> x{0}, y{0};
      int a = 0, b = 0;
      explorer.run({[&] {
                      x.store(1, kRelaxed);
                      if (fence) compiler_fence();
                      a = y.load(kRelaxed);
                    },
                    [&] {
                      y.store(1, kRelaxed);
                      barrier_everywhere();
                      b = x.load(kRelaxed);
                    }});
      return both(a, b);
    });
  };
  EXPECT_EQ(seen(true), (Seen{"01", "10", "11"}));
  EXPECT_EQ(seen(false), (Seen{"00", "01", "10", "11"}));
}

TEST(Explorer, AFutexDoesNotSleepOnAnotherValueAndWakes) {
  EXPECT_EQ(fault_of([](Explorer& explorer) {
              Atomic<std::uint32_t> word{0};
              explorer.run({[&] { futex_wait(word, 0, 1'000'000'000'000); },
                            [&] {
                              word.store(1);
                              futex_wake_all(word);
                            }});
            }),
            "");
  EXPECT_NE(fault_of([](Explorer& explorer) {
              Atomic<std::uint32_t> word{0};
              explorer.run({[&] { futex_wait(word, 0, 1'000'000'000'000); },
                            [&] {
                              if (word.load() == 0) return;  // wakes nobody
                              futex_wake_all(word);
                            }});
            }),
            "");
}

// Few preemptions find most, and not all.
TEST(Explorer, BoundedPreemptions) {
  const auto lost = [](int preemptions) {
    return outcomes(
               [](Explorer& explorer) {
                 Atomic<int> x{0};
                 const auto add = [&] { x.store(x.load(kSeqCst) + 1, kSeqCst); };
                 explorer.run({add, add});
                 return std::to_string(x.load());
               },
               preemptions)
        .contains("1");
  };
  EXPECT_FALSE(lost(0));
  EXPECT_TRUE(lost(1));
  EXPECT_TRUE(lost(-1));
}

TEST(Explorer, WeakerOrders) {
  EXPECT_EQ(weaker(Kind::load, kSeqCst), std::vector{kAcquire});
  EXPECT_EQ(weaker(Kind::store, kSeqCst), std::vector{kRelease});
  EXPECT_EQ(weaker(Kind::read_modify_write, kSeqCst), std::vector{kAcqRel});
  EXPECT_EQ(weaker(Kind::read_modify_write, kAcqRel), (std::vector{kAcquire, kRelease}));
  EXPECT_EQ(weaker(Kind::load, kAcquire), std::vector{kRelaxed});
  EXPECT_TRUE(weaker(Kind::load, kRelaxed).empty());
}

}  // namespace
}  // namespace rankine::model
