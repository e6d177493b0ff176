// A machine whose cores differ in their L3, as a file for HWLOC_XMLFILE: hwloc's synthetic notation
// knows equal parts only.
#pragma once

#include <cstdio>
#include <fstream>
#include <string>

namespace rankine {

// One package and node with six cores of one CPU each: cores 0 and 1 share an L3 of 16 MiB, cores 2
// and 3 one of 8 MiB, cores 4 and 5 have none. `version` is that of hwloc's format.
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
