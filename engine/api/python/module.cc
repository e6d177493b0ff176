// rankine._engine: librankine.so.1 in Python. One binary serves CPython 3.9 and newer.
//
// Functions of rankine.h appear under their names: handles and addresses are ints, results are
// returned, and errors are raised (rankine._errors). Calls of collectives and messages are methods
// of Rank, and take buffers.
//
// A call keeps the GIL until it has waited for some microseconds, because taking the GIL back from
// a busy thread takes milliseconds. It releases the GIL first if it may take longer in any case:
// with large buffers, with functions of the caller, or with several ranks in this process.
#define Py_LIMITED_API 0x03090000
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <dlfcn.h>
#include <structmember.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "engine/api/c/rankine.h"

namespace {

// CPython 3.9 has this calling convention, but its limited API does not name it yet.
constexpr int kFastCall = 0x0080;
using FastCall = PyObject* (*)(PyObject*, PyObject* const*, Py_ssize_t);

PyCFunction as_method(FastCall function) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function));
}

struct Release {
  void operator()(PyObject* object) const noexcept { Py_DECREF(object); }
};
using Ref = std::unique_ptr<PyObject, Release>;

Ref new_ref(PyObject* object) {
  Py_INCREF(object);
  return Ref(object);
}

// --- Errors

PyObject* errors = nullptr;  // rankine._errors

// Raises InvalidArgument. The format is PyUnicode_FromFormat()'s.
std::nullptr_t refuse(const char* format, ...) {
  va_list values;
  va_start(values, format);
  const Ref text(PyUnicode_FromFormatV(format, values));
  va_end(values);
  if (text != nullptr) Ref(PyObject_CallMethod(errors, "refuse", "O", text.get()));
  return nullptr;
}

// Raises Error.
std::nullptr_t not_now(const char* text) {
  Ref(PyObject_CallMethod(errors, "fail", "is", static_cast<int>(rkInvalidUsage), text));
  return nullptr;
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

// --- Calls of the engine

class EngineCall;

// The state of a thread.
struct Thread {
  EngineCall* call = nullptr;  // the innermost call under way
  bool listens = false;
  // The open group.
  int depth = 0;
  bool is_light = true;           // all its calls may keep the GIL
  PyObject* buffers = nullptr;    // lists
  PyObject* callbacks = nullptr;  // objects with _take_raised()
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
    if (!is_light) release_gil();
  }
  EngineCall(const EngineCall&) = delete;
  EngineCall& operator=(const EngineCall&) = delete;

  rkResult_t end(rkResult_t code) {
    if (gil_ != nullptr) restore_gil();
    thread_.call = outer_;
    code_ = code;
    return code;
  }
  // Returns None, or raises the error of the call. `callbacks`: a sequence, or nullptr.
  PyObject* result(PyObject* callbacks = nullptr) const {
    if (code_ == rkSuccess && callbacks == nullptr && interrupt_ == nullptr) [[likely]]
      Py_RETURN_NONE;
    return PyObject_CallMethod(errors, "raise_for", "iyOO", static_cast<int>(code_),
                               rkGetLastError(RK_COMM_NULL),
                               interrupt_ == nullptr ? Py_None : interrupt_.get(),
                               callbacks == nullptr ? Py_None : callbacks);
  }

 private:
  void release_gil() { gil_ = PyEval_SaveThread(); }
  void restore_gil() {
    take_gil([&] { PyEval_RestoreThread(std::exchange(gil_, nullptr)); });
  }
  // Called when the call waits for some microseconds, and then every 50 ms. Returns true if a
  // signal handler has raised; Python runs handlers on the main thread only.
  bool waits() {
    if (gil_ == nullptr) {
      release_gil();
      return false;
    }
    if (syscall(SYS_gettid) != getpid()) return false;
    restore_gil();
    const bool raised = PyErr_CheckSignals() != 0;
    if (raised) interrupt_ = taken_exception();
    release_gil();
    return raised;
  }

  Thread& thread_;
  EngineCall* const outer_;
  PyThreadState* gil_ = nullptr;  // nullptr: this thread has the GIL
  rkResult_t code_ = rkSuccess;
  Ref interrupt_;
};

// --- Types and operations, by their numbers

struct Type {
  const char* name;
  char kind;  // signed, unsigned, float, complex, bool, Brain float; 0: only by name
  int bytes;
};
constexpr Type kTypes[] = {{"i8", 'i', 1},  {"u8", 'u', 1},   {"i32", 'i', 4},  {"u32", 'u', 4},
                           {"i64", 'i', 8}, {"u64", 'u', 8},  {"f16", 'f', 2},  {"f32", 'f', 4},
                           {"f64", 'f', 8}, {"bf16", 'B', 2}, {"f8e4m3", 0, 1}, {"f8e5m2", 0, 1},
                           {"b8", 'b', 1},  {"c64", 'c', 8},  {"c128", 'c', 16}};
static_assert(std::size(kTypes) == rkNumTypes);
constexpr int kOtherWord = rkNumTypes;  // unsigned integers of 16 bits
constexpr int kNoType = -1;

constexpr const char* kOperations[] = {"sum", "prod", "max", "min", "avg", "band", "bor", "bxor"};
static_assert(std::size(kOperations) == rkNumOps);

PyObject* type_numbers = nullptr;       // {"i8": 0, ...}
PyObject* operation_numbers = nullptr;  // {"sum": 0, ...}

int type_of(char kind, Py_ssize_t bytes) {
  if (kind == 0) return kNoType;
  for (int i = 0; i < rkNumTypes; ++i) {
    if (kTypes[i].kind == kind && kTypes[i].bytes == bytes) return i;
  }
  return kind == 'u' && bytes == 2 ? kOtherWord : kNoType;
}

// The type of a format of the struct module (PEP 3118).
int type_of_format(const char* format, Py_ssize_t bytes) {
  if (std::strchr("@=<", *format) != nullptr && *format != 0) ++format;
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
  char* format;
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
  std::int64_t *shape, *strides;
  std::uint64_t offset;
};
struct DlVersioned {
  std::uint32_t major, minor;
  void* context;
  void (*deleter)(DlVersioned*);
  std::uint64_t flags;
  DlTensor tensor;
};

// True if elements lie in C order without gaps: `at(i)` is the size and stride of dimension i.
template <class At>
bool is_contiguous(int dimensions, std::int64_t unit, const At& at) {
  bool fits = true;
  for (int i = dimensions; i-- > 0;) {
    const auto [size, stride] = at(i);
    if (size == 0) return true;
    fits = fits && (size == 1 || stride == unit);
    unit *= size;
  }
  return fits;
}

// A buffer in use, until its destruction: meanwhile its owner cannot resize or free it.
class Buffer {
 public:
  Buffer() = default;
  ~Buffer() {
    if (view_.obj != nullptr) release_buffer(&view_);
    Py_XDECREF(owner_);
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  // False: it has raised.
  bool take(const char* name, PyObject* value, bool writable) {
    name_ = name;
    if (get_buffer(value, &view_, kContiguousWithFormat) == 0) [[likely]] {
      const char* const format = view_.format == nullptr ? "B" : view_.format;
      natural_ = type_of_format(format, view_.itemsize);
    } else if (PyErr_ExceptionMatches(PyExc_ValueError) ||
               PyErr_ExceptionMatches(PyExc_BufferError)) {
      return refuse("%s cannot be used: %S", name, taken_exception().get()), false;
    } else if (!PyErr_ExceptionMatches(PyExc_TypeError)) {
      return false;
    } else {
      PyErr_Clear();
      if (!take_tensor(value) && !PyErr_Occurred() && !take_interface(value) && !PyErr_Occurred()) {
        const Ref type(
            PyObject_GetAttrString(reinterpret_cast<PyObject*>(Py_TYPE(value)), "__name__"));
        PyErr_Format(PyExc_TypeError, "%s is a %U; allowed are NumPy arrays and other buffers",
                     name, type.get());
      }
      if (PyErr_Occurred()) return false;
    }
    if (!writable || !view_.readonly) return true;
    return refuse("%s is read-only; allowed for results are writable buffers", name), false;
  }

  const char* name() const { return name_; }
  void* address() const { return view_.buf; }
  Py_ssize_t bytes() const { return view_.len; }
  Py_ssize_t item_bytes() const { return view_.itemsize; }
  // The type of the elements; `dtype` gives the meaning of unsigned integer words. kNoType: it has
  // raised.
  int type(PyObject* dtype) const {
    if (dtype == Py_None) {
      if (natural_ != kNoType && natural_ != kOtherWord) [[likely]]
        return natural_;
      refuse(
          "%s has elements of format '%s'; allowed are %U (set dtype='bf16' for integer words "
          "that hold bf16)",
          name_, format(), names(type_numbers).get());
      return kNoType;
    }
    PyObject* const number = PyUnicode_Check(dtype) ? PyDict_GetItem(type_numbers, dtype) : nullptr;
    if (number == nullptr) {
      refuse("dtype is %R; allowed are %U", dtype, names(type_numbers).get());
      return kNoType;
    }
    const int wanted = static_cast<int>(PyLong_AsLong(number));
    const Type& type = kTypes[wanted];
    if (natural_ == wanted || (natural_ != kNoType && natural_ == type_of('u', type.bytes)))
      return wanted;
    refuse(
        "%s has elements of format '%s'; dtype %s is for arrays of it or of unsigned integers of "
        "%d bytes",
        name_, format(), type.name, type.bytes);
    return kNoType;
  }

  static Ref names(PyObject* numbers) {
    const Ref comma(PyUnicode_FromString(", ")), keys(PyDict_Keys(numbers));
    return Ref(PyUnicode_Join(comma.get(), keys.get()));
  }

 private:
  const char* format() const { return view_.format == nullptr ? "B" : view_.format; }

  void set_elements(char kind, Py_ssize_t bytes, Py_ssize_t count) {
    natural_ = type_of(kind, bytes);
    view_.itemsize = bytes;
    view_.len = bytes * count;
    std::snprintf(text_, sizeof text_, "%c%d", kind == 0 ? 'V' : kind, static_cast<int>(bytes));
    view_.format = text_;
  }

  // An object with __dlpack__(). False: it has none, or it has raised.
  bool take_tensor(PyObject* value) {
    const Ref exporting(PyObject_GetAttrString(value, "__dlpack__"));
    if (exporting == nullptr) return PyErr_Clear(), false;
    const Ref none(PyTuple_New(0)), version(Py_BuildValue("{s(ii)}", "max_version", 1, 0));
    owner_ = PyObject_Call(exporting.get(), none.get(), version.get());
    if (owner_ == nullptr && PyErr_ExceptionMatches(PyExc_TypeError)) {
      PyErr_Clear();  // older exporters have no versions
      owner_ = PyObject_Call(exporting.get(), none.get(), nullptr);
    }
    if (owner_ == nullptr) return false;
    const DlTensor* tensor = nullptr;
    if (PyCapsule_IsValid(owner_, "dltensor_versioned")) {
      const auto* const versioned =
          static_cast<DlVersioned*>(PyCapsule_GetPointer(owner_, "dltensor_versioned"));
      if (versioned->major > 1)
        return refuse("%s has a tensor of DLPack %d; allowed is 1", name_,
                      static_cast<int>(versioned->major)),
               false;
      view_.readonly = (versioned->flags & 1) != 0;
      tensor = &versioned->tensor;
    } else if (tensor = static_cast<DlTensor*>(PyCapsule_GetPointer(owner_, "dltensor"));
               tensor == nullptr) {
      return false;
    }
    constexpr int kCpu = 1, kPinned = 3;
    if (tensor->device != kCpu && tensor->device != kPinned) {
      return refuse("%s is on DLPack's device %d; allowed is 1, the CPU", name_,
                    static_cast<int>(tensor->device)),
             false;
    }
    const auto at = [&](int i) { return std::pair(tensor->shape[i], tensor->strides[i]); };
    if (tensor->strides != nullptr && !is_contiguous(tensor->dimensions, 1, at)) {
      return refuse("%s cannot be used: the tensor is not C-contiguous", name_), false;
    }
    Py_ssize_t count = 1;
    for (int i = 0; i < tensor->dimensions; ++i) count *= tensor->shape[i];
    view_.buf = static_cast<std::byte*>(tensor->data) + tensor->offset;
    constexpr char kKinds[] = {'i', 'u', 'f', 0, 'B', 'c', 'b'};
    const bool is_plain = tensor->lanes == 1 && tensor->bits % 8 == 0;
    set_elements(is_plain && tensor->code < sizeof kKinds ? kKinds[tensor->code] : char{0},
                 tensor->bits * tensor->lanes / 8, count);
    constexpr int kFloat8e4m3 = 10, kFloat8e5m2 = 12;
    if (is_plain && tensor->code == kFloat8e4m3) natural_ = rkFloat8e4m3;
    if (is_plain && tensor->code == kFloat8e5m2) natural_ = rkFloat8e5m2;
    return true;
  }

  // An object with NumPy's __array_interface__. False: it has none, or it has raised.
  bool take_interface(PyObject* value) {
    const Ref interface(PyObject_GetAttrString(value, "__array_interface__"));
    if (interface == nullptr) return PyErr_Clear(), false;
    const Ref items(PyObject_CallMethod(errors, "interface", "sO", name_, interface.get()));
    unsigned long long address = 0;
    int kind = 0;
    Py_ssize_t bytes = 0, count = 0;
    if (items == nullptr ||
        !PyArg_ParseTuple(items.get(), "KpCnn", &address, &view_.readonly, &kind, &bytes, &count)) {
      return false;
    }
    view_.buf = reinterpret_cast<void*>(address);
    set_elements(static_cast<char>(kind), bytes, count);
    owner_ = new_ref(value).release();
    return true;
  }

  const char* name_ = "";
  BufferView view_{};
  PyObject* owner_ = nullptr;  // of other memory than view_'s
  int natural_ = kNoType;
  char text_[16];
};

// A Buffer as an object of Python: rankine._engine.Buffer(name, value, writable).
struct BufferObject {
  PyObject head;
  Buffer buffer;
};
PyTypeObject* buffer_type = nullptr;

Buffer& buffer_of(PyObject* self) { return reinterpret_cast<BufferObject*>(self)->buffer; }

void free_object(PyObject* self) {
  PyTypeObject* const type = Py_TYPE(self);
  reinterpret_cast<freefunc>(PyType_GetSlot(type, Py_tp_free))(self);
  Py_DECREF(type);
}

PyObject* make_buffer(PyTypeObject* type, PyObject*, PyObject*) {
  PyObject* const self = PyType_GenericAlloc(type, 0);
  if (self != nullptr) new (&buffer_of(self)) Buffer;
  return self;
}
int init_buffer(PyObject* self, PyObject* args, PyObject*) {
  const char* name = nullptr;
  PyObject* value = nullptr;
  int writable = 0;
  if (!PyArg_ParseTuple(args, "sOp", &name, &value, &writable)) return -1;
  return buffer_of(self).take(name, value, writable != 0) ? 0 : -1;
}
PyObject* buffer_type_number(PyObject* self, PyObject* dtype) {
  const int number = buffer_of(self).type(dtype);
  return number == kNoType ? nullptr : PyLong_FromLong(number);
}

PyMethodDef buffer_methods[] = {{"type", buffer_type_number, METH_O, nullptr}, {}};
PyGetSetDef buffer_fields[] = {
    {"address", [](PyObject* self, void*) { return PyLong_FromVoidPtr(buffer_of(self).address()); },
     nullptr, nullptr, nullptr},
    {"bytes", [](PyObject* self, void*) { return PyLong_FromSsize_t(buffer_of(self).bytes()); },
     nullptr, nullptr, nullptr},
    {"item_bytes",
     [](PyObject* self, void*) { return PyLong_FromSsize_t(buffer_of(self).item_bytes()); },
     nullptr, nullptr, nullptr},
    {}};
PyType_Slot buffer_slots[] = {{Py_tp_new, reinterpret_cast<void*>(make_buffer)},
                              {Py_tp_init, reinterpret_cast<void*>(init_buffer)},
                              {Py_tp_dealloc, reinterpret_cast<void*>(+[](PyObject* self) {
                                 buffer_of(self).~Buffer();
                                 free_object(self);
                               })},
                              {Py_tp_methods, buffer_methods},
                              {Py_tp_getset, buffer_fields},
                              {0, nullptr}};
PyType_Spec buffer_spec = {"rankine._engine.Buffer", sizeof(BufferObject), 0, Py_TPFLAGS_DEFAULT,
                           buffer_slots};

// A buffer of one call: on the stack, or in a group an object that the group keeps.
class CallBuffer {
 public:
  bool take(const char* name, PyObject* value, bool writable) {
    if (this_thread.depth > 0) {
      object_.reset(make_buffer(buffer_type, nullptr, nullptr));
      if (object_ == nullptr) return false;
      buffer_ = &buffer_of(object_.get());
    } else {
      buffer_ = &local_;
    }
    return buffer_->take(name, value, writable);
  }
  // For the open group. False: it has raised.
  bool keep() const {
    return object_ == nullptr || PyList_Append(this_thread.buffers, object_.get()) == 0;
  }
  explicit operator bool() const { return buffer_ != nullptr; }
  const Buffer* operator->() const { return buffer_; }
  void* address() const { return buffer_ == nullptr ? nullptr : buffer_->address(); }

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
constexpr Py_ssize_t kLightBytes = 32 << 10;

enum class Kind {
  all_reduce,
  reduce,
  reduce_scatter,
  all_gather,
  gather,
  scatter,
  scan,
  exscan,
  all_to_all
};
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

// Reads a whole number of 32 bits. False: it has raised.
bool read_int(const char* name, PyObject* value, int& number) {
  Ref checked;
  if (!PyLong_CheckExact(value)) {
    checked.reset(PyObject_CallMethod(errors, "whole", "sO", name, value));
    if (checked == nullptr) return false;
    value = checked.get();
  }
  int overflow = 0;
  const long long wide = PyLong_AsLongLongAndOverflow(value, &overflow);
  number = static_cast<int>(wide);
  if (overflow == 0 && number == wide) [[likely]]
    return true;
  return Ref(PyObject_CallMethod(errors, "whole", "sO", name, value)) != nullptr;  // raises
}

// The arguments of a collective call.
struct Collective {
  Collective(Rank& rank, Kind of) : me(rank), kind(of), shape(kShapes[static_cast<int>(of)]) {}

  Rank& me;
  const Kind kind;
  const Shape& shape;
  CallBuffer x, out;
  CallBuffer* data = nullptr;    // nullptr: this rank has no input
  CallBuffer* result = nullptr;  // nullptr: no output
  int type = kNoType, op = 0, root = 0;
  Py_ssize_t element_bytes = 0;
  Py_ssize_t unit = 0;        // elements of a block
  Ref counts;                 // bytes of size_ts
  bool is_temporary = false;  // destroy op after the call
  rkEpilogue_t epilogue = nullptr;
  Ref callbacks;  // a tuple

  const std::size_t* counts_at() const {
    return reinterpret_cast<const std::size_t*>(PyBytes_AsString(counts.get()));
  }
  PyObject* self() const { return reinterpret_cast<PyObject*>(&me); }
  bool add_callback(PyObject* callback) {
    if (Ref(PyObject_CallMethod(callback, "_take_raised", nullptr)) == nullptr) return false;
    const Ref before = std::move(callbacks);
    callbacks.reset(before == nullptr
                        ? PyTuple_Pack(1, callback)
                        : PyTuple_Pack(2, PyTuple_GetItem(before.get(), 0), callback));
    return callbacks != nullptr;
  }
  // Each of the functions below returns false if it has raised.
  bool take_buffers(PyObject* in, PyObject* to);
  bool take_counts(PyObject* given);
  bool take_epilogue(PyObject* given);
  bool take_operation(PyObject* given, PyObject* dtype);
  bool take_type(PyObject* dtype);
  bool find_unit();
  bool check_size(const CallBuffer* buffer, Py_ssize_t needs) const;
  rkResult_t run() const;
};

bool Collective::take_buffers(PyObject* in, PyObject* to) {
  const bool is_root = me.rank == root;
  const bool has_out = !shape.is_rooted || is_root || kind == Kind::scatter;
  const bool in_place = has_out && shape.may_be_in_place && to == Py_None;
  if (!shape.is_rooted || is_root || kind != Kind::scatter) {
    if (!x.take("x", in, in_place)) return false;
    data = &x;
  }
  if (in_place) {
    result = data;
  } else if (has_out) {
    if (!out.take("out", to, true)) return false;
    result = &out;
  }
  return true;
}

bool Collective::take_counts(PyObject* given) {
  if (given == Py_None) [[likely]]
    return true;
  if (kind == Kind::all_to_all && result == data) {
    return refuse("out is None; allowed with counts is a separate buffer"), false;
  }
  const int blocks = kind == Kind::all_to_all ? me.ranks * me.ranks : me.ranks;
  counts.reset(PyObject_CallMethod(errors, "counts", "Oi", given, blocks));
  return counts != nullptr;
}

bool Collective::take_epilogue(PyObject* given) {
  if (given == Py_None) [[likely]]
    return true;
  if (counts != nullptr) {
    return refuse(
               "counts are given; allowed with an epilogue are blocks of one size, without counts"),
           false;
  }
  const Ref handle(PyObject_CallMethod(self(), "_handle_of", "On", given, (*result)->bytes()));
  if (handle == nullptr) return false;
  epilogue = static_cast<rkEpilogue_t>(PyLong_AsVoidPtr(handle.get()));
  return add_callback(given);
}

bool Collective::take_type(PyObject* dtype) {
  const CallBuffer& one = data != nullptr ? *data : *result;
  const CallBuffer& other = result != nullptr ? *result : *data;
  type = one->type(dtype);
  if (type == kNoType) return false;
  element_bytes = one->item_bytes();
  if (&one == &other) return true;
  const int its = other->type(dtype);
  if (its == type || its == kNoType) return its != kNoType;
  return refuse("%s has elements of %s; allowed is %s, as in %s", other->name(), kTypes[its].name,
                kTypes[type].name, one->name()),
         false;
}

bool Collective::take_operation(PyObject* given, PyObject* dtype) {
  if (!shape.reduces) return take_type(dtype);
  PyObject* const number =
      PyUnicode_Check(given) ? PyDict_GetItem(operation_numbers, given) : nullptr;
  if (number != nullptr) [[likely]] {
    op = static_cast<int>(PyLong_AsLong(number));
    return take_type(dtype);
  }
  const Ref element(PyObject_GetAttrString(given, "element_bytes"));  // an Operation
  PyErr_Clear();
  if (element != nullptr) {
    type = rkOpaque;
    element_bytes = PyLong_AsSsize_t(element.get());
    const Ref made(PyObject_CallMethod(self(), "_created", "O", given));
    return made != nullptr && read_int("op", made.get(), op) && add_callback(given);
  }
  if (!take_type(dtype)) return false;
  const Ref made(PyObject_CallMethod(self(), "_multiplied", "Oi", given, type));
  is_temporary = made != nullptr;
  return made != nullptr && read_int("op", made.get(), op);
}

bool Collective::check_size(const CallBuffer* buffer, Py_ssize_t needs) const {
  if (buffer == nullptr) return true;
  const Py_ssize_t has = (*buffer)->bytes() / element_bytes;
  if (has == needs) return true;
  return refuse("%s has %zd elements; allowed are %zd, by the other buffer and the ranks",
                (*buffer)->name(), has, needs),
         false;
}

bool Collective::find_unit() {
  for (const CallBuffer* buffer : {data, result}) {
    if (buffer == nullptr || (*buffer)->bytes() % element_bytes == 0) [[likely]]
      continue;
    return refuse("%s has %zd bytes; allowed are multiples of %zd, an element", (*buffer)->name(),
                  (*buffer)->bytes(), element_bytes),
           false;
  }
  if (counts != nullptr) {
    const auto n = static_cast<std::size_t>(me.ranks), self = static_cast<std::size_t>(me.rank);
    const bool is_pairs = kind == Kind::all_to_all;
    std::size_t row = 0, column = 0;
    for (std::size_t i = 0; i < n; ++i) {
      row += counts_at()[is_pairs ? self * n + i : i];
      if (is_pairs) column += counts_at()[i * n + self];
    }
    const std::size_t own = counts_at()[is_pairs ? 0 : self];
    return check_size(data, static_cast<Py_ssize_t>(shape.all_in ? row : own)) &&
           check_size(result, static_cast<Py_ssize_t>(is_pairs        ? column
                                                      : shape.all_out ? row
                                                                      : own));
  }
  // The buffer that is a single block, if present, determines the size of a block.
  const bool in_leads = data != nullptr && (!shape.all_in || result == nullptr);
  const CallBuffer& leader = in_leads ? *data : *result;
  const Py_ssize_t blocks_in = shape.all_in ? me.ranks : 1;
  const Py_ssize_t blocks_out = shape.all_out ? me.ranks : 1;
  unit = leader->bytes() / element_bytes / (in_leads ? blocks_in : blocks_out);
  return check_size(data, unit * blocks_in) && check_size(result, unit * blocks_out);
}

rkResult_t Collective::run() const {
  const void* const in = data == nullptr ? nullptr : data->address();
  void* const to = result == nullptr ? nullptr : result->address();
  const auto count = static_cast<std::size_t>(unit);
  const auto of = static_cast<rkDataType_t>(type);
  const auto by = static_cast<rkRedOp_t>(op);
  const bool has_counts = counts != nullptr;
  const std::size_t* const list = has_counts ? counts_at() : nullptr;
  rkComm_t const comm = me.comm;
  switch (kind) {
    case Kind::all_reduce:
      return epilogue == nullptr ? rkAllReduce(in, to, count, of, by, comm)
                                 : rkAllReduceThen(in, to, count, of, by, epilogue, comm);
    case Kind::reduce:
      return rkReduce(in, to, count, of, by, root, comm);
    case Kind::reduce_scatter:
      if (has_counts) return rkReduceScatterCounts(in, to, list, of, by, comm);
      return epilogue == nullptr ? rkReduceScatter(in, to, count, of, by, comm)
                                 : rkReduceScatterThen(in, to, count, of, by, epilogue, comm);
    case Kind::all_gather:
      if (has_counts) return rkAllGatherCounts(in, to, list, of, comm);
      return epilogue == nullptr ? rkAllGather(in, to, count, of, comm)
                                 : rkAllGatherThen(in, to, count, of, epilogue, comm);
    case Kind::gather:
      return has_counts ? rkGatherCounts(in, to, list, of, root, comm)
                        : rkGather(in, to, count, of, root, comm);
    case Kind::scatter:
      return has_counts ? rkScatterCounts(in, to, list, of, root, comm)
                        : rkScatter(in, to, count, of, root, comm);
    case Kind::scan:
      return rkScan(in, to, count, of, by, comm);
    case Kind::exscan:
      return rkExscan(in, to, count, of, by, comm);
    case Kind::all_to_all:
      return has_counts ? rkAllToAllCounts(in, to, list, of, comm)
                        : rkAllToAll(in, to, count, of, comm);
  }
  return rkInternalError;
}

// Raises for a closed member and for a wrong number of arguments.
bool is_callable(PyObject* self, Py_ssize_t given, Py_ssize_t needed) {
  if (given != needed) {
    return PyErr_Format(PyExc_TypeError, "%zd arguments are given; allowed are %zd", given, needed),
           false;
  }
  return reinterpret_cast<Rank*>(self)->comm != nullptr ||
         Ref(PyObject_GetAttrString(self, "_handle")) != nullptr;  // raises
}

// Runs `run` as a call of a rank on `buffers`. In a group the call is collected.
template <class Run>
PyObject* run_call(const Rank& me, std::initializer_list<const CallBuffer*> buffers,
                   PyObject* callbacks, const Run& run) {
  Py_ssize_t bytes = 0;
  for (const CallBuffer* one : buffers) bytes += *one ? (*one)->bytes() : 0;
  const bool is_light = me.is_alone && bytes <= kLightBytes && callbacks == nullptr;
  Thread& thread = this_thread;
  const bool collects = thread.depth > 0;
  EngineCall call(is_light || collects);
  if (call.end(run()) != rkSuccess || !collects) return call.result(callbacks);
  thread.is_light = thread.is_light && is_light;
  for (const CallBuffer* one : buffers) {
    if (!one->keep()) return nullptr;
  }
  for (Py_ssize_t i = 0; callbacks != nullptr && i < PyTuple_Size(callbacks); ++i) {
    if (PyList_Append(thread.callbacks, PyTuple_GetItem(callbacks, i)) != 0) return nullptr;
  }
  Py_RETURN_NONE;
}

// Arguments: x, out, op, dtype, root, counts, epilogue.
template <Kind kind>
PyObject* collective(PyObject* self, PyObject* const* args, Py_ssize_t n) {
  if (!is_callable(self, n, 7)) return nullptr;
  Collective call(*reinterpret_cast<Rank*>(self), kind);
  if (call.shape.is_rooted && !read_int("root", args[4], call.root)) return nullptr;
  if (!call.take_buffers(args[0], args[1]) || !call.take_counts(args[5]) ||
      !call.take_epilogue(args[6]) || !call.take_operation(args[2], args[3]) || !call.find_unit()) {
    return nullptr;
  }
  PyObject* const result =
      run_call(call.me, {&call.x, &call.out}, call.callbacks.get(), [&] { return call.run(); });
  if (call.is_temporary && call.me.comm != nullptr) {
    rkRedOpDestroy(static_cast<rkRedOp_t>(call.op), call.me.comm);
  }
  return result;
}

enum class Message { broadcast, send, recv };

// Arguments: the buffer, the root or the other rank, dtype.
template <Message kind>
PyObject* message(PyObject* self, PyObject* const* args, Py_ssize_t n) {
  constexpr const char* kPeers[] = {"root", "to", "source"};
  if (!is_callable(self, n, 3)) return nullptr;
  const Rank& me = *reinterpret_cast<Rank*>(self);
  CallBuffer buffer;
  int peer = 0;
  if (!buffer.take(kind == Message::recv ? "out" : "x", args[0], kind != Message::send)) {
    return nullptr;
  }
  const int number = buffer->type(args[2]);
  if (number == kNoType || !read_int(kPeers[static_cast<int>(kind)], args[1], peer)) return nullptr;
  const auto count = static_cast<std::size_t>(buffer->bytes() / buffer->item_bytes());
  const auto type = static_cast<rkDataType_t>(number);
  return run_call(me, {&buffer}, nullptr, [&] {
    if (kind == Message::broadcast) return rkBcast(buffer.address(), count, type, peer, me.comm);
    return kind == Message::send ? rkSend(buffer.address(), count, type, peer, me.comm)
                                 : rkRecv(buffer.address(), count, type, peer, me.comm);
  });
}

PyObject* barrier(PyObject* self, PyObject* const*, Py_ssize_t n) {
  if (!is_callable(self, n, 0)) return nullptr;
  const Rank& me = *reinterpret_cast<Rank*>(self);
  return run_call(me, {}, nullptr, [&] { return rkBarrier(me.comm); });
}

PyMethodDef rank_methods[] = {
    {"_all_reduce", as_method(collective<Kind::all_reduce>), kFastCall, nullptr},
    {"_reduce", as_method(collective<Kind::reduce>), kFastCall, nullptr},
    {"_reduce_scatter", as_method(collective<Kind::reduce_scatter>), kFastCall, nullptr},
    {"_all_gather", as_method(collective<Kind::all_gather>), kFastCall, nullptr},
    {"_gather", as_method(collective<Kind::gather>), kFastCall, nullptr},
    {"_scatter", as_method(collective<Kind::scatter>), kFastCall, nullptr},
    {"_scan", as_method(collective<Kind::scan>), kFastCall, nullptr},
    {"_exscan", as_method(collective<Kind::exscan>), kFastCall, nullptr},
    {"_all_to_all", as_method(collective<Kind::all_to_all>), kFastCall, nullptr},
    {"_broadcast", as_method(message<Message::broadcast>), kFastCall, nullptr},
    {"_send", as_method(message<Message::send>), kFastCall, nullptr},
    {"_recv", as_method(message<Message::recv>), kFastCall, nullptr},
    {"_barrier", as_method(barrier), kFastCall, nullptr},
    {}};

PyMemberDef rank_members[] = {{"_rank", T_INT, offsetof(Rank, rank), 0, nullptr},
                              {"_ranks", T_INT, offsetof(Rank, ranks), 0, nullptr},
                              {"_is_alone", T_BOOL, offsetof(Rank, is_alone), 0, nullptr},
                              {}};
PyGetSetDef rank_fields[] = {
    {"_comm",
     [](PyObject* self, void*) {
       void* const comm = reinterpret_cast<Rank*>(self)->comm;
       return comm == nullptr ? new_ref(Py_None).release() : PyLong_FromVoidPtr(comm);
     },
     [](PyObject* self, PyObject* comm, void*) {
       reinterpret_cast<Rank*>(self)->comm =
           comm == Py_None ? nullptr : static_cast<rkComm_t>(PyLong_AsVoidPtr(comm));
       return PyErr_Occurred() == nullptr ? 0 : -1;
     },
     nullptr, nullptr},
    {}};
PyType_Slot rank_slots[] = {{Py_tp_methods, rank_methods},
                            {Py_tp_members, rank_members},
                            {Py_tp_getset, rank_fields},
                            {Py_tp_dealloc, reinterpret_cast<void*>(free_object)},
                            {0, nullptr}};
PyType_Spec rank_spec = {"rankine._engine.Rank", sizeof(Rank), 0,
                         Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, rank_slots};

// --- Functions of rankine.h

// True for a pointer to a place for a result.
template <class T>
constexpr bool is_result = false;
template <class T>
constexpr bool is_result<T*> =
    !std::is_const_v<T> && (std::is_arithmetic_v<T> || std::is_enum_v<T> || std::is_pointer_v<T>);

// An argument of a function, or the place for a result.
template <class T>
struct Argument {
  T value{};
  T pass() { return value; }
  // A pointer is given as an int, None or bytes. False: it has raised.
  bool take(PyObject* object) {
    if constexpr (std::is_pointer_v<T>) {
      if (object == Py_None) return true;
      void* const pointer =
          PyBytes_Check(object) ? PyBytes_AsString(object) : PyLong_AsVoidPtr(object);
      value = static_cast<T>(const_cast<std::conditional_t<false, T, void*>>(pointer));
    } else if constexpr (std::is_floating_point_v<T>) {
      value = PyFloat_AsDouble(object);
    } else {
      value = static_cast<T>(PyLong_AsLongLong(object));
    }
    return PyErr_Occurred() == nullptr;
  }
};
template <class T>
requires is_result<T>
struct Argument<T> {
  std::remove_pointer_t<T> value{};
  T pass() { return &value; }
  PyObject* result() const {
    using Value = std::remove_pointer_t<T>;
    if constexpr (std::is_same_v<Value, const char*>) {
      return PyUnicode_FromString(value);
    } else if constexpr (std::is_pointer_v<Value>) {
      return value == nullptr ? new_ref(Py_None).release() : PyLong_FromVoidPtr(value);
    } else if constexpr (std::is_floating_point_v<Value>) {
      return PyFloat_FromDouble(value);
    } else {
      return PyLong_FromLongLong(static_cast<long long>(value));
    }
  }
};
template <class T>
constexpr int kTaken = is_result<T> ? 0 : 1;

// Calls `function` with the arguments that are no results. A further argument: the sequence of
// callbacks of the call.
template <class... P, std::size_t... i>
PyObject* call_function(rkResult_t (*function)(P...) noexcept, bool is_light, PyObject* const* args,
                        Py_ssize_t n, std::index_sequence<i...>) {
  constexpr Py_ssize_t kNeeded = (0 + ... + kTaken<P>);
  constexpr int kResults = static_cast<int>(sizeof...(P)) - kNeeded;
  if (n != kNeeded && n != kNeeded + 1) {
    return PyErr_Format(PyExc_TypeError, "%zd arguments are given; allowed are %zd", n, kNeeded);
  }
  std::tuple<Argument<P>...> arguments;
  PyObject* const* next = args;
  const auto take = [&](auto& argument) {
    if constexpr (requires { argument.take(nullptr); }) return argument.take(*next++);
    return true;
  };
  if (!(true && ... && take(std::get<i>(arguments)))) return nullptr;
  EngineCall call(is_light);
  call.end(function(std::get<i>(arguments).pass()...));
  PyObject* const callbacks =
      n > kNeeded && PyObject_Size(args[kNeeded]) > 0 ? args[kNeeded] : nullptr;
  Ref result(call.result(callbacks));
  if (kResults == 0 || result == nullptr) return result.release();
  Ref all(PyTuple_New(kResults));
  Py_ssize_t place = 0;
  const auto put = [&](auto& argument) {
    if constexpr (requires { argument.result(); }) {
      PyObject* const one = argument.result();
      if (one == nullptr || PyTuple_SetItem(all.get(), place++, one) != 0) all.reset();
    }
    return all != nullptr;
  };
  if (all == nullptr || !(true && ... && put(std::get<i>(arguments)))) return nullptr;
  return kResults == 1 ? new_ref(PyTuple_GetItem(all.get(), 0)).release() : all.release();
}

template <class... P>
std::index_sequence_for<P...> indices(rkResult_t (*)(P...) noexcept) {
  return {};
}

template <auto function, bool is_light = false>
PyObject* wrapped(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return call_function(function, is_light, args, n, indices(function));
}

// make_ranks(ranks, name, here, config): the handles of all ranks as threads, or with a name those
// of the ranks `here` of this process.
PyObject* make_ranks(PyObject*, PyObject* args) {
  int ranks = 0;
  const char *name = nullptr, *here = nullptr, *nodes = nullptr, *levels = nullptr;
  Py_ssize_t here_bytes = 0, nodes_bytes = 0, levels_bytes = 0, plan_bytes = 0;
  long long timeout = 0;
  rkConfig_t config = RK_CONFIG_INITIALIZER;
  if (!PyArg_ParseTuple(args, "izy#(Lzzy#y#iinzizi)", &ranks, &name, &here, &here_bytes, &timeout,
                        &config.wait, &config.network, &nodes, &nodes_bytes, &levels, &levels_bytes,
                        &config.tuned, &config.recordTimes, &plan_bytes, &config.order,
                        &config.progressCore, &config.placement, &config.ports)) {
    return nullptr;
  }
  config.timeoutMs = timeout;
  config.planBytes = static_cast<std::size_t>(plan_bytes);
  if (nodes_bytes > 0) config.nodes = reinterpret_cast<const int*>(nodes);
  config.levels = reinterpret_cast<const int*>(levels);
  config.levelCount = static_cast<int>(levels_bytes / sizeof(int));
  const int* const first = reinterpret_cast<const int*>(here);
  const std::vector<int> mine(first, first + here_bytes / sizeof(int));
  std::vector<rkComm_t> comms(name == nullptr ? static_cast<std::size_t>(ranks) : mine.size());
  EngineCall call(false);
  call.end([&] {
    if (name == nullptr) return rkCommInitAllConfig(comms.data(), ranks, &config);
    rkUniqueId id;
    const rkResult_t code = rkGetUniqueIdByName(&id, name);
    if (code != rkSuccess) return code;
    if (mine.size() == 1) return rkCommInitRankConfig(comms.data(), ranks, id, mine[0], &config);
    rkGroupStart();
    for (std::size_t i = 0; i < mine.size(); ++i) {  // the group's end reports errors
      rkCommInitRankConfig(&comms[i], ranks, id, mine[i], &config);
    }
    return rkGroupEnd();
  }());
  const Ref result(call.result());
  if (result == nullptr) return nullptr;
  Ref handles(PyList_New(0));
  for (rkComm_t const comm : comms) {
    const Ref handle(PyLong_FromVoidPtr(comm));
    if (handle == nullptr || PyList_Append(handles.get(), handle.get()) != 0) return nullptr;
  }
  return handles.release();
}

// set_options(comm, options)
PyObject* set_options(PyObject*, PyObject* args) {
  PyObject* comm = nullptr;
  const char *dims = nullptr, *skips = nullptr, *levels = nullptr;
  Py_ssize_t dims_bytes = 0, skips_bytes = 0, levels_bytes = 0;
  long long timeout = 0;
  unsigned long long tag = 0;
  rkCallOptions_t options = RK_CALL_OPTIONS_INITIALIZER;
  if (!PyArg_ParseTuple(args, "O(zzLiiiiy#y#y#Kz)", &comm, &options.algorithm, &options.transport,
                        &timeout, &options.segments, &options.group, &options.aggregation,
                        &options.radix, &dims, &dims_bytes, &skips, &skips_bytes, &levels,
                        &levels_bytes, &tag, &options.order)) {
    return nullptr;
  }
  options.timeoutMs = timeout;
  options.tag = tag;
  options.dims = reinterpret_cast<const int*>(dims);
  options.dimCount = static_cast<int>(dims_bytes / sizeof(int));
  options.skips = reinterpret_cast<const int*>(skips);
  options.skipCount = static_cast<int>(skips_bytes / sizeof(int));
  options.levels = reinterpret_cast<const int*>(levels);
  options.levelCount = static_cast<int>(levels_bytes / sizeof(int));
  EngineCall call(false);
  call.end(rkCommSetCallOptions(static_cast<rkComm_t>(PyLong_AsVoidPtr(comm)), &options));
  return call.result();
}

PyObject* flight_record(PyObject*, PyObject* comm) {
  std::vector<char> text(4096);
  for (;;) {
    std::size_t needed = 0;
    EngineCall call(false);
    call.end(rkCommFlightRecord(static_cast<rkComm_t>(PyLong_AsVoidPtr(comm)), text.data(),
                                text.size(), &needed));
    const Ref result(call.result());
    if (result == nullptr) return nullptr;
    if (needed <= text.size()) return PyUnicode_FromString(text.data());
    text.resize(needed);  // the text may have grown meanwhile
  }
}

// --- Functions of the caller

// Calls a function with numbers from a thread that may lack the GIL. It returns a rkRedFunction_t's
// or rkRowFunction_t's result, and keeps its exceptions.
int call_back(void* function, std::size_t a, std::size_t b, std::size_t c) {
  const PyGILState_STATE gil = take_gil([] { return PyGILState_Ensure(); });
  int failed = 1;
  if (const Ref result(PyObject_CallFunction(static_cast<PyObject*>(function), "nnn", a, b, c));
      result != nullptr) {
    failed = PyLong_AsLong(result.get()) == 0 ? 0 : 1;
  } else {
    PyErr_WriteUnraisable(static_cast<PyObject*>(function));
  }
  PyGILState_Release(gil);
  return failed;
}

std::size_t number_of(const void* address) { return reinterpret_cast<std::size_t>(address); }

// Ranks compare the addresses of their functions, so each of that many operations has its own.
constexpr std::size_t kReductions = 256;

template <std::size_t i>
int reduce_by(const void* in, void* inout, std::size_t count, void* function) {
  asm volatile("" ::"i"(i));  // equal functions could be merged
  return call_back(function, number_of(in), number_of(inout), count);
}
template <std::size_t... i>
constexpr std::array<rkRedFunction_t, sizeof...(i)> reductions(std::index_sequence<i...>) {
  return {reduce_by<i>...};
}

// create_operation(comm, function, number, element_bytes, commutative)
PyObject* create_operation(PyObject*, PyObject* args) {
  static constexpr auto kFunctions = reductions(std::make_index_sequence<kReductions>());
  PyObject *comm = nullptr, *function = nullptr;
  Py_ssize_t number = 0, element_bytes = 0;
  int commutative = 0;
  if (!PyArg_ParseTuple(args, "OOnnp", &comm, &function, &number, &element_bytes, &commutative)) {
    return nullptr;
  }
  rkRedOp_t op{};
  EngineCall call(true);
  call.end(rkRedOpCreate(&op, kFunctions[static_cast<std::size_t>(number) % kReductions],
                         static_cast<std::size_t>(element_bytes), commutative, function,
                         static_cast<rkComm_t>(PyLong_AsVoidPtr(comm))));
  return Ref(call.result()) == nullptr ? nullptr : PyLong_FromLong(op);
}

// create_epilogue(steps)
PyObject* create_epilogue(PyObject*, PyObject* args) {
  rkRowSteps_t steps = RK_ROW_STEPS_INITIALIZER;
  int type = 0, norm = 0, activation = 0, out_type = 0;
  Py_ssize_t elements = 0, bias = 0, residual = 0, weight = 0, shift = 0, out = 0, scales = 0;
  if (!PyArg_ParseTuple(args, "innninnfiinn", &type, &elements, &bias, &residual, &norm, &weight,
                        &shift, &steps.epsilon, &activation, &out_type, &out, &scales)) {
    return nullptr;
  }
  const auto at = [](Py_ssize_t address) { return reinterpret_cast<void*>(address); };
  steps.type = static_cast<rkDataType_t>(type);
  steps.rowElements = static_cast<std::size_t>(elements);
  steps.bias = at(bias);
  steps.residual = at(residual);
  steps.norm = static_cast<rkNorm_t>(norm);
  steps.weight = at(weight);
  steps.shift = at(shift);
  steps.activation = static_cast<rkActivation_t>(activation);
  steps.outType = static_cast<rkDataType_t>(out_type);
  steps.out = at(out);
  steps.scales = static_cast<float*>(at(scales));
  rkEpilogue_t epilogue = nullptr;
  EngineCall call(true);
  call.end(rkEpilogueCreate(&epilogue, &steps));
  return Ref(call.result()) == nullptr ? nullptr : PyLong_FromVoidPtr(epilogue);
}

// create_row_function(row_elements, function)
PyObject* create_row_function(PyObject*, PyObject* args) {
  Py_ssize_t elements = 0;
  PyObject* function = nullptr;
  if (!PyArg_ParseTuple(args, "nO", &elements, &function)) return nullptr;
  const auto run = [](const void* rows, std::size_t first, std::size_t count, void* called) {
    return call_back(called, number_of(rows), first, count);
  };
  rkEpilogue_t epilogue = nullptr;
  EngineCall call(true);
  call.end(rkEpilogueCreateFunction(&epilogue, static_cast<std::size_t>(elements), run, function));
  return Ref(call.result()) == nullptr ? nullptr : PyLong_FromVoidPtr(epilogue);
}

// memory(address, bytes): a memoryview.
PyObject* memory(PyObject*, PyObject* args) {
  Py_ssize_t address = 0, bytes = 0;
  constexpr int kWritable = 0x200;
  if (!PyArg_ParseTuple(args, "nn", &address, &bytes)) return nullptr;
  return PyMemoryView_FromMemory(reinterpret_cast<char*>(address), bytes, kWritable);
}

// --- Groups

PyObject* is_in_group(PyObject*, PyObject*) { return PyBool_FromLong(this_thread.depth > 0); }

// keep(buffers): keeps them for the open group, if there is one.
PyObject* keep(PyObject*, PyObject* buffers) {
  if (this_thread.depth == 0) Py_RETURN_NONE;
  return PyObject_CallMethod(this_thread.buffers, "extend", "O", buffers);
}

PyObject* group_start(PyObject*, PyObject*) {
  Thread& thread = this_thread;
  if (thread.depth == 0) {
    thread.buffers = PyList_New(0);
    thread.callbacks = PyList_New(0);
    thread.is_light = true;
  }
  ++thread.depth;
  EngineCall call(true);
  call.end(rkGroupStart());
  return call.result();
}

// group_end(drop): makes the calls of the group, or none.
PyObject* group_end(PyObject*, PyObject* drop) {
  Thread& thread = this_thread;
  const bool drops = drop == Py_True;
  if (drops) rkBarrier(nullptr);  // an invalid call: rkGroupEnd() then makes none
  EngineCall call(thread.depth > 1 || thread.is_light);
  call.end(rkGroupEnd());
  if (--thread.depth > 0) Py_RETURN_NONE;
  Ref(std::exchange(thread.buffers, nullptr));
  const Ref callbacks(std::exchange(thread.callbacks, nullptr));
  if (drops) Py_RETURN_NONE;
  return call.result(PyList_Size(callbacks.get()) == 0 ? nullptr : callbacks.get());
}

// collect(is_prepared, call, arguments, options): runs `call` in a group and ends the group by a
// request. Returns the request, the buffers and callbacks of its calls, and if it is light.
PyObject* collect(PyObject*, PyObject* args) {
  int is_prepared = 0;
  PyObject *called = nullptr, *arguments = nullptr, *options = nullptr;
  if (!PyArg_ParseTuple(args, "pOOO", &is_prepared, &called, &arguments, &options)) return nullptr;
  Thread& thread = this_thread;
  if (thread.depth > 0) return not_now("a group is open; start calls outside of groups");
  if (Ref(group_start(nullptr, nullptr)) == nullptr) return nullptr;
  Ref done(PyObject_Call(called, arguments, options));
  rkRequest_t request = nullptr;
  if (done != nullptr) {
    EngineCall call(thread.is_light);
    call.end(is_prepared ? rkGroupEndPrepare(&request) : rkGroupEndAsync(&request));
    done.reset(call.result());
  }
  const Ref error = done == nullptr ? taken_exception() : Ref();
  rkBarrier(nullptr);  // if the group is still open, it makes no calls
  rkGroupEnd();
  thread.depth = 0;
  const Ref buffers(std::exchange(thread.buffers, nullptr));
  const Ref callbacks(std::exchange(thread.callbacks, nullptr));
  if (error != nullptr) {
    PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(error.get())), error.get());
    return nullptr;
  }
  return Py_BuildValue("NOOO", PyLong_FromVoidPtr(request), buffers.get(), callbacks.get(),
                       thread.is_light ? Py_True : Py_False);
}

// --- The module

#define RANKINE_FUNCTION(name) \
  { #name, as_method(wrapped <name>), kFastCall, nullptr }
PyMethodDef functions[] = {
    RANKINE_FUNCTION(rkBucketsAdd),
    RANKINE_FUNCTION(rkBucketsAddUnused),
    RANKINE_FUNCTION(rkBucketsAllReduce),
    RANKINE_FUNCTION(rkBucketsCreate),
    RANKINE_FUNCTION(rkBucketsDestroy),
    RANKINE_FUNCTION(rkBucketsFlush),
    RANKINE_FUNCTION(rkBucketsGetCalls),
    RANKINE_FUNCTION(rkBucketsWait),
    RANKINE_FUNCTION(rkAllToAllDisplaced),
    RANKINE_FUNCTION(rkCommAbort),
    RANKINE_FUNCTION(rkCommCompute),
    RANKINE_FUNCTION(rkCommCount),
    RANKINE_FUNCTION(rkCommCpu),
    RANKINE_FUNCTION(rkCommDestroy),
    RANKINE_FUNCTION(rkCommFail),
    RANKINE_FUNCTION(rkCommGetAsyncError),
    RANKINE_FUNCTION(rkCommGetOrder),
    RANKINE_FUNCTION(rkCommModelTime),
    RANKINE_FUNCTION(rkCommPinThread),
    RANKINE_FUNCTION(rkCommPortsInUse),
    RANKINE_FUNCTION(rkCommProgress),
    RANKINE_FUNCTION(rkCommSplit),
    RANKINE_FUNCTION(rkCommUserRank),
    RANKINE_FUNCTION(rkEpilogueApply),
    RANKINE_FUNCTION(rkEpilogueDestroy),
    RANKINE_FUNCTION(rkGetVersion),
    RANKINE_FUNCTION(rkRedOpCreatePreMulSum),
    RANKINE_FUNCTION(rkRequestFree),
    RANKINE_FUNCTION(rkRequestGetOrders),
    RANKINE_FUNCTION(rkRequestStart),
    RANKINE_FUNCTION(rkRequestTest),
    RANKINE_FUNCTION(rkRequestWait),
    RANKINE_FUNCTION(rkRequestWaitAll),
    RANKINE_FUNCTION(rkRequestWaitFor),
    {"start_light", as_method(wrapped<rkRequestStart, true>), kFastCall, nullptr},
    {"wait_light", as_method(wrapped<rkRequestWait, true>), kFastCall, nullptr},
    {"collect", collect, METH_VARARGS, nullptr},
    {"create_epilogue", create_epilogue, METH_VARARGS, nullptr},
    {"create_operation", create_operation, METH_VARARGS, nullptr},
    {"create_row_function", create_row_function, METH_VARARGS, nullptr},
    {"flight_record", flight_record, METH_O, nullptr},
    {"group_end", group_end, METH_O, nullptr},
    {"group_start", group_start, METH_NOARGS, nullptr},
    {"is_in_group", is_in_group, METH_NOARGS, nullptr},
    {"keep", keep, METH_O, nullptr},
    {"make_ranks", make_ranks, METH_VARARGS, nullptr},
    {"memory", memory, METH_VARARGS, nullptr},
    {"set_options", set_options, METH_VARARGS, nullptr},
    {}};

PyModuleDef definition = {PyModuleDef_HEAD_INIT,
                          "rankine._engine",
                          nullptr,
                          -1,
                          functions,
                          nullptr,
                          nullptr,
                          nullptr,
                          nullptr};

// Adds {name: number} to the module and to `numbers`.
template <class Row, class Name>
bool add_numbers(PyObject* module, const char* field, const Row& rows, PyObject*& numbers,
                 const Name& name) {
  numbers = PyDict_New();
  int number = 0;
  for (const auto& row : rows) {
    const Ref value(PyLong_FromLong(number++));
    if (PyDict_SetItemString(numbers, name(row), value.get()) != 0) return false;
  }
  return PyModule_AddObject(module, field, new_ref(numbers).release()) == 0;
}

bool add_type(PyObject* module, const char* name, PyType_Spec& spec, PyTypeObject*& type) {
  type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
  if (type == nullptr) return false;
  return PyModule_AddObject(module, name, new_ref(reinterpret_cast<PyObject*>(type)).release()) ==
         0;
}

bool fill(PyObject* module) {
  get_buffer = reinterpret_cast<decltype(get_buffer)>(dlsym(RTLD_DEFAULT, "PyObject_GetBuffer"));
  release_buffer =
      reinterpret_cast<decltype(release_buffer)>(dlsym(RTLD_DEFAULT, "PyBuffer_Release"));
  if (get_buffer == nullptr || release_buffer == nullptr) {
    PyErr_SetString(PyExc_ImportError, "this Python has no PyObject_GetBuffer()");
    return false;
  }
  errors = PyImport_ImportModule("rankine._errors");
  PyTypeObject* rank_type = nullptr;
  PyObject* sizes = nullptr;
  if (errors == nullptr || !add_type(module, "Buffer", buffer_spec, buffer_type) ||
      !add_type(module, "Rank", rank_spec, rank_type) ||
      !add_numbers(module, "TYPES", kTypes, type_numbers, [](const Type& t) { return t.name; }) ||
      !add_numbers(module, "OPERATIONS", kOperations, operation_numbers,
                   [](const char* name) { return name; })) {
    return false;
  }
  sizes = PyDict_New();
  for (const Type& type : kTypes) {
    const Ref bytes(PyLong_FromLong(type.bytes));
    if (PyDict_SetItemString(sizes, type.name, bytes.get()) != 0) return false;
  }
  return PyModule_AddObject(module, "BYTES", sizes) == 0;
}

}  // namespace

extern "C" [[gnu::visibility("default")]] PyObject* PyInit__engine() {
  Ref module(PyModule_Create(&definition));
  if (module == nullptr || !fill(module.get())) return nullptr;
  return module.release();
}
