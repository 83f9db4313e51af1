// `mycc run`: calls a library's function with .npy files or random inputs, and writes or summarizes its
// outputs.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>
#include <map>
#include <ostream>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "base/status.h"
#include "command/misuse.h"
#include "command/npy.h"
#include "command/npy_texts.h"
#include "mycc/commands.h"
#include "mycc/input_files.h"
#include "mycc/library_workload.h"

namespace mycc {
namespace {

std::string FunctionNames(const Library& library) {
  return absl::StrJoin(library.functions(), ", ", [](std::string* out, const ArtifactFunction& function) {
    out->append(function.name);
  });
}

// The chosen function, or the only one.
absl::StatusOr<std::string> ChooseFunction(const Library& library, const std::string& name) {
  if (name.empty() && library.functions().size() == 1) return library.functions()[0].name;
  if (name.empty())
    return Misuse(absl::StrCat("the library has ", library.functions().size(),
                               " functions; name one with --function: ", FunctionNames(library)));
  absl::StatusOr<const ArtifactFunction*> function = library.Find(name);
  if (!function.ok()) return Misuse(absl::StrCat("--function: ", std::string(function.status().message())));
  return (*function)->name;
}

std::string NameAndType(const ArtifactArg& arg, const HostTensor& tensor) {
  return absl::StrCat(arg.name, ": ", arg.dtype, "[", absl::StrJoin(tensor.shape(), ","), "]");
}

// `y: string[5]  "first" "second" "third" ...`
std::string TextSummary(const ArtifactArg& arg, const HostTensor& tensor) {
  constexpr size_t kMostTexts = 3, kMostBytes = 40;
  std::string text = NameAndType(arg, tensor);
  const std::vector<std::string> all = tensor.Texts();
  for (size_t i = 0; i < all.size() && i < kMostTexts; ++i) {
    const bool is_long = all[i].size() > kMostBytes;
    absl::StrAppend(&text, i == 0 ? "  " : " ", "\"",
                    absl::Utf8SafeCHexEscape(is_long ? all[i].substr(0, kMostBytes) : all[i]), "\"",
                    is_long ? "..." : "");
  }
  return absl::StrCat(text, all.size() > kMostTexts ? " ..." : "", "\n");
}

// "y: f32[1,64]  min -0.5  max 2  mean 0.25", and NaNs where there are any.
std::string TensorSummary(const ArtifactArg& arg, const HostTensor& tensor) {
  if (tensor.is_text()) return TextSummary(arg, tensor);
  double least = std::numeric_limits<double>::infinity(), most = -least, sum = 0;
  int64_t nans = 0;
  for (int64_t i = 0; i < tensor.num_elements(); ++i) {
    const Scalar scalar = LoadScalar(tensor.dtype(), tensor.data() + i * DTypeBytes(tensor.dtype()));
    const double value = IsFloat(tensor.dtype()) ? scalar.f : IntToDouble(tensor.dtype(), scalar.i);
    if (std::isnan(value)) {
      ++nans;
      continue;
    }
    least = std::min(least, value);
    most = std::max(most, value);
    sum += value;
  }
  std::string text = NameAndType(arg, tensor);
  const int64_t numbers = tensor.num_elements() - nans;
  if (numbers > 0)
    absl::StrAppendFormat(&text, "  min %g  max %g  mean %g", least, most,
                          sum / static_cast<double>(numbers));
  if (nans > 0) absl::StrAppend(&text, "  NaN ", nans);
  return text + "\n";
}

absl::Status WriteOutput(const std::string& dir, const ArtifactArg& arg, const HostTensor& tensor) {
  std::error_code error;
  std::filesystem::create_directories(dir, error);
  if (error)
    return absl::PermissionDeniedError(absl::StrCat("cannot make the folder `", dir, "`: ", error.message()));
  // A model's names may hold slashes.
  const std::string file = absl::StrCat(dir, "/", absl::StrReplaceAll(arg.name, {{"/", "_"}}), ".npy");
  if (tensor.is_text()) return WriteNpy(file, NpyOfTexts(tensor.Texts(), tensor.shape()));
  const std::string bytes(reinterpret_cast<const char*>(tensor.data()), tensor.bytes());
  return WriteNpy(file, {NpyDescrs(tensor.dtype())[0], tensor.shape(), bytes});
}

}  // namespace

absl::Status RunCommand(const RunOptions& options, std::ostream& out) {
  MYCC_ASSIGN_OR_RETURN(const std::unique_ptr<Library> library,
                        Library::Open(options.library, options.device));
  MYCC_ASSIGN_OR_RETURN(const std::string function, ChooseFunction(*library, options.function));
  MYCC_ASSIGN_OR_RETURN(Arguments arguments, Arguments::Create(library.get(), function));
  MYCC_ASSIGN_OR_RETURN(const FunctionOrigin origin, OriginOf(*library, function));
  FillRandom(origin.workload, options.seed, &arguments);
  MYCC_RETURN_IF_ERROR(LoadInputs("--input", options.inputs, &arguments));
  MYCC_RETURN_IF_ERROR(arguments.Pack());
  MYCC_RETURN_IF_ERROR(arguments.Call());
  for (int i = 0; i < arguments.size(); ++i) {
    if (arguments.arg(i).kind != "output") continue;
    out << TensorSummary(arguments.arg(i), arguments.tensor(i));
    if (!options.output_dir.empty())
      MYCC_RETURN_IF_ERROR(WriteOutput(options.output_dir, arguments.arg(i), arguments.tensor(i)));
  }
  return absl::OkStatus();
}

}  // namespace mycc
