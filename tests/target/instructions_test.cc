// The table of instructions: its rows are consistent, and the layouts of operands are those of the manuals.
#include "codegen/target/instructions.h"

#include <set>

#include "gtest/gtest.h"

namespace mycc {
namespace {

// Each element of an operand is one value of one thread.
void ExpectAPermutation(const Fragment& fragment, const std::string& what) {
  std::set<std::pair<int64_t, int64_t>> elements;
  for (int64_t thread = 0; thread < fragment.threads(); ++thread) {
    for (int64_t value = 0; value < fragment.values(); ++value) {
      const Fragment::Element element = fragment.At(thread, value);
      EXPECT_TRUE(element.row < fragment.rows && element.column < fragment.columns) << what;
      elements.insert({element.row, element.column});
    }
  }
  EXPECT_EQ(static_cast<int64_t>(elements.size()), fragment.rows * fragment.columns) << what;
  EXPECT_EQ(fragment.threads() * fragment.values(), fragment.rows * fragment.columns) << what;
}

TEST(InstructionsTest, RowsAreWhole) {
  for (const Instruction* row : AllInstructions()) {
    SCOPED_TRACE(row->name);
    EXPECT_EQ(InstructionNamed(row->name), row) << "two rows of one name";
    EXPECT_TRUE(row->m > 0 && row->n > 0 && row->k > 0 && row->cycles > 0 && row->k % row->group == 0);
    EXPECT_EQ(row->sums.scope, Scope::kAccumulator);
    if (row->is_cpu()) {
      EXPECT_EQ(row->threads, 1);
      for (const OperandForm* form : {&row->a, &row->b, &row->sums}) EXPECT_TRUE(form->memory.IsInjective());
      EXPECT_EQ(row->a.memory.size(), int64_t{row->m} * row->k);
      EXPECT_EQ(row->b.memory.size(), int64_t{row->k} * row->n);
      continue;
    }
    EXPECT_FALSE(row->emitter.empty());
    EXPECT_EQ(row->b.scope, Scope::kShared);
    EXPECT_TRUE(row->sums.fragment.rows == row->m && row->sums.fragment.columns == row->n);
    ExpectAPermutation(row->sums.fragment, row->name);
    for (const OperandForm* form : {&row->a, &row->b, &row->sums}) {
      if (!form->in_fragments()) continue;
      EXPECT_EQ(form->fragment.threads(), row->threads);
      ExpectAPermutation(form->fragment, row->name);
    }
  }
}

// [PTX ISA, "Matrix Fragments for mma.m16n8k16 with floating point type", "mma.m16n8k8", "mma.m16n8k32"]: the
// row and column of the i-th element that a lane has of A, and of B.
TEST(InstructionsTest, FragmentsAreThoseOfTheManual) {
  struct Manual {
    const char* name;
    Fragment::Element (*a)(int lane, int i);
    Fragment::Element (*b)(int lane, int i);
  };
  const Manual manual[] = {
      {"mma.f16",
       [](int lane, int i) -> Fragment::Element {
         const bool upper = (i >= 0 && i < 2) || (i >= 4 && i < 6);
         return {upper ? lane / 4 : lane / 4 + 8,
                 i < 4 ? lane % 4 * 2 + (i & 1) : lane % 4 * 2 + (i & 1) + 8};
       },
       [](int lane, int i) -> Fragment::Element {
         return {i < 2 ? lane % 4 * 2 + (i & 1) : lane % 4 * 2 + (i & 1) + 8, lane / 4};
       }},
      {"mma.bf16.k8",
       [](int lane, int i) -> Fragment::Element {
         return {i < 2 ? lane / 4 : lane / 4 + 8, lane % 4 * 2 + (i & 1)};
       },
       [](int lane, int i) -> Fragment::Element {
         return {lane % 4 * 2 + i, lane / 4};
       }},
      {"mma.tf32",
       [](int lane, int i) -> Fragment::Element {
         return {i == 0 || i == 2 ? lane / 4 : lane / 4 + 8, i < 2 ? lane % 4 : lane % 4 + 4};
       },
       [](int lane, int i) -> Fragment::Element {
         return {i == 0 ? lane % 4 : lane % 4 + 4, lane / 4};
       }},
      {"mma.i8",
       [](int lane, int i) -> Fragment::Element {
         const bool upper = i < 4 || (i >= 8 && i < 12);
         return {upper ? lane / 4 : lane / 4 + 8,
                 i < 8 ? lane % 4 * 4 + (i & 3) : lane % 4 * 4 + (i & 3) + 16};
       },
       [](int lane, int i) -> Fragment::Element {
         return {i < 4 ? lane % 4 * 4 + (i & 3) : lane % 4 * 4 + (i & 3) + 16, lane / 4};
       }},
  };
  for (const Manual& of : manual) {
    const Instruction* row = InstructionNamed(of.name);
    ASSERT_NE(row, nullptr) << of.name;
    for (int lane = 0; lane < 32; ++lane) {
      for (int i = 0; i < row->a.fragment.values(); ++i) {
        const Fragment::Element element = row->a.fragment.At(lane, i), expected = of.a(lane, i);
        EXPECT_TRUE(element.row == expected.row && element.column == expected.column) << of.name << lane << i;
      }
      for (int i = 0; i < row->b.fragment.values(); ++i) {
        const Fragment::Element element = row->b.fragment.At(lane, i), expected = of.b(lane, i);
        EXPECT_TRUE(element.row == expected.row && element.column == expected.column) << of.name << lane << i;
      }
    }
  }
}

// [Intel SDM, TDPBF16PS, TDPBSSD]: 16 rows of 64 bytes; in b, elements of one column's group lie together.
TEST(InstructionsTest, TilesArePackedInGroups) {
  for (const char* name : {"amx.bf16", "amx.i8"}) {
    const Instruction& row = *InstructionNamed(name);
    const int64_t size = DTypeBytes(row.operand);
    EXPECT_EQ(row.a.memory.extent(1) * size, 64);
    EXPECT_EQ(row.group * size, 4);
    for (int64_t k = 0; k < row.k; ++k) {
      for (int64_t n = 0; n < row.n; ++n)
        EXPECT_EQ(row.b.memory.At({k, n}) * size, k / row.group * 64 + n * 4 + k % row.group * size);
    }
  }
}

}  // namespace
}  // namespace mycc
