// Finds and opens the NVRTC library, and declares the functions that mycc uses, so that its header is not
// needed to build. Thread rule: functions are re-entrant; the table is constant once opened.
#pragma once

#include <cstddef>

#include "absl/status/statusor.h"

namespace mycc {

struct NvrtcLibrary {
  using Program = void*;
  using Result = int;  // 0: success

  const char* (*GetErrorString)(Result);
  Result (*Version)(int* major, int* minor);
  Result (*CreateProgram)(Program*, const char* source, const char* name, int num_headers,
                          const char* const* headers, const char* const* include_names);
  Result (*DestroyProgram)(Program*);
  Result (*CompileProgram)(Program, int num_options, const char* const* options);
  Result (*GetProgramLogSize)(Program, size_t*);
  Result (*GetProgramLog)(Program, char*);
  Result (*GetCUBINSize)(Program, size_t*);
  Result (*GetCUBIN)(Program, char*);
  Result (*GetPTXSize)(Program, size_t*);
  Result (*GetPTX)(Program, char*);
  int major = 0, minor = 0;
};

// Opens the library at the first call and keeps it open. Searched are the loader's path, $CUDA_HOME/lib64,
// /usr/local/cuda/lib64, and the packages of the Python environment $VIRTUAL_ENV. NotFound lists them; the
// next call searches again.
absl::StatusOr<const NvrtcLibrary*> OpenNvrtc();

}  // namespace mycc
