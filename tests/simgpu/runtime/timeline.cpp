#include "tests/simgpu/runtime/timeline.h"

#include <algorithm>
#include <utility>

namespace simgpu {
namespace {

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

void Timeline::run_toward(const WorkRef& work, Pieces pieces) {
  if (is_done(work)) return;
  std::vector<WorkRef> path{work};  // not by recursion: a stream may hold a hundred thousand pieces
  while (!path.empty()) {
    const WorkRef at = path.back();
    const auto pending = std::find_if_not(at->before.begin(), at->before.end(), is_done);
    if (pending != at->before.end()) {
      path.push_back(*pending);
      continue;
    }
    if (!at->done && at->poll && !at->poll()) {
      if (pieces == Pieces::one) return;
      idle_();
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
