#include "engine/api/mpi/preload_backend.h"

#include <chrono>
#include <utility>

#include "engine/api/mpi/member.h"

namespace rankine::mpi {
namespace {

class OverMessages : public Backend {
 public:
  explicit OverMessages(std::unique_ptr<Member> member) : member_(std::move(member)) {}
  Status call(const Call& call) override { return member_->call(call); }
  Status barrier() override { return member_->barrier(); }
  Status can(const Call& call) override { return member_->plan_of(call).status(); }

 private:
  std::unique_ptr<Member> member_;
};

}  // namespace

Result<std::unique_ptr<Backend>> make_backend(MPI_Comm comm) {
  // MPI knows no deadlines: a program may let the others wait as long as it likes.
  auto member = join(comm, {.timeout = std::chrono::milliseconds::max()});
  if (!member.ok()) return member.status();
  return std::unique_ptr<Backend>(std::make_unique<OverMessages>(std::move(*member)));
}

}  // namespace rankine::mpi
