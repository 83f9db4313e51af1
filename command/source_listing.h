// The problems of a source text as a compiler shows them: each with its line and a mark under its words.
// Pure, but for the colours of the standard error.
#pragma once

#include <string>

#include "codegen/workload/parse.h"

namespace mycc {

// Several lines for each problem, the last of them ended:
//
//   f.te:2:10: error: unknown tensor `mean`; expected an input or an earlier stage (x)
//       2 |   y[i] = mean[k:8](x[k])
//         |          ^~~~
//         = hint: a mean is a sum of quotients: sum[k:8](x[k] / 8.0)
//
// A very long line is cut to the part around the mark.
std::string ListProblems(const std::string& file, const std::string& text, const ParsedText& parsed);

}  // namespace mycc
