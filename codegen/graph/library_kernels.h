// The library kernels: what no stage of the tensor language can say, such as TopK, as functions in C of one
// calling convention. The same code is linked into artifacts (codegen/runtime/artifact/library_kernels.h has
// the convention) and called here, for folding and for the interpreter. A library kernel runs on CPUs alone:
// a model with one is refused for a CUDA target when it is built, in words that name the node and its
// operator. Thread rule: pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "codegen/graph/graph.h"

namespace mycc {

// The C function behind a library call, `MyccTopK`; "" for an unknown one.
std::string LibraryKernelSymbol(const std::string& function);
// Whether a function makes handles of texts. They are addresses of this process, and so never constants.
bool MakesTexts(const std::string& function);
// Whether a function's work is divided among a team of threads.
bool RunsInParallel(const std::string& function);
// Bytes of workspace that a call needs.
int64_t LibraryWorkspaceBytes(const LibraryCall& call, const std::vector<Buffer>& outputs);

// Runs one call. `outputs` gives the types and shapes of the results. Handles of texts that it makes are good
// until the thread forgets its texts.
absl::StatusOr<std::vector<NDArray>> RunLibraryCall(const LibraryCall& call,
                                                    const std::vector<Buffer>& outputs,
                                                    const std::vector<const NDArray*>& inputs);

}  // namespace mycc
