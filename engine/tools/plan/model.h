// A transformer as a planner needs it: sizes, and how many parameters they make.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "engine/base/status.h"

namespace rankine::tools {

// A decoder of equal layers: attention, then a feed-forward part, which is `experts` of that size
// where it is a mixture. Matrices only; vectors (norms, biases) are a thousandth and left out, as
// the papers leave them out.
struct Model {
  std::string name = "custom";
  int layers = 0;
  int hidden = 0;
  int heads = 0;
  int kv_heads = 0;  // of keys and values; fewer than heads where several share one
  int feed_forward = 0;
  bool gated = false;  // a third matrix beside up and down (SwiGLU)
  int experts = 0;     // 0: not a mixture
  int top_k = 0;       // experts per token
  int vocabulary = 0;
  bool tied = false;  // output and input share one vocabulary x hidden matrix
  int sequence = 0;   // tokens
  int bytes = 2;      // of a parameter or an activation while it is computed with: 1, 2 or 4

  bool is_mixture() const { return experts > 0; }
  std::int64_t kv_width() const { return std::int64_t{hidden} / heads * kv_heads; }
  int matrices() const { return gated ? 3 : 2; }  // of a feed-forward part

  // Parameters.
  std::int64_t attention() const;  // of a layer
  std::int64_t expert() const;     // one feed-forward part
  std::int64_t router() const;     // of a layer; 0 without experts
  std::int64_t layer() const;      // all of a layer
  std::int64_t embedding() const;  // vocabulary x hidden
  std::int64_t all() const;
  std::int64_t active() const;  // all() with the experts that a token meets only
};

// A shape that has been published, with its source.
struct PublishedModel {
  Model model;
  std::string_view source;
};
std::span<const PublishedModel> published_models();
const PublishedModel* find_published_model(std::string_view name);  // or nullptr

// A published model's name, or a JSON file with members named as the fields above; "preset" begins
// with another. Errors name the member, its value and what is allowed.
Result<Model> find_model(std::string_view argument, const std::string& name_or_path);
Result<Model> parse_model(std::string_view json, std::string_view name);
Status check_model(const Model& model);

}  // namespace rankine::tools
