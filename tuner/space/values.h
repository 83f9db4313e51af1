// The decided values of a part, by name. A part decides few things, and a search asks about a hundred
// thousand points: a short list that allocates no memory is filled and searched faster than a tree. Thread
// rule: a value.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string_view>

#include "absl/container/inlined_vector.h"

namespace mycc {

// The names are not kept: they are literals, or belong to decisions that outlive the values.
class Values {
 public:
  struct Named {
    std::string_view name;
    int64_t value;
  };

  Values() = default;
  Values(std::initializer_list<Named> values) : values_(values) {}

  // REQUIRES: the name has a value.
  int64_t at(std::string_view name) const {
    const Named* const found = Find(name);
    if (found == nullptr) NotDecided(name);
    return found->value;
  }
  bool contains(std::string_view name) const { return Find(name) != nullptr; }
  // REQUIRES: the name has no value yet.
  void Add(std::string_view name, int64_t value) {
    // Stored one by one: a copy of a whole one waits for the stores that made it.
    Named& added = values_.emplace_back();
    added.name = name;
    added.value = value;
  }
  // Adds the name with 0 if it has no value. Valid until the next name is added.
  int64_t& operator[](std::string_view name) {
    for (Named& named : values_) {
      if (named.name == name) return named.value;
    }
    Add(name, 0);
    return values_.back().value;
  }

  // In the order in which they were added.
  const Named* begin() const { return values_.data(); }
  const Named* end() const { return values_.data() + values_.size(); }

 private:
  const Named* Find(std::string_view name) const {
    for (const Named& named : values_) {
      if (named.name == name) return &named;
    }
    return nullptr;
  }
  [[noreturn]] static void NotDecided(std::string_view name);

  absl::InlinedVector<Named, 24> values_;
};

}  // namespace mycc
