// A kernel that never changes, timed beside every candidate: it tells a slow candidate from a slow moment
// (throttling, a neighbour), and compares devices of one model. Multiply-adds in registers on every thread.
#pragma once

namespace mycc {

// Wall seconds of one run, about a millisecond, on a team of `threads`.
double TimeBaseline(int threads);

}  // namespace mycc
