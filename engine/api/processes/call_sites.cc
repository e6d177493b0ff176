#include "engine/api/processes/call_sites.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <new>

#include "engine/base/memory.h"
#include "engine/run/process.h"
#include "numa/memory.h"

namespace rankine {
namespace {

constexpr char kMagic[8] = "rkcalls";
constexpr const char* kFileName = "rankine.calls";
constexpr std::size_t kHeadBytes = 4096;
static_assert(sizeof(CallSiteHead) <= kHeadBytes && alignof(RankCalls) <= kHeadBytes);

template <std::size_t n>
void put(char (&place)[n], std::string_view text) {
  std::memcpy(place, text.data(), std::min(text.size(), n - 1));
}

std::size_t place_of(std::size_t i) { return kHeadBytes + i * sizeof(RankCalls); }

Status refused(const char* what) {
  const int error = errno;
  return make_error(error == ENOMEM ? Code::out_of_memory : Code::system, [&] {
    return std::string("record_times: ") + what +
           " of the records of calls: " + std::strerror(error) + "; allow it, or record no times";
  });
}

}  // namespace

Result<std::unique_ptr<CallSiteFile>> CallSiteFile::make(std::string_view name,
                                                         std::string_view group, int ranks,
                                                         std::span<const Rank> here) {
  std::unique_ptr<CallSiteFile> out(new CallSiteFile);
  out->file_ = KeptFile(memfd_create(kFileName, MFD_CLOEXEC));
  if (!out->file_.is_open()) return refused("memfd_create()");
  out->bytes_ = whole_pages(place_of(here.size()));
  if (ftruncate(out->file_.number(), static_cast<off_t>(out->bytes_)) != 0)
    return refused("ftruncate()");
  void* const base =
      mmap(nullptr, out->bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, out->file_.number(), 0);
  if (base == MAP_FAILED) return refused("mmap()");
  out->base_ = static_cast<std::byte*>(base);
  for (std::size_t i = 0; i < here.size(); ++i) {
    (new (out->base_ + place_of(i)) RankCalls)->rank.store(here[i], std::memory_order_relaxed);
  }
  auto* const head = new (base) CallSiteHead;
  head->layout = sizeof(RankCalls);
  head->ranks = ranks;
  head->here = static_cast<std::int32_t>(here.size());
  head->process = KnownProcess::this_one();
  put(head->name, name);
  put(head->group, group);
  put(head->magic, kMagic);
  return out;
}

CallSiteFile::~CallSiteFile() {
  if (base_ != nullptr) munmap(base_, bytes_);
}

RankCalls& CallSiteFile::calls(std::size_t i) noexcept {
  return *reinterpret_cast<RankCalls*>(base_ + place_of(i));
}

std::string_view CallSiteFile::name() const noexcept {
  return reinterpret_cast<const CallSiteHead*>(base_)->name;
}

CallSiteReader::CallSiteReader(int file) : file_(file) {
  struct stat found {};
  if (file < 0 || fstat(file_.number(), &found) != 0) return;
  inode_ = found.st_ino;
  if (pread(file_.number(), &head_, sizeof(head_), 0) != sizeof(head_)) return;
  head_.name[sizeof(head_.name) - 1] = head_.group[sizeof(head_.group) - 1] = 0;
  is_valid_ = std::equal(std::begin(kMagic), std::end(kMagic), head_.magic) &&
              head_.layout == sizeof(RankCalls) && head_.here >= 0 && head_.ranks >= head_.here &&
              head_.process.is_possible() &&
              found.st_size >= static_cast<off_t>(place_of(static_cast<std::size_t>(head_.here)));
}

std::unique_ptr<RankCalls> CallSiteReader::read(std::size_t i) const {
  auto out = std::make_unique<RankCalls>();
  // The bytes of lock-free atomic numbers are numbers.
  const ssize_t got = pread(file_.number(), static_cast<void*>(out.get()), sizeof(RankCalls),
                            static_cast<off_t>(place_of(i)));
  return got == sizeof(RankCalls) ? std::move(out) : nullptr;
}

namespace {

// The entries of a folder that are numbers. Error: errno's value.
Result<std::vector<std::int32_t>> numbers_in(const std::string& folder) {
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(opendir(folder.c_str()), closedir);
  if (entries == nullptr) return Status(Code::system, std::strerror(errno));
  std::vector<std::int32_t> out;
  while (const dirent* entry = readdir(entries.get())) {
    const std::string_view name = entry->d_name;
    std::int32_t number = 0;
    const auto read = std::from_chars(name.data(), name.data() + name.size(), number);
    if (read.ec == std::errc() && read.ptr == name.data() + name.size()) out.push_back(number);
  }
  std::sort(out.begin(), out.end());
  return out;
}

std::string target_of(const std::string& link) {
  char text[4096];
  const ssize_t length = readlink(link.c_str(), text, sizeof(text));
  return {text, length > 0 ? static_cast<std::size_t>(length) : 0};
}

}  // namespace

Result<FoundCallSites> find_call_sites(std::string_view target, const std::string& folder) {
  FoundCallSites out;
  std::int32_t one = 0;
  const auto read = std::from_chars(target.data(), target.data() + target.size(), one);
  const bool is_process = read.ec == std::errc() && read.ptr == target.data() + target.size() &&
                          access((folder + "/" + std::to_string(one)).c_str(), F_OK) == 0;
  const auto processes = is_process
                             ? Result<std::vector<std::int32_t>>(std::vector<std::int32_t>{one})
                             : numbers_in(folder);
  if (!processes.ok()) return Status(Code::system, folder + ": " + processes.status().text());
  const std::string shared = shared_path(std::string(target)) + " (deleted)";
  for (const std::int32_t process : *processes) {
    const std::string files = folder + "/" + std::to_string(process) + "/fd";
    const auto numbers = numbers_in(files);
    if (!numbers.ok()) {
      if (is_process) {
        return Status(Code::system,
                      "process " + std::to_string(process) + " cannot be read: " + files + ": " +
                          numbers.status().text() + "; run this as the user of that process");
      }
      const bool exists = access((folder + "/" + std::to_string(process)).c_str(), F_OK) == 0;
      if (exists) out.others.push_back(process);
      continue;
    }
    bool meets = false, records = false;
    for (const std::int32_t number : *numbers) {
      const std::string link = files + "/" + std::to_string(number);
      const std::string file = target_of(link);
      meets = meets || file == shared;
      if (!file.starts_with(std::string("/memfd:") + kFileName)) continue;
      CallSiteReader reader(open_shared(link.c_str(), O_RDONLY));
      if (!reader.is_valid()) continue;
      const std::string name = reader.head().name;
      if (!name.empty() && std::count(out.names.begin(), out.names.end(), name) == 0) {
        out.names.push_back(name);
      }
      if (!is_process && name != target) continue;
      records = true;
      const auto is_same = [&](const CallSiteReader& other) {
        return other.inode() == reader.inode();
      };
      // A forked child has its parent's descriptors.
      if (std::none_of(out.files.begin(), out.files.end(), is_same)) {
        out.files.push_back(std::move(reader));
      }
    }
    if (meets && !records) out.without_times.push_back(process);
  }
  return out;
}

}  // namespace rankine
