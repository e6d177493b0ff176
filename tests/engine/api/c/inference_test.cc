// The adapters for DeepSpeed and SGLang, called as their Python does: every rank initialises by a
// store and its rank, and then reduces and gathers tensors, of which there is a pointer, a count
// and a number for the type.
#include <gtest/gtest.h>

#include <sys/wait.h>
#include <unistd.h>
#include <barrier>

#include <condition_variable>
#include <cstring>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <rankine/adapters/deepspeed.h>
#include <rankine/adapters/sglang.h>

namespace {

constexpr int kHalf = 5, kFloat = 6, kDouble = 7, kBfloat16 = 15;  // at::ScalarType
constexpr int kSum = 0, kMax = 3;                                  // c10d::ReduceOp

// What torch's HashStore does: of one process, shared by its threads.
class Store {
 public:
  explicit Store(bool works = true) : works_(works) { store_ = {this, set, get, add, wait}; }
  const rankine_store* get() const { return &store_; }
  void break_down() { works_ = false; }

 private:
  static Store& of(void* context) { return *static_cast<Store*>(context); }
  static int set(void* context, const char* key, const void* value, size_t size) {
    Store& s = of(context);
    if (!s.works_) return 1;
    const std::lock_guard lock(s.mutex_);
    s.values_[key].assign(static_cast<const char*>(value), size);
    s.changed_.notify_all();
    return 0;
  }
  static int get(void* context, const char* key, void* value, size_t size) {
    Store& s = of(context);
    const std::lock_guard lock(s.mutex_);
    const std::string& found = s.values_[key];
    if (found.size() != size) return 1;
    std::memcpy(value, found.data(), size);
    return 0;
  }
  static int64_t add(void* context, const char* key, int64_t amount) {
    Store& s = of(context);
    const std::lock_guard lock(s.mutex_);
    return s.sums_[key] += amount;
  }
  static int wait(void* context, const char* key) {
    Store& s = of(context);
    if (!s.works_) return 1;
    std::unique_lock lock(s.mutex_);
    s.changed_.wait(lock, [&] { return s.values_.count(key) == 1; });
    return 0;
  }

  rankine_store store_;
  bool works_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, std::string> values_;
  std::map<std::string, int64_t> sums_;
};

void on_threads(int ranks, const std::function<void(int)>& f) {
  std::vector<std::thread> threads;
  for (int r = 0; r < ranks; ++r) threads.emplace_back(f, r);
  for (std::thread& thread : threads) thread.join();
}

class Inference : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Ranks, Inference, testing::Values(1, 2, 3, 8));

TEST_P(Inference, DeepSpeedReducesInPlace) {
  Store store;
  const int ranks = GetParam();
  for (int again = 0; again < 2; ++again) {  // they meet, part and meet again
    on_threads(ranks, [&](int rank) {
      ASSERT_EQ(rankine_deepspeed_initialize(store.get(), ranks, rank), 0)
          << rkGetLastError(nullptr);
      EXPECT_EQ(rankine_deepspeed_initialize(store.get(), ranks, rank), 0);  // nothing, then
      for (const std::size_t n :
           {std::size_t{0}, std::size_t{1}, std::size_t{4096}, std::size_t{100'003}}) {
        std::vector<float> x(n, 1);
        EXPECT_EQ(rankine_deepspeed_all_reduce(x.data(), n, kFloat, kSum), 0);
        EXPECT_EQ(x, std::vector<float>(n, static_cast<float>(ranks)));
        std::vector<std::uint16_t> b(n, 0x3F80), h(n, 0x3C00);  // 1.0 of either
        EXPECT_EQ(rankine_deepspeed_all_reduce(b.data(), n, kBfloat16, kSum), 0);
        EXPECT_EQ(rankine_deepspeed_all_reduce(h.data(), n, kHalf, kSum), 0);
        const std::map<int, std::uint16_t> bf16 = {
            {1, 0x3F80}, {2, 0x4000}, {3, 0x4040}, {8, 0x4100}};
        const std::map<int, std::uint16_t> f16 = {
            {1, 0x3C00}, {2, 0x4000}, {3, 0x4200}, {8, 0x4800}};
        EXPECT_EQ(b, std::vector<std::uint16_t>(n, bf16.at(ranks)));
        EXPECT_EQ(h, std::vector<std::uint16_t>(n, f16.at(ranks)));
      }
      rankine_deepspeed_finalize();
    });
  }
}

TEST_P(Inference, DeepSpeedIsToldWhatCannotBeDone) {
  Store store;
  on_threads(GetParam(), [&](int rank) {
    std::vector<double> x(4, 1);
    EXPECT_EQ(rankine_deepspeed_all_reduce(x.data(), 4, kFloat, kSum), -1);  // not initialised
    ASSERT_EQ(rankine_deepspeed_initialize(store.get(), GetParam(), rank), 0);
    EXPECT_EQ(rankine_deepspeed_all_reduce(x.data(), 4, kDouble, kSum), -1);
    EXPECT_EQ(rankine_deepspeed_all_reduce(x.data(), 4, kFloat, kMax), -1);
    EXPECT_EQ(rankine_deepspeed_all_reduce(nullptr, 4, kFloat, kSum), -1);
    EXPECT_EQ(x, std::vector<double>(4, 1));
    // Nobody leaves before all have come.
    EXPECT_EQ(rankine_deepspeed_all_reduce(x.data(), 8, kFloat, kSum), 0);
    rankine_deepspeed_finalize();
  });
}

TEST_P(Inference, SglangReducesAndGathersAlongEveryDimension) {
  Store store;
  const int ranks = GetParam();
  on_threads(ranks, [&](int rank) {
    ASSERT_EQ(rankine_sglang_initialize(store.get(), ranks, rank), 0) << rkGetLastError(nullptr);
    std::vector<float> x(5000, 2);
    EXPECT_EQ(rankine_sglang_allreduce(x.data(), x.size(), kFloat, kSum), 0);
    EXPECT_EQ(x, std::vector<float>(5000, 2.0F * static_cast<float>(ranks)));
    EXPECT_EQ(rankine_sglang_allreduce(x.data(), x.size(), kDouble, kSum), -1);
    EXPECT_EQ(rankine_sglang_allreduce(x.data(), x.size(), kFloat, kMax), -1);

    // Element (i, j, k) of rank r is 1000 r + 100 i + 10 j + k.
    const int64_t sizes[] = {2, 3, 4};
    const auto value = [](std::size_t r, std::size_t i, std::size_t j, std::size_t k) {
      return static_cast<float>(1000 * r + 100 * i + 10 * j + k);
    };
    std::vector<float> mine;
    for (std::size_t i = 0; i < 2; ++i) {
      for (std::size_t j = 0; j < 3; ++j) {
        for (std::size_t k = 0; k < 4; ++k) {
          mine.push_back(value(static_cast<std::size_t>(rank), i, j, k));
        }
      }
    }
    const auto n = static_cast<std::size_t>(ranks);
    for (const int64_t dim : {0, 1, 2, -1}) {
      const int64_t along = dim < 0 ? dim + 3 : dim;
      std::vector<float> wanted, out(n * mine.size());
      for (std::size_t i = 0; i < (along == 0 ? 2 * n : 2); ++i) {
        for (std::size_t j = 0; j < (along == 1 ? 3 * n : 3); ++j) {
          for (std::size_t k = 0; k < (along == 2 ? 4 * n : 4); ++k) {
            const std::size_t r = along == 0 ? i / 2 : along == 1 ? j / 3 : k / 4;
            wanted.push_back(value(r, i % 2, j % 3, k % 4));
          }
        }
      }
      EXPECT_EQ(rankine_sglang_allgather(mine.data(), out.data(), sizes, 3, dim, sizeof(float)), 0)
          << rkGetLastError(nullptr);
      EXPECT_EQ(out, wanted) << "along " << dim;
    }
    const int64_t nothing[] = {2, 0, 4};
    EXPECT_EQ(rankine_sglang_allgather(nullptr, nullptr, nothing, 3, 2, sizeof(float)), 0);
    for (const int64_t dim : {3, -4}) {
      EXPECT_EQ(rankine_sglang_allgather(mine.data(), mine.data(), sizes, 3, dim, 4), -1);
    }
    EXPECT_EQ(rankine_sglang_allgather(nullptr, mine.data(), sizes, 3, 0, 4), -1);
    rankine_sglang_finalize();
    EXPECT_EQ(rankine_sglang_allreduce(x.data(), x.size(), kFloat, kSum), -1);
  });
}

// An error that is a communicator's end is no reason to take another way.
TEST(InferenceErrors, AreResults) {
  Store store;
  std::barrier both(2);
  on_threads(2, [&](int rank) {
    const int met = rankine_sglang_initialize(store.get(), 2, rank);
    both.arrive_and_wait();  // who leaves before would be lost to who still meets
    ASSERT_EQ(met, 0);
    if (rank == 1) return rankine_sglang_finalize();
    std::vector<float> x(5000, 2);
    EXPECT_EQ(rankine_sglang_allreduce(x.data(), x.size(), kFloat, kSum), rkRankLost);
    rankine_sglang_finalize();
  });
}

TEST(Meeting, NeedsAStoreThatWorksAndRanksThatAre) {
  rkComm_t comm = nullptr;
  Store store;
  EXPECT_EQ(rankine_store_meet(nullptr, "x", 1, 0, &comm), rkInvalidArgument);
  EXPECT_EQ(rankine_store_meet(store.get(), nullptr, 1, 0, &comm), rkInvalidArgument);
  EXPECT_EQ(rankine_store_meet(store.get(), std::string(65, 'x').c_str(), 1, 0, &comm),
            rkInvalidArgument);
  EXPECT_EQ(rankine_store_meet(store.get(), "x", 0, 0, &comm), rkInvalidArgument);
  EXPECT_EQ(rankine_store_meet(store.get(), "x", 2, 2, &comm), rkInvalidArgument);
  Store broken(false);
  EXPECT_EQ(rankine_store_meet(broken.get(), "x", 2, 0, &comm), rkSystemError);
  EXPECT_EQ(rankine_store_meet(broken.get(), "x", 2, 1, &comm), rkSystemError);
  EXPECT_EQ(comm, nullptr);
}

// A store that processes share, which this one is to the child that has a copy of it.
TEST(Meeting, IsOfOneProcess) {
  Store store;
  rkComm_t comm = nullptr;
  ASSERT_EQ(rankine_store_meet(store.get(), "x", 2, 0, &comm), rkSuccess);
  const pid_t child = fork();
  if (child == 0) {
    rkComm_t other = nullptr;
    const bool is_told =
        rankine_store_meet(store.get(), "x", 2, 1, &other) == rkInvalidArgument &&
        std::string(rkGetLastError(nullptr))
                .find("ranks are threads of the process that made the id") != std::string::npos;
    _exit(is_told ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(rkCommDestroy(comm), rkSuccess);
}

}  // namespace
