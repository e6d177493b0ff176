// distributed_transpose() transposes a matrix that ranks hold by rows, by an all-to-all of tiles.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "engine/api/member.h"

// `mine` has this rank's (rows / ranks) rows of `cols` elements. The result has its (cols / ranks)
// rows of the transposed matrix, of `rows` elements each. The number of ranks must divide rows and
// cols.
template <class T>
std::vector<T> distributed_transpose(rankine::Member& me, std::span<const T> mine, std::size_t rows,
                                     std::size_t cols) {
  const auto ranks = static_cast<std::size_t>(me.ranks());
  const std::size_t height = rows / ranks, width = cols / ranks;  // of a tile
  std::vector<T> tiles(mine.size()), arrived(mine.size()), result(mine.size());
  for (std::size_t to = 0; to < ranks; ++to) {
    for (std::size_t j = 0; j < width; ++j) {
      for (std::size_t i = 0; i < height; ++i) {
        tiles[(to * width + j) * height + i] = mine[i * cols + to * width + j];
      }
    }
  }
  me.all_to_all(std::span<const T>(tiles), std::span<T>(arrived)).throw_if_error();
  for (std::size_t from = 0; from < ranks; ++from) {
    for (std::size_t j = 0; j < width; ++j) {
      for (std::size_t i = 0; i < height; ++i) {
        result[j * rows + from * height + i] = arrived[(from * width + j) * height + i];
      }
    }
  }
  return result;
}
