// `mycc-tune log model show|export|import`, without their command lines: the learned cost models that a log
// keeps, one for each class of device (tuner/cost/model_kind.h). Errors name the file and what was expected.
#pragma once

#include <iosfwd>
#include <string>

#include "absl/status/status.h"
#include "mycc_tune/default_log.h"

namespace mycc {

struct ModelShowArgs {
  std::string log = kDefaultLog;
  int features = 8;  // that mattered most, of each model
  bool json = false;
};
// NotFound when the log has no model. A model that this build cannot use is shown with the reason.
absl::Status ModelShowCommand(const ModelShowArgs& args, std::ostream& out);

struct ModelExportArgs {
  std::string log = kDefaultLog;
  std::string kind;    // empty: the only one
  std::string output;  // a new file, or one to be replaced (base/output_file.h)
};
absl::Status ModelExportCommand(const ModelExportArgs& args, std::ostream& out);

struct ModelImportArgs {
  std::string log = kDefaultLog;  // made if there is none
  std::string input;              // a file of `log model export`
};
// The model is the newest of its kind after that: jobs begin from it. InvalidArgument for a file of another
// format, a model of another build's features, and damage.
absl::Status ModelImportCommand(const ModelImportArgs& args, std::ostream& out);

}  // namespace mycc
