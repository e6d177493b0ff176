// Flight records that cannot be left where they should be: no call waits for that, nothing throws,
// and nothing is there by halves.
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/small_file.h"
#include "engine/faults/plays.h"
#include "engine/faults/scene.h"
#include "engine/faults/warnings.h"

namespace rankine::faults {
namespace {

namespace fs = std::filesystem;

class Folder {
 public:
  Folder() : path_((fs::temp_directory_path() / "rankine_record_XXXXXX").string()) {
    if (mkdtemp(path_.data()) == nullptr) path_.clear();
  }
  ~Folder() {
    std::error_code ignored;
    if (!path_.empty()) fs::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  bool works() const { return !path_.empty(); }
  std::string at(const char* name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

// While alive, files of this process grow no larger than that, as on a full disk.
class FileLimit {
 public:
  explicit FileLimit(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    getrlimit(RLIMIT_FSIZE, &before_);
    rlimit limit = before_;
    limit.rlim_cur = bytes;
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileLimit() {
    setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }
  FileLimit(const FileLimit&) = delete;
  FileLimit& operator=(const FileLimit&) = delete;

 private:
  void (*const handler_)(int);
  rlimit before_{};
};

// While alive, communicators that are made leave their records there.
class RecordFile {
 public:
  explicit RecordFile(const std::string& path) { setenv("RANKINE_FLIGHT_RECORD", path.c_str(), 1); }
  ~RecordFile() { unsetenv("RANKINE_FLIGHT_RECORD"); }
  RecordFile(const RecordFile&) = delete;
  RecordFile& operator=(const RecordFile&) = delete;
};

// A communicator that ends by its deadline, with its record to be left there.
void fail_and_leave(const FaultCase& test, const CollectiveCase& call, const std::string& path,
                    Tally& tally) {
  const RecordFile left_there(path);
  Scene scene(test, {.timeout = kShort, .documented = {Code::timeout}}, tally);
  const Rank victim = static_cast<Rank>(test.seed % static_cast<std::uint64_t>(test.ranks));
  scene.run([&](Seat& seat) {
    if (seat.rank() != victim) seat.call(call);
  });
}

// The same by abort(), in a text that is no UTF-8.
void abort_and_leave(const FaultCase& test, const CollectiveCase& call, const std::string& path,
                     Tally& tally) {
  const RecordFile left_there(path);
  Scene scene(test, {.at_once = true, .documented = {Code::aborted}}, tally);
  scene.run(
      [&](Seat& seat) {
        while (seat.call(call)) {
        }
      },
      [&] {
        wait_for([&] { return scene.any_done() || scene.started() == test.ranks; });
        scene.judge().mark_fault();
        scene.communicator().abort("\xff\xfe is no text");
      });
}

// Processes warn each for itself, where nobody listens.
void expect_warnings(const FaultCase& test, const Warnings& warnings,
                     const std::vector<std::string>& keys, Judge& judge) {
  if (!test.processes) warnings.expect(keys, judge);
}

// What processes share is a file, which then cannot be so long: they are told, and do not meet.
void refuse_to_meet(const FaultCase& test, Tally& tally) {
  std::optional<FileLimit> limit;
  const auto begin = [&](Rank) { limit.emplace(100); };
  const auto end = [&](Rank) { limit.reset(); };
  Scene scene(test, {.timeout = kShort, .documented = {Code::system}}, tally,
              {.before_they_meet = begin, .after_they_meet = end});
  scene.run([&](Seat&) { scene.judge().blame("ranks have met in a file of 100 bytes"); });
}

bool is_record(const std::string& path, int ranks) {
  const auto json = nlohmann::json::parse(read_small_file(path, 1 << 26).text, nullptr, false);
  return json.is_object() && json.contains("ranks") &&
         json["ranks"].size() == static_cast<std::size_t>(ranks);
}

}  // namespace

void play_unwritable_record(const FaultCase& test, Tally& tally) {
  Dice dice(test.seed);
  const CollectiveCase call = good_call(test, dice);
  Judge judge(test, {}, tally);
  const Folder folder;
  const std::string pipe = folder.at("pipe"), link = folder.at("link"), good = folder.at("good");
  if (!folder.works() || mkfifo(pipe.c_str(), 0600) != 0 || symlink("good", link.c_str()) != 0) {
    judge.excuse("no folder for files of a case");
    return;
  }
  const std::vector<std::string> refused = {
      pipe, link, folder.at(""), "/dev/full", folder.at("none/record"), "/sys/rankine_record"};
  for (const std::string& path : refused) {
    const Warnings warnings;
    fail_and_leave(test, call, path, tally);
    expect_warnings(test, warnings, {"api.flight_record"}, judge);
  }
  // Left, and then kept where there is no room for another one.
  const std::string odd_name = folder.at("\xff\xfe");
  for (const std::string& path : {good, odd_name}) {
    const Warnings warnings;
    abort_and_leave(test, call, path, tally);
    expect_warnings(test, warnings, {}, judge);
    if (!is_record(path, test.ranks)) judge.blame_wrong("no flight record is left");
  }
  if (test.processes) {
    refuse_to_meet(test, tally);
  } else {
    const Warnings warnings;
    {
      const FileLimit limit(100);
      fail_and_leave(test, call, good, tally);
    }
    warnings.expect({"api.flight_record"}, judge);
    if (!is_record(good, test.ranks)) judge.blame_wrong("the flight record that was there is lost");
  }
  fresh_start(test, call, tally);
}

}  // namespace rankine::faults
