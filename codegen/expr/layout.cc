#include "codegen/expr/layout.h"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/check.h"

namespace mycc {
namespace {

int64_t ExtentOfModes(const std::vector<Mode>& modes) {
  int64_t extent = 1;
  for (const Mode& mode : modes) extent *= mode.extent;
  return extent;
}

int64_t OffsetInModes(const std::vector<Mode>& modes, int64_t index) {
  int64_t offset = 0;
  for (size_t m = modes.size(); m-- > 1;) {
    offset += index % modes[m].extent * modes[m].stride;
    index /= modes[m].extent;
  }
  return modes.empty() ? offset : offset + index * modes.front().stride;
}

// The modes of `outer`, the fastest first, that number * mode.stride runs through for mode.extent numbers;
// appended slowest first. `room`: what is left of each of outer's digits before it carries.
bool Restrict(const std::vector<Mode>& outer, Mode mode, std::vector<int64_t>* room,
              std::vector<Mode>* result) {
  if (mode.extent == 1 || mode.stride == 0) {
    if (mode.extent > 1) result->push_back(mode);
    return true;
  }
  std::vector<Mode> found;
  int64_t skip = mode.stride, left = mode.extent;
  for (size_t d = 0; d < outer.size() && left > 1; ++d) {
    const auto [extent, stride] = outer[d];
    if (skip >= extent) {
      if (skip % extent != 0) return false;
      skip /= extent;
      continue;
    }
    const int64_t taken = std::min(left, extent / skip);
    if (extent % skip != 0 || left % taken != 0) return false;
    (*room)[d] -= (taken - 1) * skip;
    if ((*room)[d] < 0) return false;
    found.push_back({taken, stride * skip});
    left /= taken;
    skip = 1;
  }
  result->insert(result->end(), found.rbegin(), found.rend());
  return left == 1;
}

}  // namespace

int64_t Swizzle::operator()(int64_t offset) const {
  const int64_t mask = (int64_t{1} << bits) - 1;
  return offset ^ ((offset >> (base + shift) & mask) << base);
}

Layout Layout::RowMajor(const std::vector<int64_t>& shape) {
  Layout layout;
  layout.dims.resize(shape.size());
  int64_t stride = 1;
  for (size_t d = shape.size(); d-- > 0;) {
    layout.dims[d] = {Mode{shape[d], stride}};
    stride *= shape[d];
  }
  return layout;
}

int64_t Layout::extent(size_t dim) const { return ExtentOfModes(dims[dim]); }

int64_t Layout::size() const {
  int64_t size = 1;
  for (const std::vector<Mode>& modes : dims) size *= ExtentOfModes(modes);
  return size;
}

int64_t Layout::footprint() const {
  int64_t most = 1;
  for (const std::vector<Mode>& modes : dims) {
    for (const Mode& mode : modes) most = std::max(most, mode.extent * mode.stride);
  }
  return size() == 0 ? 0 : most;
}

int64_t Layout::Flat(const std::vector<int64_t>& coordinate) const {
  int64_t offset = 0;
  for (size_t d = 0; d < dims.size(); ++d) offset += OffsetInModes(dims[d], coordinate[d]);
  return offset;
}

int64_t Layout::Flat(int64_t number) const { return Flat(Coordinate(number)); }

std::vector<int64_t> Layout::Coordinate(int64_t number) const {
  std::vector<int64_t> coordinate(dims.size());
  for (size_t d = dims.size(); d-- > 1;) {
    const int64_t values = std::max<int64_t>(extent(d), 1);
    coordinate[d] = number % values;
    number /= values;
  }
  if (!dims.empty()) coordinate.front() = number;
  return coordinate;
}

std::vector<Mode> Layout::Modes() const {
  std::vector<Mode> modes;
  for (auto dim = dims.rbegin(); dim != dims.rend(); ++dim) {
    std::copy_if(dim->rbegin(), dim->rend(), std::back_inserter(modes),
                 [](const Mode& mode) { return mode.extent != 1; });
  }
  return modes;
}

Layout Layout::Coalesced() const {
  Layout result{std::vector<std::vector<Mode>>(dims.size()), swizzle};
  for (size_t d = 0; d < dims.size(); ++d) {
    std::vector<Mode>& modes = result.dims[d];
    for (const Mode& mode : dims[d]) {
      if (mode.extent == 1) continue;
      if (!modes.empty() && modes.back().stride == mode.extent * mode.stride) {
        modes.back() = {modes.back().extent * mode.extent, mode.stride};
      } else {
        modes.push_back(mode);
      }
    }
  }
  return result;
}

Layout Layout::Repeated(int64_t times) const {
  Layout result = *this;
  result.dims.insert(result.dims.begin(), {Mode{times, footprint()}});
  return result;
}

bool Layout::IsInjective() const {
  if (size() == 0) return true;
  std::vector<Mode> modes = Modes();
  std::ranges::sort(modes, [](const Mode& a, const Mode& b) { return a.stride < b.stride; });
  int64_t end = 1;  // of the offsets so far
  for (const Mode& mode : modes) {
    if (mode.stride < end) return false;
    end += (mode.extent - 1) * mode.stride;
  }
  return true;
}

int64_t Layout::RowPad() const {
  if (dims.size() < 2 || dims.back().size() != 1 || dims[dims.size() - 2].empty()) return 0;
  return dims[dims.size() - 2].back().stride - extent(dims.size() - 1);
}

int64_t Layout::SwizzledRow() const {
  return swizzle.bits == 0 ? 0 : int64_t{1} << (swizzle.base + swizzle.bits);
}

std::string Layout::Text() const {
  const auto text = [&](int64_t Mode::*part) {
    return absl::StrJoin(dims, ",", [&](std::string* out, const std::vector<Mode>& modes) {
      const std::string inside = absl::StrJoin(
          modes, ",", [&](std::string* digit, const Mode& mode) { absl::StrAppend(digit, mode.*part); });
      absl::StrAppend(out, modes.size() == 1 ? inside : absl::StrCat("(", inside, ")"));
    });
  };
  return absl::StrCat("(", text(&Mode::extent), "):(", text(&Mode::stride), ")",
                      swizzle.bits == 0 ? ""
                                        : absl::StrCat(" swizzle <", swizzle.bits, ",", swizzle.base, ",",
                                                       swizzle.shift, ">"));
}

std::optional<Layout> Compose(const Layout& outer, const Layout& inner) {
  const std::vector<Mode> through = outer.Modes();
  if (inner.swizzle.bits != 0) {
    const Layout same = Layout{{{through.rbegin(), through.rend()}}}.Coalesced();
    const bool moves = outer.swizzle.bits != 0 || same.dims[0] != std::vector<Mode>{{outer.size(), 1}};
    return moves || inner.footprint() > outer.size() ? std::nullopt : std::optional<Layout>(inner);
  }
  std::vector<int64_t> room;
  for (const Mode& mode : through) room.push_back(mode.extent - 1);
  Layout result{std::vector<std::vector<Mode>>(inner.dims.size()), outer.swizzle};
  for (size_t d = 0; d < inner.dims.size(); ++d) {
    for (const Mode& mode : inner.dims[d]) {
      if (!Restrict(through, mode, &room, &result.dims[d])) return std::nullopt;
    }
  }
  return result;
}

std::optional<Layout> Inverse(const Layout& layout) {
  std::vector<Mode> modes = layout.Modes();
  // Each mode with the distance of its numbers.
  std::vector<std::pair<Mode, int64_t>> numbered;
  int64_t number = 1;
  for (const Mode& mode : modes) {
    numbered.emplace_back(mode, number);
    number *= mode.extent;
  }
  std::ranges::sort(numbered, [](const auto& a, const auto& b) { return a.first.stride > b.first.stride; });
  Layout inverse{{{}}, {}};
  int64_t end = layout.size();
  bool moves = false;
  for (const auto& [mode, distance] : numbered) {
    if (mode.stride * mode.extent != end) return std::nullopt;
    end = mode.stride;
    moves |= mode.stride != distance;
    inverse.dims[0].push_back({mode.extent, distance});
  }
  if (end != 1) return std::nullopt;
  // A swizzle is of the offset, which the inverse takes and does not give.
  if (layout.swizzle.bits != 0 && moves) return std::nullopt;
  inverse.swizzle = layout.swizzle;
  return inverse;
}

Layout SharedMemoryLayout(const std::vector<int64_t>& shape, int64_t element_bytes, int64_t row_pad,
                          int64_t swizzle_bytes) {
  Layout layout = Layout::RowMajor(shape);
  if (shape.empty()) return layout;
  const int64_t row = shape.back(), panel = swizzle_bytes / element_bytes;
  if (swizzle_bytes != 0) {
    const auto log2 = [](int64_t value) { return std::countr_zero(static_cast<uint64_t>(value)); };
    layout.swizzle = {log2(swizzle_bytes / 16), log2(16 / element_bytes), 3};
  }
  const bool panels = swizzle_bytes != 0 && row % panel == 0;
  const int64_t pitch = panels ? panel : row + row_pad;
  int64_t rows = 1;
  for (size_t d = shape.size() - 1; d-- > 0;) {
    layout.dims[d][0].stride = rows * pitch;
    rows *= shape[d];
  }
  if (panels) layout.dims.back() = {Mode{row / panel, rows * panel}, Mode{panel, 1}};
  return layout;
}

int64_t BankTurns(const std::vector<int64_t>& addresses, int64_t bytes) {
  constexpr int64_t kBanks = 32, kWord = 4, kWidest = 16;
  int64_t turns = 0;
  for (int64_t first = 0; first < bytes; first += kWidest) {
    std::array<std::vector<int64_t>, kBanks> banks;
    size_t most = 1;
    for (const int64_t address : addresses) {
      for (int64_t byte = first; byte < std::min(bytes, first + kWidest); byte += kWord) {
        const int64_t word = (address + byte) / kWord;
        std::vector<int64_t>& bank = banks[static_cast<size_t>(word % kBanks)];
        if (std::ranges::find(bank, word) == bank.end()) bank.push_back(word);
        most = std::max(most, bank.size());
      }
    }
    turns += static_cast<int64_t>(most);
  }
  return turns;
}

Fragment::Element Fragment::At(int64_t thread, int64_t value) const {
  const int64_t number = map.At({thread, value});
  return {number / columns, number % columns};
}

Layout Fragment::Places() const {
  std::optional<Layout> inverse = Inverse(map);
  MYCC_CHECK(inverse.has_value()) << "elements of the fragment " << map.Text()
                                  << " have no place of their own";
  return *std::move(inverse);
}

Fragment Fragment::Within(int64_t columns_of_tile) const {
  return FragmentOf(rows, columns_of_tile, Steps(0), Steps(1));
}

std::vector<Fragment::Step> Fragment::Steps(size_t dim) const {
  std::vector<Step> steps;
  for (const Mode& mode : map.dims[dim])
    steps.push_back({mode.extent, mode.stride / columns, mode.stride % columns});
  return steps;
}

Fragment FragmentOf(int64_t rows, int64_t columns, const std::vector<Fragment::Step>& threads,
                    const std::vector<Fragment::Step>& values) {
  Fragment fragment{rows, columns, {{{}, {}}, {}}};
  for (const size_t dim : {0, 1}) {
    for (const Fragment::Step& step : dim == 0 ? threads : values) {
      if (step.extent > 1) fragment.map.dims[dim].push_back({step.extent, step.row * columns + step.column});
    }
  }
  return fragment;
}

}  // namespace mycc
