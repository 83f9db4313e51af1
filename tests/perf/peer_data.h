// The tensors of a workload as files, FOLDER/0, FOLDER/1, ...: inputs in declared order and then our output,
// dense, as time_artifact --save writes them. A library's result is compared with that output. Errors are
// exceptions, as the libraries' are. Thread rule: for one thread.
#pragma once

#include <string>
#include <vector>

namespace mycc {

class PeerData {
 public:
  explicit PeerData(std::string folder) : folder_(std::move(folder)) {}

  // Fills `bytes` bytes from a tensor's file, which has to have as many.
  void Read(int index, void* to, size_t bytes) const;
  std::vector<float> Floats(int index, size_t count) const;

  // How far a result is from ours, tensor `index`: the largest difference of two elements, relative to the
  // library's element or to the root mean square of all, whichever is larger; infinite for a NaN on one side.
  double Difference(int index, const float* result, size_t count) const;
  double Difference(int index, const int* result, size_t count) const;

 private:
  template <typename T>
  double DifferenceOf(int index, const T* result, size_t count) const;

  std::string folder_;
};

// The two lines that harness.py reads of a way to compute a workload.
void PrintPeer(const std::string& spec, const std::string& who, double milliseconds, double difference);

}  // namespace mycc
