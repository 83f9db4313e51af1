#include "worker/permitted_output.h"

#include <utility>

namespace mycc {

PermittedOutputs PermitOutputs(const Workload& workload, InputElements special, uint64_t seed,
                               PlaceShare share) {
  PermittedReference reference(workload, std::move(special));
  PermittedOutputs outputs;
  const double seconds =
      kPermitSeconds / static_cast<double>(static_cast<int64_t>(workload.outputs.size()) * share.of);
  for (size_t i = 0; i < workload.outputs.size(); ++i) {
    const PermittedValues values =
        PermitOutput(workload, &reference, static_cast<int>(i), kPermittedPlaces, seconds, seed, share);
    v1::PermittedOutput& output = *outputs.Add();
    output.mutable_places()->Add(values.places.begin(), values.places.end());
    for (const ValueSet& set : values.sets) {
      output.add_low(set.low);
      output.add_high(set.high);
      output.add_nan(set.nan);
      output.add_least(set.least);
      output.add_most(set.most);
    }
  }
  return outputs;
}

void AddShare(const PermittedOutputs& share, PermittedOutputs* outputs) {
  while (outputs->size() < share.size()) outputs->Add();
  for (int i = 0; i < share.size(); ++i) outputs->at(i).MergeFrom(share[i]);
}

std::vector<PermittedValues> PermittedOf(const Workload& workload, const PermittedOutputs& outputs) {
  std::vector<PermittedValues> permitted;
  if (outputs.size() != static_cast<int>(workload.outputs.size())) return permitted;
  for (int o = 0; o < outputs.size(); ++o) {
    const v1::PermittedOutput& output = outputs[o];
    PermittedValues values{workload.outputs[o]->dtype, {output.places().begin(), output.places().end()}, {}};
    for (int i = 0; i < output.places_size(); ++i) {
      ValueSet set = ValueSet::Floats(output.low(i), output.high(i), output.nan(i));
      set.least = output.least(i);
      set.most = output.most(i);
      values.sets.push_back(set);
    }
    permitted.push_back(std::move(values));
  }
  return permitted;
}

}  // namespace mycc
