// Fixtures of the numa tests: a scoped environment variable, a temporary directory tree, captured
// warnings, counted mappings and an hwloc file of a machine with mixed caches.
#pragma once

#include <stdlib.h>
#include <sys/mman.h>

#include <atomic>
#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "numa/refusals.h"
#include "numa/system_calls.h"

namespace rankine {

// Sets an environment variable for the length of a scope. nullptr as value: unset. Not safe while
// other threads run.
class ScopedEnv {
 public:
  ScopedEnv(const char* name, const char* value) : name_(name) {
    if (const char* before = getenv(name)) before_ = before;
    apply(value);
  }
  ~ScopedEnv() { apply(before_ ? before_->c_str() : nullptr); }
  ScopedEnv(const ScopedEnv&) = delete;
  ScopedEnv& operator=(const ScopedEnv&) = delete;

 private:
  void apply(const char* value) {
    if (value != nullptr) {
      setenv(name_, value, 1);
    } else {
      unsetenv(name_);
    }
  }

  const char* name_;
  std::optional<std::string> before_;
};

// A temporary directory that tests pass as the root "/".
class TempTree {
 public:
  TempTree() {
    std::string name = (std::filesystem::temp_directory_path() / "rankine.XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp failed");
    root_ = name;
  }
  ~TempTree() {
    std::error_code ignored;
    std::filesystem::remove_all(root_, ignored);
  }
  TempTree(const TempTree&) = delete;
  TempTree& operator=(const TempTree&) = delete;

  // `path` begins with a slash, as under the real root.
  void write(const std::string& path, const std::string& text) const {
    const std::filesystem::path file = root_ + path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }

  const std::string& root() const { return root_; }

 private:
  std::string root_;
};

// Collects warnings instead of printing them to stderr. While it is alive, every key counts as not
// yet seen. Read `lines` only when no thread can warn.
class CapturedWarnings {
 public:
  CapturedWarnings() {
    forget_warnings();
    before_ = set_warning_sink(
        [this](std::string_view key, std::string_view text) { lines.emplace_back(key, text); });
  }
  ~CapturedWarnings() { set_warning_sink(std::move(before_)); }
  CapturedWarnings(const CapturedWarnings&) = delete;
  CapturedWarnings& operator=(const CapturedWarnings&) = delete;

  std::vector<std::pair<std::string, std::string>> lines;  // (key, text)

 private:
  WarningSink before_;
};

// While an object lives, the bytes that arenas map are counted.
class CountedMappings {
 public:
  static inline std::atomic<std::size_t> bytes{0};

 private:
  static SystemCalls counting() {
    SystemCalls calls = real_system_calls();
    calls.mmap = [](void* address, std::size_t size, int protection, int flags, int file,
                    off_t offset) {
      void* const result = real_system_calls().mmap(address, size, protection, flags, file, offset);
      if (result != MAP_FAILED) bytes += size;
      return result;
    };
    calls.munmap = [](void* address, std::size_t size) {
      const int result = real_system_calls().munmap(address, size);
      if (result == 0) bytes -= size;
      return result;
    };
    return calls;
  }

  const ScopedSystemCalls scope_{counting()};
};

// A machine with different L3 caches per core, as a file for HWLOC_XMLFILE, because hwloc's
// synthetic notation describes equal parts only. It has one package and node with six cores of one
// CPU each. Cores 0 and 1 share an L3 of 16 MiB, cores 2 and 3 share one of 8 MiB, cores 4 and 5
// have none. `version` is the version of hwloc's format.
inline std::string mixed_caches_xml(const std::string& version = "2.0") {
  int number = 0;
  const auto object = [&number](const std::string& type, unsigned cpus, const std::string& more,
                                const std::string& inside) {
    char set[16];
    std::snprintf(set, sizeof(set), "0x%08x", cpus);
    std::string text =
        "<object type=\"" + type + "\" gp_index=\"" + std::to_string(++number) + "\"";
    for (const char* name : {"cpuset", "complete_cpuset", "allowed_cpuset"}) {
      text += std::string(" ") + name + "=\"" + set + "\"";
    }
    for (const char* name : {"nodeset", "complete_nodeset", "allowed_nodeset"}) {
      text += std::string(" ") + name + "=\"0x00000001\"";
    }
    return text + " " + more + ">" + inside + "</object>\n";
  };
  const auto core = [&](int n) {
    const std::string index = "os_index=\"" + std::to_string(n) + "\"";
    return object("Core", 1U << n, index, object("PU", 1U << n, index, ""));
  };
  const auto l3 = [&](int first, const std::string& bytes) {
    return object("L3Cache", 3U << first,
                  "cache_size=\"" + bytes + "\" depth=\"3\" cache_type=\"0\" cache_linesize=\"64\"",
                  core(first) + core(first + 1));
  };
  const std::string node = object("NUMANode", 63, "os_index=\"0\" local_memory=\"1073741824\"", "");
  const std::string package =
      object("Package", 63, "os_index=\"0\"",
             node + l3(0, "16777216") + l3(2, "8388608") + core(4) + core(5));
  return "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<!DOCTYPE topology SYSTEM \"hwloc" +
         version.substr(0, 1) + ".dtd\">\n<topology version=\"" + version + "\">\n" +
         object("Machine", 63, "os_index=\"0\"", package) + "</topology>\n";
}

inline std::string write_file(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
  return path;
}

}  // namespace rankine
