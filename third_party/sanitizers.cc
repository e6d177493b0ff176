// Suppressions for libraries that were built without sanitizers. They are part of the program, not
// an environment variable, so they work in every way of starting it.

#if defined(__SANITIZE_THREAD__)
#define RANKINE_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define RANKINE_TSAN 1
#endif
#endif

#ifdef RANKINE_TSAN
// oneTBB moves work between threads inside Debian's library. ThreadSanitizer cannot see this and
// would report every loop body as a race. The price: a real race between two loop bodies stays
// unseen. Collectives never run on TBB.
extern "C" const char* __tsan_default_suppressions();
extern "C" const char* __tsan_default_suppressions() {
  return "race:libtbb.so\n"
         "race:oneapi/tbb/\n";
}
#endif
