// Spin on park.pml: the protocol holds, and each thing that it needs is needed.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace rankine {
namespace {

bool runs(const std::string& command) {
  const int status = std::system(command.c_str());
  return status != -1 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

std::string read(const std::filesystem::path& path) {
  std::ifstream in(path);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

struct Variant {
  std::string switches;
  bool holds;
};
void PrintTo(const Variant& v, std::ostream* out) { *out << "spin -a " << v.switches; }

class Park : public testing::TestWithParam<Variant> {};

TEST_P(Park, HoldsOrFailsAsItShould) {
  if (!runs("test -x /usr/bin/spin")) {
    GTEST_SKIP() << "Spin is not installed (Debian's package spin, packages-optional.txt)";
  }
  const auto model = std::filesystem::absolute("tests/models/park.pml");
  ASSERT_TRUE(std::filesystem::exists(model));
  std::string name = (std::filesystem::path(testing::TempDir()) / "park.XXXXXX").string();
  ASSERT_NE(mkdtemp(name.data()), nullptr);
  const std::filesystem::path folder(name);
  const std::string in = "cd '" + folder.string() + "' && ";
  ASSERT_TRUE(runs(in + "/usr/bin/spin -a " + GetParam().switches + " '" + model.string() +
                   "' > spin.log 2>&1"))
      << read(folder / "spin.log");
  ASSERT_TRUE(runs(in + "cc -O1 -w -o pan pan.c > cc.log 2>&1")) << read(folder / "cc.log");
  // -a -f: acceptance cycles under weak fairness, so also "comes back at last".
  ASSERT_TRUE(runs(in + "./pan -a -f -m100000 > pan.log 2>&1"));
  const std::string log = read(folder / "pan.log");
  EXPECT_EQ(log.find("max search depth too small"), std::string::npos);
  EXPECT_EQ(log.find("errors: 0") != std::string::npos, GetParam().holds) << log;
  const std::size_t states = log.find("states, stored");
  ASSERT_NE(states, std::string::npos) << log;
  const std::size_t line = log.rfind('\n', states) + 1;
  std::printf("%s: %s,%s\n", GetParam().switches.c_str(),
              GetParam().holds ? "holds" : "fails, as it should",
              log.substr(line, log.find('\n', states) - line).c_str());
  std::filesystem::remove_all(folder);
}

INSTANTIATE_TEST_SUITE_P(
    Protocol, Park,
    testing::Values(Variant{"", true}, Variant{"-DMEMBARRIER", true}, Variant{"-DWITH_ABORT", true},
                    Variant{"-DWITH_ABORT -DMEMBARRIER", true}, Variant{"-DNO_BARRIER", false},
                    Variant{"-DMEMBARRIER -DNO_BARRIER", false}, Variant{"-DNO_RECHECK", false},
                    Variant{"-DMEMBARRIER -DNO_RECHECK", false},
                    Variant{"-DWITH_ABORT -DNO_RECHECK", false},
                    Variant{"-DWITH_ABORT -DABORT_APART", false}));

}  // namespace
}  // namespace rankine
