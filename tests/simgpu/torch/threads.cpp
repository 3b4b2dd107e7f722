// threads: counts the threads that pal_simgpu creates and its sleeps (../runtime/counters.h).
//
// The program's functions of these names come before those of libc. What a stand-in does is not counted.
#include <dlfcn.h>
#include <pthread.h>
#include <time.h>
#include <unistd.h>

#include <string>

#include "tests/simgpu/runtime/counters.h"

namespace {

std::string file_of(const void* address) {
  Dl_info found{};
  return dladdr(address, &found) != 0 && found.dli_fname != nullptr ? found.dli_fname : "";
}

std::string folder_of(const std::string& path) { return path.substr(0, path.rfind('/') + 1); }

// `caller` is an address in the code that called.
void count(simgpu::Count kind, const char* what, const void* caller) {
  using Function = void (*)(int, const char*, size_t);
  static const auto counter = reinterpret_cast<Function>(dlsym(RTLD_DEFAULT, "simgpu_count"));
  static const std::string stand_ins = folder_of(file_of(reinterpret_cast<const void*>(counter)));
  const std::string file = file_of(caller);
  if (counter == nullptr || folder_of(file) == stand_ins) return;
  const bool main_thread = gettid() == getpid();
  const std::string text = std::string(what) + " by " + file.substr(file.rfind('/') + 1) +
                           (main_thread ? ", main thread" : ", another thread");
  counter(static_cast<int>(kind), text.c_str(), 0);
}

// std::thread calls from libstdc++; the virtual table of what it gives to the thread is in the file that made it.
const void* maker(const void* caller, const void* argument) {
  const bool is_std = argument != nullptr && file_of(caller).find("libstdc++") != std::string::npos;
  return is_std ? *static_cast<const void* const*>(argument) : caller;
}

// The function of libc, or of a sanitizer.
template <class F>
F next(const char* name) {
  return reinterpret_cast<F>(dlsym(RTLD_NEXT, name));
}

using Create = int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
using Sleep = int (*)(const timespec*, timespec*);
using ClockSleep = int (*)(clockid_t, int, const timespec*, timespec*);
using MicroSleep = int (*)(useconds_t);

}  // namespace

extern "C" {

int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*start)(void*),
                   void* argument) noexcept {
  static const auto real = next<Create>("pthread_create");
  count(simgpu::Count::thread, "pthread_create", maker(__builtin_return_address(0), argument));
  return real(thread, attributes, start, argument);
}

int nanosleep(const timespec* time, timespec* left) {
  static const auto real = next<Sleep>("nanosleep");
  count(simgpu::Count::sleep, "nanosleep", __builtin_return_address(0));
  return real(time, left);
}

int clock_nanosleep(clockid_t clock, int flags, const timespec* time, timespec* left) {
  static const auto real = next<ClockSleep>("clock_nanosleep");
  count(simgpu::Count::sleep, "clock_nanosleep", __builtin_return_address(0));
  return real(clock, flags, time, left);
}

int usleep(useconds_t time) {
  static const auto real = next<MicroSleep>("usleep");
  count(simgpu::Count::sleep, "usleep", __builtin_return_address(0));
  return real(time);
}

}  // extern "C"
