#include "engine/papers/claim.h"

namespace rankine::claims {

std::span<const Paper> papers() {
  static const Paper kPapers[] = {kLesson, kChapter, kLu, kTraff, kTrivance};
  return kPapers;
}

const Paper* find_paper(std::string_view key) {
  for (const Paper& paper : papers()) {
    if (paper.key == key) return &paper;
  }
  return nullptr;
}

}  // namespace rankine::claims
