// Writes metrics in Prometheus's text format (version 0.0.4): families of samples, each with its help and
// type first. Thread rule: thread-compatible.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "server/latency.h"

namespace mycc {

using MetricLabels = std::vector<std::pair<std::string, std::string>>;

class PrometheusText {
 public:
  // A family begins; its samples follow. A counter's name ends in "_total", a unit is spelled out in the
  // name.
  void Counter(const std::string& name, const std::string& help) { Begin(name, help, "counter"); }
  void Gauge(const std::string& name, const std::string& help) { Begin(name, help, "gauge"); }
  void Sample(const MetricLabels& labels, double value) { Write(family_, labels, value); }
  void Sample(double value) { Write(family_, {}, value); }
  // A whole family.
  void Histogram(const std::string& name, const std::string& help, const LatencyCounts& counts);

  const std::string& text() const { return text_; }

 private:
  void Begin(const std::string& name, const std::string& help, const std::string& type);
  void Write(const std::string& name, const MetricLabels& labels, double value);

  std::string family_, text_;
};

}  // namespace mycc
