// Decides whether a model's predictions are good enough to follow, and scales them. Pure functions.
#pragma once

#include <vector>

#include "tuner/search/scorer.h"
#include "tuner/search/search_ledger.h"

namespace mycc {

// False when predictions put too few pairs of measured candidates in the right order. Chance is one
// half; among candidates that were chosen for good predictions, an honest model is above it, if not
// by much. Only predictions of the same model, made before the candidate was measured, are
// compared.
bool PredictionsLead(const std::vector<const SearchLedger::Entry*>& measured);

// The factor that takes measured seconds to the units of what `scorer` predicts now: the geometric mean of
// predicted / measured. 1 where nothing was measured.
double PredictionScale(const std::vector<const SearchLedger::Entry*>& measured, Scorer* scorer);

}  // namespace mycc
