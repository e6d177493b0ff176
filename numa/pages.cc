#include "numa/pages.h"

#include <unistd.h>

#include <fstream>

namespace rankine {
namespace {

constexpr char kDirectory[] = "/sys/kernel/mm/transparent_hugepage/";
constexpr std::size_t kUsualHugePageBytes = std::size_t{2} << 20;

}  // namespace

std::size_t page_bytes() noexcept {
  const long bytes = sysconf(_SC_PAGESIZE);
  return bytes > 0 ? static_cast<std::size_t>(bytes) : 4096;
}

std::size_t huge_page_bytes(const std::string& root) {
  std::ifstream file(root + kDirectory + "hpage_pmd_size");
  std::size_t bytes = 0;
  const bool is_power_of_two = file >> bytes && bytes != 0 && (bytes & (bytes - 1)) == 0;
  return is_power_of_two && bytes > page_bytes() ? bytes : kUsualHugePageBytes;
}

bool huge_pages_switched_off(const std::string& root) {
  std::ifstream file(root + kDirectory + "enabled");
  std::string line;  // "always [madvise] never": the brackets mark the one in force
  return std::getline(file, line) && line.find("[never]") != std::string::npos;
}

}  // namespace rankine
