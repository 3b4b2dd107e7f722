#include "tests/simgpu/runtime/timeline.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace simgpu {
namespace {

// Polls, 20 microseconds and more each, before the other streams continue.
constexpr int kPatience = 10'000;

bool is_done(const WorkRef& work) { return work == nullptr || work->done; }

}  // namespace

Timeline::Timeline(StreamMode mode, uint64_t seed, std::function<void()> idle)
    : mode_(mode), idle_(std::move(idle)), draw_(seed) {
  create(StreamKind::legacy_default);
}

Stream& Timeline::create(StreamKind kind) {
  streams_.push_back(std::make_unique<Stream>(Stream{kind, nullptr}));
  return *streams_.back();
}

void Timeline::destroy(Stream& stream) {
  if (!is_done(stream.last)) orphans_.push_back(stream.last);
  streams_.erase(std::find_if(streams_.begin(), streams_.end(), [&](const auto& s) { return s.get() == &stream; }));
}

bool Timeline::knows(const Stream* stream) const {
  return std::any_of(streams_.begin(), streams_.end(), [&](const auto& s) { return s.get() == stream; });
}

WorkRef Timeline::put(Stream& stream) {
  auto work = std::make_shared<Work>();
  const auto after = [&](const WorkRef& before) {
    if (!is_done(before)) work->before.push_back(before);
  };
  after(stream.last);
  if (stream.kind == StreamKind::legacy_default) {
    for (const auto& s : streams_) {
      if (s->kind == StreamKind::blocking) after(s->last);
    }
  } else if (stream.kind == StreamKind::blocking) {
    after(default_stream().last);
  }
  stream.last = work;
  return work;
}

WorkRef Timeline::add(Stream& stream, std::function<void()> run) {
  WorkRef work = put(stream);
  work->run = std::move(run);
  if (mode_ == StreamMode::now) finish(work);
  return work;
}

WorkRef Timeline::add_polled(Stream& stream, std::function<bool()> poll) {
  WorkRef work = put(stream);
  work->poll = std::move(poll);
  return work;
}

void Timeline::order(Stream& stream, const WorkRef& before) {
  if (is_done(before)) return;
  add(stream, [] {})->before.push_back(before);
}

// One of those that must precede it and are not done; null: all are done.
WorkRef Timeline::pending(const Work& work) {
  std::vector<WorkRef> open;
  std::copy_if(work.before.begin(), work.before.end(), std::back_inserter(open),
               [](const WorkRef& before) { return !is_done(before); });
  if (open.empty()) return nullptr;
  return open[open.size() == 1 ? 0 : draw_() % open.size()];
}

void Timeline::run_toward(const WorkRef& work, Pieces pieces) {
  if (is_done(work)) return;
  std::vector<WorkRef> path{work};  // not by recursion: a stream may hold a hundred thousand pieces
  int polls = 0;
  while (!path.empty()) {
    const WorkRef at = path.back();
    if (!at->done) {
      if (WorkRef before = pending(*at)) {
        path.push_back(std::move(before));
        continue;
      }
    }
    if (!at->done && at->poll && !at->poll()) {
      if (pieces == Pieces::one) return;
      idle_();
      if (++polls % kPatience == 0) advance_others();
      continue;
    }
    path.pop_back();
    if (at->done) continue;
    if (at->run) std::exchange(at->run, nullptr)();
    at->poll = nullptr;
    at->done = true;
    at->before.clear();
    if (pieces == Pieces::one) return;
  }
}

void Timeline::advance_others() {
  if (advancing_) return;
  advancing_ = true;
  std::vector<WorkRef> ends = orphans_;
  for (const auto& stream : streams_) ends.push_back(stream->last);
  for (const WorkRef& end : ends) run_toward(end, Pieces::one);
  advancing_ = false;
}

void Timeline::finish(const WorkRef& work) { run_toward(work, Pieces::all); }

void Timeline::finish_all() {
  std::vector<WorkRef> ends = std::exchange(orphans_, {});
  for (const auto& stream : streams_) ends.push_back(stream->last);
  std::shuffle(ends.begin(), ends.end(), draw_);
  for (const WorkRef& end : ends) finish(end);
}

bool Timeline::query(const WorkRef& work) {
  if (is_done(work)) return true;
  run_toward(work, Pieces::one);
  return false;
}

}  // namespace simgpu
