#include "bench/server/mpi_crew.h"

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <utility>
#include <vector>

#include "bench/rivals/crew.h"
#include "bench/rivals/mpi_contender.h"
#include "engine/base/status.h"

namespace rankine::server {
namespace {

// A folder of its own for a while.
class Folder {
 public:
  Folder() : path_((std::filesystem::temp_directory_path() / "rankine_server_XXXXXX").string()) {
    if (mkdtemp(path_.data()) == nullptr)
      throw Error(Code::system, path_ + ": no folder to meet in");
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::string file(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

}  // namespace

MpiCrew::MpiCrew(const MpiJob& job, int ranks, Line line) {
  const Folder folder;
  const bool crowded = static_cast<std::size_t>(ranks) > rivals::allowed_cpus().size();
  mpirun_ = std::make_unique<rivals::Coprocess>(std::vector<std::string>{
      rivals::find_start_mpi(), job.settings, std::to_string(ranks), crowded ? "crowded" : "roomy",
      "--program", job.program, std::to_string(job.layers), std::to_string(job.divisor),
      std::to_string(job.seed), folder.file("line")});
  // Rank 0 says something when all have met, and then collects the line.
  if (!mpirun_->receive(60)) {
    const int status = mpirun_->stop();
    const std::string words = mpirun_->last_words();
    throw Error(Code::system, job.settings + ": " +
                                  (status == rivals::kNotInstalled
                                       ? words
                                       : "the job ended with status " + std::to_string(status) +
                                             (words.empty() ? "" : ": " + words)));
  }
  line.hand_over(folder.file("line"), std::chrono::seconds(10));
}

}  // namespace rankine::server
