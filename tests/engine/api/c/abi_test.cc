// The C interface as other programs link it. The shared library exports exactly the functions of
// rankine.h, each under version RANKINE_1, and every name of the symbols file. Further tests call
// the ggml adapter and ranks that are processes.

#include <regex>

#include "engine/api/c/rankine.h"
#include "tests/engine/api/child_process.h"
#include "tests/testing.h"

namespace {

using rankine::testing_processes::Spawned;

using Names = std::set<std::string>;

std::string content(const std::string& path) {
  std::ifstream file(path);
  EXPECT_TRUE(file.good()) << path;
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// Returns "rkAllReduce@RANKINE_1" for every function that the header declares.
Names declared() {
  const std::string text = content("engine/api/c/rankine.h");
  const std::regex function(R"(\nRK_API [a-zA-Z_ *]*[ *](rk[A-Za-z]+)\()");
  Names names;
  for (std::sregex_iterator at(text.begin(), text.end(), function), end; at != end; ++at) {
    names.insert((*at)[1].str() + "@RANKINE_1");
  }
  return names;
}

// Returns every dynamic symbol of the library, of any kind; a symbol that is not a function of
// RANKINE_1 is returned as "type name@version".
Names shown() {
  std::istringstream lines(Spawned({"nm", "-D", "--defined-only", "--with-symbol-versions",
                                    "engine/api/c/librankine.so.1"})
                               .finish());
  Names names;
  for (std::string address, type, name; lines >> address >> type >> name;) {
    if (type == "A" && name == "RANKINE_1") continue;  // the version symbol
    const std::size_t at = name.find("@@");
    if (type == "T" && at != std::string::npos) {
      names.insert(name.erase(at, 1));
    } else {
      names.insert(type + " " + name);
    }
  }
  return names;
}

// Returns the names in the symbols file, in the format of Debian's dpkg-gensymbols.
Names promised() {
  std::istringstream lines(content("engine/api/c/librankine1.symbols"));
  Names names;
  std::string line;
  std::getline(lines, line);
  EXPECT_EQ(line, "librankine.so.1 librankine1 #MINVER#");
  while (std::getline(lines, line)) {
    if (!line.starts_with(' ')) continue;
    const std::size_t end = line.find(' ', 1);
    EXPECT_NE(end, std::string::npos) << line;
    names.insert(line.substr(1, end - 1));
  }
  EXPECT_EQ(names.erase("RANKINE_1@RANKINE_1"), 1u);
  return names;
}

TEST(Abi, TheHeaderDeclaresManyFunctions) {
  EXPECT_GT(declared().size(), 30u);
  EXPECT_TRUE(declared().contains("rkAllReduce@RANKINE_1"));
  EXPECT_TRUE(declared().contains("rkGetErrorString@RANKINE_1"));
}

TEST(Abi, TheLibraryShowsTheFunctionsOfTheHeaderAndNothingElse) { EXPECT_EQ(shown(), declared()); }

TEST(Abi, WhatWasPromisedIsStillThereAndWhatIsNewIsWrittenDown) {
  EXPECT_EQ(promised(), declared());
}

TEST(Abi, TheLibraryIsNamedByItsMajorVersion) {
  const int found = std::system(
      "readelf -d engine/api/c/librankine.so.1 | grep -q 'soname: \\[librankine.so.1\\]'");
  EXPECT_EQ(found, 0);
}

}  // namespace

// The adapter for ggml, called as ggml's meta backend calls it: by looking up three functions by
// name and passing all ranks' tensors at once. The test declares the required parts of ggml.

extern "C" {
enum ggml_type {
  GGML_TYPE_F32 = 0,
  GGML_TYPE_F16 = 1,
  GGML_TYPE_Q4_0 = 2,
  GGML_TYPE_I8 = 24,
  GGML_TYPE_I32 = 26,
  GGML_TYPE_I64 = 27,
  GGML_TYPE_F64 = 28,
  GGML_TYPE_BF16 = 30,
};
enum { GGML_TENSOR_FLAG_COMPUTE = 16 };
struct ggml_tensor {
  enum ggml_type type;
  int64_t ne[4];
  int32_t flags;
  void* data;
  bool contiguous;
};
typedef struct ggml_backend* ggml_backend_t;
static int64_t ggml_nelements(const struct ggml_tensor* t) {
  return t->ne[0] * t->ne[1] * t->ne[2] * t->ne[3];
}
static bool ggml_is_contiguous(const struct ggml_tensor* t) { return t->contiguous; }
static size_t ggml_nbytes(const struct ggml_tensor* t) {
  return static_cast<size_t>(ggml_nelements(t)) * (t->type == GGML_TYPE_F32 ? 4 : 1);
}
}

#include "engine/api/c/adapters/ggml.h"

namespace {

// Looks up a function like a backend's get_proc_address().
void* proc_address(const std::string& name) {
  if (name == "ggml_backend_comm_init") return reinterpret_cast<void*>(rankine_ggml_comm_init);
  if (name == "ggml_backend_comm_free") return reinterpret_cast<void*>(rankine_ggml_comm_free);
  if (name == "ggml_backend_comm_allreduce_tensor") {
    return reinterpret_cast<void*>(rankine_ggml_comm_allreduce_tensor);
  }
  return nullptr;
}

class Ggml : public testing::TestWithParam<std::size_t> {
 protected:
  Ggml() : context_(init_(nullptr, GetParam())) {}
  ~Ggml() override { free_(context_); }

  bool reduce(std::vector<ggml_tensor>& tensors) {
    std::vector<ggml_tensor*> all;
    for (ggml_tensor& t : tensors) all.push_back(&t);
    return reduce_(context_, all.data());
  }

  void* (*init_)(ggml_backend_t*, size_t) =
      reinterpret_cast<void* (*)(ggml_backend_t*, size_t)>(proc_address("ggml_backend_comm_init"));
  void (*free_)(void*) = reinterpret_cast<void (*)(void*)>(proc_address("ggml_backend_comm_free"));
  bool (*reduce_)(void*, ggml_tensor**) = reinterpret_cast<bool (*)(void*, ggml_tensor**)>(
      proc_address("ggml_backend_comm_allreduce_tensor"));
  void* context_;
};

TEST_P(Ggml, AddsUpWhatIsComputed) {
  ASSERT_NE(context_, nullptr) << rkGetLastError(nullptr);
  for (const int64_t rows : {int64_t{0}, int64_t{1}, int64_t{7}, int64_t{512}}) {
    std::vector<std::vector<float>> data;
    std::vector<ggml_tensor> tensors;
    float wanted = 0;
    for (std::size_t r = 0; r < GetParam(); ++r) {
      const bool computed = r != 1;  // rank 1 has an empty slice
      data.emplace_back(static_cast<std::size_t>(64 * rows), static_cast<float>(r + 1));
      if (computed) wanted += static_cast<float>(r + 1);
      tensors.push_back({GGML_TYPE_F32,
                         {64, rows, 1, 1},
                         computed ? GGML_TENSOR_FLAG_COMPUTE : 0,
                         data.back().data(),
                         true});
    }
    ASSERT_TRUE(reduce(tensors));
    for (const auto& vector : data) {
      EXPECT_EQ(vector, std::vector<float>(static_cast<std::size_t>(64 * rows), wanted));
    }
  }
}

TEST_P(Ggml, LeavesAloneWhatItCannotAddUp) {
  std::vector<std::vector<float>> data(GetParam(), std::vector<float>(16, 1));
  const auto refused = [&](const auto& change) {
    std::vector<ggml_tensor> tensors;
    for (auto& vector : data) {
      tensors.push_back(
          {GGML_TYPE_F32, {16, 1, 1, 1}, GGML_TENSOR_FLAG_COMPUTE, vector.data(), true});
    }
    change(tensors.back());
    EXPECT_FALSE(reduce(tensors));
    for (const auto& vector : data) EXPECT_EQ(vector, std::vector<float>(16, 1));
  };
  refused([](ggml_tensor& t) { t.type = GGML_TYPE_Q4_0; });
  refused([](ggml_tensor& t) { t.contiguous = false; });
  refused([](ggml_tensor& t) { t.data = nullptr; });
  if (GetParam() > 1) refused([](ggml_tensor& t) { t.ne[1] = 2; });
}

INSTANTIATE_TEST_SUITE_P(Ranks, Ggml, testing::Values(1, 2, 3, 8));

TEST(GgmlInit, IsNullWhereThereCannotBeOne) {
  EXPECT_EQ(rankine_ggml_comm_init(nullptr, 0), nullptr);
  EXPECT_NE(std::string(rkGetLastError(nullptr)), "");
}

// Ranks in C as processes: they meet by ids, and get an error if they cannot meet.

std::string last_error() { return rkGetLastError(nullptr); }

// Runs play(rank) in one child per rank; every result must be 0.
void in_processes(int ranks, const std::function<int(int)>& play) {
  std::vector<rankine::ChildProcess> children;
  for (int r = 0; r < ranks; ++r) children.emplace_back([&] { return play(r); });
  for (auto& child : children) EXPECT_EQ(rankine::describe_end(child.wait()), "exit 0");
}

TEST(CProcesses, RunTheExampleInC) {
  Spawned program({"tests/engine/api/c/processes"}, {});
  EXPECT_EQ(program.finish(), "every element: 10\n");
}

// Makes calls of every kind, also a message and a split.
int play_all(const rkUniqueId& id, int ranks, int rank) {
  rkComm_t comm = RK_COMM_NULL, part = RK_COMM_NULL;
  if (rkCommInitRank(&comm, ranks, id, rank) != rkSuccess) return 1;
  int n = 0, self = -1;
  if (rkCommCount(comm, &n) != rkSuccess || rkCommUserRank(comm, &self) != rkSuccess) return 2;
  if (n != ranks || self != rank) return 3;
  std::vector<int> mine(1000, rank), theirs(1000);
  rkGroupStart();
  rkSend(mine.data(), mine.size(), rkInt32, (rank + 1) % ranks, comm);
  rkRecv(theirs.data(), theirs.size(), rkInt32, (rank + ranks - 1) % ranks, comm);
  if (rkGroupEnd() != rkSuccess) return 4;
  if (theirs != std::vector<int>(1000, (rank + ranks - 1) % ranks)) return 5;
  if (rkCommSplit(comm, rank % 2, 0, &part) != rkSuccess) return 6;
  int sum = 1;
  if (rkAllReduce(&sum, &sum, 1, rkInt32, rkSum, part) != rkSuccess) return 7;
  if (sum != (ranks + 1 - rank % 2) / 2) return 8;
  if (rkCommDestroy(part) != rkSuccess || rkBarrier(comm) != rkSuccess) return 9;
  return rkCommDestroy(comm) == rkSuccess ? 0 : 10;
}

TEST(CProcesses, MeetUnderAnIdThatOneOfThemHasMade) {
  rkUniqueId id, other;
  ASSERT_EQ(rkGetUniqueIdOfProcesses(&id), rkSuccess);
  ASSERT_EQ(rkGetUniqueIdOfProcesses(&other), rkSuccess);
  EXPECT_NE(std::memcmp(&id, &other, sizeof id), 0);
  in_processes(3, [&](int rank) { return play_all(id, 3, rank); });
}

TEST(CProcesses, MeetUnderANameAgainAndAgain) {
  const std::string name = "c_test." + std::to_string(std::random_device()());
  for (const int ranks : {2, 3}) {
    in_processes(ranks, [&](int rank) {
      rkUniqueId id;
      if (rkGetUniqueIdByName(&id, name.c_str()) != rkSuccess) return 20;
      return play_all(id, ranks, rank);
    });
  }
}

// Two processes play two ranks each, on one thread or on two.
int play_two(const rkUniqueId& id, int process) {
  rkComm_t comms[2], parts[2];
  const int ranks[2] = {process, 3 - process};
  rkGroupStart();
  for (int i = 0; i < 2; ++i) {
    if (rkCommInitRank(&comms[i], 4, id, ranks[i]) != rkSuccess) return 1;
    if (comms[i] != RK_COMM_NULL) return 2;
  }
  rkRequest_t request;
  if (rkGroupEndAsync(&request) != rkInvalidUsage) return 3;
  if (rkGroupEnd() != rkSuccess) return 4;
  int sums[2] = {1, 10};
  rkGroupStart();
  for (int i = 0; i < 2; ++i) rkAllReduce(&sums[i], &sums[i], 1, rkInt32, rkSum, comms[i]);
  if (rkGroupEnd() != rkSuccess || sums[0] != 22 || sums[1] != 22) return 5;
  // Each part has one rank of each process. A process may join its parts in any order.
  rkGroupStart();
  for (int i = 0; i < 2; ++i) rkCommSplit(comms[i], ranks[i] / 2, 0, &parts[i]);
  if (rkGroupEnd() != rkSuccess) return 6;
  int of_threads[2] = {0, 0};
  const auto add_up = [&](int i) {
    int sum = ranks[i];
    for (int k = 0; k < 100; ++k) {
      sum = ranks[i];
      if (rkAllReduce(&sum, &sum, 1, rkInt32, rkSum, parts[i]) != rkSuccess) return;
      if (rkBarrier(comms[i]) != rkSuccess) return;
    }
    of_threads[i] = sum;
  };
  std::thread other(add_up, 1);
  add_up(0);
  other.join();
  for (int i = 0; i < 2; ++i) {
    if (of_threads[i] != (ranks[i] < 2 ? 1 : 5)) return 7;
    if (rkCommDestroy(parts[i]) != rkSuccess || rkCommDestroy(comms[i]) != rkSuccess) return 8;
  }
  return 0;
}

TEST(CProcesses, MayPlaySeveralRanksEach) {
  rkUniqueId id;
  ASSERT_EQ(rkGetUniqueIdOfProcesses(&id), rkSuccess);
  in_processes(2, [&](int process) { return play_two(id, process); });
}

// The function of one operation may have a different address in each process.
int add(const void* in, void* inout, std::size_t count, void* context) {
  for (std::size_t i = 0; i < count; ++i) {
    static_cast<int*>(inout)[i] += static_cast<const int*>(in)[i];
  }
  ++*static_cast<int*>(context);
  return 0;
}
int add_as_well(const void* in, void* inout, std::size_t count, void* context) {
  return add(in, inout, count, context);
}

int reduce_by_function(const rkUniqueId& id, int rank) {
  rkComm_t comm = RK_COMM_NULL, part = RK_COMM_NULL;
  if (rkCommInitRank(&comm, 2, id, rank) != rkSuccess) return 1;
  if (rkCommSplit(comm, 0, 0, &part) != rkSuccess) return 2;
  for (const rkComm_t one : {comm, part}) {
    int x[3] = {1, rank, 7}, calls = 0;
    rkRedOp_t op;
    const rkRedFunction_t function = rank == 0 ? add : add_as_well;
    if (rkRedOpCreate(&op, function, sizeof(int), 1, &calls, one) != rkSuccess) return 3;
    if (rkAllReduce(x, x, 3, rkOpaque, op, one) != rkSuccess) return 4;
    if (x[0] != 2 || x[1] != 1 || x[2] != 14) return 5;
    rkGroupStart();
    rkAllReduce(x, x, 3, rkOpaque, op, one);
    if (rkGroupEnd() != rkSuccess || x[2] != 28) return 6;
  }
  return rkCommDestroy(part) == rkSuccess && rkCommDestroy(comm) == rkSuccess ? 0 : 7;
}

TEST(CProcesses, ReduceByFunctionsThatLieElsewhereInEach) {
  rkUniqueId id;
  ASSERT_EQ(rkGetUniqueIdOfProcesses(&id), rkSuccess);
  ASSERT_NE(add, add_as_well);
  in_processes(2, [&](int rank) { return reduce_by_function(id, rank); });
}

TEST(CProcesses, GroupsOfRanksAreToldWhatIsWrong) {
  rkUniqueId id;
  ASSERT_EQ(rkGetUniqueIdOfProcesses(&id), rkSuccess);
  rkComm_t comms[2];
  rkGroupStart();
  rkCommInitRank(&comms[0], 2, id, 0);
  rkCommInitRank(&comms[1], 3, id, 1);
  EXPECT_EQ(rkGroupEnd(), rkInvalidArgument);
  EXPECT_TRUE(last_error().starts_with("rkGroupEnd: rkCommInitRank of rank 1: ranks is 3"));
  EXPECT_TRUE(comms[0] == RK_COMM_NULL);
  rkGroupStart();
  rkCommInitRank(&comms[0], 2, id, 0);
  rkCommInitRank(&comms[1], 2, id, 0);
  EXPECT_EQ(rkGroupEnd(), rkInvalidArgument);
  EXPECT_TRUE(last_error().starts_with("rkGroupEnd: rkCommInitRank of rank 0: more_ranks has 0"));
}

TEST(CProcesses, AreToldWhatIsWrong) {
  rkUniqueId id;
  rkComm_t comm = RK_COMM_NULL;
  const auto refused = [](rkResult_t result, const std::string& text) {
    EXPECT_EQ(result, rkInvalidArgument);
    EXPECT_EQ(last_error(), text);
  };
  refused(rkGetUniqueIdOfProcesses(nullptr), "rkGetUniqueIdOfProcesses: id is NULL");
  refused(rkGetUniqueIdByName(nullptr, "job"), "rkGetUniqueIdByName: id is NULL");
  refused(rkGetUniqueIdByName(&id, nullptr), "rkGetUniqueIdByName: name is NULL");
  refused(rkGetUniqueIdByName(&id, "a/b"),
          "rkGetUniqueIdByName: name is 'a/b'; allowed are "
          "1 to 100 letters, digits, '.', '-' and '_'");
  ASSERT_EQ(rkGetUniqueIdByName(&id, std::string(100, 'x').c_str()), rkSuccess);
  refused(rkCommInitRank(&comm, 2, id, 2), "rkCommInitRank: rank is 2; allowed are 0 to 1");
  refused(rkCommInitRank(&comm, 257, id, 2), "rkCommInitRank: ranks is 257; allowed are 1 to 256");
  std::memset(id.internal + 8, '/', sizeof id.internal - 8);
  EXPECT_EQ(rkCommInitRank(&comm, 2, id, 1), rkInvalidArgument) << "no name ends there";
  EXPECT_EQ(comm, nullptr);
}

TEST(CProcesses, WaitForTheOthersAsLongAsTheirTimeout) {
  rkUniqueId id;
  ASSERT_EQ(rkGetUniqueIdOfProcesses(&id), rkSuccess);
  rkConfig_t config = RK_CONFIG_INITIALIZER;
  config.timeoutMs = 50;
  rkComm_t comm = RK_COMM_NULL;
  EXPECT_EQ(rkCommInitRankConfig(&comm, 3, id, 1, &config), rkTimeout);
  EXPECT_NE(last_error().find("ranks 0, 2 of 'id."), std::string::npos) << last_error();
  EXPECT_EQ(comm, nullptr);
}

// Two processes grow by a third one, and are told why they cannot.
int play_growing(const rkUniqueId& id, const rkUniqueId& larger_id, int rank) {
  rkComm_t comm = RK_COMM_NULL, larger = RK_COMM_NULL;
  rkUniqueId of_threads;
  if (rkGetUniqueId(&of_threads) != rkSuccess) return 1;
  if (rank == 2) {
    if (rkCommInitRank(&larger, 3, larger_id, rank) != rkSuccess) return 2;
  } else {
    if (rkCommInitRank(&comm, 2, id, rank) != rkSuccess) return 3;
    if (rkCommGrow(comm, 3, larger_id, nullptr, nullptr) != rkInvalidArgument) return 4;
    if (rkCommGrow(comm, 2, larger_id, nullptr, &larger) != rkInvalidArgument) return 5;
    if (rkCommGrow(comm, 3, of_threads, nullptr, &larger) != rkInvalidArgument) return 6;
    rkConfig_t config = RK_CONFIG_INITIALIZER;
    config.timeoutMs = 100;
    if (rkCommGrow(comm, 3, id, &config, &larger) != rkTimeout) return 7;
    if (rkBarrier(comm) != rkSuccess) return 8;
    if (rkCommGrow(comm, 3, larger_id, nullptr, &larger) != rkSuccess) return 9;
    if (rkCommDestroy(comm) != rkSuccess) return 10;
  }
  int sum = 1 << rank;
  if (rkAllReduce(&sum, &sum, 1, rkInt32, rkSum, larger) != rkSuccess || sum != 7) return 11;
  return rkCommDestroy(larger) == rkSuccess ? 0 : 12;
}

TEST(CProcesses, Grow) {
  rkUniqueId id, larger;
  ASSERT_EQ(rkGetUniqueIdOfProcesses(&id), rkSuccess);
  ASSERT_EQ(rkGetUniqueIdOfProcesses(&larger), rkSuccess);
  in_processes(3, [&](int rank) { return play_growing(id, larger, rank); });
}

TEST(CProcesses, DisagreeAndAreTold) {
  rkUniqueId id;
  ASSERT_EQ(rkGetUniqueIdOfProcesses(&id), rkSuccess);
  in_processes(2, [&](int rank) {
    rkConfig_t config = RK_CONFIG_INITIALIZER;
    if (rank == 1) config.planBytes = 1 << 20;
    rkComm_t comm = RK_COMM_NULL;
    return rkCommInitRankConfig(&comm, 2, id, rank, &config) == rkMismatch ? 0 : 1;
  });
}

}  // namespace
