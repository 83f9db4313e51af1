#include "mycc_tune/simulate_report.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/plural.h"
#include "command/table.h"
#include "laboratory/plot.h"

namespace mycc {
namespace {

using nlohmann::ordered_json;
using Rows = std::vector<std::vector<std::string>>;

constexpr char kExactRandom[] = "uniform draws, exact";

std::string SecondsText(double seconds) {
  if (std::isinf(seconds)) return "never";
  if (seconds < 1e-3) return absl::StrFormat("%.3g us", seconds * 1e6);
  if (seconds < 1) return absl::StrFormat("%.3g ms", seconds * 1e3);
  return seconds < 100 ? absl::StrFormat("%.3g s", seconds) : absl::StrFormat("%.0f s", seconds);
}

std::string BandText(const MedianBand& band) {
  return absl::StrFormat("%.3f [%.3f, %.3f]", band.median, band.low, band.high);
}

std::string CountText(double count) { return std::isinf(count) ? "never" : absl::StrFormat("%.0f", count); }
std::string CountBandText(const MedianBand& band) {
  return absl::StrCat(CountText(band.median), " [", CountText(band.low), ", ", CountText(band.high), "]");
}
std::string SecondsBandText(const MedianBand& band) {
  return absl::StrCat(SecondsText(band.median), " [", SecondsText(band.low), ", ", SecondsText(band.high),
                      "]");
}

std::string SpaceTitle(const SpaceResult& space) {
  return absl::StrCat(space.name, space.device.empty() ? "" : " on ", space.device);
}

std::string Table(const Rows& rows) {
  std::vector<int> right;
  for (size_t column = 1; column < rows[0].size(); ++column) right.push_back(static_cast<int>(column));
  return FormatTable(rows, right);
}

// The best value: a time, or a number of the objective's unit.
double OptimumOf(const SpaceResult& space) {
  return space.higher_is_better ? 1 / space.optimum_seconds : space.optimum_seconds;
}
std::string OptimumText(const SpaceResult& space) {
  if (space.objective.empty()) return SecondsText(space.optimum_seconds);
  return absl::StrFormat("%.4g %s", OptimumOf(space), space.objective);
}

std::string SpaceFacts(const SimulationConfig& config, const SpaceResult& space) {
  std::string text = SpaceTitle(space);
  absl::StrAppendFormat(&text,
                        "\n  %s of %.0f, %s; %d fail (%.1f %%); optimum %s; an evaluation "
                        "costs %s on average%s\n",
                        HowMany(space.configurations, "configuration"), space.raw_size,
                        HowMany(space.parameters, "parameter"), space.failures,
                        100.0 * space.failures / space.configurations, OptimumText(space),
                        SecondsText(space.mean_cost_seconds),
                        space.compile_times_known ? "" : " without compile times, which are not recorded");
  absl::StrAppendFormat(&text,
                        "  %.3g %% of the configurations reach %.3g of the optimum: %s uniform draws find "
                        "one half of the time\n\n",
                        100 * space.within_target, config.target, CountText(space.draws_to_target));
  return text;
}

std::string EvaluationTable(const SimulationConfig& config, const SpaceResult& space) {
  Rows rows = {{"fraction of the optimum after evaluations:"}};
  for (const int budget : config.budgets) rows[0].push_back(absl::StrCat(budget));
  rows[0].push_back(absl::StrFormat("evaluations to %.3g", config.target));
  rows[0].emplace_back("reached");
  rows[0].emplace_back("invalid");
  for (const StrategyResult& result : space.results) {
    std::vector<std::string>& row = rows.emplace_back();
    row.push_back(NameOf(result.strategy, result.manner));
    for (const AtBudget& at : result.by_evaluations) row.push_back(BandText(at.fraction));
    row.push_back(CountBandText(result.evaluations_to_target));
    row.push_back(absl::StrFormat("%.0f %%", 100 * result.reached));
    row.push_back(absl::StrFormat("%.1f", result.by_evaluations.back().invalid));
  }
  std::vector<std::string>& exact = rows.emplace_back();
  exact.emplace_back(kExactRandom);
  for (const BestOfDraws& best : space.exact_random) exact.push_back(absl::StrFormat("%.3f", best.median));
  exact.push_back(CountText(space.draws_to_target));
  exact.emplace_back("");
  exact.push_back(absl::StrFormat(
      "%.1f", config.budgets.back() * static_cast<double>(space.failures) / space.configurations));
  return Table(rows);
}

std::string SecondsTable(const SimulationConfig& config, const SpaceResult& space) {
  Rows rows = {{"fraction of the optimum after:"}};
  for (const AtBudget& at : space.results[0].by_seconds) rows[0].push_back(SecondsText(at.budget));
  rows[0].push_back(absl::StrFormat("time to %.3g", config.target));
  rows[0].emplace_back("evaluations");
  rows[0].emplace_back("invalid");
  for (const StrategyResult& result : space.results) {
    std::vector<std::string>& row = rows.emplace_back();
    row.push_back(NameOf(result.strategy, result.manner));
    for (const AtBudget& at : result.by_seconds) row.push_back(BandText(at.fraction));
    row.push_back(SecondsBandText(result.seconds_to_target));
    row.push_back(absl::StrFormat("%.0f", result.by_seconds.back().evaluations));
    row.push_back(absl::StrFormat("%.1f", result.by_seconds.back().invalid));
  }
  return Table(rows);
}

std::string OverallTable(const SimulationConfig& config, const SimulationResult& result) {
  Rows rows = {{"geometric mean of the medians after evaluations:"}};
  for (const int budget : config.budgets) rows[0].push_back(absl::StrCat(budget));
  const size_t seconds = result.overall.empty() ? 0 : result.overall[0].by_seconds.size();
  for (size_t b = 0; b < seconds; ++b) {
    rows[0].push_back(config.budgets_seconds.empty() ? absl::StrCat("time of ", config.budgets[b])
                                                     : SecondsText(config.budgets_seconds[b]));
  }
  for (const OverallResult& overall : result.overall) {
    std::vector<std::string>& row = rows.emplace_back();
    row.push_back(NameOf(overall.strategy, overall.manner));
    for (const double mean : overall.by_evaluations) row.push_back(absl::StrFormat("%.3f", mean));
    for (const double mean : overall.by_seconds) row.push_back(absl::StrFormat("%.3f", mean));
  }
  return Table(rows);
}

ordered_json Number(double number) {
  return std::isfinite(number) ? ordered_json(number) : ordered_json(nullptr);
}
ordered_json BandJson(const MedianBand& band) {
  return {{"median", Number(band.median)}, {"low", Number(band.low)}, {"high", Number(band.high)}};
}

ordered_json BudgetsJson(const char* unit, const std::vector<AtBudget>& budgets) {
  ordered_json list = ordered_json::array();
  for (const AtBudget& at : budgets) {
    list.push_back({{unit, at.budget},
                    {"fraction", BandJson(at.fraction)},
                    {"seeds_low", at.low},
                    {"seeds_high", at.high},
                    {"mean_evaluations", at.evaluations},
                    {"mean_invalid", at.invalid}});
  }
  return list;
}

ordered_json CurveJson(const std::vector<CurvePoint>& curve) {
  ordered_json points = ordered_json::array();
  for (const CurvePoint& point : curve)
    points.push_back({point.at, point.fraction.median, point.fraction.low, point.fraction.high});
  return points;
}

ordered_json MannerJson(const std::string& strategy, const Manner& manner) {
  return {{"strategy", strategy}, {"warm", manner.warm}, {"noise", manner.noise}};
}

ordered_json SpaceJson(const SimulationConfig& config, const SpaceResult& space) {
  ordered_json json = {
      {"space", space.name},
      {"device", space.device},
      {"parameters", space.parameters},
      {"raw_size", space.raw_size},
      {"valid_configurations",
       space.legal_configurations ? ordered_json(*space.legal_configurations) : nullptr},
      {"configurations", space.configurations},
      {"failures", space.failures},
      {"objective", space.objective.empty() ? "time" : space.objective},
      {"optimum", OptimumOf(space)},
      {"optimum_seconds", space.objective.empty() ? ordered_json(space.optimum_seconds) : nullptr},
      {"mean_cost_seconds", space.mean_cost_seconds},
      {"compile_times_known", space.compile_times_known},
      {"share_within_target", space.within_target},
      {"draws_to_target", Number(space.draws_to_target)}};
  for (size_t b = 0; b < config.budgets.size(); ++b) {
    json["exact_random"].push_back({{"evaluations", config.budgets[b]},
                                    {"mean_fraction", space.exact_random[b].mean},
                                    {"median_fraction", space.exact_random[b].median}});
  }
  for (const StrategyResult& result : space.results) {
    ordered_json line = MannerJson(result.strategy, result.manner);
    line["by_evaluations"] = BudgetsJson("evaluations", result.by_evaluations);
    line["by_seconds"] = BudgetsJson("seconds", result.by_seconds);
    line["share_that_reached_target"] = result.reached;
    line["evaluations_to_target"] = BandJson(result.evaluations_to_target);
    line["seconds_to_target"] = BandJson(result.seconds_to_target);
    line["curve"] = CurveJson(result.curve);
    line["seconds_curve"] = CurveJson(result.seconds_curve);
    json["results"].push_back(std::move(line));
  }
  return json;
}

PlotCurve CurveOf(const StrategyResult& result, const std::vector<CurvePoint>& points, int colour) {
  PlotCurve curve{
      NameOf(result.strategy, result.manner), {}, result.manner.warm || result.manner.noise, colour};
  for (const CurvePoint& point : points)
    curve.points.push_back({point.at, point.fraction.median, point.fraction.low, point.fraction.high});
  return curve;
}

}  // namespace

std::string NameOf(const std::string& strategy, const Manner& manner) {
  return absl::StrCat(strategy, manner.warm ? ", warm start" : "", manner.noise ? ", noise" : "");
}

std::string SimulationText(const SimulationConfig& config, const SimulationResult& result) {
  std::string text =
      absl::StrCat("medians of ", config.seeds,
                   config.seeds == 1 ? " seed" : " seeds with their 95 % confidence intervals",
                   "; generations of ", config.generation_size, ", ", config.lag, " in flight\n\n");
  for (const SpaceResult& space : result.spaces) {
    absl::StrAppend(&text, SpaceFacts(config, space), EvaluationTable(config, space), "\n",
                    SecondsTable(config, space), "\n");
  }
  if (result.spaces.size() > 1)
    absl::StrAppend(&text, "all ", result.spaces.size(), " spaces\n", OverallTable(config, result));
  return text;
}

std::string SimulationJson(const SimulationConfig& config, const SimulationResult& result) {
  ordered_json json = {{"seeds", config.seeds},     {"first_seed", config.first_seed},
                       {"budgets", config.budgets}, {"generation", config.generation_size},
                       {"lag", config.lag},         {"model", config.model},
                       {"target", config.target},   {"spaces", ordered_json::array()}};
  for (const SpaceResult& space : result.spaces) json["spaces"].push_back(SpaceJson(config, space));
  for (const OverallResult& overall : result.overall) {
    ordered_json line = MannerJson(overall.strategy, overall.manner);
    line["by_evaluations"] = overall.by_evaluations;
    line["by_seconds"] = overall.by_seconds;
    json["geometric_means"].push_back(std::move(line));
  }
  return json.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

std::string SimulationPlot(const SimulationConfig& config, const SimulationResult& result) {
  std::vector<PlotPanel> panels;
  for (const SpaceResult& space : result.spaces) {
    PlotPanel evaluations{SpaceTitle(space), "evaluations", "fraction of the optimum", {}, config.target};
    PlotPanel seconds{SpaceTitle(space), "simulated seconds", "fraction of the optimum", {}, config.target};
    for (const StrategyResult& strategy : space.results) {
      const auto named = std::ranges::find(config.strategies, strategy.strategy);
      // A strategy's other manners have colours of their own behind those of the strategies.
      const int manner = (strategy.manner.warm ? 1 : 0) + (strategy.manner.noise ? 2 : 0);
      const int colour = static_cast<int>(named - config.strategies.begin()) +
                         manner * static_cast<int>(config.strategies.size());
      evaluations.curves.push_back(CurveOf(strategy, strategy.curve, colour));
      seconds.curves.push_back(CurveOf(strategy, strategy.seconds_curve, colour));
    }
    panels.push_back(std::move(evaluations));
    panels.push_back(std::move(seconds));
  }
  return DrawPlot(
      absl::StrCat("Medians of ", HowMany(config.seeds, "seed"), ", with 95 % confidence intervals"), panels,
      2);
}

}  // namespace mycc
