// The algebra of layouts against brute force: composition, inverses, vector widths, swizzles, and fragments.
#include "codegen/expr/layout.h"

#include <algorithm>
#include <numeric>
#include <random>
#include <set>

#include "codegen/expr/affine.h"
#include "codegen/expr/eval.h"
#include "gtest/gtest.h"

namespace mycc {
namespace {

std::vector<int64_t> OffsetsOf(const Layout& layout) {
  std::vector<int64_t> offsets;
  for (int64_t number = 0; number < layout.size(); ++number) offsets.push_back(layout.At(number));
  return offsets;
}

// A layout of up to three dimensions whose modes lie in memory in any order, without gaps.
Layout RandomLayout(std::mt19937* random) {
  const auto draw = [&](int n) { return static_cast<int>((*random)() % static_cast<unsigned>(n)); };
  Layout layout;
  std::vector<Mode*> modes;
  layout.dims.resize(1 + draw(3));
  for (std::vector<Mode>& dim : layout.dims) dim.resize(1 + draw(2));
  for (std::vector<Mode>& dim : layout.dims) {
    for (Mode& mode : dim) modes.push_back(&mode);
  }
  std::ranges::shuffle(modes, *random);
  int64_t stride = 1;
  for (Mode* mode : modes) {
    *mode = {1 + draw(4), stride};
    stride *= mode->extent;
  }
  return layout;
}

TEST(LayoutTest, RowMajorNumbersElements) {
  const Layout layout = Layout::RowMajor({3, 4, 5});
  EXPECT_EQ(layout.Text(), "(3,4,5):(20,5,1)");
  EXPECT_EQ(layout.size(), 60);
  EXPECT_EQ(layout.footprint(), 60);
  for (int64_t number = 0; number < 60; ++number) EXPECT_EQ(layout.At(number), number);
  EXPECT_EQ(layout.Flat({2, 1, 3}), 48);
  EXPECT_EQ(layout.Coordinate(48), (std::vector<int64_t>{2, 1, 3}));
}

TEST(LayoutTest, TensorsMayBeEmpty) {
  const Expr i = VarRef(MakeVar("i", 4));
  for (const std::vector<int64_t>& shape : {std::vector<int64_t>{0}, {3, 0}, {0, 3}, {2, 0, 3}}) {
    for (const Layout& layout : {Layout::RowMajor(shape), SharedMemoryLayout(shape, 4, /*row_pad=*/2, 0),
                                 SharedMemoryLayout(shape, 4, 0, /*swizzle_bytes=*/32)}) {
      SCOPED_TRACE(layout.Text());
      EXPECT_EQ(layout.size(), 0);
      EXPECT_EQ(layout.footprint(), 0);
      for (size_t d = 0; d < shape.size(); ++d) EXPECT_EQ(layout.extent(d), shape[d]);
      EXPECT_TRUE(layout.IsInjective());
      EXPECT_EQ(layout.At(std::vector<int64_t>(shape.size())), 0);
      EXPECT_EQ(layout.At(0), 0);
      // Statements under loops of no iterations have offsets too.
      EXPECT_NE(OffsetOf(layout, std::vector<Expr>(shape.size(), i)), nullptr);
      EXPECT_NE(OffsetOf(layout.Coalesced(), std::vector<Expr>(shape.size(), i)), nullptr);
    }
  }
}

TEST(LayoutTest, CompositionIsThatOfTheMaps) {
  std::mt19937 random(1);
  int composed = 0;
  for (int round = 0; round < 4000; ++round) {
    Layout outer = RandomLayout(&random), inner = RandomLayout(&random);
    if (round % 2 == 0) inner.dims[0][0].stride += static_cast<int64_t>(random() % 3);
    if (round % 3 == 0) outer.swizzle = {1, 1, 2};
    const std::optional<Layout> both = Compose(outer, inner);
    if (!both) continue;
    ++composed;
    ASSERT_EQ(both->size(), inner.size());
    for (int64_t number = 0; number < inner.size(); ++number)
      ASSERT_EQ(both->At(number), outer.At(inner.At(number))) << outer.Text() << " after " << inner.Text();
  }
  EXPECT_GT(composed, 400);
}

TEST(LayoutTest, CompositionsThatAreNoLayoutsAreRefused) {
  const Layout outer = Layout::RowMajor({4, 6});
  // Three numbers at a time of rows of six, and four: the digits do not divide.
  EXPECT_TRUE(Compose(outer, Layout{{{{8, 3}}}, {}}));
  EXPECT_FALSE(Compose(outer, Layout{{{{6, 4}}}, {}}));
  EXPECT_FALSE(Compose(outer, Layout{{{{25, 1}}}, {}})) << "beyond the last element";
  EXPECT_FALSE(Compose(Layout{{{{4, 1}}, {{6, 4}}}, {}}, Layout{{{{4, 1}}, {{4, 3}}}, {}}))
      << "the sum of two digits carries";
  // A swizzle goes through only where nothing moves afterwards.
  const Layout swizzled = SharedMemoryLayout({8, 64}, 2, 0, 128);
  EXPECT_EQ(Compose(Layout::RowMajor({512}), swizzled), swizzled);
  EXPECT_FALSE(Compose(Layout{{{{8, 1}}, {{64, 8}}}, {}}, swizzled));
}

TEST(LayoutTest, TheInverseGivesTheNumberBack) {
  std::mt19937 random(2);
  for (int round = 0; round < 2000; ++round) {
    const Layout layout = RandomLayout(&random);
    const std::optional<Layout> inverse = Inverse(layout);
    ASSERT_TRUE(inverse) << layout.Text();
    for (int64_t number = 0; number < layout.size(); ++number)
      ASSERT_EQ(inverse->At(layout.At(number)), number) << layout.Text();
    const std::optional<Layout> again = Inverse(*inverse);
    ASSERT_TRUE(again);
    ASSERT_EQ(OffsetsOf(*again), OffsetsOf(layout)) << "the inverse of the inverse";
    const std::optional<Layout> same = Compose(*inverse, layout);
    ASSERT_TRUE(same) << layout.Text();
    for (int64_t number = 0; number < layout.size(); ++number) ASSERT_EQ(same->At(number), number);
  }
}

TEST(LayoutTest, WhatIsNoPermutationHasNoInverse) {
  EXPECT_FALSE(Inverse(Layout{{{{4, 2}}}, {}})) << "gaps";
  EXPECT_FALSE(Inverse(Layout{{{{4, 1}}, {{4, 2}}}, {}})) << "two elements at one offset";
  EXPECT_FALSE(Inverse(Layout{{{{4, 1}}, {{4, 0}}}, {}})) << "copies";
  const std::optional<Layout> swizzled = Inverse(SharedMemoryLayout({8, 64}, 2, 0, 128));
  ASSERT_TRUE(swizzled);
  for (int64_t number = 0; number < 512; ++number)
    EXPECT_EQ(swizzled->At(SharedMemoryLayout({8, 64}, 2, 0, 128).At(number)), number);
}

TEST(LayoutTest, CoalescedAndRepeatedLayoutsMeanTheSame) {
  std::mt19937 random(3);
  for (int round = 0; round < 500; ++round) {
    const Layout layout = RandomLayout(&random), fewer = layout.Coalesced();
    ASSERT_EQ(OffsetsOf(fewer), OffsetsOf(layout)) << layout.Text();
    ASSERT_EQ(fewer.Coalesced(), fewer);
    const Layout thrice = layout.Repeated(3);
    for (int64_t number = 0; number < thrice.size(); ++number)
      ASSERT_EQ(thrice.At(number),
                layout.At(number % layout.size()) + number / layout.size() * layout.footprint());
  }
}

TEST(LayoutTest, NoTwoElementsOfAnInjectiveLayoutMeet) {
  std::mt19937 random(4);
  int injective = 0;
  for (int round = 0; round < 1000; ++round) {
    Layout layout = RandomLayout(&random);
    for (std::vector<Mode>& dim : layout.dims) {
      for (Mode& mode : dim) mode.stride += static_cast<int64_t>(random() % 2);
    }
    if (!layout.IsInjective()) continue;
    ++injective;
    const std::vector<int64_t> offsets = OffsetsOf(layout);
    ASSERT_EQ(std::set<int64_t>(offsets.begin(), offsets.end()).size(), offsets.size()) << layout.Text();
  }
  EXPECT_GT(injective, 100);
  EXPECT_FALSE((Layout{{{{4, 1}}, {{4, 2}}}, {}}.IsInjective()));
}

// The swizzles of the hardware, in bytes: chunk c of row r is at chunk c ^ f(r).
TEST(LayoutTest, SwizzlesAreTheHardwares) {
  for (const int64_t element : {1, 2, 4}) {
    for (const int64_t swizzle : {32, 64, 128}) {
      const int64_t row = swizzle / element, rows = 16;
      const Layout layout = SharedMemoryLayout({rows, row}, element, 0, swizzle);
      EXPECT_EQ(layout.SwizzledRow() * element, swizzle);
      for (int64_t r = 0; r < rows; ++r) {
        const int64_t with = swizzle == 128 ? r % 8 : swizzle == 64 ? r / 2 % 4 : r / 4 % 2;
        for (int64_t c = 0; c < row; ++c) {
          const int64_t byte = c * element;
          EXPECT_EQ(layout.At({r, c}) * element, r * swizzle + (byte / 16 ^ with) * 16 + byte % 16);
        }
      }
    }
  }
}

TEST(LayoutTest, RowsLongerThanTheSwizzleLieInPanels) {
  const Layout layout = SharedMemoryLayout({16, 128}, 2, 0, 128);
  EXPECT_EQ(layout.Text(), "(16,(2,64)):(64,(1024,1)) swizzle <3,3,3>");
  EXPECT_EQ(layout.Flat({3, 70}), 1024 + 3 * 64 + 6);
  EXPECT_EQ(layout.footprint(), 16 * 128);
  // A ring's slots are whole tiles apart.
  EXPECT_EQ(layout.Repeated(3).Flat({2, 3, 70}), 2 * 16 * 128 + 1024 + 3 * 64 + 6);
  EXPECT_EQ(layout.RowPad(), 0);
  EXPECT_EQ(SharedMemoryLayout({16, 60}, 2, 4, 0).RowPad(), 4);
  EXPECT_EQ(SharedMemoryLayout({16, 60}, 2, 4, 0).footprint(), 16 * 64);
}

// Eight rows of 16 bytes, as ldmatrix reads them: rows of 128 bytes lie in the same banks, padding or a
// swizzle takes them apart.
TEST(LayoutTest, BanksOfRows) {
  const auto turns = [](const Layout& layout) {
    std::vector<int64_t> rows;
    for (int64_t row = 0; row < 8; ++row) rows.push_back(layout.At({row, 8}) * 2);
    return BankTurns(rows, 16);
  };
  EXPECT_EQ(turns(SharedMemoryLayout({8, 64}, 2, 0, 0)), 8);
  EXPECT_EQ(turns(SharedMemoryLayout({8, 64}, 2, 8, 0)), 1);
  EXPECT_EQ(turns(SharedMemoryLayout({8, 64}, 2, 0, 128)), 1);
  EXPECT_EQ(BankTurns({0, 0, 0, 0}, 4), 1) << "the same word";
  EXPECT_EQ(BankTurns({0, 128, 256}, 4), 3);
}

// Back ends emit the offsets that the layout says.
TEST(LayoutTest, EmittedOffsetsAreThoseOfTheLayout) {
  std::mt19937 random(6);
  for (int round = 0; round < 300; ++round) {
    const Layout layout = RandomLayout(&random);
    for (const Layout& same : {layout, layout.Coalesced()}) {
      for (int64_t number = 0; number < layout.size(); ++number) {
        std::vector<Expr> indices;
        for (const int64_t index : layout.Coordinate(number)) indices.push_back(IntConst(index));
        int64_t offset = -1;
        ASSERT_TRUE(IsConstInt(Simplify(OffsetOf(same, indices)), &offset));
        ASSERT_EQ(offset, layout.Flat(number)) << layout.Text();
      }
    }
  }
}

// The sums of mma.m16n8 [PTX ISA]: lane l has rows l / 4 and 8 below, and columns l % 4 * 2 and the next.
TEST(FragmentTest, ElementsHaveThreadsAndValues) {
  const Fragment sums = FragmentOf(16, 8, {{1, 16, 0}, {8, 1, 0}, {4, 0, 2}}, {{2, 8, 0}, {2, 0, 1}});
  EXPECT_EQ(sums.map.Text(), "((8,4),(2,2)):((8,2),(64,1))");
  EXPECT_EQ(sums.threads(), 32);
  EXPECT_EQ(sums.values(), 4);
  const Layout places = sums.Places();
  for (int64_t thread = 0; thread < 32; ++thread) {
    for (int64_t value = 0; value < 4; ++value) {
      const Fragment::Element element = sums.At(thread, value);
      EXPECT_EQ(element.row, thread / 4 + value / 2 * 8);
      EXPECT_EQ(element.column, thread % 4 * 2 + value % 2);
      EXPECT_EQ(places.At(element.row * 8 + element.column), thread * 4 + value);
      const Fragment::Element wide = sums.Within(24).At(thread, value);
      EXPECT_TRUE(wide.row == element.row && wide.column == element.column);
    }
  }
}

}  // namespace
}  // namespace mycc
