#include "bench/rivals/protocol.h"

#include <filesystem>
#include <sstream>
#include <utility>

#include "engine/base/json_text.h"

namespace rankine::rivals {
namespace {

constexpr double kStartLimitS = 180;

nlohmann::json parse(const std::optional<std::string>& line) {
  if (!line) return {};
  const auto read = read_json("the answer", *line);
  return read.ok() ? *read : nlohmann::json();
}

}  // namespace

std::string find_start_mpi() {
  namespace fs = std::filesystem;
  const std::string self = fs::read_symlink("/proc/self/exe").string();
  for (const std::string& folder : {self + ".runfiles/rankine", std::string(".")}) {
    const std::string path = folder + "/bench/rivals/start_mpi";
    if (fs::exists(path)) return path;
  }
  return "start_mpi";
}

std::vector<std::string> mpi_names(const std::string& start_mpi) {
  Coprocess script({start_mpi, "--names"});
  std::vector<std::string> names;
  while (auto name = script.receive(kStartLimitS)) names.push_back(std::move(*name));
  return names;
}

MpiContender::MpiContender(std::string its_name, const std::string& start_mpi, const Setup& setup)
    : Contender(std::move(its_name), Family::kMpi) {
  job_ = std::make_unique<Coprocess>(std::vector<std::string>{
      start_mpi, name, std::to_string(setup.ranks), setup.crowded ? "crowded" : "roomy"});
}

void MpiContender::await() {
  const nlohmann::json ready = parse(job_->receive(kStartLimitS));
  if (!ready.is_object() || !ready.contains("ready")) {
    give_up("did not start");
    return;
  }
  version = ready.value("library", "");
  settings = ready.value("settings", "");
}

Measured MpiContender::run(const Batch& batch) {
  std::ostringstream order;
  order << name_of(batch.collective) << ' ' << batch.bytes << ' ' << name_of(batch.protocol) << ' '
        << batch.calls << ' ' << batch.warmups << ' ' << batch.in_place << ' ' << batch.seed;
  const nlohmann::json answer =
      job_->send(order.str()) ? parse(job_->receive(kBatchLimitS)) : nlohmann::json();
  if (!answer.is_object() || !answer.contains("us")) {
    give_up("failed at " + std::to_string(batch.bytes) + " B");
    return {};
  }
  return {answer.value("us", 0.0), answer.value("wall_us", 0.0),
          answer.value("wrong", std::uint64_t{0}),
          answer.value("percentiles", std::vector<double>{})};
}

void MpiContender::give_up(const std::string& what) {
  const int status = job_->stop();
  const std::string words = job_->last_words();
  missing = what + " (status " + std::to_string(status) + ")" + (words.empty() ? "" : ": " + words);
  if (status == kNotInstalled) missing = words;
}

}  // namespace rankine::rivals
