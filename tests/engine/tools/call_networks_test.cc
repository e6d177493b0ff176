// Lists of networks: where one ends and the next begins.
#include "engine/tools/call_networks.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace rankine::tools {
namespace {

TEST(CallNetworks, SettingsBelongToTheNetworkBeforeThem) {
  const auto read = read_call_networks("--network", "scale_up,scale_out,sync=rounds,torus");
  ASSERT_TRUE(read.ok()) << read.status().text();
  ASSERT_EQ(read->size(), 3U);
  const char* const names[] = {"scale_up", "scale_out,sync=rounds", "torus"};
  const Sync syncs[] = {Sync::dataflow, Sync::rounds, Sync::dataflow};
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ((*read)[i].name, names[i]);
    EXPECT_EQ((*read)[i].network->sync, syncs[i]) << names[i];
  }
  EXPECT_EQ((*read)[1].network->fabric.name, "scale_out");
}

TEST(CallNetworks, MayBeTheContentOfAFile) {
  const auto read = read_call_networks("--network", R"({"name": "mine", "ports": 3})");
  ASSERT_TRUE(read.ok()) << read.status().text();
  ASSERT_EQ(read->size(), 1U);
  EXPECT_EQ(read->front().name, "mine");
  EXPECT_EQ(read->front().network->fabric.ports, 3);
}

TEST(CallNetworks, ErrorsNameTheArgumentAndThePart) {
  const auto error = [](std::string_view text) {
    return read_call_networks("--network", text).status().text();
  };
  EXPECT_NE(error("").find("--network is ''; allowed are"), std::string::npos) << error("");
  EXPECT_NE(error("scale_up,ether").find("--network is 'ether'"), std::string::npos)
      << error("scale_up,ether");
  EXPECT_NE(error("torus,sync=later").find("--network is 'torus,sync=later': sync is 'later'"),
            std::string::npos)
      << error("torus,sync=later");
  EXPECT_NE(error("torus,colour=1").find("allowed are sync="), std::string::npos);
}

}  // namespace
}  // namespace rankine::tools
