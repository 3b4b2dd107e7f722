#include "core/io/crash_guard.h"

#include <signal.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>
#include <iterator>
#include <memory>
#include <mutex>

#include "kernels/base/error.h"

namespace pal::io {
namespace {

constexpr int kSignals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
constexpr size_t kStack = 1 << 16;

// What a handler of signals can see: nothing but globals.
thread_local const char* t_library = nullptr;  // null: this thread has no guard
thread_local const std::string* t_path = nullptr;
thread_local std::unique_ptr<char[]> t_stack;  // for the handler, because the crash may be a stack overflow
std::mutex g_mutex;
int g_guards = 0;  // of all threads
struct sigaction g_before[std::size(kSignals)];

void put(const char* text, size_t bytes) {
  char shown[1024];
  const size_t most = bytes < sizeof(shown) ? bytes : sizeof(shown);
  for (size_t k = 0; k < most; ++k) shown[k] = text[k] >= 0x20 && text[k] < 0x7f ? text[k] : '?';
  if (write(STDERR_FILENO, shown, most) < 0) return;  // nothing can be done
}
void put(const char* text) { put(text, std::strlen(text)); }

void on_crash(int signal) {
  if (t_library == nullptr) {  // on another thread: as without guards
    for (size_t k = 0; k < std::size(kSignals); ++k) {
      if (kSignals[k] == signal) sigaction(signal, &g_before[k], nullptr);
    }
    raise(signal);
    return;
  }
  put("error: ");
  put(t_library);
  put(" crashed while it read this file: ");
  put(t_path->data(), t_path->size());
  put("; the file is damaged, or made to do harm: copy it again from its source, or leave it out");
  if (write(STDERR_FILENO, "\n", 1) < 0) _exit(static_cast<int>(Exit::data));
  _exit(static_cast<int>(Exit::data));
}

void use_own_stack() {
  stack_t stack{};
  if (t_stack != nullptr || sigaltstack(nullptr, &stack) != 0 || (stack.ss_flags & SS_DISABLE) == 0) return;
  t_stack = std::make_unique<char[]>(kStack);
  stack = {t_stack.get(), 0, kStack};
  sigaltstack(&stack, nullptr);
}

}  // namespace

CrashGuard::CrashGuard(const char* library, const std::string& path) : outermost_(t_library == nullptr) {
  if (!outermost_) return;
  use_own_stack();
  t_path = &path;
  t_library = library;
  const std::lock_guard<std::mutex> lock(g_mutex);
  if (g_guards++ > 0) return;
  struct sigaction action {};
  action.sa_handler = on_crash;
  action.sa_flags = SA_ONSTACK;
  for (size_t k = 0; k < std::size(kSignals); ++k) sigaction(kSignals[k], &action, &g_before[k]);
}

CrashGuard::~CrashGuard() {
  if (!outermost_) return;
  {
    const std::lock_guard<std::mutex> lock(g_mutex);
    if (--g_guards == 0) {
      for (size_t k = 0; k < std::size(kSignals); ++k) sigaction(kSignals[k], &g_before[k], nullptr);
    }
  }
  t_library = nullptr;
}

}  // namespace pal::io
