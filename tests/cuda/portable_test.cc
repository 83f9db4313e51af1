// Kernels that another host has built, as a measuring host accepts them, and what a hostile one cannot make
// it do: each field out of its range is refused, in words.

#include <elf.h>

#include <cstring>
#include <functional>

#include "codegen/workload/parse.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/cuda/any_portable.h"

namespace mycc {
namespace {

using ::testing::HasSubstr;

constexpr char kWorkload[] = R"(workload rows(x: bf16[64,256], w: const bf16[32,256]) -> (y: f32[64,32]) {
  y[i,j] = sum[k:256](f32(x[i,k]) * f32(w[j,k]))
})";

class PortableTest : public ::testing::Test {
 protected:
  PortableTest() {
    portable_.target = PrintTarget(target_);
    portable_.code_digest = std::string(64, 'a');
    portable_.image.cubin = EmptyMachineCode();
    portable_.image.kernels = {{.kernel = "trial_rows_0", .registers = 64, .shared_bytes = 1024}};
    portable_.packed_bytes = {0, 64 + 2 * 32 * 256};
    portable_.program.workspace_bytes = 4096;
    CudaStep step{.kernel = "trial_rows_0", .grid = {8, 1, 1}, .cluster = 2, .threads = 128};
    step.shared_bytes = 100 << 10;
    step.maps = {{.operand = {.argument = 0, .offset = 0},
                  .dtype = DType::kBF16,
                  .dims = {256, 64},
                  .strides = {512},
                  .box = {64, 64},
                  .element_strides = {1, 1},
                  .swizzle_bytes = 128}};
    step.pointers = {{.argument = 1, .offset = 64}, {.argument = 2}, {.argument = CudaOperand::kWorkspace}};
    portable_.program.call = {step};
    CudaStep pack{.kernel = "trial_rows_0", .threads = 32};
    pack.pointers = {{.argument = 0}, {.argument = 1, .offset = 64}};
    portable_.program.pack = {pack};
  }

  absl::StatusOr<Portable> Read(const std::string& bytes) { return ParsePortable(bytes, workload_, target_); }
  // The reason for which a kernel with this change is refused.
  std::string WhyNot(const std::function<void(Portable*)>& change) {
    Portable changed = portable_;
    change(&changed);
    return std::string(Read(SerializePortable(changed)).status().message());
  }

  const Target target_ = ParseTarget("h200").value();
  const Workload workload_ = ParseWorkload(kWorkload, "test").value();
  Portable portable_;
};

TEST_F(PortableTest, ReadsWhatWasWritten) {
  const absl::StatusOr<Portable> read = Read(SerializePortable(portable_));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->code_digest, portable_.code_digest);
  EXPECT_EQ(read->image.cubin, portable_.image.cubin);
  EXPECT_EQ(read->program.call[0].grid, portable_.program.call[0].grid);
  EXPECT_EQ(read->program.call[0].maps[0].strides, portable_.program.call[0].maps[0].strides);
  EXPECT_EQ(read->program.call[0].pointers[2].argument, CudaOperand::kWorkspace);
  EXPECT_EQ(read->packed_bytes, portable_.packed_bytes);
  EXPECT_EQ(SerializePortable(*read), SerializePortable(portable_));
}

TEST_F(PortableTest, RefusesOtherBytes) {
  const std::string bytes = SerializePortable(portable_);
  EXPECT_THAT(Read("").status().message(), HasSubstr("version 0"));
  EXPECT_THAT(Read(std::string(kMostPortableBytes + 1, 'x')).status().message(), HasSubstr("at most"));
  // Cut short anywhere it is refused, or reads as one that lacks something, which is refused too.
  for (size_t length = 0; length < bytes.size(); ++length)
    EXPECT_FALSE(Read(bytes.substr(0, length)).ok()) << length;
}

TEST_F(PortableTest, RefusesAnotherTargetOrWorkload) {
  EXPECT_THAT(WhyNot([](Portable* p) { p->target = "v1 cpu mcpu=haswell"; }), HasSubstr("another target"));
  EXPECT_THAT(WhyNot([](Portable* p) { p->code_digest = "../../etc"; }), HasSubstr("code digest"));
  EXPECT_THAT(WhyNot([](Portable* p) { p->compiler = "nvrtc\n"; }), HasSubstr("its compiler's name"));
  EXPECT_THAT(WhyNot([](Portable* p) { p->packed_bytes = {0}; }),
              HasSubstr("packed buffers for 1 inputs of 2"));
  EXPECT_THAT(WhyNot([](Portable* p) { p->packed_bytes = {8, 64}; }), HasSubstr("a packed buffer of 8"));
  EXPECT_THAT(WhyNot([](Portable* p) { p->packed_bytes[1] = int64_t{1} << 40; }),
              HasSubstr("a packed buffer"));
  EXPECT_THAT(WhyNot([](Portable* p) { p->packed_bytes[1] = 0; }), HasSubstr("a packed buffer of 0"));
}

TEST_F(PortableTest, RefusesLaunchesBeyondTheDevice) {
  const auto with_step = [this](const std::function<void(CudaStep*)>& change) {
    return WhyNot([&](Portable* p) { change(&p->program.call[0]); });
  };
  EXPECT_THAT(with_step([](CudaStep* s) { s->kernel = "other"; }), HasSubstr("that it does not have"));
  EXPECT_THAT(with_step([](CudaStep* s) { s->grid[0] = 0; }), HasSubstr("a grid of 0"));
  EXPECT_THAT(with_step([](CudaStep* s) { s->grid[0] = int64_t{1} << 32; }), HasSubstr("a grid of"));
  EXPECT_THAT(with_step([](CudaStep* s) { s->grid[2] = -1; }), HasSubstr("z of -1"));
  EXPECT_THAT(with_step([](CudaStep* s) { s->threads = 1025; }), HasSubstr("a block of 1025"));
  EXPECT_THAT(with_step([](CudaStep* s) { s->cluster = 3; }), HasSubstr("clusters of 3"));
  EXPECT_THAT(with_step([](CudaStep* s) { s->cluster = 32; }), HasSubstr("a cluster of 32"));
  EXPECT_THAT(with_step([](CudaStep* s) { s->shared_bytes = 232448; }), HasSubstr("shared memory of"));
  EXPECT_THAT(with_step([](CudaStep* s) { s->pointers.resize(2000, {.argument = 0}); }),
              HasSubstr("bytes of parameters"));
  EXPECT_THAT(WhyNot([](Portable* p) { p->program.call.clear(); }), HasSubstr("0 launches of a call"));
  EXPECT_THAT(WhyNot([](Portable* p) { p->program.call.resize(2000, p->program.call[0]); }),
              HasSubstr("2000 launches"));
  EXPECT_THAT(WhyNot([](Portable* p) { p->program.workspace_bytes = int64_t{1} << 50; }),
              HasSubstr("a workspace of"));
}

TEST_F(PortableTest, RefusesAddressesOutsideOfTheWorkloadsTensors) {
  const auto with_operand = [this](int argument, int64_t offset) {
    return WhyNot([&](Portable* p) { p->program.call[0].pointers[0] = {argument, offset}; });
  };
  EXPECT_EQ(with_operand(2, 64 * 32 * 4 - 4), "");
  EXPECT_THAT(with_operand(2, 64 * 32 * 4), HasSubstr("byte 8192 of argument 2, which has 8192"));
  EXPECT_THAT(with_operand(3, 0), HasSubstr("argument 3 of a function with 3"));
  EXPECT_THAT(with_operand(CudaOperand::kWeights, 0), HasSubstr("argument -2"));
  EXPECT_THAT(with_operand(0, -16), HasSubstr("byte -16"));
  EXPECT_THAT(with_operand(CudaOperand::kWorkspace, 4096), HasSubstr("the workspace"));
  EXPECT_THAT(WhyNot([](Portable* p) { p->program.pack[0].pointers[0].argument = 2; }),
              HasSubstr("argument 2 of a function with 2"));
}

TEST_F(PortableTest, RefusesDescriptorsBeyondTheirTensors) {
  const auto with_map = [this](const std::function<void(CudaTensorMap*)>& change) {
    return WhyNot([&](Portable* p) { change(&p->program.call[0].maps[0]); });
  };
  EXPECT_THAT(with_map([](CudaTensorMap* m) { m->dims = {256, 65}; }), HasSubstr("reaches beyond"));
  EXPECT_THAT(with_map([](CudaTensorMap* m) { m->operand.offset = 512; }), HasSubstr("reaches beyond"));
  EXPECT_THAT(with_map([](CudaTensorMap* m) { m->dims = {}; }), HasSubstr("rank 0"));
  EXPECT_THAT(with_map([](CudaTensorMap* m) { m->strides = {512, 512}; }), HasSubstr("2 strides"));
  EXPECT_THAT(with_map([](CudaTensorMap* m) { m->strides = {513}; }), HasSubstr("a multiple of 16"));
  EXPECT_THAT(with_map([](CudaTensorMap* m) { m->strides = {-512}; }), HasSubstr("stride of -512"));
  EXPECT_THAT(with_map([](CudaTensorMap* m) { m->box = {64, 257}; }), HasSubstr("a TMA box of 257"));
  EXPECT_THAT(with_map([](CudaTensorMap* m) {
                m->element_strides = {1, 9};
              }),
              HasSubstr("element stride of 9"));
  EXPECT_THAT(with_map([](CudaTensorMap* m) { m->swizzle_bytes = 48; }), HasSubstr("a swizzle of 48"));
}

TEST_F(PortableTest, RefusesMachineCodeThatReachesBeyondItself) {
  EXPECT_THAT(WhyNot([](Portable* p) { p->image.cubin = "//\n.version 8.0\n.target sm_90a\n"; }),
              HasSubstr("not an ELF file"));
  EXPECT_THAT(WhyNot([](Portable* p) { p->image.cubin[18] = 62; }), HasSubstr("not a GPU's")) << "x86-64";
  EXPECT_THAT(WhyNot([](Portable* p) { p->image.cubin.pop_back(); }), HasSubstr("cut short"));
  EXPECT_THAT(WhyNot([](Portable* p) {
                Elf64_Shdr section = {};
                section.sh_type = SHT_PROGBITS;
                section.sh_offset = UINT64_MAX - 4;
                section.sh_size = 8;
                std::memcpy(p->image.cubin.data() + sizeof(Elf64_Ehdr), &section, sizeof(section));
              }),
              HasSubstr("section 0 of its machine code is cut short"));
  EXPECT_THAT(WhyNot([](Portable* p) { p->image.kernels[0].kernel = "a b"; }), HasSubstr("no symbol"));
  EXPECT_THAT(WhyNot([](Portable* p) { p->image.kernels.push_back(p->image.kernels[0]); }),
              HasSubstr("two kernels"));
}

}  // namespace
}  // namespace mycc
