// timeline: the work of all streams and what must be done before what.
//
// In mode `now` work runs when it is enqueued. In mode `late` it runs when the program waits for it, not before, and
// with it only what must precede it: the stream's earlier work, events for which the stream waits, and the legacy
// default stream's rule (it waits for all blocking streams, and they for it). A program that forgets to wait reads old
// data. Where several pieces must precede one, or the program waits for several streams at once, their order is drawn
// from the seed: a wait that is missing between two of them then shows with some seeds.
// While polled work (a collective) waits for other processes, the other streams proceed after a while, as on a device:
// the other processes may be waiting for them.
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
  std::function<bool()> poll;  // of work that runs elsewhere: called, once it may start, until it returns true
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
  WorkRef pending(const Work& work);
  void advance_others();

  StreamMode mode_;
  std::function<void()> idle_;
  std::mt19937_64 draw_;
  std::vector<std::unique_ptr<Stream>> streams_;
  std::vector<WorkRef> orphans_;  // last work of destroyed streams
  bool advancing_ = false;        // inside advance_others()
};

}  // namespace simgpu
