// The baseline kernel: multiply-adds on every thread, timed beside each candidate. It never changes, so its
// time tells a slow candidate from a slow moment (throttling, a neighbour), and compares devices.
#pragma once

namespace mycc {

// Wall-clock seconds of one run, about a millisecond, on a team of `threads`.
double TimeBaseline(int threads);

}  // namespace mycc
