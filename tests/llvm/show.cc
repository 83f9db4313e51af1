#include <chrono>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <sstream>

#include "codegen/llvm/emit.h"
#include "codegen/passes/debug.h"
#include "codegen/schedule/schedule.h"
#include "codegen/workload/canonical.h"
#include "codegen/workload/parse.h"
#include "tests/llvm/jit.h"
using namespace mycc;
std::string Read(const char* f) {
  std::ifstream i(f);
  std::stringstream s;
  s << i.rdbuf();
  return s.str();
}
int main(int, char** v) {
  // show WORKLOAD TRACE TARGET ir|llvm|asm|time
  auto w = ParseWorkload(Read(v[1]), v[1]);
  if (!w.ok()) {
    std::puts(w.status().ToString().c_str());
    return 1;
  }
  auto t = ParseTrace(std::string(v[2]) == "-" ? "v1\n" : Read(v[2]));
  if (!t.ok()) {
    std::puts(t.status().ToString().c_str());
    return 1;
  }
  auto tg = ParseTarget(v[3]);
  if (!tg.ok()) {
    std::puts(tg.status().ToString().c_str());
    return 1;
  }
  std::string k = v[4];
  if (getenv("TIME_PASSES")) SetPassDebug({0, "", true});
  Workload can = Canonicalize(*w);
  auto now = [] { return std::chrono::steady_clock::now(); };
  auto ms = [](auto a, auto b) { return std::chrono::duration<double>(b - a).count() * 1e3; };
  auto t0 = now();
  auto s = Replay(can, *tg, *t);
  if (!s.ok()) {
    std::puts(s.status().ToString().c_str());
    return 1;
  }
  auto t1 = now();
  if (k == "sched") {
    std::puts(PrintFunction(s->function()).c_str());
    return 0;
  }
  auto l = Lower(s->function(), *tg);
  if (!l.ok()) {
    std::puts(l.status().ToString().c_str());
    return 1;
  }
  auto t2 = now();
  if (k == "ir") {
    std::puts(PrintLowered(*l).c_str());
    return 0;
  }
  if (k == "time") {
    for (int i = 0; i < 5; ++i) {
      auto a = now();
      auto o = EmitModule({{"k", *l}}, *tg, EmitKind::kObject);
      if (!o.ok()) {
        std::puts(o.status().ToString().c_str());
        return 1;
      }
      std::printf("replay %.2f lower %.2f emit %.2f ms size %zu\n", ms(t0, t1), ms(t1, t2), ms(a, now()),
                  o->size());
    }
    auto j = JitKernel::Compile(*l, *tg);
    if (!j.ok()) {
      std::puts(j.status().ToString().c_str());
      return 1;
    }
    auto in = RandomInputs(can, 1);
    (*j)->Bind(in);
    auto cpu = [] {
      timespec t;
      clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
      return t.tv_sec * 1e3 + t.tv_nsec * 1e-6;
    };
    double best = 1e30, bc = 1e30;
    for (int i = 0; i < 40; ++i) {
      auto a = now();
      double c0 = cpu();
      (*j)->Call();
      bc = std::min(bc, cpu() - c0);
      best = std::min(best, ms(a, now()));
    }
    std::printf("cpu %.4f ms  %.2f GFLOP/s\n", bc, CountFlops(can) / bc * 1e-6);
    std::printf("best %.4f ms  %.2f GFLOP/s\n", best, CountFlops(can) / best * 1e-6);
    return 0;
  }
  auto o = EmitModule({{"k", *l}}, *tg, k == "llvm" ? EmitKind::kLlvmIr : EmitKind::kAssembly);
  if (!o.ok()) {
    std::puts(o.status().ToString().c_str());
    return 1;
  }
  std::puts(o->c_str());
}
