// One line of `mycc-tune doctor`: how a part of the installation is, and how it is mended. Thread rule:
// values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace mycc {

enum class Verdict : uint8_t {
  kOk,
  kWarning,  // it works, with worse times or a smaller margin
  kFault,    // a server, worker or client fails, or loses results
};
const char* VerdictName(Verdict verdict);

struct Finding {
  std::string check;  // filled in from the table of checks
  Verdict verdict = Verdict::kOk;
  std::string found;   // "powersave on 64 of 64 CPUs"
  std::string remedy;  // a command or a sentence; empty where nothing is to be done
};
using Findings = std::vector<Finding>;

inline Finding Ok(std::string found) { return {"", Verdict::kOk, std::move(found), ""}; }
inline Finding Warning(std::string found, std::string remedy) {
  return {"", Verdict::kWarning, std::move(found), std::move(remedy)};
}
inline Finding Fault(std::string found, std::string remedy) {
  return {"", Verdict::kFault, std::move(found), std::move(remedy)};
}

}  // namespace mycc
