// timeline: the work of all streams and what must be done before what.
//
// In mode `now` work is done when it is given. In mode `late` it is done when somebody waits for it, not before, and
// only what was waited for and what must precede that: its stream's earlier work, events the stream was told to wait
// for, and the legacy default stream's rule (it waits for all blocking streams, and they for it). Whoever forgets to
// wait sees old data, every time. Where several streams are waited for at once, their order is drawn from the seed.
// Thread: callers serialize.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <vector>

#include "tests/simgpu/settings.h"

namespace simgpu {

struct Work {
  std::function<void()> run;
  std::function<bool()> poll;  // of work that goes on elsewhere: asked, once it may start, until it says true
  std::vector<std::shared_ptr<Work>> before;
  bool done = false;
};
using WorkRef = std::shared_ptr<Work>;  // null: nothing, which is done

enum class StreamKind { legacy_default, blocking, non_blocking };

struct Stream {
  StreamKind kind = StreamKind::blocking;
  WorkRef last;
};

class Timeline {
 public:
  // `idle` is called while polled work is waited for: it lets other threads in and sleeps a little.
  Timeline(
      StreamMode mode, uint64_t seed, std::function<void()> idle = [] {});

  Stream& default_stream() { return *streams_.front(); }
  Stream& create(StreamKind kind);
  void destroy(Stream& stream);  // its work stays, to be done when something waits for it
  bool knows(const Stream* stream) const;

  WorkRef add(Stream& stream, std::function<void()> run);  // may not throw
  WorkRef add_polled(Stream& stream, std::function<bool()> poll);
  void order(Stream& stream, const WorkRef& before);  // what the stream gets from now on waits for this
  void finish(const WorkRef& work);
  void finish_all();
  bool query(const WorkRef& work);  // whether it is done; if not, does one piece toward it, so that polling ends

 private:
  enum class Pieces { one, all };
  WorkRef put(Stream& stream);
  void run_toward(const WorkRef& work, Pieces pieces);

  StreamMode mode_;
  std::function<void()> idle_;
  std::mt19937_64 draw_;
  std::vector<std::unique_ptr<Stream>> streams_;
  std::vector<WorkRef> orphans_;  // last work of destroyed streams
};

}  // namespace simgpu
