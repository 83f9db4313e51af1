// Small files of other tuners, for tests of the laboratory, and packed ones.
#pragma once

#include <string>

namespace mycc {

// Three parameters in the forms that T1 files have, and two constraints: 7 of 12 configurations satisfy them.
inline constexpr char kT1[] = R"({
  "General": {"BenchmarkName": "sum"},
  "ConfigurationSpace": {
    "TuningParameters": [
      {"Name": "block", "Type": "int", "Values": "[64, 16, 32]", "Default": 32},
      {"Name": "vector", "Type": "string", "Values": "['float', 'float4']", "Default": "float"},
      {"Name": "cached", "Type": "bool", "Values": [true, false], "Default": false}],
    "Conditions": [
      {"Expression": "block >= 32 or vector == 'float4'", "Parameters": ["block", "vector"]},
      {"Expression": "not cached or p[\"block\"] == 64", "Parameters": ["cached", "block"]}]},
  "KernelSpecification": {"KernelName": "sum_kernel"}})";

std::string Gzip(const std::string& text);
// An archive of one file, deflated or stored.
std::string Zip(const std::string& name, const std::string& text, bool deflates);

}  // namespace mycc
