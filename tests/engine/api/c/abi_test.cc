// The shared library shows the functions of rankine.h, each under RANKINE_1, and nothing else; and
// what the symbols file says has been shown is still there.
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>
#include <string>

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

}  // namespace
