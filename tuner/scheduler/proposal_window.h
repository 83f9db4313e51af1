// Which outcomes a proposal depends on, so that its trials can be measured while earlier ones still are.
//
// A proposal is made with a window: the number of trials that those who measure can have in flight. It
// depends on the outcomes of all earlier proposals but the latest ones, as few as hold that many candidates
// together, and one at least:
//
//   proposals  0  1  2  3  4  5  6     candidates of each: 16
//   window  1  -----------------|      proposal 7 depends on 0 to 5
//   window 40  -----------|            proposal 7 depends on 0 to 3, since 4 to 6 hold 48
//
// The window kNoneUnseen is for searches that wait: a proposal with it depends on all earlier ones. So does a
// search with a budget of few trials, which are worth more than the time in which devices wait.
//
// A proposal that has been depended on is depended on ever after, also with a wider window. So the outcomes
// that a proposal sees are a function of the sizes and the windows of the proposals up to it, whatever order
// the outcomes arrive in. Thread rule: a value.
#pragma once

#include <cstdint>
#include <vector>

namespace mycc {

inline constexpr uint32_t kNoneUnseen = 0xffffffff;

class ProposalWindow {
 public:
  // The number of leading proposals that the next one depends on when it is made with this window; 0 is as 1.
  int Visible(int64_t window) const {
    if (window == kNoneUnseen) return num_proposals();
    int visible = visible_;
    for (int64_t unseen = unseen_; visible + 1 < num_proposals(); ++visible) {
      unseen -= sizes_[static_cast<size_t>(visible)];
      if (unseen < window) break;
    }
    return visible;
  }
  // A proposal of `size` candidates was made with this window.
  void Add(int64_t size, int64_t window) {
    for (const int visible = Visible(window); visible_ < visible; ++visible_)
      unseen_ -= sizes_[static_cast<size_t>(visible_)];
    sizes_.push_back(size);
    unseen_ += size;
  }

 private:
  int num_proposals() const { return static_cast<int>(sizes_.size()); }

  std::vector<int64_t> sizes_;
  int visible_ = 0;     // that the latest one depends on
  int64_t unseen_ = 0;  // candidates of the others
};

}  // namespace mycc
