// Traces are replayed in the order of their text, in which those with a common beginning follow each other.
#include "tuner/cost/shared_replays.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "codegen/ir/debug.h"

namespace mycc {
namespace {

// Parts of the order begin anew, so they are not too short.
constexpr size_t kLeastPart = 8, kPartsOfThread = 2;

using Lines = std::vector<std::string_view>;

// The first line is the version, so that line number d is step number d.
Lines LinesOf(std::string_view steps_key) {
  Lines lines;
  for (size_t begin = 0; begin < steps_key.size();) {
    const size_t end = std::min(steps_key.find('\n', begin), steps_key.size());
    lines.push_back(steps_key.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

size_t CommonLines(const Lines& a, const Lines& b) {
  const size_t most = std::min(a.size(), b.size());
  size_t common = 0;
  while (common < most && a[common] == b[common]) ++common;
  return common;
}

}  // namespace

// The steps on the way to a node are the beginning of traces; its function is theirs.
struct SharedReplays::Node {
  std::optional<Function> function;
  std::map<std::string, NodePtr, std::less<>> next;  // by step
};

void SharedReplays::NodeDeleter::operator()(Node* node) const { delete node; }

struct SharedReplays::Branch {
  size_t trace, depth;
  Function function;
};

struct SharedReplays::Work {
  const Target& target;
  const std::vector<Asked>& asked;
  std::vector<Lines> lines;   // of each trace
  std::vector<size_t> order;  // of the traces, by their text
  const Use& use;
};

const Function* SharedReplays::Longer(const Lines& lines, size_t* depth) const {
  const Function* longest = nullptr;
  const Node* node = root_.get();
  for (size_t d = 1; node != nullptr && d < lines.size(); ++d) {
    const auto found = node->next.find(lines[d]);
    if (found == node->next.end()) break;
    node = found->second.get();
    if (!node->function || d <= *depth) continue;
    longest = &*node->function;
    *depth = d;
  }
  return longest;
}

void SharedReplays::Keep(const Lines& lines, size_t depth, Function function) {
  if (root_ == nullptr || functions_ >= most_functions_) {
    root_.reset(new Node());
    functions_ = 0;
  }
  Node* node = root_.get();
  for (size_t d = 1; d <= depth; ++d) {
    NodePtr& next = node->next[std::string(lines[d])];
    if (next == nullptr) next.reset(new Node());
    node = next.get();
  }
  if (!node->function) ++functions_;
  node->function = std::move(function);
}

void SharedReplays::ReplayPart(const Work& work, size_t begin, size_t end,
                               std::vector<Branch>* branches) const {
  std::vector<std::optional<Function>> path;  // by depth: the last trace's functions
  for (size_t place = begin; place < end; ++place) {
    const size_t trace = work.order[place];
    const Lines& lines = work.lines[trace];
    const std::vector<Step>& steps = work.asked[trace].trace->steps;
    const TimedStep timed("replay", [&] { return PrintSketch(*work.asked[trace].trace); });
    size_t common = place == begin ? 0 : CommonLines(lines, work.lines[work.order[place - 1]]);
    path.resize(std::min(path.size(), std::max<size_t>(common, 1)));
    size_t depth = path.empty() ? 0 : path.size() - 1;
    while (depth > 0 && !path[depth]) --depth;
    path.resize(steps.size() + 1);
    if (depth == 0) path[0] = naive_;
    if (const Function* longer = Longer(lines, &depth)) path[depth] = *longer;
    const size_t shared = place + 1 < end ? CommonLines(lines, work.lines[work.order[place + 1]]) : 0;
    const size_t fresh = depth;
    absl::Status status;
    for (; depth < steps.size(); ++depth) {
      absl::StatusOr<Function> next = ApplyStep(*path[depth], work.target, steps[depth]);
      status = next.status();
      if (!status.ok()) break;
      path[depth + 1] = *std::move(next);
    }
    if (status.ok()) {
      work.use(trace, *path[steps.size()]);
    } else {
      work.use(trace, absl::Status(status.code(), absl::StrCat("step ", depth + 1, ": ", status.message())));
    }
    // The last step before the next trace goes another way.
    if (const size_t branch = shared - std::min<size_t>(shared, 1); branch > fresh && branch <= depth)
      branches->push_back({trace, branch, *path[branch]});
  }
}

void SharedReplays::Replay(const std::string& task, const Workload& canonical, const Target& target,
                           const std::vector<Asked>& asked, ParallelFor* parallel, const Use& use) {
  if (!naive_ || task != task_) {
    root_.reset();
    functions_ = 0;
    task_ = task;
    naive_ = BuildNaive(canonical);
  }
  Work work{target, asked, {}, std::vector<size_t>(asked.size()), use};
  for (const Asked& one : asked) work.lines.push_back(LinesOf(one.steps_key));
  std::iota(work.order.begin(), work.order.end(), size_t{0});
  std::ranges::stable_sort(work.order, [&](size_t a, size_t b) { return work.lines[a] < work.lines[b]; });
  const size_t most_parts = parallel->width() == 1 ? 1 : kPartsOfThread * parallel->width();
  const size_t parts = std::clamp<size_t>(asked.size() / kLeastPart, 1, most_parts);
  std::vector<std::vector<Branch>> branches(parts);
  parallel->Run(parts, [&](size_t part) {
    const auto edge = [&](size_t number) { return number * asked.size() / parts; };
    ReplayPart(work, edge(part), edge(part + 1), &branches[part]);
  });
  for (std::vector<Branch>& of_part : branches) {
    for (Branch& branch : of_part) Keep(work.lines[branch.trace], branch.depth, std::move(branch.function));
  }
}

}  // namespace mycc
