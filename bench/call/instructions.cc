// Counts the instructions of an all-reduce of 8 B through each interface, per call, and times it.
//
//   third_party/bazel run -c opt //bench/call:instructions
//
// One thread plays one rank, or two in turn: one starts, the other calls, the first one waits; then
// the numbers are of both ranks. Callgrind counts a run of this program twice, with different
// numbers of calls, and the difference leaves out everything but the calls. Without callgrind the
// table has times only. `instructions FORM CALLS` makes the calls of one form.
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <thread>

#include "engine/api/c/rankine.h"
#include "engine/api/communicator.h"
#include "engine/api/member.h"
#include "engine/api/request.h"

namespace rankine {
namespace {

using Floats = std::array<float, 2>;
Floats in{1, 2}, other_in{3, 4}, out{}, other_out{};

void must(rkResult_t result) {
  if (result == rkSuccess) return;
  std::fprintf(stderr, "%s\n", rkGetLastError(nullptr));
  std::exit(1);
}

struct Cxx {
  explicit Cxx(int ranks) : communicator(Communicator::create({.ranks = ranks}).value()) {
    // Members of one thread would share its started calls.
    std::thread([&] { first = communicator->join(0).value(); }).join();
    if (ranks > 1) second = communicator->join(1).value();
    request = first->prepared().all_reduce(std::span<const float>(in), std::span(out)).value();
  }
  std::shared_ptr<Communicator> communicator;
  std::unique_ptr<Member> first, second;
  Request request;
};

struct C {
  explicit C(int ranks) {
    must(rkCommInitAll(comms.data(), ranks, nullptr));
    must(rkGroupStart());
    must(sum(0));
    must(rkGroupEndPrepare(&request));
  }
  ~C() {
    must(rkRequestFree(request));
    for (rkComm_t comm : comms) must(rkCommDestroy(comm));
  }
  C(const C&) = delete;
  C& operator=(const C&) = delete;
  rkResult_t sum(std::size_t rank) const {
    return rank == 0
               ? rkAllReduce(in.data(), out.data(), 2, rkFloat32, rkSum, comms[0])
               : rkAllReduce(other_in.data(), other_out.data(), 2, rkFloat32, rkSum, comms[1]);
  }
  std::array<rkComm_t, 2> comms{};
  rkRequest_t request = nullptr;
};

struct CallForm {
  std::string_view name;
  std::string_view text;
  void (*run)(int calls);
};

constexpr CallForm kCallForms[] = {
    {"cxx", "C++, one rank",
     [](int calls) {
       const Cxx x(1);
       while (calls-- > 0) {
         x.first->all_reduce(std::span<const float>(in), std::span(out)).throw_if_error();
       }
     }},
    {"cxx_changing", "C++, one rank, two buffers in turn",
     [](int calls) {
       const Cxx x(1);
       while (calls-- > 0) {
         x.first->all_reduce(std::span<const float>(calls % 2 == 0 ? in : other_in), std::span(out))
             .throw_if_error();
       }
     }},
    {"cxx_prepared", "C++, prepared: start and wait, one rank",
     [](int calls) {
       Cxx x(1);
       while (calls-- > 0) {
         x.request.start().throw_if_error();
         x.request.wait().throw_if_error();
       }
     }},
    {"cxx_in_turn", "C++, two ranks in turn",
     [](int calls) {
       Cxx x(2);
       while (calls-- > 0) {
         x.request.start().throw_if_error();
         x.second->all_reduce(std::span<const float>(other_in), std::span(other_out))
             .throw_if_error();
         x.request.wait().throw_if_error();
       }
     }},
    {"c", "C, rkAllReduce, one rank",
     [](int calls) {
       const C x(1);
       while (calls-- > 0) must(x.sum(0));
     }},
    {"c_prepared", "C, rkRequestStart and rkRequestWait, one rank",
     [](int calls) {
       const C x(1);
       while (calls-- > 0) {
         must(rkRequestStart(x.request));
         must(rkRequestWait(x.request));
       }
     }},
    {"c_in_turn", "C, two ranks in turn",
     [](int calls) {
       const C x(2);
       while (calls-- > 0) {
         must(rkRequestStart(x.request));
         must(x.sum(1));
         must(rkRequestWait(x.request));
       }
     }},
    {"c_group", "C, rkGroupStart, rkAllReduce and rkGroupEnd, one rank",
     [](int calls) {
       const C x(1);
       while (calls-- > 0) {
         must(rkGroupStart());
         must(x.sum(0));
         must(rkGroupEnd());
       }
     }},
};

// The instructions of a run; 0: there is no callgrind.
std::int64_t counted(const std::string& program, const CallForm& form, int calls) {
  const std::string command = "valgrind --tool=callgrind --callgrind-out-file=/dev/null '" +
                              program + "' " + std::string(form.name) + " " +
                              std::to_string(calls) + " 2>&1";
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> output(popen(command.c_str(), "r"), pclose);
  std::array<char, 512> line{};
  std::int64_t count = 0;
  while (output != nullptr && std::fgets(line.data(), line.size(), output.get()) != nullptr) {
    const std::string_view text(line.data());
    const std::size_t at = text.find("Collected : ");
    if (at != text.npos) count = std::atoll(line.data() + at + 12);
  }
  return count;
}

double nanoseconds(const CallForm& form) {
  const auto time = [&](int calls) {
    const auto begin = std::chrono::steady_clock::now();
    form.run(calls);
    return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - begin)
        .count();
  };
  constexpr int kCalls = 1'000'000;
  const double few = time(kCalls / 10);
  return (time(kCalls) - few) / (kCalls - kCalls / 10);
}

int show(const std::string& program) {
  std::printf("%-14s %12s %8s\n", "form", "instructions", "ns");
  for (const CallForm& form : kCallForms) {
    constexpr int kFew = 100, kMany = 1'100;
    const std::int64_t few = counted(program, form, kFew);
    const std::int64_t many = few == 0 ? 0 : counted(program, form, kMany);
    std::printf("%-14s %12.0f %8.0f  %s\n", form.name.data(),
                static_cast<double>(many - few) / (kMany - kFew), nanoseconds(form),
                form.text.data());
  }
  return 0;
}

}  // namespace
}  // namespace rankine

int main(int argc, char** argv) {
  if (argc == 1) return rankine::show(argv[0]);
  for (const rankine::CallForm& form : rankine::kCallForms) {
    if (argc == 3 && form.name == argv[1]) return form.run(std::atoi(argv[2])), 0;
  }
  std::fprintf(stderr, "FORM is %s; allowed are the forms of the table, which no argument prints\n",
               argv[1]);
  return 2;
}
