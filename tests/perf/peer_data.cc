#include "tests/perf/peer_data.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <limits>
#include <stdexcept>

namespace mycc {

void PeerData::Read(int index, void* to, size_t bytes) const {
  const std::string path = folder_ + "/" + std::to_string(index);
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) throw std::runtime_error(path + ": cannot be read; expected what time_artifact --save writes");
  if (const auto found = static_cast<size_t>(file.tellg()); found != bytes) {
    throw std::runtime_error(path + ": has " + std::to_string(found) + " bytes; expected " +
                             std::to_string(bytes));
  }
  file.seekg(0);
  file.read(static_cast<char*>(to), static_cast<std::streamsize>(bytes));
  if (!file) throw std::runtime_error(path + ": cannot be read to its end");
}

std::vector<float> PeerData::Floats(int index, size_t count) const {
  std::vector<float> values(count);
  Read(index, values.data(), count * sizeof(float));
  return values;
}

template <typename T>
double PeerData::DifferenceOf(int index, const T* result, size_t count) const {
  std::vector<T> ours(count);
  Read(index, ours.data(), count * sizeof(T));
  double squares = 0;
  for (size_t i = 0; i < count; ++i) squares += static_cast<double>(result[i]) * result[i];
  constexpr double kTiny = std::numeric_limits<double>::min();  // results may be zero
  const double size = std::max(std::sqrt(squares / static_cast<double>(count)), kTiny);
  double largest = 0;
  for (size_t i = 0; i < count; ++i) {
    const double theirs = result[i];
    const double apart = std::abs(theirs - ours[i]) / std::max(size, std::abs(theirs));
    if (std::isnan(apart)) return HUGE_VAL;
    largest = std::max(largest, apart);
  }
  return largest;
}

double PeerData::Difference(int index, const float* result, size_t count) const {
  return DifferenceOf(index, result, count);
}

double PeerData::Difference(int index, const int* result, size_t count) const {
  return DifferenceOf(index, result, count);
}

void PrintPeer(const std::string& spec, const std::string& who, double milliseconds, double difference) {
  std::printf("%s %s %.6f\n%s %s.difference %.3g\n", spec.c_str(), who.c_str(), milliseconds, spec.c_str(),
              who.c_str(), difference);
}

}  // namespace mycc
