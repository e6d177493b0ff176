#include "engine/api/mpi/preload_presence.h"

#include <dlfcn.h>
#include <glob.h>
#include <link.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/api/mpi/preload_presence.h"
#include "engine/base/files.h"

namespace rankine::mpi {
namespace {

std::optional<int> number_in(const char* variable) {
  const char* const text = environment_variable(variable);
  if (text == nullptr) return {};
  return std::atoi(text);
}

// --- PMIx: MPI's start exchanges the data that a process puts before it -------------------------

// As in every version of PMIx (pmix_common.h). The definitions are repeated here so that the build
// does not need PMIx.
struct PmixProcess {
  char nspace[256];
  std::uint32_t rank;
};
struct PmixValue {
  std::uint16_t type;
  union {
    bool flag;
    std::uint32_t number;
    void* pointers[3];
  } data;
};
struct PmixInfo {
  char key[512];
  std::uint32_t flags;
  PmixValue value;
};
constexpr std::uint16_t kPmixBool = 1, kPmixUint32 = 14;
constexpr std::uint8_t kPmixGlobal = 3;
constexpr const char* kPmixKey = "rankine";

// Returns the PMIx library that MPI uses or will use. nullptr: none, or a PMIx built into MPI; a
// second client of the same rank would disturb it.
void* pmix_of_mpi() {
  constexpr const char* kName = "libpmix.so.2";
  if (void* const loaded = dlopen(kName, RTLD_NOW | RTLD_NOLOAD)) return loaded;
  Dl_info mpi{};
  if (dladdr(reinterpret_cast<void*>(&PMPI_Init), &mpi) == 0) return nullptr;
  const std::unique_ptr<char, void (*)(void*)> path(realpath(mpi.dli_fname, nullptr), std::free);
  if (path == nullptr) return nullptr;
  // Open MPI 4 loads a separate component for that library, in Debian from a different folder.
  const std::string file = path.get();
  const std::string pattern =
      file.substr(0, file.rfind('/')) + "/{,openmpi/lib/}openmpi*/mca_pmix_ext*.so";
  glob_t found{};
  const bool is_there = glob(pattern.c_str(), GLOB_BRACE, nullptr, &found) == 0;
  globfree(&found);
  return is_there ? dlopen(kName, RTLD_NOW | RTLD_LOCAL) : nullptr;
}

class Pmix {
 public:
  bool announce() {
    library_ = pmix_of_mpi();
    if (library_ == nullptr) return false;
    const auto init = function<int(PmixProcess*, PmixInfo*, std::size_t)>("PMIx_Init");
    const auto put = function<int(std::uint8_t, const char*, PmixValue*)>("PMIx_Put");
    const auto commit = function<int()>("PMIx_Commit");
    get_ = function<Get>("PMIx_Get");
    finalize_ = function<int(const PmixInfo*, std::size_t)>("PMIx_Finalize");
    if (!init || !put || !commit || !get_ || !finalize_ || init(&self_, nullptr, 0) != 0)
      return false;
    PmixValue one{};
    one.type = kPmixUint32;
    one.data.number = 1;
    return put(kPmixGlobal, kPmixKey, &one) == 0 && commit() == 0;
  }
  std::uint32_t rank() const { return self_.rank; }
  bool has_it(int rank) const {
    PmixProcess of = self_;
    of.rank = static_cast<std::uint32_t>(rank);
    // Do not wait: a key that the local server does not have by now was never put.
    PmixInfo at_once{};
    std::snprintf(at_once.key, sizeof(at_once.key), "pmix.immediate");
    at_once.value.type = kPmixBool;
    at_once.value.data.flag = true;
    PmixValue* found = nullptr;
    const int error = get_(&of, kPmixKey, &at_once, 1, &found);
    std::free(found);
    return error == 0;
  }
  void end() {
    if (finalize_ != nullptr) finalize_(nullptr, 0);
  }

 private:
  using Get = int(const PmixProcess*, const char*, const PmixInfo*, std::size_t, PmixValue**);
  template <class Function>
  Function* function(const char* name) const {
    return reinterpret_cast<Function*>(dlsym(library_, name));
  }
  void* library_ = nullptr;
  PmixProcess self_{};
  Get* get_ = nullptr;
  int (*finalize_)(const PmixInfo*, std::size_t) = nullptr;
};

// --- Hydra's PMI: text lines through a descriptor. A published name is visible at once, and cannot
// be published a second time. ---

class Hydra {
 public:
  bool announce() {
    const std::string space = ask("cmd=get_my_kvsname\n");
    const std::size_t at = space.find("kvsname=");
    if (at == std::string::npos) return false;
    prefix_ = space.substr(at + std::strlen("kvsname="));
    prefix_ = prefix_.substr(0, prefix_.find(' ')) + ".rankine.";
    if (!publish(std::to_string(rank_))) return false;
    // The second of two neighbours to arrive reports for both, the second of two pairs for both
    // pairs, and so on. The last process reports that all are present, so no process queries each
    // other process.
    int self = rank_, number = size_, level = 0;
    for (; number > 1; self /= 2, number = (number + 1) / 2, ++level) {
      const bool is_alone = self == number - 1 && number % 2 != 0;
      if (is_alone) continue;
      if (publish("pair." + std::to_string(level) + "." + std::to_string(self / 2))) return true;
    }
    return publish("all");
  }
  int size() const { return size_; }
  int rank() const { return rank_; }
  bool all_have_it() { return is_published("all"); }
  bool has_it(int rank) { return is_published(std::to_string(rank)); }

 private:
  // Returns false if the name is published already, or if the manager does not know the command.
  bool publish(const std::string& name) {
    return ask("cmd=publish_name service=" + prefix_ + name + " port=1\n").find(" rc=0") !=
           std::string::npos;
  }
  bool is_published(const std::string& name) {
    return ask("cmd=lookup_name service=" + prefix_ + name + "\n").find(" rc=0") !=
           std::string::npos;
  }
  // Sends a line and returns the answer line; empty on failure.
  std::string ask(const std::string& line) const {
    for (std::size_t done = 0; done < line.size();) {
      const ssize_t n = write(file_, line.data() + done, line.size() - done);
      if (n < 0 && errno != EINTR) return {};
      if (n > 0) done += static_cast<std::size_t>(n);
    }
    std::string answer;
    for (char c = 0;;) {
      const ssize_t n = read(file_, &c, 1);
      if (n == 0 || (n < 0 && errno != EINTR)) return {};
      if (n < 0) continue;
      if (c == '\n') return answer;
      answer += c;
    }
  }
  const int file_ = number_in("PMI_FD").value_or(-1), rank_ = number_in("PMI_RANK").value_or(0),
            size_ = number_in("PMI_SIZE").value_or(1);
  std::string prefix_;
};

Pmix pmix;
std::optional<Hydra> hydra;

// --- Which MPI ----------------------------------------------------------------------------------

#if defined(OPEN_MPI)
constexpr const char *kLibrary = "librankine_mpi_openmpi.so", *kMpi = "Open MPI";
#elif defined(MPICH_VERSION)
constexpr const char *kLibrary = "librankine_mpi_mpich.so", *kMpi = "MPICH";
#else
constexpr const char *kLibrary = "librankine_mpi_abi.so", *kMpi = "MPIs with the standard ABI";
#endif

// Returns the file names of all loaded MPI libraries.
std::vector<std::string> mpis_that_are_there() {
  std::vector<std::string> names;
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* found) {
        const std::string_view path = info->dlpi_name;
        if (path.substr(path.rfind('/') + 1).starts_with("libmpi"))
          static_cast<std::vector<std::string>*>(found)->emplace_back(path);
        return 0;
      },
      &names);
  return names;
}

// Returns "Open MPI v4.1.4", for example; empty if the file has no such function.
std::string version_of(const std::string& path) {
  void* const file = dlopen(path.c_str(), RTLD_NOW | RTLD_NOLOAD);
  if (file == nullptr) return {};
  using GetVersion = int(char*, int*);
  const auto get = reinterpret_cast<GetVersion*>(dlsym(file, "PMPI_Get_library_version"));
  char text[8192] = "";  // longer than the text of any known MPI
  int length = 0;
  if (get != nullptr) get(text, &length);
  dlclose(file);
  const std::string_view all = text;
  return std::string(all.substr(0, all.find_first_of(",\n")));
}

bool is_right([[maybe_unused]] std::string_view path, [[maybe_unused]] std::string_view version) {
#if defined(OPEN_MPI)
  return version.starts_with("Open MPI");
#elif defined(MPICH_VERSION)
  return !version.starts_with("Open MPI");  // many other MPIs have MPICH's ABI
#else
  // Both MPIs have a second library for the standard ABI.
  return dlsym(RTLD_DEFAULT, "MPI_Abi_get_version") != nullptr;
#endif
}

}  // namespace

void check_which_mpi() {
  for (const std::string& path : mpis_that_are_there()) {
    const std::string version = version_of(path);
    if (version.empty() || is_right(path, version)) continue;
    std::string text = version;
    std::ranges::replace(text, '\t', ' ');
    std::fprintf(stderr,
                 "rankine: %s is for %s, and this program runs on %s (%s); preload the library for "
                 "that MPI, or none\n",
                 kLibrary, kMpi, text.c_str(), path.c_str());
    std::fflush(stderr);
    _exit(2);
  }
}

Presence::Manager Presence::find_manager() {
  // If the user has set one of these variables, MPI's start does not exchange the data.
  const bool hands_round = environment_variable("OMPI_MCA_pmix_base_async_modex") == nullptr &&
                           environment_variable("OMPI_MCA_pmix_base_collect_data") == nullptr;
  if (environment_variable("PMIX_NAMESPACE") != nullptr && hands_round) return Manager::pmix;
  // Only Hydra sets the second variable.
  if (number_in("PMI_FD") && number_in("MPI_LOCALNRANKS")) return Manager::hydra;
  return Manager::unknown;
}

void Presence::announce() {
  if (announced_) return;  // Fortran's function calls C's
  switch (find_manager()) {
    case Manager::pmix:
      announced_ = pmix.announce();
      break;
    case Manager::hydra:
      announced_ = hydra.emplace().announce();
      break;
    case Manager::unknown:
      break;
  }
}

void Presence::look() {
  int is_started = 0;
  PMPI_Initialized(&is_started);
  if (is_started == 0 || !has_it_.empty()) return;
  everywhere_ = true;
  int rank = 0, ranks = 1;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  PMPI_Comm_size(MPI_COMM_WORLD, &ranks);
  has_it_.assign(static_cast<std::size_t>(ranks), true);
  // Ignore the manager if its job does not match the MPI that has started.
  if (announced_ && hydra && hydra->size() == ranks && hydra->rank() == rank) {
    for (int r = 0; r < ranks && !hydra->all_have_it(); ++r)
      has_it_[static_cast<std::size_t>(r)] = hydra->has_it(r);
  }
  if (announced_ && !hydra && ranks > 1 && pmix.rank() == static_cast<std::uint32_t>(rank)) {
    for (int r = 0; r < ranks; ++r) has_it_[static_cast<std::size_t>(r)] = pmix.has_it(r);
  }
  if (announced_ && !hydra) pmix.end();
  everywhere_ = std::ranges::find(has_it_, false) == has_it_.end();
}

bool Presence::all_have_it(MPI_Comm comm) const {
  int is_started = 0;
  PMPI_Initialized(&is_started);
  if (is_started == 0) return false;  // MPI sessions have no MPI_COMM_WORLD
  MPI_Group world = MPI_GROUP_NULL, group = MPI_GROUP_NULL;
  PMPI_Comm_group(MPI_COMM_WORLD, &world);
  PMPI_Comm_group(comm, &group);
  int ranks = 0;
  PMPI_Group_size(group, &ranks);
  std::vector<int> here, there(static_cast<std::size_t>(ranks));
  for (int r = 0; r < ranks; ++r) here.push_back(r);
  PMPI_Group_translate_ranks(group, ranks, here.data(), world, there.data());
  PMPI_Group_free(&world);
  PMPI_Group_free(&group);
  return std::ranges::all_of(there, [this](int r) {
    return r != MPI_UNDEFINED && (everywhere_ || (has_it_.size() > static_cast<std::size_t>(r) &&
                                                  has_it_[static_cast<std::size_t>(r)]));
  });
}

int start_mpi(const std::function<int()>& start) {
  return guarded(MPI_COMM_NULL, [&] {
    check_which_mpi();  // an MPI may have been loaded later, with a Python module for example
    presence().announce();
    const int error = start();
    presence().look();
    return error;
  });
}

Presence& presence() {
  static auto* found = new Presence;  // never destroyed: MPI may end after static objects
  return *found;
}

}  // namespace rankine::mpi

using namespace rankine::mpi;

// Runs before main(). If the program is linked to an MPI, that MPI is loaded already.
[[gnu::constructor]] static void begin() {
  guarded(MPI_COMM_NULL, [] {
    check_which_mpi();
    return MPI_SUCCESS;
  });
}

extern "C" {

int MPI_Init(int* words, char*** texts) {
  return start_mpi([&] { return PMPI_Init(words, texts); });
}

int MPI_Init_thread(int* words, char*** texts, int wanted, int* given) {
  return start_mpi([&] { return PMPI_Init_thread(words, texts, wanted, given); });
}
}
