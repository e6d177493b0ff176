// The adapter for ggml, called as its meta backend does: the three functions are looked up by name
// and called with every rank's tensor at once. What it needs of ggml is declared here.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

extern "C" {
enum ggml_type {
  GGML_TYPE_F32 = 0,
  GGML_TYPE_F16 = 1,
  GGML_TYPE_Q4_0 = 2,
  GGML_TYPE_I8 = 24,
  GGML_TYPE_I32 = 26,
  GGML_TYPE_I64 = 27,
  GGML_TYPE_F64 = 28,
  GGML_TYPE_BF16 = 30,
};
enum { GGML_TENSOR_FLAG_COMPUTE = 16 };
struct ggml_tensor {
  enum ggml_type type;
  int64_t ne[4];
  int32_t flags;
  void* data;
  bool contiguous;
};
typedef struct ggml_backend* ggml_backend_t;
static int64_t ggml_nelements(const struct ggml_tensor* t) {
  return t->ne[0] * t->ne[1] * t->ne[2] * t->ne[3];
}
static bool ggml_is_contiguous(const struct ggml_tensor* t) { return t->contiguous; }
static size_t ggml_nbytes(const struct ggml_tensor* t) {
  return static_cast<size_t>(ggml_nelements(t)) * (t->type == GGML_TYPE_F32 ? 4 : 1);
}
}

#include "engine/api/c/adapters/ggml.h"

namespace {

// As a backend's get_proc_address() answers.
void* proc_address(const std::string& name) {
  if (name == "ggml_backend_comm_init") return reinterpret_cast<void*>(rankine_ggml_comm_init);
  if (name == "ggml_backend_comm_free") return reinterpret_cast<void*>(rankine_ggml_comm_free);
  if (name == "ggml_backend_comm_allreduce_tensor") {
    return reinterpret_cast<void*>(rankine_ggml_comm_allreduce_tensor);
  }
  return nullptr;
}

class Ggml : public testing::TestWithParam<std::size_t> {
 protected:
  Ggml() : context_(init_(nullptr, GetParam())) {}
  ~Ggml() override { free_(context_); }

  bool reduce(std::vector<ggml_tensor>& tensors) {
    std::vector<ggml_tensor*> all;
    for (ggml_tensor& t : tensors) all.push_back(&t);
    return reduce_(context_, all.data());
  }

  void* (*init_)(ggml_backend_t*, size_t) =
      reinterpret_cast<void* (*)(ggml_backend_t*, size_t)>(proc_address("ggml_backend_comm_init"));
  void (*free_)(void*) = reinterpret_cast<void (*)(void*)>(proc_address("ggml_backend_comm_free"));
  bool (*reduce_)(void*, ggml_tensor**) = reinterpret_cast<bool (*)(void*, ggml_tensor**)>(
      proc_address("ggml_backend_comm_allreduce_tensor"));
  void* context_;
};

TEST_P(Ggml, AddsUpWhatIsComputed) {
  ASSERT_NE(context_, nullptr) << rkGetLastError(nullptr);
  for (const int64_t rows : {int64_t{0}, int64_t{1}, int64_t{7}, int64_t{512}}) {
    std::vector<std::vector<float>> data;
    std::vector<ggml_tensor> tensors;
    float wanted = 0;
    for (std::size_t r = 0; r < GetParam(); ++r) {
      const bool computed = r != 1;  // the second has a slice of nothing
      data.emplace_back(static_cast<std::size_t>(64 * rows), static_cast<float>(r + 1));
      if (computed) wanted += static_cast<float>(r + 1);
      tensors.push_back({GGML_TYPE_F32,
                         {64, rows, 1, 1},
                         computed ? GGML_TENSOR_FLAG_COMPUTE : 0,
                         data.back().data(),
                         true});
    }
    ASSERT_TRUE(reduce(tensors));
    for (const auto& vector : data) {
      EXPECT_EQ(vector, std::vector<float>(static_cast<std::size_t>(64 * rows), wanted));
    }
  }
}

TEST_P(Ggml, LeavesAloneWhatItCannotAddUp) {
  std::vector<std::vector<float>> data(GetParam(), std::vector<float>(16, 1));
  const auto refused = [&](const auto& change) {
    std::vector<ggml_tensor> tensors;
    for (auto& vector : data) {
      tensors.push_back(
          {GGML_TYPE_F32, {16, 1, 1, 1}, GGML_TENSOR_FLAG_COMPUTE, vector.data(), true});
    }
    change(tensors.back());
    EXPECT_FALSE(reduce(tensors));
    for (const auto& vector : data) EXPECT_EQ(vector, std::vector<float>(16, 1));
  };
  refused([](ggml_tensor& t) { t.type = GGML_TYPE_Q4_0; });
  refused([](ggml_tensor& t) { t.contiguous = false; });
  refused([](ggml_tensor& t) { t.data = nullptr; });
  if (GetParam() > 1) refused([](ggml_tensor& t) { t.ne[1] = 2; });
}

INSTANTIATE_TEST_SUITE_P(Ranks, Ggml, testing::Values(1, 2, 3, 8));

TEST(GgmlInit, IsNullWhereThereCannotBeOne) {
  EXPECT_EQ(rankine_ggml_comm_init(nullptr, 0), nullptr);
  EXPECT_NE(std::string(rkGetLastError(nullptr)), "");
}

}  // namespace
