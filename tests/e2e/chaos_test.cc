// kill -9 of every kind of process at random moments of a job, with recorded results: no finished trial is
// lost or measured twice, and the job ends with the candidates, results and best of the undisturbed run.
//
// MYCC_CHAOS_KILLS: the number of kills, in as many runs of the job as that takes. MYCC_CHAOS_SEED: of the
// random moments and victims; the job's own seed is always the same. tests/e2e/chaos.sh sets both.
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <iostream>
#include <map>
#include <random>
#include <thread>

#include "absl/strings/numbers.h"
#include "gtest/gtest.h"
#include "process/child.h"
#include "server/search_child.h"
#include "tests/e2e/farm.h"

namespace mycc {
namespace {

constexpr uint32_t kTrials = 32;
constexpr int kKillsARun = 8;
constexpr double kRunSeconds = 600;

int64_t FromEnvironment(const char* name, int64_t otherwise) {
  const char* const value = std::getenv(name);
  int64_t number = 0;
  return value != nullptr && absl::SimpleAtoi(value, &number) ? number : otherwise;
}

enum Victim { kServer, kWorker, kBuilder, kRunner, kSearch, kVictims };
constexpr const char* kVictimNames[] = {"server", "worker", "builder", "runner", "search"};

class Chaos {
 public:
  Chaos(Farm* farm, std::mt19937* random, std::map<Victim, int>* hits)
      : farm_(*farm), random_(*random), hits_(*hits) {}

  // Kills one process of a random kind, and starts again what only a person or an init system starts. False
  // when there is no process of the kind now. A job's search is killed once: two crashes without a proposal
  // between them end the job, and trials that finish between two kills may all be of one proposal.
  bool KillOne() {
    const Victim victim = static_cast<Victim>(random_() % kVictims);
    if (victim == kSearch && killed_search_) return false;
    const int index = static_cast<int>(random_() % 2);
    if (victim == kServer) {
      farm_.KillServer();
      farm_.StartServer();
    } else if (victim == kWorker) {
      farm_.KillWorker(index);
      farm_.StartWorker(index);
    } else if (!KillChild(victim, index)) {
      return false;
    }
    ++hits_[victim];
    killed_search_ |= victim == kSearch;
    return true;
  }

 private:
  // A keeper, a fork server or the process of a request.
  bool KillChild(Victim victim, int index) {
    const pid_t parent = victim == kSearch ? farm_.server()->pid() : farm_.worker(index)->pid();
    const char* const command = victim == kSearch    ? kSearchCommand
                                : victim == kBuilder ? kBuildCommand
                                                     : kRunCommand;
    const std::vector<pid_t> processes = DescendantsOf(parent, command);
    return !processes.empty() && kill(processes[random_() % processes.size()], SIGKILL) == 0;
  }

  Farm& farm_;
  std::mt19937& random_;
  std::map<Victim, int>& hits_;
  bool killed_search_ = false;
};

// Returns the number of kills. Between two of them a trial finishes, so that a job can come to its end.
int Disturb(Farm* farm, Chaos* chaos, std::mt19937* random, int most_kills) {
  constexpr int kMostPauseMilliseconds = 400;
  int kills = 0;
  int64_t finished = 0;
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(kRunSeconds);
  while (kills < most_kills && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds((*random)() % kMostPauseMilliseconds));
    const auto progress = farm->Progress();
    if (!progress.ok() || progress->state() == v1::JOB_STATE_WAITING) continue;  // the server is starting
    if (progress->state() != v1::JOB_STATE_RUNNING) break;
    if (kills > 0 && progress->trials() <= finished) continue;
    if (!chaos->KillOne()) continue;
    finished = progress->trials();
    ++kills;
  }
  return kills;
}

TEST(ChaosTest, KillsAtRandomMomentsLoseAndRepeatNothing) {
  const int64_t wanted = FromEnvironment("MYCC_CHAOS_KILLS", 16);
  const int64_t seed = FromEnvironment("MYCC_CHAOS_SEED", std::random_device()());
  std::cout << "MYCC_CHAOS_SEED=" << seed << std::endl;
  std::mt19937 random(static_cast<uint32_t>(seed));
  std::map<Victim, int> hits;
  const JobOutcome& undisturbed = Undisturbed(1, kTrials);
  ASSERT_EQ(undisturbed.given_up, 0);
  int runs = 0, compared = 0, given_up = 0;
  for (int64_t kills = 0; kills < wanted && !testing::Test::HasFailure(); ++runs) {
    FarmOptions options;
    options.trials = kTrials;
    Farm farm(options);
    Chaos chaos(&farm, &random, &hits);
    farm.Start();
    farm.Submit();
    kills += Disturb(&farm, &chaos, &random, static_cast<int>(std::min<int64_t>(kKillsARun, wanted - kills)));
    ASSERT_TRUE(farm.WaitForEnd(kRunSeconds)) << farm.Said();
    const JobOutcome outcome = farm.End();
    given_up += outcome.given_up;
    if (outcome.given_up == 0) {
      ExpectSame(outcome, undisturbed);
      ++compared;
    }
    if (testing::Test::HasFailure()) std::cout << farm.Said() << std::endl;
  }
  std::cout << runs << " runs of the job, " << compared << " compared with the undisturbed one; " << given_up
            << " trials were given up in the others\nkills:";
  for (int victim = 0; victim < kVictims; ++victim)
    std::cout << " " << kVictimNames[victim] << " " << hits[static_cast<Victim>(victim)];
  std::cout << std::endl;
  EXPECT_GT(2 * compared, runs) << "too many runs were spoilt by trials that were given up";
}

}  // namespace
}  // namespace mycc
