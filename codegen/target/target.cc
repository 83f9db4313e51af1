// Parses and prints targets, key by key, and decides whether code for one target runs on another.
#include "codegen/target/target.h"

#include <limits>
#include <map>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/did_you_mean.h"
#include "base/status.h"
#include "codegen/target/features.h"
#include "codegen/target/presets.h"

namespace mycc {
namespace {

absl::Status Malformed(const std::string& what) {
  return absl::InvalidArgumentError(absl::StrCat("target: ", what));
}

std::string PrintSize(int64_t bytes) {
  constexpr int64_t kMiB = 1024 * 1024;
  if (bytes > 0 && bytes % kMiB == 0) return absl::StrCat(bytes / kMiB, "M");
  return bytes > 0 && bytes % 1024 == 0 ? absl::StrCat(bytes / 1024, "K") : absl::StrCat(bytes);
}

absl::Status ParseSize(const std::string& key, const std::string& value, int64_t* bytes) {
  std::string digits = value;
  int64_t unit = 1;
  if (!digits.empty() && (digits.back() == 'K' || digits.back() == 'M' || digits.back() == 'G')) {
    unit = digits.back() == 'K' ? 1024 : digits.back() == 'M' ? 1024 * 1024 : 1024 * 1024 * 1024;
    digits.pop_back();
  }
  constexpr int64_t kMost = int64_t{1} << 40;
  const bool plain = !digits.empty() && digits.find_first_not_of("0123456789") == std::string::npos;
  if (plain && absl::SimpleAtoi(digits, bytes) && *bytes >= 1 && *bytes <= kMost / unit) {
    *bytes *= unit;
    return absl::OkStatus();
  }
  return Malformed(absl::StrCat(key, "=", value, "; expected a size such as 48K, 2M or 232448"));
}

absl::Status ParseCount(const std::string& key, const std::string& value, int* count) {
  constexpr int kMost = 1 << 20;
  const bool plain = !value.empty() && value.find_first_not_of("0123456789") == std::string::npos;
  if (plain && absl::SimpleAtoi(value, count) && *count >= 1 && *count <= kMost) return absl::OkStatus();
  return Malformed(absl::StrCat(key, "=", value, "; expected a whole number from 1"));
}

// Splits "sm_90a" into 90 and 'a'; the suffix is 0 when there is none.
bool ParseArch(const std::string& arch, int* number, char* suffix) {
  if (arch.compare(0, 3, "sm_") != 0) return false;
  std::string digits = arch.substr(3);
  *suffix = 0;
  if (!digits.empty() && absl::ascii_islower(digits.back())) {
    *suffix = digits.back();
    digits.pop_back();
  }
  const bool plain =
      digits.size() >= 2 && digits.size() <= 3 && digits.find_first_not_of("0123456789") == std::string::npos;
  return plain && absl::SimpleAtoi(digits, number) && *number >= 50 &&
         (*suffix == 0 || *suffix == 'a' || *suffix == 'f');
}

// Splits at spaces outside double quotes.
absl::StatusOr<std::vector<std::string>> SplitWords(const std::string& text) {
  std::vector<std::string> words;
  bool quoted = false, inside = false;
  for (char c : text) {
    if (!absl::ascii_isprint(c) && !absl::ascii_isspace(c))
      return Malformed("a byte that is not printable; expected words separated by spaces");
    if (c == '"') quoted = !quoted;
    if (absl::ascii_isspace(c) && !quoted) {
      inside = false;
      continue;
    }
    if (!inside) words.emplace_back();
    inside = true;
    words.back() += c;
  }
  if (quoted) return Malformed("an open quotation; expected a closing \"");
  return words;
}

absl::StatusOr<CpuFeatureSet> Resolve(const std::string& mcpu, const std::vector<std::string>& features) {
  auto set = ResolveFeatures(mcpu, features);
  return set.ok() ? set : Malformed(std::string(set.status().message()));
}

absl::Status SetCpuKey(const std::string& key, const std::string& value, Target* target) {
  if (key == "mcpu") {
    target->mcpu = value;
    return Resolve(value, {}).status();
  }
  if (key == "features") {
    target->features = absl::StrSplit(value, ',');
    return absl::OkStatus();
  }
  if (key == "l1d") return ParseSize(key, value, &target->l1d_bytes);
  if (key == "l2") return ParseSize(key, value, &target->l2_bytes);
  if (key == "threads") return ParseCount(key, value, &target->threads);
  if (key == "sums") {
    target->direct_sums = value == "direct";
    return target->direct_sums || value == "any"
               ? absl::OkStatus()
               : Malformed(absl::StrCat("sums=", value, "; expected direct or any"));
  }
  return Malformed(absl::StrCat("unknown key \"", key,
                                "\" of a cpu target; expected mcpu, features, l1d, l2, threads or sums"));
}

absl::Status SetCudaKey(const std::string& key, const std::string& value, Target* target) {
  if (key == "arch") {
    int number = 0;
    char suffix = 0;
    target->arch = value;
    return ParseArch(value, &number, &suffix)
               ? absl::OkStatus()
               : Malformed(absl::StrCat("arch=", value, "; expected one such as sm_80 or sm_90a"));
  }
  if (key == "model") {
    const bool quoted = value.size() > 2 && value.front() == '"' && value.back() == '"';
    if (!quoted || value.find('"', 1) != value.size() - 1 ||
        value.find_first_of("\n\t\r\v\f") != std::string::npos) {
      return Malformed(
          absl::StrCat("model=", value, "; expected a name in double quotes, such as \"NVIDIA H200\""));
    }
    target->model = value.substr(1, value.size() - 2);
    return absl::OkStatus();
  }
  if (key == "sms") return ParseCount(key, value, &target->sms);
  if (key == "smem") return ParseSize(key, value, &target->smem_bytes);
  if (key == "l2") return ParseSize(key, value, &target->l2_bytes);
  return Malformed(
      absl::StrCat("unknown key \"", key, "\" of a cuda target; expected arch, model, sms, smem or l2"));
}

absl::Status ParseKeys(const std::vector<std::string>& words, size_t first, bool complete, Target* target) {
  std::map<std::string, bool> seen;
  for (size_t i = first; i < words.size(); ++i) {
    const size_t equals = words[i].find('=');
    if (equals == std::string::npos) return Malformed(absl::StrCat("\"", words[i], "\"; expected key=value"));
    const std::string key = words[i].substr(0, equals), value = words[i].substr(equals + 1);
    if (seen[key]) return Malformed(absl::StrCat("the key \"", key, "\" twice; expected it once"));
    seen[key] = true;
    MYCC_RETURN_IF_ERROR(target->kind == TargetKind::kCpu ? SetCpuKey(key, value, target)
                                                          : SetCudaKey(key, value, target));
  }
  const std::vector<std::string> required =
      target->kind == TargetKind::kCpu ? std::vector<std::string>{"mcpu", "l1d", "l2", "threads"}
                                       : std::vector<std::string>{"arch", "model", "sms", "smem", "l2"};
  for (const std::string& key : required) {
    if (complete && !seen[key])
      return Malformed(absl::StrCat("no ", key, "; expected ", absl::StrJoin(required, ", ")));
  }
  return absl::OkStatus();
}

bool IsCompatibleCpu(const Target& code, const Target& machine, std::string* why) {
  if (machine.direct_sums && !code.direct_sums) {
    *why = "code with sums of any kind, and the target is sums=direct";
    return false;
  }
  const auto needed = ResolveFeatures(code.mcpu, code.features),
             present = ResolveFeatures(machine.mcpu, machine.features);
  if (!needed.ok() || !present.ok()) {
    *why = std::string((needed.ok() ? present : needed).status().message());
    return false;
  }
  std::vector<std::string> missing;
  for (int i = 0; i < kNumCpuFeatures; ++i) {
    const CpuFeature feature = static_cast<CpuFeature>(i);
    if ((*needed & ~*present & Bit(feature)) != 0) missing.push_back(CpuFeatureName(feature));
  }
  if (missing.empty()) return true;
  *why = absl::StrCat("code for ", code.mcpu, " needs ", absl::StrJoin(missing, " "), ", which this ",
                      machine.mcpu, " lacks");
  return false;
}

bool IsCompatibleCuda(const Target& code, const Target& machine, std::string* why) {
  int need = 0, have = 0;
  char suffix = 0, ignored = 0;
  // Architecture-specific code ("a") runs on that architecture only; other code also on later ones of the
  // same major version.
  const bool runs = ParseArch(code.arch, &need, &suffix) && ParseArch(machine.arch, &have, &ignored) &&
                    (suffix == 'a' ? have == need : have / 10 == need / 10 && have >= need);
  if (!runs) {
    *why = absl::StrCat("code for ", code.arch, " does not run on ", machine.arch);
  } else if (code.smem_bytes > machine.smem_bytes) {
    *why = absl::StrCat("code for ", code.smem_bytes, " bytes of shared memory, and ", machine.model, " has ",
                        machine.smem_bytes);
  } else if (code.sms > machine.sms) {
    *why = absl::StrCat("code for ", code.sms, " multiprocessors, and ", machine.model, " has ", machine.sms);
  } else {
    return true;
  }
  return false;
}

}  // namespace

absl::StatusOr<Target> ParseTarget(const std::string& text) {
  MYCC_ASSIGN_OR_RETURN(std::vector<std::string> words, SplitWords(text));
  if (!words.empty() && words[0].size() > 1 && words[0][0] == 'v' &&
      words[0].find_first_not_of("0123456789", 1) == std::string::npos) {
    if (words[0] != "v1")
      return Malformed(absl::StrCat("version ", words[0], "; expected v1, the version this build reads"));
    words.erase(words.begin());
  }
  if (words.empty()) return Malformed("no text; expected `cpu ...`, `cuda ...`, host or a preset");
  Target target;
  if (words[0] == "cpu" || words[0] == "cuda") {
    target.kind = words[0] == "cpu" ? TargetKind::kCpu : TargetKind::kCuda;
    MYCC_RETURN_IF_ERROR(ParseKeys(words, 1, /*complete=*/true, &target));
  } else {
    const auto preset = words[0] == "host" ? DetectHostTarget() : FindPreset(words[0]);
    if (!preset) {
      return Malformed(absl::StrCat(
          "unknown target \"", words[0], "\"", DidYouMean(words[0], PresetNames()),
          "; expected `cpu ...`, `cuda ...`, host or a preset: ", absl::StrJoin(PresetNames(), " ")));
    }
    target = *preset;
    MYCC_RETURN_IF_ERROR(ParseKeys(words, 1, /*complete=*/false, &target));
  }
  if (target.kind == TargetKind::kCpu) {
    MYCC_ASSIGN_OR_RETURN(const CpuFeatureSet set, Resolve(target.mcpu, target.features));
    target.features = DifferenceFrom(target.mcpu, set);
  }
  return target;
}

std::string PrintTarget(const Target& target) {
  if (target.kind == TargetKind::kCpu) {
    const std::string features =
        target.features.empty() ? "" : absl::StrCat(" features=", absl::StrJoin(target.features, ","));
    return absl::StrCat("v1 cpu mcpu=", target.mcpu, features, " l1d=", PrintSize(target.l1d_bytes),
                        " l2=", PrintSize(target.l2_bytes), " threads=", target.threads,
                        target.direct_sums ? " sums=direct" : "");
  }
  return absl::StrCat("v1 cuda arch=", target.arch, " model=\"", target.model, "\" sms=", target.sms,
                      " smem=", target.smem_bytes, " l2=", PrintSize(target.l2_bytes));
}

int CudaArchOf(const Target& target) {
  int number = 0;
  char suffix = 0;
  return target.kind == TargetKind::kCuda && ParseArch(target.arch, &number, &suffix) ? number : 0;
}

bool IsCompatible(const Target& code, const Target& machine, std::string* why) {
  std::string ignored;
  if (why == nullptr) why = &ignored;
  if (code.kind != machine.kind) {
    *why = absl::StrCat("code for a ", code.kind == TargetKind::kCpu ? "cpu" : "cuda",
                        " target, and the machine is a ", machine.kind == TargetKind::kCpu ? "cpu" : "cuda",
                        " target");
    return false;
  }
  return code.kind == TargetKind::kCpu ? IsCompatibleCpu(code, machine, why)
                                       : IsCompatibleCuda(code, machine, why);
}

bool IsMeasurableOn(const Target& code, const Target& machine, std::string* why) {
  if (!IsCompatible(code, machine, why)) return false;
  if (code.threads <= machine.threads) return true;
  if (why != nullptr)
    *why = absl::StrCat("it asks for ", code.threads, " threads, and the machine has ", machine.threads);
  return false;
}

}  // namespace mycc
