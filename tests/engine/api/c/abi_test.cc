// The shared library shows the functions of rankine.h, each under RANKINE_1, and nothing else; and
// what the symbols file says has been shown is still there.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdio>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "engine/api/c/rankine.h"

namespace {

using Names = std::set<std::string>;

std::string content(const std::string& path) {
  std::ifstream file(path);
  EXPECT_TRUE(file.good()) << path;
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// "rkAllReduce@RANKINE_1" of every function that the header declares.
Names declared() {
  const std::string text = content("engine/api/c/rankine.h");
  const std::regex function(R"(\nRK_API [a-zA-Z_ *]*[ *](rk[A-Za-z]+)\()");
  Names names;
  for (std::sregex_iterator at(text.begin(), text.end(), function), end; at != end; ++at) {
    names.insert((*at)[1].str() + "@RANKINE_1");
  }
  return names;
}

// What the dynamic linker can find in the library, whatever its kind: "type name@version" for what
// is no function of ours.
Names shown() {
  std::FILE* pipe =
      popen("nm -D --defined-only --with-symbol-versions engine/api/c/librankine.so.1", "r");
  if (pipe == nullptr) return {"nm cannot be started"};
  std::string text;
  for (int c = std::fgetc(pipe); c != EOF; c = std::fgetc(pipe)) text += static_cast<char>(c);
  EXPECT_EQ(pclose(pipe), 0);
  Names names;
  std::istringstream lines(text);
  for (std::string address, type, name; lines >> address >> type >> name;) {
    if (type == "A" && name == "RANKINE_1") continue;  // the version itself
    const std::size_t at = name.find("@@");
    if (type == "T" && at != std::string::npos) {
      names.insert(name.erase(at, 1));
    } else {
      names.insert(type + " " + name);
    }
  }
  return names;
}

// Of the symbols file, as Debian's dpkg-gensymbols reads it.
Names promised() {
  std::istringstream lines(content("engine/api/c/librankine1.symbols"));
  Names names;
  std::string line;
  std::getline(lines, line);
  EXPECT_EQ(line, "librankine.so.1 librankine1 #MINVER#");
  while (std::getline(lines, line)) {
    if (!line.starts_with(' ')) continue;
    const std::size_t end = line.find(' ', 1);
    EXPECT_NE(end, std::string::npos) << line;
    names.insert(line.substr(1, end - 1));
  }
  EXPECT_EQ(names.erase("RANKINE_1@RANKINE_1"), 1u);
  return names;
}

TEST(Abi, TheHeaderDeclaresManyFunctions) {
  EXPECT_GT(declared().size(), 30u);
  EXPECT_TRUE(declared().contains("rkAllReduce@RANKINE_1"));
  EXPECT_TRUE(declared().contains("rkGetErrorString@RANKINE_1"));
}

TEST(Abi, TheLibraryShowsTheFunctionsOfTheHeaderAndNothingElse) { EXPECT_EQ(shown(), declared()); }

TEST(Abi, WhatWasPromisedIsStillThereAndWhatIsNewIsWrittenDown) {
  EXPECT_EQ(promised(), declared());
}

TEST(Abi, TheLibraryIsNamedByItsMajorVersion) {
  const int found = std::system(
      "readelf -d engine/api/c/librankine.so.1 | grep -q 'soname: \\[librankine.so.1\\]'");
  EXPECT_EQ(found, 0);
}

// Offsets of all members and the size, of what programs lay out themselves: none ever changes, new
// members come after the last one. x86-64; pointers and size_t have 8 bytes.
using Offsets = std::vector<std::size_t>;

TEST(Abi, StructsAreLaidOutAsTheyEverWere) {
  EXPECT_EQ(
      (Offsets{
          offsetof(rkConfig_t, size), offsetof(rkConfig_t, timeoutMs), offsetof(rkConfig_t, wait),
          offsetof(rkConfig_t, network), offsetof(rkConfig_t, nodes), offsetof(rkConfig_t, levels),
          offsetof(rkConfig_t, levelCount), offsetof(rkConfig_t, tuned),
          offsetof(rkConfig_t, recordTimes), offsetof(rkConfig_t, planBytes),
          offsetof(rkConfig_t, order), offsetof(rkConfig_t, progressCore),
          offsetof(rkConfig_t, placement), offsetof(rkConfig_t, ports), sizeof(rkConfig_t)}),
      (Offsets{0, 8, 16, 24, 32, 40, 48, 52, 56, 64, 72, 80, 88, 96, 104}));
  EXPECT_EQ((Offsets{offsetof(rkCallOptions_t, size), offsetof(rkCallOptions_t, algorithm),
                     offsetof(rkCallOptions_t, transport), offsetof(rkCallOptions_t, timeoutMs),
                     offsetof(rkCallOptions_t, segments), offsetof(rkCallOptions_t, group),
                     offsetof(rkCallOptions_t, aggregation), offsetof(rkCallOptions_t, dims),
                     offsetof(rkCallOptions_t, dimCount), offsetof(rkCallOptions_t, skips),
                     offsetof(rkCallOptions_t, skipCount), offsetof(rkCallOptions_t, levels),
                     offsetof(rkCallOptions_t, levelCount), offsetof(rkCallOptions_t, tag),
                     offsetof(rkCallOptions_t, order), offsetof(rkCallOptions_t, radix),
                     offsetof(rkCallOptions_t, sharedPayloads), sizeof(rkCallOptions_t)}),
            (Offsets{0, 8, 16, 24, 32, 36, 40, 48, 56, 64, 72, 80, 88, 96, 104, 112, 116, 120}));
  EXPECT_EQ((Offsets{sizeof(rkUniqueId), alignof(rkUniqueId), sizeof(rkComm_t), sizeof(rkRequest_t),
                     sizeof(rkResult_t), sizeof(rkDataType_t), sizeof(rkRedOp_t)}),
            (Offsets{128, 1, 8, 8, 4, 4, 4}));
  // What a program that was built before the last members came says of its own.
  EXPECT_EQ((rkConfig_t RK_CONFIG_INITIALIZER).size, 104u);
  EXPECT_EQ((rkCallOptions_t RK_CALL_OPTIONS_INITIALIZER).size, 120u);
}

}  // namespace
