#include "launch/entry.h"

#include <c10/util/Exception.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <new>
#include <sstream>
#include <thread>

#include "dist/comm/world.h"
#include "kernels/base/cuda_error.h"
#include "kernels/base/error.h"
#include "kernels/base/printable.h"

namespace pal::launch {

Context::Context() = default;
Context::~Context() = default;

dist::World& Context::start_world() {
  if (!world) world = std::make_unique<dist::World>();
  return *world;
}

namespace {

// A sentence may quote names of files and classes.
std::string printable_lines(const std::string& text) {
  std::istringstream lines(text);
  std::string out;
  for (std::string line; std::getline(lines, line);) out += (out.empty() ? "" : "\n") + printable(line);
  return out;
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

// Of LibTorch's message the sentences with what was asked for and what is free.
std::string out_of_device_memory(const std::string& message) {
  constexpr const char* kEnd = " is free.";
  const size_t end = message.find(kEnd);
  return (end == std::string::npos ? first_line(message) : message.substr(0, end + std::strlen(kEnd) - 1)) + "; " +
         kLessDeviceMemory;
}

// Prints the error. In a world of several ranks it then ends all of them and does not return.
int end_with(Exit code, const std::string& sentence, Context& context) {
  const bool many = context.world && context.world->size() > 1;
  std::fflush(stdout);
  // An error that occurs on every rank is printed once: rank 0 prints at once, and its abort ends the other ranks.
  if (many && context.world->rank() > 0) std::this_thread::sleep_for(std::chrono::milliseconds(500));
  std::fprintf(stderr, "%serror: %s\n", many ? (context.world->prefix() + " ").c_str() : "",
               printable_lines(sentence).c_str());
  if (many) context.world->abort(static_cast<int>(code));
  if (context.world) context.world->close();  // of one rank: waits for no other
  return static_cast<int>(code);
}

int run(const std::vector<std::string>& args, Context& context, CommandFunction command) {
  try {
    const int code = command(args, context);
    if (context.world) context.world->close();
    return code;
  } catch (...) {
    const Error error = as_error(std::current_exception());
    return end_with(error.code(), error.what(), context);
  }
}

}  // namespace

Error as_error(const std::exception_ptr& thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const Error& e) {
    return e;
  } catch (const std::bad_alloc&) {
    return Error(
        Exit::bug,
        "this process is out of memory; use a smaller train.global_batch or model, or a machine with more memory");
  } catch (const c10::OutOfMemoryError& e) {
    return Error(Exit::usage, out_of_device_memory(e.what_without_backtrace()));
#ifdef PAL_WITH_CUDA
  } catch (const c10::AcceleratorError& e) {
    return cuda_error(e.get_error_code(), first_line(e.what_without_backtrace()));
#endif
  } catch (const c10::Error& e) {
    return Error(Exit::bug,
                 "internal error in LibTorch: " + first_line(e.what_without_backtrace()) + "; please report it");
  } catch (const std::exception& e) {
    return Error(Exit::bug, "internal error: " + first_line(e.what()) + "; please report it");
  }
}

int run_program(int argc, char** argv, CommandFunction command) {
  std::signal(SIGXFSZ,
              SIG_IGN);  // a write past the file size limit then fails with an error instead of killing the process
  Context context;
  std::error_code error;
  context.program = std::filesystem::read_symlink("/proc/self/exe", error).string();
  if (error) context.program = argv[0];
  return run(std::vector<std::string>(argv + 1, argv + argc), context, command);
}

}  // namespace pal::launch
