#include "engine/api/mpi/node_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string>

#include "engine/api/mpi/mpi_error.h"
#include "engine/api/processes/arena.h"
#include "engine/base/splitmix.h"
#include "numa/pages.h"

namespace rankine::mpi {
namespace {

Status of_system(const char* what, int error) {
  return make_error(Code::system, [&] {
    return "memory that the processes of a node share: " + std::string(what) + ": " +
           std::strerror(error);
  });
}

// Mine, or that another process has one.
Status agree(MPI_Comm node, const Status& mine) {
  int good = mine.ok() ? 1 : 0, all = 0;
  if (const int code = MPI_Allreduce(&good, &all, 1, MPI_INT, MPI_MIN, node); code != MPI_SUCCESS)
    return mpi_status("MPI_Allreduce", code);
  if (!mine.ok() || all != 0) return mine;
  return make_error(Code::system, [] {
    return "memory that the processes of a node share: another process of the node has none";
  });
}

}  // namespace

NodeMemory::NodeMemory(std::size_t common, int parts)
    : common_bytes_(whole_pages(common)),
      part_bytes_((kProcessSpan - common_bytes_) / static_cast<std::size_t>(parts) / page_bytes() *
                  page_bytes()),
      taken_(std::make_unique<std::size_t[]>(static_cast<std::size_t>(parts))) {}

NodeMemory::~NodeMemory() {
  if (base_ != nullptr) munmap(base_, kProcessSpan);
}

// The first process makes the file, and the others find it among what it has open.
Status NodeMemory::open(MPI_Comm node) {
  int rank = 0;
  MPI_Comm_rank(node, &rank);
  Status status;
  std::array<std::int64_t, 2> where = {getpid(), -1};
  if (rank == 0) {
    file_ = KeptFile(memfd_create("rankine", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    if (!file_.is_open()) status = of_system("memfd_create", errno);
    if (status.ok() && ftruncate(file_.number(), static_cast<off_t>(kProcessSpan)) != 0)
      status = of_system("ftruncate", errno);
    // From now on nobody can truncate it, which would end the others by SIGBUS.
    if (status.ok() &&
        fcntl(file_.number(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
      status = of_system("F_ADD_SEALS", errno);
    }
    if (status.ok())
      status = take_pages(file_, nullptr, 0, common_bytes_, "words between ranks of a node");
    where[1] = file_.number();
  }
  MPI_Bcast(where.data(), 2, MPI_INT64_T, 0, node);
  if (rank != 0 && where[1] >= 0) {
    const std::string path =
        "/proc/" + std::to_string(where[0]) + "/fd/" + std::to_string(where[1]);
    file_ = KeptFile(::open(path.c_str(), O_RDWR | O_CLOEXEC));
    if (!file_.is_open()) status = of_system(path.c_str(), errno);
  }
  status = agree(node, status);
  if (!status.ok()) return status;
  return map(node, splitmix(static_cast<std::uint64_t>(where[0])));
}

Status NodeMemory::map(MPI_Comm node, std::uint64_t seed) {
  ReservedBases bases;
  const ReservedBases::Set mine = bases.reserve(seed);
  std::array<std::uint64_t, ReservedBases::kBases / 64> words{}, common{};
  for (std::size_t i = 0; i < mine.size(); ++i) {
    words[i / 64] |= std::uint64_t{mine.test(i) ? 1U : 0U} << i % 64;
  }
  const int code = MPI_Allreduce(words.data(), common.data(), static_cast<int>(words.size()),
                                 MPI_UINT64_T, MPI_BAND, node);
  if (code != MPI_SUCCESS) return mpi_status("MPI_Allreduce", code);
  ReservedBases::Set all;
  for (std::size_t i = 0; i < all.size(); ++i) all.set(i, (common[i / 64] >> i % 64 & 1) != 0);
  base_ = bases.map(all, seed, file_.number());
  return agree(node,
               base_ != nullptr ? Status() : of_system("mmap", errno != 0 ? errno : EADDRINUSE));
}

Result<std::shared_ptr<NodeMemory>> NodeMemory::make(MPI_Comm node, std::size_t common, int parts) {
  std::shared_ptr<NodeMemory> made(new NodeMemory(common, parts));
  if (Status status = made->open(node); !status.ok()) return status;
  return made;
}

Result<std::byte*> NodeMemory::part(int which, std::size_t bytes) {
  const auto i = static_cast<std::size_t>(which);
  const std::size_t begin = common_bytes_ + i * part_bytes_;
  if (bytes > part_bytes_) {
    return make_error(Code::out_of_memory, [&] {
      return "a call needs " + std::to_string(bytes) + " bytes of memory that a node shares; a " +
             "rank may have " + std::to_string(part_bytes_);
    });
  }
  if (bytes > taken_[i]) {
    const std::size_t more = whole_pages(bytes - taken_[i]);
    Status status = take_pages(file_, base_ + begin + taken_[i], begin + taken_[i], more, "memory that a node shares");
    if (!status.ok()) return status;
    taken_[i] += more;
  }
  return base_ + begin;
}

}  // namespace rankine::mpi
