// The algebra of layouts: where the elements of a tensor lie in memory, and which thread holds which element
// of a tile in registers.
//
// A layout is one of CuTe (shape:stride, hierarchical; CUTLASS, "CuTe Layout Algebra"): each dimension has
// modes, the slowest first. A coordinate is written in the mixed radix of its dimension's modes, its digits
// are multiplied by the modes' strides and added up, and a swizzle XORs bits of the sum. Elements are
// numbered row by row, the last dimension fastest. Where all extents are powers of two this is a linear map
// of bits, as Triton has it (Zhou et al., "Linear Layouts", 2025). Thread rule: values, and pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace mycc {

// A digit of a coordinate: it has `extent` values, whose elements are `stride` apart.
struct Mode {
  int64_t extent = 1, stride = 0;

  bool operator==(const Mode&) const = default;
};

// Bits [base + shift, base + shift + bits) of an offset are XORed onto bits [base, base + bits), as CuTe's
// Swizzle<bits, base, shift> does. It is its own inverse. 0 bits: no swizzle.
struct Swizzle {
  int bits = 0, base = 0, shift = 0;

  int64_t operator()(int64_t offset) const;
  bool operator==(const Swizzle&) const = default;
};

struct Layout {
  std::vector<std::vector<Mode>> dims;
  Swizzle swizzle;

  // Element after element over `shape`.
  static Layout RowMajor(const std::vector<int64_t>& shape);
  bool operator==(const Layout&) const = default;

  int64_t extent(size_t dim) const;  // of a dimension
  int64_t size() const;              // the number of elements
  // The elements of memory that it takes, padding at the end of the slowest mode included.
  int64_t footprint() const;

  // The offset of a coordinate, or of an element's number, before the swizzle and after it. Beyond the last
  // element the slowest digit goes on.
  int64_t Flat(const std::vector<int64_t>& coordinate) const;
  int64_t Flat(int64_t number) const;
  int64_t At(const std::vector<int64_t>& coordinate) const { return swizzle(Flat(coordinate)); }
  int64_t At(int64_t number) const { return swizzle(Flat(number)); }
  // The coordinate of an element's number.
  std::vector<int64_t> Coordinate(int64_t number) const;

  // The modes of all dimensions, the fastest first, without those of one element.
  std::vector<Mode> Modes() const;
  // The same map with fewer modes: neighbours within a dimension that step as one are one, and a dimension of
  // one element has none.
  Layout Coalesced() const;
  // `times` copies one after the other, numbered by a new first dimension.
  Layout Repeated(int64_t times) const;

  // Whether no two elements have the same offset. False also where modes overlap without meeting.
  bool IsInjective() const;
  // The elements between a row of the last dimension and the next that belong to no row.
  int64_t RowPad() const;
  // The elements of a swizzled row; 0: no swizzle.
  int64_t SwizzledRow() const;
  // "(128,(2,64)):(64,(8192,1)) swizzle <3,3,3>".
  std::string Text() const;
};

// number -> outer(inner(number)): inner's offsets are taken as numbers of outer's elements. nullopt where
// that is no layout: modes that do not divide one another, offsets beyond outer's elements, or a swizzle of
// inner's before an outer layout that moves elements.
std::optional<Layout> Compose(const Layout& outer, const Layout& inner);
// offset -> number, a layout of one dimension; nullopt unless the offsets are the numbers below size(), in
// some order, that a layout can give back.
std::optional<Layout> Inverse(const Layout& layout);

// A tile in a GPU's shared memory: rows of the last dimension, each followed by `row_pad` elements; or rows
// whose 16-byte chunks are XORed with the row's number in the hardware's way, `swizzle_bytes` of 32, 64 or
// 128 bytes (128: row % 8, 64: row / 2 % 4, 32: row / 4 % 2). Rows of one swizzle or several are stored as
// panels of the swizzle's width, one after the other.
Layout SharedMemoryLayout(const std::vector<int64_t>& shape, int64_t element_bytes, int64_t row_pad,
                          int64_t swizzle_bytes);

// The turns that a warp's accesses of `bytes` at these addresses in shared memory take: words of one of the
// 32 banks wait for each other, and who reads the same word reads it at once.
int64_t BankTurns(const std::vector<int64_t>& addresses, int64_t bytes);

// Elements of a tile of rows x columns in the registers of threads: `map` has two dimensions, thread and
// value, and gives the element's number, row * columns + column.
struct Fragment {
  int64_t rows = 0, columns = 0;
  Layout map;

  bool operator==(const Fragment&) const = default;
  int64_t threads() const { return map.extent(0); }
  int64_t values() const { return map.extent(1); }  // of each thread

  struct Element {
    int64_t row, column;
  };
  Element At(int64_t thread, int64_t value) const;
  // (row * columns + column) -> thread * values() + value. REQUIRES: each element is one value of one thread.
  Layout Places() const;
  // The same elements of a tile with more columns.
  Fragment Within(int64_t columns_of_tile) const;
  // The modes of a dimension as steps of rows and columns.
  struct Step {
    int64_t extent, row, column;
  };
  std::vector<Step> Steps(size_t dim) const;
};
// A fragment from steps, the slowest first; those of one thread or value are dropped.
Fragment FragmentOf(int64_t rows, int64_t columns, const std::vector<Fragment::Step>& threads,
                    const std::vector<Fragment::Step>& values);

}  // namespace mycc
