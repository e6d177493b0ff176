// A program with more rights than its user ignores the user's RANKINE variables. The tests use real
// files with the set-user-ID bit, the set-group-ID bit and a capability, run by a user without
// rights.
#include <gmock/gmock.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "tests/engine/api/child_process.h"
#include "tests/testing.h"

namespace rankine {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing_processes::Spawned;
namespace fs = std::filesystem;

constexpr const char* kSecret = "secret_of_root: {$6$x\n";

std::string text_of(const fs::path& file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), {}};
}

class Privileged : public testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "only root gives a program more rights than its user has";
    if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1) GTEST_SKIP() << "no_new_privs is set";
    char name[] = "/tmp/rankine_privileged_XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    folder_ = name;
    ASSERT_EQ(chmod(name, 0755), 0);
    struct statvfs about {};
    ASSERT_EQ(statvfs(name, &about), 0);
    if ((about.f_flag & ST_NOSUID) != 0) GTEST_SKIP() << "/tmp is mounted nosuid";
    program_ = folder_ / "program";
    fs::copy_file("tests/engine/api/privileged_program", program_);
    fs::permissions(program_, fs::perms(0755));
    secret_ = folder_ / "secret";
    std::ofstream(secret_) << kSecret;
    ASSERT_EQ(chmod(secret_.c_str(), 0600), 0);
    if (run({"/usr/bin/id", "-u"}, {}) != "65534\n") {
      GTEST_SKIP() << "no process of the user 65534 can be started here";
    }
  }
  void TearDown() override {
    if (!folder_.empty()) fs::remove_all(folder_);
  }

  // Runs a program as user 65534; returns its output.
  static std::string run(std::vector<std::string> words,
                         const std::vector<std::string>& variables) {
    const std::string as_user[] = {"/usr/bin/setpriv", "--reuid=65534", "--regid=65534",
                                   "--clear-groups", "--"};
    words.insert(words.begin(), std::begin(as_user), std::end(as_user));
    return output_of(words, variables);
  }
  static std::string output_of(const std::vector<std::string>& words,
                               const std::vector<std::string>& variables) {
    return Spawned(words, variables).finish();
  }

  void expect_deaf() {
    const std::vector<std::string> attack = {"RANKINE_FLIGHT_RECORD=" + secret_.string(),
                                             "RANKINE_NETWORK=" + secret_.string(),
                                             "RANKINE_TUNING=" + secret_.string(),
                                             "RANKINE_ISA=portable",
                                             "RANKINE_ALGO=no_such",
                                             "RANKINE_ALGOS=no_such",
                                             "RANKINE_STRANGER=1",
                                             "HOME=/tmp",
                                             "XDG_CACHE_HOME=/tmp"};
    const std::string out = run({program_}, attack);
    EXPECT_EQ(text_of(secret_), kSecret);
    EXPECT_THAT(out, Not(HasSubstr("secret_of_root")));
    EXPECT_THAT(out, Not(HasSubstr("RANKINE_")));
    EXPECT_THAT(out, HasSubstr("privileged: 1\ntuning: ''\ncapped: 0\nenvironment: ok\n"));
    EXPECT_THAT(out, HasSubstr("team: ok\ncall: failed\n"));
    for (const char* variable : {"HWLOC_XMLFILE=", "HWLOC_FSROOT=", "HWLOC_PLUGINS_PATH="}) {
      const std::string described = run({program_}, {variable + secret_.string()});
      EXPECT_THAT(described, Not(HasSubstr("secret")));
      EXPECT_THAT(described,
                  HasSubstr("topology: flat: this program has more rights than its user"));
    }
  }

  fs::path folder_, program_, secret_;
};

TEST_F(Privileged, SetUserIdIsDeaf) {
  ASSERT_EQ(chmod(program_.c_str(), 04755), 0);
  expect_deaf();
}

TEST_F(Privileged, SetGroupIdIsDeaf) {
  ASSERT_EQ(chmod(program_.c_str(), 02755), 0);
  expect_deaf();
}

TEST_F(Privileged, ACapabilityIsDeaf) {
  vfs_cap_data rights{};
  rights.magic_etc = VFS_CAP_REVISION_2 | VFS_CAP_FLAGS_EFFECTIVE;
  rights.data[0].permitted = 1U << CAP_DAC_OVERRIDE;
  if (setxattr(program_.c_str(), "security.capability", &rights, sizeof(rights), 0) != 0) {
    GTEST_SKIP() << "a file has no capabilities here: " << std::strerror(errno);
  }
  expect_deaf();
}

// Without extra rights the variables count; otherwise the tests above would prove nothing.
TEST_F(Privileged, WithoutMoreRightsTheVariablesCount) {
  const fs::path record = folder_ / "record";
  std::ofstream(record) << kSecret;
  const std::string out =
      output_of({program_}, {"RANKINE_FLIGHT_RECORD=" + record.string(), "RANKINE_TUNING=/x"});
  EXPECT_THAT(out, HasSubstr("privileged: 0\ntuning: '/x'\n"));
  EXPECT_THAT(out, HasSubstr("call: failed\n"));
  EXPECT_THAT(text_of(record), HasSubstr("\"ranks\""));
  const std::string other = output_of({program_}, {"RANKINE_ALGOS=ring"});
  EXPECT_THAT(other, HasSubstr("RANKINE_ALGOS is unknown"));
  // Even without extra rights, an error never quotes a file that is not a network.
  const std::string network = output_of({program_}, {"RANKINE_NETWORK=" + secret_.string()});
  EXPECT_THAT(network, HasSubstr("environment: environment variable RANKINE_NETWORK: "));
  EXPECT_THAT(network, Not(HasSubstr("secret_of_root")));
}

}  // namespace
}  // namespace rankine
