// rankine._engine: librankine.so.1 in Python. One binary serves CPython 3.9 and newer.
//
// Functions of rankine.h appear under their names: handles and addresses are ints, lists and texts
// are bytes, results are returned, and errors are raised (rankine._errors). Calls of collectives
// and messages are methods of Rank, and take buffers.
//
// A call keeps the GIL until it has waited for some microseconds, because taking the GIL back from
// a busy thread takes milliseconds. It releases the GIL first if it may take longer in any case:
// with large buffers, with functions of the caller, or with several ranks in this process.
#define Py_LIMITED_API 0x03090000
#include <Python.h>
#include <dlfcn.h>
#include <structmember.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "engine/api/c/rankine.h"

namespace {

struct Release {
  void operator()(PyObject* object) const noexcept { Py_DECREF(object); }
};
using Ref = std::unique_ptr<PyObject, Release>;

Ref new_ref(PyObject* object) {
  Py_INCREF(object);
  return Ref(object);
}

// --- Errors

// Thrown when a Python exception is set.
struct Raised {};

// Takes ownership of a new object; throws if Python has raised instead.
Ref own(PyObject* object) {
  if (object == nullptr) throw Raised();
  return Ref(object);
}
void check(bool ok) {
  if (!ok) throw Raised();
}

PyObject* errors = nullptr;  // rankine._errors

// Calls a function of rankine._errors.
template <class... Values>
Ref ask(const char* function, const char* format, Values... values) {
  return own(PyObject_CallMethod(errors, function, format, values...));
}

// Raises InvalidArgument. The format is PyUnicode_FromFormat()'s.
[[noreturn]] void refuse(const char* format, ...) {
  va_list values;
  va_start(values, format);
  const Ref text(PyUnicode_FromFormatV(format, values));
  va_end(values);
  if (text != nullptr) ask("refuse", "O", text.get());
  throw Raised();
}

// Takes the exception that is set.
Ref taken_exception() {
  PyObject *kind = nullptr, *value = nullptr, *trace = nullptr;
  PyErr_Fetch(&kind, &value, &trace);
  PyErr_NormalizeException(&kind, &value, &trace);
  if (trace != nullptr) PyException_SetTraceback(value, trace);
  Py_XDECREF(kind);
  Py_XDECREF(trace);
  return Ref(value);
}

template <class Function>
void find(Function& function, const char* name, void* library = RTLD_DEFAULT) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  if (function == nullptr) {
    const char* const owner = library == RTLD_DEFAULT ? "Python" : "PyTorch";
    PyErr_Format(PyExc_ImportError, "this %s has no %s()", owner, name);
  }
  check(function != nullptr);
}

// --- Calls of the engine

class EngineCall;

// The state of a thread.
struct Thread {
  EngineCall* call = nullptr;  // the innermost call under way
  bool listens = false;
  // The open group.
  int depth = 0;
  bool is_small = true;           // all its calls are
  bool is_light = true;           // all its calls may keep the GIL
  PyObject* buffers = nullptr;    // lists
  PyObject* callbacks = nullptr;  // objects with _take_raised()
  PyObject* raised = nullptr;     // by an operator of PyTorch
};
thread_local constinit Thread this_thread;

// Until CPython 3.14, a thread that wants the GIL while the interpreter ends is ended by an
// unwinding that the engine's functions do not permit. As in later versions, the thread stops
// instead.
template <class Take>
auto take_gil(const Take& take) {
  try {
    return take();
  } catch (...) {
    for (;;) pause();
  }
}

// The GIL of a thread that may lack it.
class Gil {
 public:
  Gil() : state_(take_gil([] { return PyGILState_Ensure(); })) {}
  ~Gil() { PyGILState_Release(state_); }
  Gil(const Gil&) = delete;
  Gil& operator=(const Gil&) = delete;

 private:
  const PyGILState_STATE state_;
};

// A call of the engine, from its construction to end().
class EngineCall {
 public:
  explicit EngineCall(bool is_light)
      : thread_(this_thread), outer_(std::exchange(thread_.call, this)) {
    if (!thread_.listens) {
      rkSetInterruptCheck([] {
        EngineCall* const call = this_thread.call;
        return call != nullptr && call->waits() ? 1 : 0;
      });
      thread_.listens = true;
    }
    if (!is_light) gil_ = PyEval_SaveThread();
  }
  // A call of a thread that may lack the GIL, and that Python may not know.
  struct FromAnyThread {};
  explicit EngineCall(FromAnyThread) : EngineCall(true) { is_from_any_thread_ = true; }
  ~EngineCall() {
    if (interrupt_ == nullptr) return;
    const Gil gil;
    interrupt_.reset();
  }
  EngineCall(const EngineCall&) = delete;
  EngineCall& operator=(const EngineCall&) = delete;

  bool end(rkResult_t code) {
    if (gil_ != nullptr) restore_gil();
    thread_.call = outer_;
    code_ = code;
    return code == rkSuccess && interrupt_ == nullptr;
  }
  // Returns None, or raises the error of the call. `callbacks`: a sequence, or nullptr.
  Ref result(PyObject* callbacks = nullptr) const {
    if (code_ == rkSuccess && callbacks == nullptr && interrupt_ == nullptr) [[likely]]
      return new_ref(Py_None);
    return ask("raise_for", "iyOO", static_cast<int>(code_), rkGetLastError(RK_COMM_NULL),
               interrupt_ == nullptr ? Py_None : interrupt_.get(),
               callbacks == nullptr ? Py_None : callbacks);
  }

 private:
  void restore_gil() {
    take_gil([&] { PyEval_RestoreThread(std::exchange(gil_, nullptr)); });
  }
  // Called when the call waits for some microseconds, and then every 50 ms. Returns true if a
  // signal handler has raised; Python runs handlers on the main thread only.
  bool waits() {
    const bool lacks_gil = gil_ != nullptr || is_from_any_thread_;
    if (lacks_gil && syscall(SYS_gettid) != getpid()) return false;
    if (is_from_any_thread_) {
      const Gil gil;
      return has_raised();
    }
    bool raised = false;
    if (lacks_gil) {
      restore_gil();
      raised = has_raised();
    }
    gil_ = PyEval_SaveThread();
    return raised;
  }
  bool has_raised() {
    if (PyErr_CheckSignals() == 0) return false;
    interrupt_ = taken_exception();
    return true;
  }

  Thread& thread_;
  EngineCall* const outer_;
  PyThreadState* gil_ = nullptr;  // nullptr: this thread has the GIL
  rkResult_t code_ = rkSuccess;
  bool is_from_any_thread_ = false;
  Ref interrupt_;
};

// --- Types and operations, by their numbers

struct Type {
  const char* name;
  char kind;  // signed, unsigned, float, Brain float, bool, complex; 0: only by name
  int bytes;
};
// clang-format off
constexpr Type kTypes[] = {
    {"i8", 'i', 1}, {"u8", 'u', 1}, {"i32", 'i', 4}, {"u32", 'u', 4}, {"i64", 'i', 8},
    {"u64", 'u', 8}, {"f16", 'f', 2}, {"f32", 'f', 4}, {"f64", 'f', 8}, {"bf16", 'B', 2},
    {"f8e4m3", 0, 1}, {"f8e5m2", 0, 1}, {"b8", 'b', 1}, {"c64", 'c', 8}, {"c128", 'c', 16}};
// clang-format on
static_assert(std::size(kTypes) == rkNumTypes);
constexpr int kOtherWord = rkNumTypes;  // unsigned integers of 16 bits
constexpr int kNoType = -1;

constexpr const char* kOperations[] = {"sum", "prod", "max", "min", "avg", "band", "bor", "bxor"};
static_assert(std::size(kOperations) == rkNumOps);

PyObject* type_numbers = nullptr;       // {"i8": 0, ...}
PyObject* operation_numbers = nullptr;  // {"sum": 0, ...}

// The number that a table has for a name; -1: none.
int number_of(PyObject* numbers, PyObject* name) {
  PyObject* const number = PyUnicode_Check(name) ? PyDict_GetItem(numbers, name) : nullptr;
  return number == nullptr ? -1 : static_cast<int>(PyLong_AsLong(number));
}

int type_of(char kind, Py_ssize_t bytes) {
  for (int i = 0; i < rkNumTypes; ++i) {
    if (kTypes[i].kind == kind && kTypes[i].bytes == bytes && kind != 0) return i;
  }
  return kind == 'u' && bytes == 2 ? kOtherWord : kNoType;
}

// The type of a format of the struct module (PEP 3118).
int type_of_format(const char* format, Py_ssize_t bytes) {
  if (*format == '@' || *format == '=' || *format == '<') ++format;
  if (std::strcmp(format, "Zf") == 0 || std::strcmp(format, "Zd") == 0) return type_of('c', bytes);
  if (*format == 0 || format[1] != 0) return kNoType;
  if (std::strchr("efd", *format) != nullptr) return type_of('f', bytes);
  if (std::strchr("bhilqn", *format) != nullptr) return type_of('i', bytes);
  if (std::strchr("cBHILQN", *format) != nullptr) return type_of('u', bytes);
  return *format == '?' ? type_of('b', bytes) : kNoType;
}

// --- Buffers

// Py_buffer and its functions are in the limited API from 3.11 on. The struct in the closed
// versions 3.9 and 3.10 is the same; the functions are found by name, so that the binary needs only
// symbols of 3.9's limited API.
struct BufferView {
  void* buf;
  PyObject* obj;
  Py_ssize_t len, itemsize;
  int readonly, ndim;
  const char* format;
  Py_ssize_t *shape, *strides, *suboffsets;
  void* internal;
};
constexpr int kContiguousWithFormat = 0x0004 | 0x0020 | 0x0018;
int (*get_buffer)(PyObject*, BufferView*, int) = nullptr;
void (*release_buffer)(BufferView*) = nullptr;

// Tensors of DLPack, before version 1.0 and since.
struct DlTensor {
  void* data;
  std::int32_t device, device_id, dimensions;
  std::uint8_t code, bits;
  std::uint16_t lanes;
  const std::int64_t *shape, *strides;
  std::uint64_t offset;
};
struct DlVersioned {
  std::uint32_t major, minor;
  void *context, *deleter;
  std::uint64_t flags;
  DlTensor tensor;
};

// A buffer in use, until its destruction: meanwhile its owner cannot resize or free it.
class Buffer {
 public:
  Buffer() = default;
  ~Buffer() {
    if (view_.obj != nullptr) release_buffer(&view_);
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  void take(const char* name, PyObject* value, bool writable) {
    name_ = name;
    if (get_buffer(value, &view_, kContiguousWithFormat) == 0) [[likely]] {
      if (view_.format == nullptr) view_.format = "B";
      natural_ = type_of_format(view_.format, view_.itemsize);
    } else if (PyErr_ExceptionMatches(PyExc_ValueError) ||
               PyErr_ExceptionMatches(PyExc_BufferError)) {
      refuse("%s cannot be used: %S", name, taken_exception().get());
    } else {
      check(PyErr_ExceptionMatches(PyExc_TypeError));
      if (!take_tensor(value) && !take_interface(value)) ask("not_a_buffer", "sO", name, value);
    }
    if (writable && view_.readonly) {
      refuse("%s is read-only; allowed for results are writable buffers", name);
    }
  }

  const char* name() const { return name_; }
  void* address() const { return view_.buf; }
  Py_ssize_t bytes() const { return view_.len; }
  Py_ssize_t item_bytes() const { return view_.itemsize; }
  // The type of the elements; `dtype` gives the meaning of unsigned integer words.
  int type(PyObject* dtype) const {
    if (dtype == Py_None && natural_ != kNoType && natural_ != kOtherWord) [[likely]]
      return natural_;
    if (dtype == Py_None) {
      refuse(
          "%s has elements of format '%s'; allowed are %U (set dtype='bf16' for integer words that "
          "hold bf16)",
          name_, view_.format, ask("listed", "O", type_numbers).get());
    }
    const int wanted = number_of(type_numbers, dtype);
    if (wanted < 0) {
      refuse("dtype is %R; allowed are %U", dtype, ask("listed", "O", type_numbers).get());
    }
    const Type& its = kTypes[wanted];
    if (natural_ != wanted && (natural_ == kNoType || natural_ != type_of('u', its.bytes))) {
      refuse(
          "%s has elements of format '%s'; dtype %s is for arrays of it or of unsigned integers of "
          "%d bytes",
          name_, view_.format, its.name, its.bytes);
    }
    return wanted;
  }

 private:
  void set_elements(int natural, char kind, Py_ssize_t bytes, Py_ssize_t count) {
    natural_ = natural;
    view_.itemsize = bytes;
    view_.len = bytes * count;
    std::snprintf(text_, sizeof text_, "%c%zd", kind, bytes);
    view_.format = text_;
  }

  // Calls __dlpack__(). False: there is no such function.
  bool take_tensor(PyObject* value) {
    PyErr_Clear();
    const Ref exporting(PyObject_GetAttrString(value, "__dlpack__"));
    if (exporting == nullptr) return false;
    owner_ = ask("exported", "O", exporting.get());
    const DlTensor* tensor = nullptr;
    if (PyCapsule_IsValid(owner_.get(), "dltensor_versioned")) {
      const auto* const versioned =
          static_cast<const DlVersioned*>(PyCapsule_GetPointer(owner_.get(), "dltensor_versioned"));
      const auto major = static_cast<int>(versioned->major);
      if (major != 1) refuse("%s has DLPack's version %d; allowed is 1", name_, major);
      view_.readonly = (versioned->flags & 1) != 0;
      tensor = &versioned->tensor;
    } else {
      tensor = static_cast<const DlTensor*>(PyCapsule_GetPointer(owner_.get(), "dltensor"));
      check(tensor != nullptr);
    }
    constexpr int kCpu = 1, kPinned = 3;
    if (tensor->device != kCpu && tensor->device != kPinned) {
      refuse("%s is on DLPack's device %d; allowed is 1, the CPU", name_, int{tensor->device});
    }
    Py_ssize_t count = 1;
    bool is_contiguous = true;
    for (int i = tensor->dimensions; i-- > 0;) {
      const bool fits = tensor->strides == nullptr || tensor->strides[i] == count;
      is_contiguous = is_contiguous && (tensor->shape[i] == 1 || fits);
      count *= tensor->shape[i];
    }
    if (!is_contiguous && count > 0)
      refuse("%s cannot be used: the tensor is not C-contiguous", name_);
    view_.buf = static_cast<std::byte*>(tensor->data) + tensor->offset;
    constexpr char kKinds[] = "iuf?Bcb???EEEE";  // by code; E: 8-bit floats
    const bool is_known = tensor->lanes == 1 && tensor->code < sizeof kKinds - 1;
    const char kind = is_known ? kKinds[tensor->code] : '?';
    constexpr int kFloat8e4m3 = 10, kFloat8e5m2 = 12;
    const int natural = is_known && tensor->code == kFloat8e4m3   ? int{rkFloat8e4m3}
                        : is_known && tensor->code == kFloat8e5m2 ? int{rkFloat8e5m2}
                                                                  : type_of(kind, tensor->bits / 8);
    set_elements(natural, kind, tensor->bits * tensor->lanes / 8, count);
    return true;
  }

  // Reads NumPy's __array_interface__. False: there is none.
  bool take_interface(PyObject* value) {
    PyErr_Clear();
    const Ref interface(PyObject_GetAttrString(value, "__array_interface__"));
    if (interface == nullptr) return PyErr_Clear(), false;
    const Ref items = ask("interface", "sO", name_, interface.get());
    unsigned long long address = 0;
    int kind = 0;
    Py_ssize_t bytes = 0, count = 0;
    check(PyArg_ParseTuple(items.get(), "KpCnn", &address, &view_.readonly, &kind, &bytes, &count));
    view_.buf = reinterpret_cast<void*>(address);
    set_elements(type_of(static_cast<char>(kind), bytes), static_cast<char>(kind), bytes, count);
    owner_ = new_ref(value);
    return true;
  }

  const char* name_ = "";
  BufferView view_{};
  Ref owner_;  // of memory that is not view_'s
  int natural_ = kNoType;
  char text_[16];
};

// A Buffer as an object of Python: rankine._engine.Buffer(name, value, writable).
struct BufferObject {
  PyObject head;
  Buffer buffer;
  Ref name;
};
PyTypeObject* buffer_type = nullptr;

Buffer& buffer_of(PyObject* self) { return reinterpret_cast<BufferObject*>(self)->buffer; }

PyObject* make_buffer(PyTypeObject* type, PyObject*, PyObject*) {
  PyObject* const self = PyType_GenericAlloc(type, 0);
  if (self == nullptr) return nullptr;
  auto* const object = reinterpret_cast<BufferObject*>(self);
  new (&object->buffer) Buffer;
  new (&object->name) Ref;
  return self;
}
void free_buffer(PyObject* self) {
  auto* const object = reinterpret_cast<BufferObject*>(self);
  PyTypeObject* const type = Py_TYPE(self);
  object->name.~Ref();
  object->buffer.~Buffer();
  reinterpret_cast<freefunc>(PyType_GetSlot(type, Py_tp_free))(self);
  Py_DECREF(type);
}
int init_buffer(PyObject* self, PyObject* args, PyObject*) try {
  const char* name = nullptr;
  PyObject *text = nullptr, *value = nullptr;
  int writable = 0;
  check(PyArg_ParseTuple(args, "OOp", &text, &value, &writable) && PyArg_Parse(text, "s", &name));
  reinterpret_cast<BufferObject*>(self)->name = new_ref(text);
  buffer_of(self).take(name, value, writable != 0);
  return 0;
} catch (const Raised&) {
  return -1;
}
PyObject* type_of_buffer(PyObject* self, PyObject* dtype) try {
  return PyLong_FromLong(buffer_of(self).type(dtype));
} catch (const Raised&) {
  return nullptr;
}

template <auto field>
PyObject* read_buffer(PyObject* self, void*) {
  return PyLong_FromSize_t((size_t)(buffer_of(self).*field)());
}

PyMethodDef buffer_methods[] = {{"type", type_of_buffer, METH_O, nullptr}, {}};
PyGetSetDef buffer_fields[] = {
    {"address", read_buffer<&Buffer::address>, nullptr, nullptr, nullptr},
    {"bytes", read_buffer<&Buffer::bytes>, nullptr, nullptr, nullptr},
    {"item_bytes", read_buffer<&Buffer::item_bytes>, nullptr, nullptr, nullptr},
    {}};
PyType_Slot buffer_slots[] = {{Py_tp_new, reinterpret_cast<void*>(make_buffer)},
                              {Py_tp_init, reinterpret_cast<void*>(init_buffer)},
                              {Py_tp_dealloc, reinterpret_cast<void*>(free_buffer)},
                              {Py_tp_methods, buffer_methods},
                              {Py_tp_getset, buffer_fields},
                              {0, nullptr}};
PyType_Spec buffer_spec = {"rankine._engine.Buffer", sizeof(BufferObject), 0, Py_TPFLAGS_DEFAULT,
                           buffer_slots};

// A buffer of one call: on the stack, or in a group an object that the group keeps.
class CallBuffer {
 public:
  void take(const char* name, PyObject* value, bool writable) {
    if (this_thread.depth > 0) {
      object_ = own(make_buffer(buffer_type, nullptr, nullptr));
      buffer_ = &buffer_of(object_.get());
    } else {
      buffer_ = &local_;
    }
    buffer_->take(name, value, writable);
  }
  // For the open group.
  void keep() const {
    check(object_ == nullptr || PyList_Append(this_thread.buffers, object_.get()) == 0);
  }
  Py_ssize_t bytes() const { return buffer_ == nullptr ? 0 : buffer_->bytes(); }
  void* address() const { return buffer_ == nullptr ? nullptr : buffer_->address(); }
  const Buffer* operator->() const { return buffer_; }

 private:
  Buffer local_;
  Ref object_;
  Buffer* buffer_ = nullptr;  // nullptr: none
};

// --- Ranks

// The base of rankine.Member.
struct Rank {
  PyObject head;
  rkComm_t comm;  // NULL: closed
  int rank, ranks;
  char is_alone;  // no other thread of this process plays a rank of its communicator
};

// A larger call takes longer than some microseconds even if it does not wait.
constexpr Py_ssize_t kSmallBytes = 32 << 10;

// Reads a whole number of 32 bits.
int read_int(const char* name, PyObject* value) {
  int overflow = PyLong_CheckExact(value) ? 0 : 1;
  const long number = overflow == 0 ? PyLong_AsLongAndOverflow(value, &overflow) : 0;
  if (overflow == 0 && number == static_cast<int>(number)) [[likely]]
    return static_cast<int>(number);
  return static_cast<int>(PyLong_AsLong(ask("whole", "sO", name, value).get()));
}

// Runs `run` as a call of a rank on `buffers`. In a group the call is collected.
template <class Run>
Ref run_call(const Rank& me, std::initializer_list<const CallBuffer*> buffers, PyObject* callbacks,
             const Run& run) {
  Py_ssize_t bytes = 0;
  for (const CallBuffer* one : buffers) bytes += one->bytes();
  const bool is_small = bytes <= kSmallBytes && callbacks == nullptr;
  const bool is_light = is_small && me.is_alone;
  Thread& thread = this_thread;
  const bool collects = thread.depth > 0;
  EngineCall call(is_light || collects);
  if (!call.end(run()) || !collects) return call.result(callbacks);
  thread.is_small = thread.is_small && is_small;
  thread.is_light = thread.is_light && is_light;
  for (const CallBuffer* one : buffers) one->keep();
  for (Py_ssize_t i = 0; callbacks != nullptr && i < PyTuple_Size(callbacks); ++i) {
    check(PyList_Append(thread.callbacks, PyTuple_GetItem(callbacks, i)) == 0);
  }
  return new_ref(Py_None);
}

// clang-format off
enum class Kind {
  all_reduce, reduce, reduce_scatter, all_gather, gather, scatter, scan, exscan, all_to_all
};
// clang-format on
struct Shape {
  bool reduces, is_rooted, may_be_in_place;
  bool all_in, all_out;  // a block per rank; else one block
};
constexpr Shape kShapes[] = {
    {true, false, true, false, false},   // all_reduce
    {true, true, true, false, false},    // reduce
    {true, false, false, true, false},   // reduce_scatter
    {false, false, false, false, true},  // all_gather
    {false, true, false, false, true},   // gather
    {false, true, false, true, false},   // scatter
    {true, false, true, false, false},   // scan
    {true, false, true, false, false},   // exscan
    {false, false, true, true, true},    // all_to_all
};

// The arguments of a collective call.
class Collective {
 public:
  // Arguments: x, out, op, dtype, root, counts, epilogue.
  Collective(Rank& me, Kind kind, PyObject* const* args)
      : me_(me), kind_(kind), shape_(kShapes[static_cast<int>(kind)]) {
    if (shape_.is_rooted) root_ = read_int("root", args[4]);
    take_buffers(args[0], args[1]);
    if (args[5] != Py_None) take_counts(args[5]);
    if (args[6] != Py_None) take_epilogue(args[6]);
    take_operation(args[2], args[3]);
    find_unit();
  }
  ~Collective() {
    if (is_temporary_) rkRedOpDestroy(static_cast<rkRedOp_t>(op_), me_.comm);
  }
  Collective(const Collective&) = delete;
  Collective& operator=(const Collective&) = delete;

  Ref run() const {
    return run_call(me_, {&x_, &out_}, callbacks_.get(), [&] { return call(); });
  }

 private:
  PyObject* self() const { return reinterpret_cast<PyObject*>(&me_); }
  const std::size_t* counts() const {
    return reinterpret_cast<const std::size_t*>(PyBytes_AsString(counts_.get()));
  }
  void add_callback(PyObject* callback) {
    own(PyObject_CallMethod(callback, "_take_raised", nullptr));
    const Ref before = callbacks_ == nullptr ? own(PyTuple_New(0)) : std::move(callbacks_);
    const Ref one = own(PyTuple_Pack(1, callback));
    callbacks_ = own(PySequence_Concat(before.get(), one.get()));
  }
  void take_buffers(PyObject* x, PyObject* out) {
    const bool is_root = !shape_.is_rooted || me_.rank == root_;
    const bool has_out = is_root || kind_ == Kind::scatter;
    const bool in_place = has_out && shape_.may_be_in_place && out == Py_None;
    if (is_root || kind_ != Kind::scatter) {
      x_.take("x", x, in_place);
      data_ = &x_;
    }
    if (in_place) {
      result_ = data_;
    } else if (has_out) {
      out_.take("out", out, true);
      result_ = &out_;
    }
  }
  void take_counts(PyObject* counts) {
    const bool is_pairs = kind_ == Kind::all_to_all;
    if (is_pairs && result_ == data_) {
      refuse("out is None; allowed with counts is a separate buffer");
    }
    counts_ = ask("counts", "Oi", counts, is_pairs ? me_.ranks * me_.ranks : me_.ranks);
  }
  void take_epilogue(PyObject* epilogue) {
    if (counts_ != nullptr) {
      refuse("counts are given; allowed with an epilogue are blocks of one size, without counts");
    }
    const Ref handle =
        own(PyObject_CallMethod(self(), "_handle_of", "On", epilogue, result_->bytes()));
    epilogue_ = static_cast<rkEpilogue_t>(PyLong_AsVoidPtr(handle.get()));
    add_callback(epilogue);
  }
  void take_type(PyObject* dtype) {
    const CallBuffer& one = data_ != nullptr ? *data_ : *result_;
    const CallBuffer& other = result_ != nullptr ? *result_ : *data_;
    type_ = one->type(dtype);
    element_bytes_ = one->item_bytes();
    if (&one == &other) return;
    const int its = other->type(dtype);
    if (its == type_) return;
    refuse("%s has elements of %s; allowed is %s, as in %s", other->name(), kTypes[its].name,
           kTypes[type_].name, one->name());
  }
  void take_operation(PyObject* op, PyObject* dtype) {
    op_ = shape_.reduces ? number_of(operation_numbers, op) : 0;
    if (op_ >= 0) [[likely]]
      return take_type(dtype);
    const Ref element(PyObject_GetAttrString(op, "element_bytes"));  // an Operation
    PyErr_Clear();
    if (element != nullptr) {
      type_ = rkOpaque;
      element_bytes_ = PyLong_AsSsize_t(element.get());
      op_ = read_int("op", own(PyObject_CallMethod(self(), "_created", "O", op)).get());
      return add_callback(op);
    }
    take_type(dtype);
    op_ = read_int("op", own(PyObject_CallMethod(self(), "_multiplied", "Oi", op, type_)).get());
    is_temporary_ = true;
  }
  void check_size(const CallBuffer* buffer, Py_ssize_t needs) const {
    if (buffer == nullptr || buffer->bytes() / element_bytes_ == needs) [[likely]]
      return;
    refuse("%s has %zd elements; allowed are %zd, by the other buffer and the ranks",
           (*buffer)->name(), buffer->bytes() / element_bytes_, needs);
  }
  void find_unit() {
    for (const CallBuffer* buffer : {data_, result_}) {
      if (buffer == nullptr || buffer->bytes() % element_bytes_ == 0) [[likely]]
        continue;
      refuse("%s has %zd bytes; allowed are multiples of %zd, an element", (*buffer)->name(),
             buffer->bytes(), element_bytes_);
    }
    const auto n = static_cast<std::size_t>(me_.ranks), self = static_cast<std::size_t>(me_.rank);
    if (counts_ != nullptr) {
      const bool is_pairs = kind_ == Kind::all_to_all;
      std::size_t row = 0, column = 0;
      for (std::size_t i = 0; i < n; ++i) {
        row += counts()[is_pairs ? self * n + i : i];
        column += is_pairs ? counts()[i * n + self] : 0;
      }
      const std::size_t one = is_pairs ? column : counts()[self];
      check_size(data_, static_cast<Py_ssize_t>(shape_.all_in ? row : one));
      return check_size(result_, static_cast<Py_ssize_t>(shape_.all_in ? one : row));
    }
    // The buffer that is a single block, if present, determines the size of a block.
    const Py_ssize_t in = shape_.all_in ? me_.ranks : 1, out = shape_.all_out ? me_.ranks : 1;
    const bool in_leads = data_ != nullptr && (in == 1 || result_ == nullptr);
    const CallBuffer& leader = in_leads ? *data_ : *result_;
    const Py_ssize_t unit = leader.bytes() / element_bytes_ / (in_leads ? in : out);
    check_size(data_, unit * in);
    check_size(result_, unit * out);
    unit_ = static_cast<std::size_t>(unit);
  }
  rkResult_t call() const {
    const void* const in = data_ == nullptr ? nullptr : data_->address();
    void* const out = result_ == nullptr ? nullptr : result_->address();
    const auto type = static_cast<rkDataType_t>(type_);
    const auto op = static_cast<rkRedOp_t>(op_);
    const std::size_t n = unit_;
    rkComm_t const comm = me_.comm;
    if (counts_ != nullptr) {
      const std::size_t* const list = counts();
      if (kind_ == Kind::reduce_scatter) {
        return rkReduceScatterCounts(in, out, list, type, op, comm);
      }
      if (kind_ == Kind::all_gather) return rkAllGatherCounts(in, out, list, type, comm);
      if (kind_ == Kind::gather) return rkGatherCounts(in, out, list, type, root_, comm);
      if (kind_ == Kind::scatter) return rkScatterCounts(in, out, list, type, root_, comm);
      return rkAllToAllCounts(in, out, list, type, comm);
    }
    if (epilogue_ != nullptr) {
      if (kind_ == Kind::all_reduce) return rkAllReduceThen(in, out, n, type, op, epilogue_, comm);
      if (kind_ == Kind::all_gather) return rkAllGatherThen(in, out, n, type, epilogue_, comm);
      return rkReduceScatterThen(in, out, n, type, op, epilogue_, comm);
    }
    if (kind_ == Kind::all_reduce) return rkAllReduce(in, out, n, type, op, comm);
    if (kind_ == Kind::reduce) return rkReduce(in, out, n, type, op, root_, comm);
    if (kind_ == Kind::reduce_scatter) return rkReduceScatter(in, out, n, type, op, comm);
    if (kind_ == Kind::all_gather) return rkAllGather(in, out, n, type, comm);
    if (kind_ == Kind::gather) return rkGather(in, out, n, type, root_, comm);
    if (kind_ == Kind::scatter) return rkScatter(in, out, n, type, root_, comm);
    if (kind_ == Kind::scan) return rkScan(in, out, n, type, op, comm);
    if (kind_ == Kind::exscan) return rkExscan(in, out, n, type, op, comm);
    return rkAllToAll(in, out, n, type, comm);
  }

  Rank& me_;
  const Kind kind_;
  const Shape& shape_;
  CallBuffer x_, out_;
  const CallBuffer* data_ = nullptr;    // nullptr: this rank has no input
  const CallBuffer* result_ = nullptr;  // nullptr: no output
  int type_ = kNoType, op_ = 0, root_ = 0;
  Py_ssize_t element_bytes_ = 0;
  std::size_t unit_ = 0;  // elements of a block
  Ref counts_;            // bytes of size_ts
  rkEpilogue_t epilogue_ = nullptr;
  Ref callbacks_;              // a tuple
  bool is_temporary_ = false;  // op_ is destroyed after the call
};

template <Kind kind>
Ref collective(Rank& me, PyObject* const* args) {
  return Collective(me, kind, args).run();
}

struct Name {
  const char *buffer, *peer;
};
constexpr Name kBroadcast = {"x", "root"}, kSend = {"x", "to"}, kRecv = {"out", "source"};

// Arguments: the buffer, the root or the other rank, dtype.
template <auto function, const Name& name>
Ref message(Rank& me, PyObject* const* args) {
  CallBuffer buffer;
  buffer.take(name.buffer, args[0], &name != &kSend);
  const auto type = static_cast<rkDataType_t>(buffer->type(args[2]));
  const int peer = read_int(name.peer, args[1]);
  const auto count = static_cast<std::size_t>(buffer.bytes() / buffer->item_bytes());
  return run_call(me, {&buffer}, nullptr,
                  [&] { return function(buffer.address(), count, type, peer, me.comm); });
}

Ref barrier(Rank& me, PyObject* const*) {
  return run_call(me, {}, nullptr, [&] { return rkBarrier(me.comm); });
}

// CPython 3.9 has this calling convention, but its limited API does not name it yet.
constexpr int kFastCall = 0x0080;
using FastCall = PyObject* (*)(PyObject*, PyObject* const*, Py_ssize_t);

PyMethodDef method(const char* name, FastCall function) {
  return {name, reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function)), kFastCall,
          nullptr};
}

void check_count(Py_ssize_t given, Py_ssize_t needed) {
  if (given == needed) return;
  PyErr_Format(PyExc_TypeError, "%zd arguments are given; allowed are %zd", given, needed);
  throw Raised();
}

template <Ref (*call)(Rank&, PyObject* const*), Py_ssize_t arguments>
PyObject* of_rank(PyObject* self, PyObject* const* args, Py_ssize_t n) try {
  check_count(n, arguments);
  Rank& me = *reinterpret_cast<Rank*>(self);
  if (me.comm == nullptr) own(PyObject_GetAttrString(self, "_handle"));  // raises
  return call(me, args).release();
} catch (const Raised&) {
  return nullptr;
}

PyMethodDef rank_methods[] = {
    method("_all_reduce", of_rank<collective<Kind::all_reduce>, 7>),
    method("_reduce", of_rank<collective<Kind::reduce>, 7>),
    method("_reduce_scatter", of_rank<collective<Kind::reduce_scatter>, 7>),
    method("_all_gather", of_rank<collective<Kind::all_gather>, 7>),
    method("_gather", of_rank<collective<Kind::gather>, 7>),
    method("_scatter", of_rank<collective<Kind::scatter>, 7>),
    method("_scan", of_rank<collective<Kind::scan>, 7>),
    method("_exscan", of_rank<collective<Kind::exscan>, 7>),
    method("_all_to_all", of_rank<collective<Kind::all_to_all>, 7>),
    method("_broadcast", of_rank<message<rkBcast, kBroadcast>, 3>),
    method("_send", of_rank<message<rkSend, kSend>, 3>),
    method("_recv", of_rank<message<rkRecv, kRecv>, 3>),
    method("_barrier", of_rank<barrier, 0>),
    {}};
PyMemberDef rank_members[] = {{"_rank", T_INT, offsetof(Rank, rank), 0, nullptr},
                              {"_ranks", T_INT, offsetof(Rank, ranks), 0, nullptr},
                              {"_is_alone", T_BOOL, offsetof(Rank, is_alone), 0, nullptr},
                              {}};
PyObject* get_comm(PyObject* self, void*) {
  void* const comm = reinterpret_cast<Rank*>(self)->comm;
  return comm == nullptr ? new_ref(Py_None).release() : PyLong_FromVoidPtr(comm);
}
int set_comm(PyObject* self, PyObject* comm, void*) {
  void* const handle = comm == Py_None ? nullptr : PyLong_AsVoidPtr(comm);
  reinterpret_cast<Rank*>(self)->comm = static_cast<rkComm_t>(handle);
  return PyErr_Occurred() == nullptr ? 0 : -1;
}
PyGetSetDef rank_fields[] = {{"_comm", get_comm, set_comm, nullptr, nullptr}, {}};
PyType_Slot rank_slots[] = {{Py_tp_methods, rank_methods},
                            {Py_tp_members, rank_members},
                            {Py_tp_getset, rank_fields},
                            {0, nullptr}};
PyType_Spec rank_spec = {"rankine._engine.Rank", sizeof(Rank), 0,
                         Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, rank_slots};

// --- Functions, their arguments and results

// Numbers in bytes.
template <class Number>
struct List {
  const Number* first = nullptr;
  int count = 0;
};

// True for a pointer to a place for a result.
template <class T>
constexpr bool is_result = false;
template <class T>
constexpr bool is_result<T*> =
    !std::is_const_v<T> && !std::is_same_v<T, PyObject> &&
    (std::is_arithmetic_v<T> || std::is_enum_v<T> || std::is_pointer_v<T>);

// An argument. A pointer is given as an int, None or bytes.
template <class T>
struct Argument {
  explicit Argument(PyObject* const*& next) {
    PyObject* const object = *next++;
    if constexpr (std::is_same_v<T, PyObject*>) {
      value = object;
    } else if constexpr (std::is_pointer_v<T>) {
      if (object == Py_None) return;
      void* const pointer =
          PyBytes_Check(object) ? PyBytes_AsString(object) : PyLong_AsVoidPtr(object);
      value = static_cast<T>(pointer);
    } else if constexpr (std::is_floating_point_v<T>) {
      value = static_cast<T>(PyFloat_AsDouble(object));
    } else if constexpr (std::is_same_v<T, std::uint64_t>) {
      value = PyLong_AsUnsignedLongLong(object);
    } else if constexpr (std::is_class_v<T>) {
      value.first = reinterpret_cast<decltype(value.first)>(PyBytes_AsString(object));
      value.count =
          static_cast<int>(static_cast<std::size_t>(PyBytes_Size(object)) / sizeof *value.first);
    } else {
      value = static_cast<T>(PyLong_AsLongLong(object));
    }
    check(PyErr_Occurred() == nullptr);
  }
  T pass() { return value; }

  T value{};
};
// A result.
template <class T>
requires is_result<T>
struct Argument<T> {
  using Value = std::remove_pointer_t<T>;
  explicit Argument(PyObject* const*&) {}
  T pass() { return &value; }
  Ref result() const {
    if constexpr (std::is_same_v<Value, const char*>) {
      return own(PyUnicode_FromString(value));
    } else if constexpr (std::is_pointer_v<Value>) {
      if (value == nullptr) return new_ref(Py_None);
      return own(PyLong_FromVoidPtr(const_cast<void*>(static_cast<const void*>(value))));
    } else if constexpr (std::is_floating_point_v<Value>) {
      return own(PyFloat_FromDouble(value));
    } else {
      return own(PyLong_FromLongLong(static_cast<long long>(value)));
    }
  }

  Value value{};
};
template <class... T>
constexpr Py_ssize_t kTaken = (0 + ... + (is_result<T> ? 0 : 1));

// Calls a function of rankine.h. A further argument is the sequence of callbacks of the call.
template <bool is_light, class... P>
Ref call_with(rkResult_t (*function)(P...) noexcept, PyObject* const* args, Py_ssize_t n) {
  const bool has_callbacks = n == kTaken<P...> + 1;
  check_count(has_callbacks ? n - 1 : n, kTaken<P...>);
  std::tuple<Argument<P>...> arguments{Argument<P>(args)...};
  EngineCall call(is_light);
  std::apply([&](auto&... each) { call.end(function(each.pass()...)); }, arguments);
  Ref result = call.result(has_callbacks && PyObject_Size(*args) > 0 ? *args : nullptr);
  if constexpr (kTaken<P...> == sizeof...(P)) return result;
  std::vector<Ref> results;
  std::apply(
      [&](auto&... each) {
        const auto add = [&](auto& one) {
          if constexpr (requires { one.result(); }) results.push_back(one.result());
        };
        (add(each), ...);
      },
      arguments);
  if (results.size() == 1) return std::move(results[0]);
  return own(Py_BuildValue("OO", results[0].get(), results[1].get()));
}

// Calls a function of this file.
template <bool, class... P>
Ref call_with(Ref (*function)(P...), [[maybe_unused]] PyObject* const* args, Py_ssize_t n) {
  check_count(n, sizeof...(P));
  std::tuple<Argument<P>...> arguments{Argument<P>(args)...};
  return std::apply([&](auto&... each) { return function(each.value...); }, arguments);
}

template <auto function, bool is_light = false>
PyObject* wrapped(PyObject*, PyObject* const* args, Py_ssize_t n) try {
  return call_with<is_light>(function, args, n).release();
} catch (const Raised&) {
  return nullptr;
}

// As wrapped(), for a call of this process's only rank on addresses. The last argument is the
// number of bytes of its larger buffer. In a group the call is collected.
template <auto function>
PyObject* on_bytes(PyObject*, PyObject* const* args, Py_ssize_t n) try {
  const Py_ssize_t bytes = n == 0 ? 0 : PyLong_AsSsize_t(args[n - 1]);
  check(PyErr_Occurred() == nullptr);
  Thread& thread = this_thread;
  const bool is_light = bytes <= kSmallBytes;
  thread.is_small = thread.is_small && is_light;
  thread.is_light = thread.is_light && is_light;
  if (is_light || thread.depth > 0) return call_with<true>(function, args, n - 1).release();
  return call_with<false>(function, args, n - 1).release();
} catch (const Raised&) {
  return nullptr;
}

// The handles of all ranks as threads, or with a name those of the ranks `here` of this process, or
// the one into which `smaller` grows.
Ref make_ranks(rkComm_t smaller, int ranks, const char* name, List<int> here, std::int64_t timeout,
               const char* wait, const char* network, List<int> nodes, List<int> levels, int tuned,
               int record_times, std::size_t plan_bytes, const char* order, int progress_core,
               const char* placement, int ports) {
  const rkConfig_t config = {sizeof config,
                             timeout,
                             wait,
                             network,
                             nodes.count > 0 ? nodes.first : nullptr,
                             levels.first,
                             levels.count,
                             tuned,
                             record_times,
                             plan_bytes,
                             order,
                             progress_core,
                             placement,
                             ports};
  std::vector<rkComm_t> comms(static_cast<std::size_t>(name == nullptr ? ranks : here.count));
  EngineCall call(false);
  call.end([&] {
    if (name == nullptr) return rkCommInitAllConfig(comms.data(), ranks, &config);
    rkUniqueId id;
    const rkResult_t code = rkGetUniqueIdByName(&id, name);
    if (code != rkSuccess) return code;
    if (smaller != nullptr) return rkCommGrow(smaller, ranks, id, &config, comms.data());
    // Outside of a group it also pins this thread.
    if (here.count == 1) return rkCommInitRankConfig(comms.data(), ranks, id, *here.first, &config);
    rkGroupStart();
    for (std::size_t i = 0; i < comms.size(); ++i) {  // the group's end reports errors
      rkCommInitRankConfig(&comms[i], ranks, id, here.first[i], &config);
    }
    return rkGroupEnd();
  }());
  call.result();
  Ref handles = own(PyList_New(0));
  for (rkComm_t const comm : comms) {
    check(PyList_Append(handles.get(), own(PyLong_FromVoidPtr(comm)).get()) == 0);
  }
  return handles;
}

Ref set_options(rkComm_t comm, const char* algorithm, const char* transport, std::int64_t timeout,
                int segments, int group, int aggregation, int radix, List<int> dims,
                List<int> skips, List<int> levels, std::uint64_t tag, const char* order) {
  const rkCallOptions_t options = {sizeof options,
                                   algorithm,
                                   transport,
                                   timeout,
                                   segments,
                                   group,
                                   aggregation,
                                   dims.first,
                                   dims.count,
                                   skips.first,
                                   skips.count,
                                   levels.first,
                                   levels.count,
                                   tag,
                                   order,
                                   radix,
                                   0};
  EngineCall call(false);
  call.end(rkCommSetCallOptions(comm, &options));
  return call.result();
}

Ref flight_record(rkComm_t comm) {
  std::vector<char> text(4096);
  for (;;) {
    std::size_t needed = 0;
    EngineCall call(false);
    call.end(rkCommFlightRecord(comm, text.data(), text.size(), &needed));
    call.result();
    if (needed <= text.size()) return own(PyUnicode_FromString(text.data()));
    text.resize(needed);  // the text may have grown meanwhile
  }
}

// A memoryview.
Ref memory(void* address, Py_ssize_t bytes) {
  constexpr int kWritable = 0x200;
  return own(PyMemoryView_FromMemory(static_cast<char*>(address), bytes, kWritable));
}

// --- Functions of the caller

// Calls a function with numbers, from a thread that may lack the GIL. The function returns a
// rkRedFunction_t's or rkRowFunction_t's result, and keeps its exceptions.
int call_back(void* function, std::size_t a, std::size_t b, std::size_t c) {
  const Gil gil;
  const Ref result(PyObject_CallFunction(static_cast<PyObject*>(function), "nnn", a, b, c));
  if (result == nullptr) PyErr_WriteUnraisable(static_cast<PyObject*>(function));
  return result != nullptr && PyLong_AsLong(result.get()) == 0 ? 0 : 1;
}

std::size_t as_number(const void* address) { return reinterpret_cast<std::size_t>(address); }

// Ranks compare the addresses of their functions, so each of this many operations has its own.
constexpr std::size_t kReductions = 256;

template <std::size_t i>
int reduce_by(const void* in, void* inout, std::size_t count, void* function) {
  asm volatile("" ::"i"(i));  // equal functions could be merged
  return call_back(function, as_number(in), as_number(inout), count);
}
template <std::size_t... i>
constexpr std::array<rkRedFunction_t, sizeof...(i)> reductions(std::index_sequence<i...>) {
  return {reduce_by<i>...};
}

Ref create_operation(rkComm_t comm, PyObject* function, std::size_t number,
                     std::size_t element_bytes, int commutative) {
  static constexpr auto kFunctions = reductions(std::make_index_sequence<kReductions>());
  rkRedOp_t op{};
  EngineCall call(true);
  call.end(rkRedOpCreate(&op, kFunctions[number % kReductions], element_bytes, commutative,
                         function, comm));
  call.result();
  return own(PyLong_FromLong(op));
}

Ref create_epilogue(rkDataType_t type, std::size_t row_elements, const void* bias, void* residual,
                    rkNorm_t norm, const void* weight, const void* shift, float epsilon,
                    rkActivation_t activation, rkDataType_t out_type, void* out, void* scales) {
  const rkRowSteps_t steps = {sizeof steps,
                              type,
                              row_elements,
                              bias,
                              residual,
                              norm,
                              weight,
                              shift,
                              epsilon,
                              activation,
                              out_type,
                              out,
                              static_cast<float*>(scales)};
  rkEpilogue_t epilogue = nullptr;
  EngineCall call(true);
  call.end(rkEpilogueCreate(&epilogue, &steps));
  call.result();
  return own(PyLong_FromVoidPtr(epilogue));
}

Ref create_row_function(std::size_t row_elements, PyObject* function) {
  const auto run = [](const void* rows, std::size_t first, std::size_t count, void* called) {
    return call_back(called, as_number(rows), first, count);
  };
  rkEpilogue_t epilogue = nullptr;
  EngineCall call(true);
  call.end(rkEpilogueCreateFunction(&epilogue, row_elements, run, function));
  call.result();
  return own(PyLong_FromVoidPtr(epilogue));
}

// --- Groups

Ref is_in_group() { return own(PyBool_FromLong(this_thread.depth > 0)); }

// Keeps buffers for the open group, if there is one.
Ref keep(PyObject* buffers) {
  if (this_thread.depth == 0) return new_ref(Py_None);
  return own(PyObject_CallMethod(this_thread.buffers, "extend", "O", buffers));
}

Ref group_start() {
  Thread& thread = this_thread;
  if (thread.depth == 0) {
    thread.buffers = own(PyList_New(0)).release();
    thread.callbacks = own(PyList_New(0)).release();
    thread.is_small = thread.is_light = true;
  }
  ++thread.depth;
  rkGroupStart();
  return new_ref(Py_None);
}

// The buffers and callbacks of the group that has ended.
std::pair<Ref, Ref> taken_group() {
  Thread& thread = this_thread;
  thread.depth = 0;
  return {Ref(std::exchange(thread.buffers, nullptr)),
          Ref(std::exchange(thread.callbacks, nullptr))};
}

// Makes the calls of the group, or drops them.
Ref group_end(int drops) {
  Thread& thread = this_thread;
  if (drops != 0) rkBarrier(nullptr);  // an invalid call: rkGroupEnd() then makes none
  EngineCall call(thread.depth > 1 || thread.is_light);
  call.end(rkGroupEnd());
  if (--thread.depth > 0) return new_ref(Py_None);
  const auto [buffers, callbacks] = taken_group();
  if (drops != 0) return new_ref(Py_None);
  return call.result(PyList_Size(callbacks.get()) == 0 ? nullptr : callbacks.get());
}

// Runs `called` in a group and ends the group by a request. Returns the request, the buffers and
// callbacks of its calls, and whether a start and a wait may keep the GIL: a start never waits.
Ref collect(int is_prepared, PyObject* called, PyObject* arguments, PyObject* options) {
  Thread& thread = this_thread;
  if (thread.depth > 0)
    ask("fail", "is", int{rkInvalidUsage}, "a group is open; start calls outside of groups");
  group_start();
  rkRequest_t request = nullptr;
  try {
    own(PyObject_Call(called, arguments, options));
    EngineCall call(thread.is_light);
    call.end(is_prepared != 0 ? rkGroupEndPrepare(&request) : rkGroupEndAsync(&request));
    call.result();
  } catch (const Raised&) {
    const Ref error = taken_exception();  // before the group's objects are released
    rkBarrier(nullptr);                   // if the group is still open, it makes no calls
    rkGroupEnd();
    taken_group();
    PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(error.get())), error.get());
    throw;
  }
  const auto [buffers, callbacks] = taken_group();
  const auto truth = [](bool value) { return value ? Py_True : Py_False; };
  return own(Py_BuildValue("NOOOO", PyLong_FromVoidPtr(request), buffers.get(), callbacks.get(),
                           truth(thread.is_small), truth(thread.is_light)));
}

// --- Groups of PyTorch and their operators, torch.ops.rankine

// The right to make a call of a group's member. It can be taken without the GIL, by any thread.
struct Turn {
  ~Turn() { PyThread_free_lock(lock); }
  bool take(PY_TIMEOUT_T microseconds) {
    return PyThread_acquire_lock_timed(lock, microseconds, 0) == PY_LOCK_ACQUIRED;
  }
  // Takes the turn for a call with default options. Returns false if other calls come first.
  bool take_for_plain_call() {
    if (queued.load(std::memory_order_relaxed) != 0 || !take(0)) return false;
    if (is_plain) {
      submitted.fetch_add(1, std::memory_order_relaxed);
      return true;
    }
    PyThread_release_lock(lock);
    return false;
  }

  PyThread_type_lock lock = PyThread_allocate_lock();
  bool is_plain = true;  // guarded by lock: the member's call options are the defaults
  // Relaxed: queue_turn() adds on the thread that submits a call, and take_for_plain_call() loads
  // on the same thread; calls of several threads have no order.
  std::atomic<int> queued = 0;
  // Relaxed, a count: take_for_plain_call() adds, submitted_calls() loads.
  std::atomic<long long> submitted = 0;
  rkComm_t comm = nullptr;
  int ranks = 0;
};

// The groups of this process by their names, for threads that may lack the GIL; they may run until
// the process has ended, so nothing is destroyed.
std::mutex turns_mutex;
auto& turns = *new std::map<std::string, std::shared_ptr<Turn>, std::less<>>;

// rankine._engine.Turn(group_name, comm, ranks).
struct TurnObject {
  PyObject head;
  std::shared_ptr<Turn> turn;
};

Turn& turn_of(PyObject* self) { return *reinterpret_cast<TurnObject*>(self)->turn; }

PyObject* make_turn(PyTypeObject* type, PyObject* args, PyObject*) try {
  const char* name = nullptr;
  Ref self = own(PyType_GenericAlloc(type, 0));
  auto& turn = *new (&reinterpret_cast<TurnObject*>(self.get())->turn) std::shared_ptr<Turn>;
  turn = std::make_shared<Turn>();
  unsigned long long comm = 0;
  check(PyArg_ParseTuple(args, "sKi", &name, &comm, &turn->ranks));
  turn->comm = reinterpret_cast<rkComm_t>(comm);
  const std::lock_guard lock(turns_mutex);
  turns.insert_or_assign(name, turn);
  return self.release();
} catch (const Raised&) {
  return nullptr;
}
void free_turn(PyObject* self) {
  auto* const object = reinterpret_cast<TurnObject*>(self);
  PyTypeObject* const type = Py_TYPE(self);
  {
    const std::lock_guard lock(turns_mutex);
    std::erase_if(turns, [&](const auto& each) { return each.second == object->turn; });
  }
  object->turn.~shared_ptr();
  reinterpret_cast<freefunc>(PyType_GetSlot(type, Py_tp_free))(self);
  Py_DECREF(type);
}

// Takes the turn; waits at most so many microseconds. Returns whether it was taken.
PyObject* take_turn(PyObject* self, PyObject* microseconds) {
  Turn& turn = turn_of(self);
  bool taken = turn.take(0);
  const long long limit = taken ? 0 : PyLong_AsLongLong(microseconds);
  if (limit != 0) {
    if (PyErr_Occurred() != nullptr) return nullptr;
    PyThreadState* const gil = PyEval_SaveThread();
    taken = turn.take(limit);
    PyEval_RestoreThread(gil);
  }
  return PyBool_FromLong(taken);
}
PyObject* release_turn(PyObject* self, PyObject*) {
  PyThread_release_lock(turn_of(self).lock);
  return new_ref(Py_None).release();
}
// Adds to the number of queued calls.
PyObject* queue_turn(PyObject* self, PyObject* number) {
  turn_of(self).queued.fetch_add(static_cast<int>(PyLong_AsLong(number)),
                                 std::memory_order_relaxed);
  return PyErr_Occurred() != nullptr ? nullptr : new_ref(Py_None).release();
}
PyObject* is_plain(PyObject* self, void*) { return PyBool_FromLong(turn_of(self).is_plain); }
int set_plain(PyObject* self, PyObject* value, void*) {
  turn_of(self).is_plain = value == Py_True;
  return 0;
}
PyObject* submitted_calls(PyObject* self, void*) {
  return PyLong_FromLongLong(turn_of(self).submitted.load(std::memory_order_relaxed));
}

// Calls a tensor's method, or reads its attribute if `called` is false.
Ref asked(PyObject* tensor, PyObject* name, bool called = true) {
  return own(called ? PyObject_CallMethodObjArgs(tensor, name, nullptr)
                    : PyObject_GetAttr(tensor, name));
}
// Reduces a tensor of PyTorch in place. Arguments: the tensor, its type's number, the operation's.
// Returns False, with no effect, if the tensor must be checked or other calls come first.
PyObject* all_reduce_tensor(PyObject* self, PyObject* const* args, Py_ssize_t n) try {
  static PyObject* const is_cpu = PyUnicode_InternFromString("is_cpu");
  static PyObject* const is_contiguous = PyUnicode_InternFromString("is_contiguous");
  static PyObject* const is_neg = PyUnicode_InternFromString("is_neg");
  static PyObject* const data_ptr = PyUnicode_InternFromString("data_ptr");
  static PyObject* const numel = PyUnicode_InternFromString("numel");
  check_count(n, 3);
  PyObject* const x = args[0];
  const int type = read_int("type", args[1]), op = read_int("op", args[2]);
  Turn& turn = turn_of(self);
  if (kTypes[type].kind == 'c' || asked(x, is_cpu, false).get() != Py_True ||
      asked(x, is_contiguous).get() != Py_True || asked(x, is_neg).get() != Py_False) {
    return new_ref(Py_False).release();
  }
  void* const address = PyLong_AsVoidPtr(asked(x, data_ptr).get());
  const Py_ssize_t count = PyLong_AsSsize_t(asked(x, numel).get());
  check(PyErr_Occurred() == nullptr);
  if (!turn.take_for_plain_call()) return new_ref(Py_False).release();
  EngineCall call(count * kTypes[type].bytes <= kSmallBytes);
  call.end(rkAllReduce(address, address, static_cast<std::size_t>(count),
                       static_cast<rkDataType_t>(type), static_cast<rkRedOp_t>(op), turn.comm));
  PyThread_release_lock(turn.lock);
  call.result();
  return new_ref(Py_True).release();
} catch (const Raised&) {
  return nullptr;
}

PyMethodDef turn_methods[] = {method("all_reduce", all_reduce_tensor),
                              {"take", take_turn, METH_O, nullptr},
                              {"release", release_turn, METH_NOARGS, nullptr},
                              {"queue", queue_turn, METH_O, nullptr},
                              {}};
PyGetSetDef turn_fields[] = {{"is_plain", is_plain, set_plain, nullptr, nullptr},
                             {"submitted", submitted_calls, nullptr, nullptr, nullptr},
                             {}};
PyType_Slot turn_slots[] = {{Py_tp_new, reinterpret_cast<void*>(make_turn)},
                            {Py_tp_dealloc, reinterpret_cast<void*>(free_turn)},
                            {Py_tp_methods, turn_methods},
                            {Py_tp_getset, turn_fields},
                            {0, nullptr}};
PyType_Spec turn_spec = {"rankine._engine.Turn", sizeof(TurnObject), 0, Py_TPFLAGS_DEFAULT,
                         turn_slots};

// Functions of PyTorch's stable ABI, in every version since 2.10. They return 0 on success.
using Handle = struct Opaque*;  // of a tensor, text or library
using Kernel = void (*)(std::uint64_t*, std::uint64_t, std::uint64_t);
// clang-format off
#define TORCH(F) \
  F(void, aoti_torch_check, bool, const char*, const char*, std::uint32_t, const char*) \
  F(int, aoti_torch_copy_, Handle, Handle, std::int32_t) \
  F(int, aoti_torch_delete_tensor_object, Handle) \
  F(std::int32_t, aoti_torch_device_type_cpu) \
  F(std::size_t, aoti_torch_dtype_element_size, std::int32_t) \
  F(int, aoti_torch_empty_strided, std::int64_t, const std::int64_t*, const std::int64_t*, std::int32_t, std::int32_t, std::int32_t, Handle*) \
  F(int, aoti_torch_get_dim, Handle, std::int64_t*) \
  F(int, aoti_torch_get_dtype, Handle, std::int32_t*) \
  F(int, aoti_torch_get_numel, Handle, std::int64_t*) \
  F(int, aoti_torch_get_sizes, Handle, std::int64_t**) \
  F(int, aoti_torch_get_strides, Handle, std::int64_t**) \
  F(int, aoti_torch_is_contiguous, Handle, bool*) \
  F(int, aoti_torch_library_impl, Handle, const char*, Kernel) \
  F(int, aoti_torch_library_init_impl, const char*, const char*, const char*, std::uint32_t, Handle*) \
  F(int, torch_delete_string, Handle) \
  F(int, torch_get_mutable_data_ptr, Handle, void**) \
  F(int, torch_string_c_str, Handle, const char**)
struct Torch {
#define F(result, name, ...) result (*name)(__VA_ARGS__);
  TORCH(F)
#undef F
  std::int8_t types[128];  // the engine's numbers of types by PyTorch's; -1: none
  PyObject* complete;      // rankine._torch_operators._complete()
} torch;
// clang-format on

void need(int code) {
  if (code == 0) [[likely]]
    return;
  torch.aoti_torch_check(
      false, "", "", 0,
      "an operator of rankine needs dense tensors and memory for them; PyTorch's "
      "log has the reason");
}

struct DeleteTensor {
  void operator()(Handle handle) const { torch.aoti_torch_delete_tensor_object(handle); }
};
struct DeleteText {
  void operator()(Handle handle) const { torch.torch_delete_string(handle); }
};
using TorchTensor = std::unique_ptr<Opaque, DeleteTensor>;

// An argument that is a text.
class TorchText {
 public:
  explicit TorchText(std::uint64_t argument) : handle_(reinterpret_cast<Handle>(argument)) {
    need(torch.torch_string_c_str(handle_.get(), &text_));
  }
  const char* get() const { return text_; }

 private:
  std::unique_ptr<Opaque, DeleteText> handle_;
  const char* text_ = nullptr;
};

enum class Operator { all_reduce_, broadcast_, all_reduce, all_gather, reduce_scatter, all_to_all };
constexpr const char* kOperators[] = {"all_reduce_", "broadcast_",     "all_reduce",
                                      "all_gather",  "reduce_scatter", "all_to_all"};

// A call of an operator, by a thread that may lack the GIL.
class OperatorCall {
 public:
  // Takes the arguments: x, the operation or the root if the operator has one, the group's name.
  OperatorCall(Operator which, const std::uint64_t* arguments, std::uint64_t count)
      : which_(which), x_(reinterpret_cast<Handle>(arguments[0])), group_(arguments[count - 1]) {
    if (reduces()) {
      op_text_.emplace(arguments[1]);
      while (op_ < rkNumOps && std::strcmp(kOperations[op_], op_text_->get()) != 0) ++op_;
    } else if (which_ == Operator::broadcast_) {
      root_ = static_cast<std::int64_t>(arguments[1]);
    }
    need(torch.aoti_torch_get_dtype(x_.get(), &dtype_));
    need(torch.aoti_torch_get_dim(x_.get(), &dimensions_));
    need(torch.aoti_torch_get_sizes(x_.get(), &sizes_));
    need(torch.aoti_torch_is_contiguous(x_.get(), &is_contiguous_));
  }

  // Returns the result, or raises an error of PyTorch; call_operator() replaces it.
  Handle run() {
    const std::shared_ptr<Turn> turn = found_turn();
    if (turn != nullptr) prepare(*turn);
    if (!is_valid_ || !run_at_once(*turn)) run_by_python();
    if (!error_.empty()) torch.aoti_torch_check(false, name(), "rankine", 0, error_.c_str());
    return out_.release();
  }

  // As run_at_once(), with the GIL and in the caller's turn.
  Ref run_in_turn() {
    if (!is_valid_) ask("fail", "is", int{rkInternalError}, "an operator's argument is invalid");
    EngineCall call(count_ * bytes_ <= kSmallBytes);
    call.end(call_engine());
    return call.result();
  }

 private:
  const char* name() const { return kOperators[static_cast<int>(which_)]; }
  bool is(Operator one) const { return which_ == one; }
  bool is_in_place() const { return is(Operator::all_reduce_) || is(Operator::broadcast_); }
  bool reduces() const {
    return is(Operator::all_reduce_) || is(Operator::all_reduce) || is(Operator::reduce_scatter);
  }

  std::shared_ptr<Turn> found_turn() const {
    const std::lock_guard lock(turns_mutex);
    const auto found = turns.find(std::string_view(group_.get()));
    return found == turns.end() ? nullptr : found->second;
  }

  // Checks the arguments, and makes the result.
  void prepare(const Turn& turn) {
    need(torch.aoti_torch_get_numel(x_.get(), &count_));
    const bool is_known =
        static_cast<std::uint32_t>(dtype_) < std::size(torch.types) && torch.types[dtype_] >= 0;
    if (is_known) {
      type_ = static_cast<rkDataType_t>(torch.types[dtype_]);
      bytes_ = kTypes[type_].bytes;
    } else {
      count_ *= static_cast<std::int64_t>(torch.aoti_torch_dtype_element_size(dtype_));
    }
    comm_ = turn.comm;
    ranks_ = turn.ranks;
    const bool divides = is(Operator::reduce_scatter) || is(Operator::all_to_all);
    is_valid_ = (is_contiguous_ || !is_in_place()) && 0 <= root_ && root_ < ranks_ &&
                (!reduces() || (is_known && op_ < rkNumOps)) &&
                (!divides || (dimensions_ > 0 && sizes_[0] % ranks_ == 0));
    if (!is_valid_) return;
    if (!is_in_place()) {
      std::vector<std::int64_t> out(sizes_, sizes_ + dimensions_);
      if (!is_contiguous_) {
        TorchTensor copy = made(out, dtype_);
        need(torch.aoti_torch_copy_(copy.get(), x_.get(), 0));
        x_ = std::move(copy);
      }
      if (is(Operator::all_gather)) {
        if (out.empty()) out.push_back(1);
        out[0] *= ranks_;
      } else if (is(Operator::reduce_scatter)) {
        out[0] /= ranks_;
      }
      out_ = made(out, dtype_);
    }
    need(torch.torch_get_mutable_data_ptr(x_.get(), &in_));
    need(torch.torch_get_mutable_data_ptr(is_in_place() ? x_.get() : out_.get(), &result_));
  }
  static TorchTensor made(const std::vector<std::int64_t>& sizes, std::int32_t dtype) {
    std::vector<std::int64_t> strides(sizes.size(), 1);
    for (std::size_t i = sizes.size(); i-- > 1;) {
      strides[i - 1] = strides[i] * std::max<std::int64_t>(sizes[i], 1);
    }
    Handle tensor = nullptr;
    need(torch.aoti_torch_empty_strided(static_cast<std::int64_t>(sizes.size()), sizes.data(),
                                        strides.data(), dtype, torch.aoti_torch_device_type_cpu(),
                                        0, &tensor));
    return TorchTensor(tensor);
  }

  rkResult_t call_engine() const {
    const auto count = static_cast<std::size_t>(count_),
               block = count / static_cast<std::size_t>(ranks_);
    const auto op = static_cast<rkRedOp_t>(op_);
    switch (which_) {
      case Operator::all_reduce_:
      case Operator::all_reduce:
        return rkAllReduce(in_, result_, count, type_, op, comm_);
      case Operator::broadcast_:
        return rkBcast(in_, count, type_, static_cast<int>(root_), comm_);
      case Operator::all_gather:
        return rkAllGather(in_, result_, count, type_, comm_);
      case Operator::reduce_scatter:
        return rkReduceScatter(in_, result_, block, type_, op, comm_);
      case Operator::all_to_all:
        return rkAllToAll(in_, result_, block, type_, comm_);
    }
    return rkInternalError;
  }

  // Without the GIL, if no other call is under way or queued. Returns false if one is.
  bool run_at_once(Turn& turn) {
    if (!turn.take_for_plain_call()) return false;
    EngineCall call{EngineCall::FromAnyThread()};
    const bool is_fine = call.end(call_engine());
    PyThread_release_lock(turn.lock);
    if (!is_fine) with_python([&] { call.result(); });
    return true;
  }
  // After the queued calls. Raises the errors of arguments.
  void run_by_python() {
    with_python([&] {
      static PyMethodDef run = {"run", run_operator, METH_NOARGS, nullptr};
      const Ref self = own(PyCapsule_New(this, nullptr, nullptr));
      const Ref function = own(PyCFunction_New(&run, self.get()));
      std::int64_t* strides = nullptr;
      need(torch.aoti_torch_get_strides(x_.get(), &strides));
      const Ref shape = own(PyList_New(0)), steps = own(PyList_New(0));
      for (std::int64_t i = 0; i < dimensions_; ++i) {
        check(PyList_Append(shape.get(), own(PyLong_FromLongLong(sizes_[i])).get()) == 0);
        check(PyList_Append(steps.get(), own(PyLong_FromLongLong(strides[i])).get()) == 0);
      }
      own(PyObject_CallFunction(torch.complete, "sszLOOiiO", name(), group_.get(),
                                op_text_ ? op_text_->get() : nullptr, root_, shape.get(),
                                steps.get(), int{is_contiguous_}, dtype_, function.get()));
    });
  }
  static PyObject* run_operator(PyObject* self, PyObject*) try {
    return static_cast<OperatorCall*>(PyCapsule_GetPointer(self, nullptr))->run_in_turn().release();
  } catch (const Raised&) {
    return nullptr;
  }
  // Keeps the exception that `run` raises for call_operator().
  template <class Run>
  void with_python(const Run& run) {
    const Gil gil;
    try {
      run();
    } catch (const Raised&) {
      Ref raised = taken_exception();
      const Ref text(PyObject_Str(raised.get()));
      const char* words = "";
      if (text == nullptr || !PyArg_Parse(text.get(), "s", &words)) PyErr_Clear();
      error_ = *words == 0 ? "interrupted" : words;
      Ref(std::exchange(this_thread.raised, raised.release()));
    }
  }

  const Operator which_;
  TorchTensor x_, out_;
  TorchText group_;
  std::optional<TorchText> op_text_;
  std::int32_t dtype_ = 0;
  std::int64_t dimensions_ = 0, *sizes_ = nullptr;
  bool is_contiguous_ = false;
  std::int64_t root_ = 0, count_ = 0, bytes_ = 1;
  int op_ = 0, ranks_ = 1;
  rkDataType_t type_ = rkUint8;
  rkComm_t comm_ = nullptr;
  void *in_ = nullptr, *result_ = nullptr;
  bool is_valid_ = false;
  std::string error_;
};

template <Operator which>
void operate(std::uint64_t* stack, std::uint64_t inputs, std::uint64_t outputs) {
  Handle const out = OperatorCall(which, stack, inputs).run();
  if (outputs > 0) stack[0] = reinterpret_cast<std::uint64_t>(out);
}

// Calls a function of PyTorch that calls an operator. Raises the operator's exception in place of
// PyTorch's, which has only its text.
PyObject* call_operator(PyObject* function, PyObject* arguments, PyObject* options) {
  Ref(std::exchange(this_thread.raised, nullptr));  // of a call that C++ has made
  PyObject* const result = PyObject_Call(function, arguments, options);
  const Ref raised(result == nullptr ? std::exchange(this_thread.raised, nullptr) : nullptr);
  if (raised != nullptr)
    PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(raised.get())), raised.get());
  return result;
}
Ref raising(PyObject* function) {
  static PyMethodDef method = {
      "call_operator", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(call_operator)),
      METH_VARARGS | METH_KEYWORDS, nullptr};
  return own(PyCFunction_New(&method, function));
}

// Registers the operators' kernels. `types`: the engine's numbers of types, or -1, by PyTorch's
// names. Returns the names by PyTorch's numbers.
Ref register_operators(PyObject* types, PyObject* complete) {
  void* const library = dlopen("libtorch_cpu.so", RTLD_LAZY | RTLD_NOLOAD);
  if (library == nullptr) {
    PyErr_SetString(PyExc_ImportError, "libtorch_cpu.so is not loaded; import torch first");
    throw Raised();
  }
#define F(result, name, ...) find(torch.name, #name, library);
  TORCH(F)
#undef F
  Ref names = own(PyDict_New());
  std::fill(std::begin(torch.types), std::end(torch.types), -1);
  PyObject *name = nullptr, *number = nullptr;
  for (Py_ssize_t i = 0; PyDict_Next(types, &i, &name, &number) != 0;) {
    const int ours = static_cast<int>(PyLong_AsLong(number));
    const Ref getter = own(PyUnicode_FromFormat("aoti_torch_dtype_%U", name));
    const char* symbol = nullptr;
    check(PyArg_Parse(getter.get(), "s", &symbol));
    std::int32_t (*theirs)() = nullptr;
    try {
      find(theirs, symbol, library);
    } catch (const Raised&) {
      if (ours >= 0) throw;
      PyErr_Clear();
      continue;
    }
    if (ours >= 0) torch.types[theirs() % std::size(torch.types)] = static_cast<std::int8_t>(ours);
    check(PyDict_SetItem(names.get(), own(PyLong_FromLong(theirs())).get(), name) == 0);
  }
  torch.complete = new_ref(complete).release();
  Handle impl = nullptr;  // kept until the process ends
  need(torch.aoti_torch_library_init_impl("rankine", "CPU", "rankine", 0, &impl));
  const auto add = [&]<std::size_t... i>(std::index_sequence<i...>) {
    (need(torch.aoti_torch_library_impl(impl, kOperators[i], operate<Operator{i}>)), ...);
  };
  add(std::make_index_sequence<std::size(kOperators)>());
  return names;
}

// --- The module

// clang-format off
#define F(name) method(#name, wrapped<name>)
PyMethodDef functions[] = {
    F(rkActiveCall), F(rkActiveCreate), F(rkActiveDestroy), F(rkActiveGetRank), F(rkActiveWaitFor),
    F(rkAllReduceQuantised), F(rkAllToAllDisplaced), F(rkBucketsAdd), F(rkBucketsAddUnused), F(rkBucketsAllReduce),
    F(rkBucketsCreate), F(rkBucketsDestroy), F(rkBucketsFlush), F(rkBucketsGetCalls),
    F(rkBucketsWait), F(rkBucketsWaitFor), F(rkCommAbort), F(rkCommAgree), F(rkCommCompute), F(rkCommCount),
    F(rkCommCpu), F(rkCommDestroy), F(rkCommFail), F(rkCommGetAsyncError), F(rkCommGetOrder), F(rkCommModelTime),
    F(rkCommPinThread), F(rkCommPortsInUse), F(rkCommProgress), F(rkCommRevoke), F(rkCommShrink), F(rkCommSplit), F(rkCommUserRank),
    F(rkEpilogueApply), F(rkEpilogueDestroy), F(rkExpertsCombine), F(rkExpertsCreate), F(rkExpertsDestroy),
    F(rkExpertsDispatch), F(rkExpertsGetCounts), F(rkExpertsGetDropped), F(rkGetVersion), F(rkHasMessage), F(rkQuantisedError), F(rkRedOpCreatePreMulSum),
    F(rkRedOpDestroy), F(rkRequestFree), F(rkRequestGetOrders), F(rkRequestStart), F(rkRequestTest),
    F(rkRequestWait), F(rkRequestWaitAll), F(rkRequestWaitFor), F(collect), F(create_epilogue),
    F(create_operation), F(create_row_function), F(flight_record), F(group_end), F(group_start),
    F(is_in_group), F(keep), F(make_ranks), F(memory), F(raising), F(register_operators), F(set_options),
    method("rkCommSetCallSite", wrapped<rkCommSetCallSite, true>),
    method("start_small", wrapped<rkRequestStart, true>),
    method("wait_alone", wrapped<rkRequestWait, true>),
#define B(name) method(#name, on_bytes<name>)
    B(rkAllGather), B(rkAllGatherCounts), B(rkAllReduce), B(rkAllToAll), B(rkAllToAllCounts),
    B(rkBarrier), B(rkBcast), B(rkGather), B(rkRecv), B(rkReduce), B(rkReduceScatter),
    B(rkReduceScatterCounts), B(rkScatter), B(rkSend),
#undef B
    {}};
#undef F
// clang-format on

PyModuleDef definition = {PyModuleDef_HEAD_INIT,
                          "rankine._engine",
                          nullptr,
                          -1,
                          functions,
                          nullptr,
                          nullptr,
                          nullptr,
                          nullptr};

void add(PyObject* module, const char* name, PyObject* value) {
  check(value != nullptr && PyModule_AddObject(module, name, new_ref(value).release()) == 0);
}
void add_number(PyObject* numbers, const char* name, int number) {
  check(PyDict_SetItemString(numbers, name, own(PyLong_FromLong(number)).get()) == 0);
}
void fill(PyObject* module) {
  find(get_buffer, "PyObject_GetBuffer");
  find(release_buffer, "PyBuffer_Release");
  errors = own(PyImport_ImportModule("rankine._errors")).release();
  PyObject* const type = PyType_FromSpec(&buffer_spec);
  buffer_type = reinterpret_cast<PyTypeObject*>(type);
  add(module, "Buffer", type);
  add(module, "Rank", PyType_FromSpec(&rank_spec));
  add(module, "Turn", PyType_FromSpec(&turn_spec));
  add(module, "TYPES", type_numbers = PyDict_New());
  add(module, "OPERATIONS", operation_numbers = PyDict_New());
  PyObject* const bytes = PyDict_New();
  add(module, "BYTES", bytes);
  for (int i = 0; i < rkNumTypes; ++i) {
    add_number(type_numbers, kTypes[i].name, i);
    add_number(bytes, kTypes[i].name, kTypes[i].bytes);
  }
  for (int i = 0; i < rkNumOps; ++i) add_number(operation_numbers, kOperations[i], i);
}

}  // namespace

PyMODINIT_FUNC PyInit__engine() try {
  Ref module = own(PyModule_Create(&definition));
  fill(module.get());
  return module.release();
} catch (const Raised&) {
  return nullptr;
}
