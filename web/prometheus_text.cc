#include "web/prometheus_text.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"

namespace mycc {
namespace {

std::string NumberOf(double value) { return absl::StrFormat("%.15g", value); }

std::string LabelsOf(const MetricLabels& labels) {
  std::string text;
  for (const auto& [name, value] : labels) {
    absl::StrAppend(&text, text.empty() ? "{" : ",", name, "=\"",
                    absl::StrReplaceAll(value, {{"\\", "\\\\"}, {"\"", "\\\""}, {"\n", "\\n"}}), "\"");
  }
  return text.empty() ? text : text + "}";
}

}  // namespace

void PrometheusText::Begin(const std::string& name, const std::string& help, const std::string& type) {
  family_ = name;
  absl::StrAppend(&text_, "# HELP ", name, " ", help, "\n# TYPE ", name, " ", type, "\n");
}

void PrometheusText::Write(const std::string& name, const MetricLabels& labels, double value) {
  absl::StrAppend(&text_, name, LabelsOf(labels), " ", NumberOf(value), "\n");
}

void PrometheusText::Histogram(const std::string& name, const std::string& help,
                               const LatencyCounts& counts) {
  Begin(name, help, "histogram");
  int64_t count = 0;
  for (size_t i = 0; i < kLatencyBounds.size(); ++i) {
    count += counts.buckets[i];
    Write(name + "_bucket", {{"le", NumberOf(kLatencyBounds[i])}}, static_cast<double>(count));
  }
  count += counts.buckets.back();
  Write(name + "_bucket", {{"le", "+Inf"}}, static_cast<double>(count));
  Write(name + "_sum", {}, counts.sum_seconds);
  Write(name + "_count", {}, static_cast<double>(count));
}

}  // namespace mycc
