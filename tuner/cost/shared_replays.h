// Replays many traces of one task and shares the work: traces that begin with the same steps have the same
// function after these steps, so each such beginning is replayed once. The candidates of a generation differ
// in few decisions, and most share half of their steps with others. One call serves the next, too: it keeps
// the functions behind which traces went different ways. Thread rule: thread-compatible.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "base/parallel_for.h"
#include "codegen/schedule/schedule.h"

namespace mycc {

class SharedReplays {
 public:
  struct Asked {
    const Trace* trace = nullptr;
    std::string_view steps_key;  // StepsKey of the trace; outlives the call
  };
  // Called for each trace with its function, or with what Replay() says where it does not replay. Calls are
  // in no order, and several at a time where the threads are several.
  using Use = std::function<void(size_t trace, const absl::StatusOr<Function>& function)>;

  // Keeps at most `most_functions` between calls, all of the latest task. They share what they have in
  // common, and take some kilobytes each.
  explicit SharedReplays(size_t most_functions = 512) : most_functions_(most_functions) {}

  // `task` is a name of the workload and the target. The functions do not depend on earlier calls.
  void Replay(const std::string& task, const Workload& canonical, const Target& target,
              const std::vector<Asked>& asked, ParallelFor* parallel, const Use& use);

  size_t size() const { return functions_; }  // kept, at most `most_functions`

 private:
  struct Node;
  struct NodeDeleter {
    void operator()(Node* node) const;
  };
  using NodePtr = std::unique_ptr<Node, NodeDeleter>;
  struct Work;
  struct Branch;

  // Replays the traces of part of the order; keeps functions that others may begin with in `branches`.
  void ReplayPart(const Work& work, size_t begin, size_t end, std::vector<Branch>* branches) const;
  // The longest known beginning of the steps that is longer than `depth` lines; null: none is.
  const Function* Longer(const std::vector<std::string_view>& lines, size_t* depth) const;
  void Keep(const std::vector<std::string_view>& lines, size_t depth, Function function);

  const size_t most_functions_;
  std::string task_;
  std::optional<Function> naive_;  // of the task, before its first step
  NodePtr root_;                   // of the task
  size_t functions_ = 0;
};

}  // namespace mycc
