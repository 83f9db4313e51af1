// Writes what a simulation found: as tables for people, as JSON with all numbers, and as curves. Pure
// functions.
#pragma once

#include <string>

#include "laboratory/simulation.h"

namespace mycc {

// "evolutionary, warm start, noise": a strategy and how its searches were done.
std::string NameOf(const std::string& strategy, const Manner& manner);

// A table of evaluations and one of seconds for each space, then the geometric means where there are several
// spaces.
std::string SimulationText(const SimulationConfig& config, const SimulationResult& result);

// One document. An evaluation count that half of the seeds did not reach is null.
std::string SimulationJson(const SimulationConfig& config, const SimulationResult& result);

// SVG: two panels for each space, over evaluations and over seconds.
std::string SimulationPlot(const SimulationConfig& config, const SimulationResult& result);

}  // namespace mycc
