#include "tests/runtime/artifact_tables.h"

namespace mycc {

std::function<void(void* const*, uint8_t*, uint8_t*)> on_scale;
MyccCpuNeed cpu_need = {"sse2", 1, 0, 3, 26, 0};
const uint8_t packed_header[kMyccHeaderBytes] = {'h', 'e', 'a', 'd', 'e', 'r'};

namespace {

const int64_t kMatrix[] = {2, 3};
const int64_t kVector[] = {4};
const int64_t kPacked[] = {128};
MyccPool pool;

const MyccArg kScaleArgs[] = {
    {"x", kDLFloat, 32, 2, kMatrix, 24, 4, 0, nullptr},
    {"w", kDLUInt, 8, 1, kPacked, 128, 64, 0, packed_header},
    {"flag", kMyccCodeBool, 8, 0, nullptr, 1, 1, 0, nullptr},
    {"y", kDLFloat, 32, 2, kMatrix, 24, 4, 1, nullptr},
};
const MyccArg kPackArgs[] = {
    {"w", kDLFloat, 32, 1, kVector, 16, 4, 0, nullptr},
    {"w_packed", kDLUInt, 8, 1, kPacked, 128, 64, 1, packed_header},
};

void ScaleBody(void* const* tensors, uint8_t* shared, uint8_t* threads) {
  if (on_scale) on_scale(tensors, shared, threads);
}
void PackBody(void* const*, uint8_t*, uint8_t*) {}

const MyccEntry kEntries[] = {
    {"m_scale", "m_scale_pack", 4, kScaleArgs, ScaleBody, 100, 40, 1, &pool},
    {"m_scale_pack", nullptr, 2, kPackArgs, PackBody, 100, 40, 1, nullptr},
};

}  // namespace
}  // namespace mycc

extern "C" const MyccModule mycc_module = {"m", "v1 cpu mcpu=test", 1, &mycc::cpu_need, 2, mycc::kEntries};
