// What the sanitizers must know about libraries that were not built with them. Inside the program and not in an environment
// variable, so that it holds however the program is started.

#if defined(__SANITIZE_THREAD__)
#define RANKINE_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define RANKINE_TSAN 1
#endif
#endif

#ifdef RANKINE_TSAN
// oneTBB hands work from thread to thread inside Debian's library, where ThreadSanitizer cannot see the hand-over and so takes
// every loop body for a race. The price: a real race between two loop bodies stays unseen. Collectives never run on TBB.
extern "C" const char* __tsan_default_suppressions();
extern "C" const char* __tsan_default_suppressions() {
  return "race:libtbb.so\n"
         "race:oneapi/tbb/\n";
}
#endif
