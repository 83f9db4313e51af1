// Reductions, softmax and running sums against loops over their definitions.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>

#include "codegen/onnx/declared_shapes.h"
#include "tests/onnx/one_operator.h"

namespace mycc::onnx {
namespace {

using ::testing::HasSubstr;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
using Row = std::vector<double>;

double SumOfRow(const Row& row, const std::function<double(double)>& value) {
  double sum = 0;
  for (const double x : row) sum += value(x);
  return sum;
}

const std::map<std::string, std::function<double(const Row&)>>& RowFunctions() {
  static const auto* const
      functions = new std::map<std::string, std::function<double(const Row&)>>{{"ReduceSum",
                                                                                [](const Row& row) {
                                                                                  return SumOfRow(
                                                                                      row, [](double x) {
                                                                                        return x;
                                                                                      });
                                                                                }},
                                                                               {"ReduceL1",
                                                                                [](const Row& row) {
                                                                                  return SumOfRow(
                                                                                      row, [](double x) {
                                                                                        return std::abs(x);
                                                                                      });
                                                                                }},
                                                                               {"ReduceSumSquare",
                                                                                [](const Row& row) {
                                                                                  return SumOfRow(
                                                                                      row, [](double x) {
                                                                                        return x * x;
                                                                                      });
                                                                                }},
                                                                               {"ReduceL2",
                                                                                [](const Row& row) {
                                                                                  return std::sqrt(SumOfRow(
                                                                                      row, [](double x) {
                                                                                        return x * x;
                                                                                      }));
                                                                                }},
                                                                               {"ReduceLogSum",
                                                                                [](const Row& row) {
                                                                                  return std::log(SumOfRow(
                                                                                      row, [](double x) {
                                                                                        return x;
                                                                                      }));
                                                                                }},
                                                                               {"ReduceLogSumExp",
                                                                                [](const Row& row) {
                                                                                  return std::log(SumOfRow(
                                                                                      row, [](double x) {
                                                                                        return std::exp(x);
                                                                                      }));
                                                                                }},
                                                                               {"ReduceMean",
                                                                                [](const Row& row) {
                                                                                  return SumOfRow(
                                                                                             row,
                                                                                             [](double x) {
                                                                                               return x;
                                                                                             }) /
                                                                                         static_cast<double>(
                                                                                             row.size());
                                                                                }},
                                                                               {"ReduceProd",
                                                                                [](const Row& row) {
                                                                                  double product = 1;
                                                                                  for (const double x : row)
                                                                                    product *= x;
                                                                                  return product;
                                                                                }},
                                                                               {"ReduceMax",
                                                                                [](const Row& row) {
                                                                                  double best = -kInfinity;
                                                                                  for (const double x : row)
                                                                                    best = std::max(best, x);
                                                                                  return best;
                                                                                }},
                                                                               {"ReduceMin",
                                                                                [](const Row& row) {
                                                                                  double best = kInfinity;
                                                                                  for (const double x : row)
                                                                                    best = std::min(best, x);
                                                                                  return best;
                                                                                }}};
  return *functions;
}

// The rows of a tensor over axes, each reduced.
Numbers ReducedRows(const Numbers& x, const std::vector<bool>& is_reduced, bool keeps_axes,
                    const std::function<double(const Row&)>& function) {
  std::vector<int64_t> kept = x.shape, result;
  for (size_t i = 0; i < kept.size(); ++i) {
    if (is_reduced[i]) kept[i] = 1;
    if (!is_reduced[i] || keeps_axes) result.push_back(kept[i]);
  }
  std::vector<Row> rows(static_cast<size_t>(ElementsOf(kept)));
  ForEachIndex(x.shape, [&](const std::vector<int64_t>& index) {
    int64_t row = 0;
    for (size_t i = 0; i < kept.size(); ++i) row = row * kept[i] + (is_reduced[i] ? 0 : index[i]);
    rows[static_cast<size_t>(row)].push_back(x.At(index));
  });
  Numbers numbers{result, {}};
  for (const Row& row : rows) numbers.values.push_back(function(row));
  return numbers;
}

TEST(Reduction, EveryFunctionOverEveryChoiceOfAxes) {
  const Numbers x = Numbers::Random({2, 3, 1, 4}, 1);
  for (const auto& [op, function] : RowFunctions()) {
    for (const int64_t opset : {11, 18}) {
      for (int set = 1; set < 16; ++set) {
        const bool keeps_axes = set % 3 != 0;
        Numbers axes;
        std::vector<bool> is_reduced;
        for (int i = 0; i < 4; ++i) {
          is_reduced.push_back(set >> i & 1);
          if (set >> i & 1) axes.values.push_back(i % 2 == 0 ? i : i - 4);
        }
        axes.shape = {static_cast<int64_t>(axes.values.size())};
        OneOperator reduce(op, opset);
        reduce.Input(kFloat, x).Int("keepdims", keeps_axes);
        if (opset < 13) {
          reduce.Ints("axes", {axes.values.begin(), axes.values.end()});
        } else {
          reduce.Constant(kInt64, axes);
        }
        SCOPED_TRACE(op + " set " + std::to_string(set));
        ExpectNumbers(reduce.Run(1, DType::kF32), 0, ReducedRows(x, is_reduced, keeps_axes, function));
      }
    }
  }
}

TEST(Reduction, AxesThatAreKnownWhenTheModelRunsSelectAmongThoseOfTheDeclaredShape) {
  const Numbers x = Numbers::Random({3, 2, 2}, 2);
  for (const double axis : {1, 2, -1, -2}) {
    for (const bool keeps_axes : {false, true}) {
      std::vector<bool> is_reduced(3);
      is_reduced[static_cast<size_t>(axis < 0 ? axis + 3 : axis)] = true;
      const Numbers expected = ReducedRows(x, is_reduced, keeps_axes, RowFunctions().at("ReduceMean"));
      OneOperator reduce("ReduceMean", 18);
      reduce.Input(kFloat, x).Input(kInt64, {{1}, {axis}}).Int("keepdims", keeps_axes);
      EXPECT_THAT(reduce.Run().status().ToString(), HasSubstr("not known when the model is compiled"));
      ExpectNumbers(reduce.Declare(expected.shape).Run(), 0, expected);
    }
  }
}

TEST(Reduction, DeclaredShapesAreThoseOfTheValuesBeforeToo) {
  OnnxGraph graph;
  graph.nodes = {{"", "ReduceSum", "", {"x", "axes"}, {"sum"}, {}},
                 {"", "Sqrt", "", {"sum"}, {"root"}, {}},
                 {"", "Sqrt", "other", {"y"}, {"z"}, {}},
                 {"", "CastLike", "", {"root", "x"}, {"out"}, {}}};
  graph.outputs = {{"out", kFloat, true, {{3, ""}, {2, ""}}},
                   {"z", kFloat, true, {{4, ""}}},
                   {"free", kFloat, true, {{-1, "n"}}}};
  const std::vector<int64_t> shape = {3, 2};
  EXPECT_THAT(DeclaredShapesOf(graph),
              UnorderedElementsAre(Pair("out", shape), Pair("root", shape), Pair("sum", shape),
                                   Pair("z", std::vector<int64_t>{4})));
}

TEST(Reduction, NoAxesAreAllOrNone) {
  const Numbers x = Numbers::Random({2, 3}, 3);
  for (const auto& [op, function] : RowFunctions()) {
    SCOPED_TRACE(op);
    OneOperator all(op, 18), none(op, 18);
    all.Input(kDouble, x).Input(kInt64, {{0}, {}}).Int("keepdims", 0);
    ExpectNumbers(all.Run(1, DType::kF64), 0, ReducedRows(x, {true, true}, false, function));
    none.Input(kDouble, x).Int("noop_with_empty_axes", 1);
    ExpectNumbers(none.Run(), 0, ReducedRows(x, {false, false}, true, function));
  }
}

TEST(Reduction, IntegersAndNarrowFloats) {
  const Numbers x{{2, 2}, {-7, 2, 5, -3}};
  const auto run = [&](const char* op, ElementType type) {
    return OneOperator(op, 13).Input(type, x).Ints("axes", {1}).Int("keepdims", 0).Run();
  };
  ExpectNumbers(run("ReduceMean", kInt32), 0, {{2}, {-2, 1}});
  ExpectNumbers(run("ReduceL2", kInt64), 0, {{2}, {7, 5}});
  ExpectNumbers(run("ReduceMax", kInt8), 0, {{2}, {2, 5}});
  // 4096 ones and a half: a sum in f16 would stop at 2048.
  const Numbers ones{{4096}, std::vector<double>(4096, 0.5)};
  ExpectNumbers(OneOperator("ReduceSum", 13).Input(kFloat16, ones).Int("keepdims", 0).Run(1, DType::kF16), 0,
                {{}, {2048}}, 0);
}

TEST(Reduction, EmptySetsAndInfinities) {
  const auto run = [](const char* op, ElementType type, const Numbers& x) {
    return OneOperator(op, 20).Input(type, x).Constant(kInt64, {{1}, {1}}).Int("keepdims", 0).Run();
  };
  const Numbers empty{{2, 0}, {}};
  ExpectNumbers(run("ReduceMax", kInt32, empty), 0, {{2}, {-2147483648.0, -2147483648.0}});
  ExpectNumbers(run("ReduceMin", kFloat, empty), 0, {{2}, {kInfinity, kInfinity}});
  ExpectNumbers(run("ReduceMax", kBool, empty), 0, {{2}, {0, 0}});
  ExpectNumbers(run("ReduceMin", kBool, empty), 0, {{2}, {1, 1}});
  ExpectNumbers(run("ReduceProd", kFloat, empty), 0, {{2}, {1, 1}});
  ExpectNumbers(run("ReduceLogSumExp", kFloat, empty), 0, {{2}, {-kInfinity, -kInfinity}});
  const Numbers rows{{4, 2}, {-kInfinity, -kInfinity, kInfinity, 1, 200, 200, -200, NAN}};
  ExpectNumbers(run("ReduceLogSumExp", kFloat, rows), 0,
                {{4}, {-kInfinity, kInfinity, 200 + std::log(2.0), NAN}});
}

TEST(Reduction, ArgMaxTakesTheFirstOrLastOfTheLargest) {
  const Numbers x{{2, 4}, {1, 3, 3, 0, -1, -5, -5, -1}};
  const auto run = [&](const char* op, int64_t last, int64_t keeps_axes) {
    return OneOperator(op, 13)
        .Input(kFloat, x)
        .Int("axis", -1)
        .Int("select_last_index", last)
        .Int("keepdims", keeps_axes)
        .Run(1, DType::kI64);
  };
  ExpectNumbers(run("ArgMax", 0, 1), 0, {{2, 1}, {1, 0}});
  ExpectNumbers(run("ArgMax", 1, 0), 0, {{2}, {2, 3}});
  ExpectNumbers(run("ArgMin", 0, 0), 0, {{2}, {3, 1}});
  ExpectNumbers(run("ArgMin", 1, 1), 0, {{2, 1}, {3, 2}});
  EXPECT_THAT(OneOperator("ArgMax", 13).Input(kFloat, {{0, 2}, {}}).Run().status().ToString(),
              HasSubstr("has no elements"));
}

TEST(Softmax, RowsReachOverAllAxesBeforeOpset13) {
  const Numbers x = Numbers::Random({2, 3, 4}, 5);
  for (const int64_t opset : {11, 13}) {
    const std::vector<bool> is_reduced = {false, true, opset < 13};
    Numbers softmax = x, log_softmax = x;
    const Numbers sums = ReducedRows(x, is_reduced, true, RowFunctions().at("ReduceLogSumExp"));
    ForEachIndex(x.shape, [&](const std::vector<int64_t>& i) {
      const double sum = sums.At({i[0], 0, opset < 13 ? 0 : i[2]});
      log_softmax.At(i) = x.At(i) - sum;
      softmax.At(i) = std::exp(x.At(i) - sum);
    });
    const auto run = [&](const char* op, ElementType type) {
      return OneOperator(op, opset).Input(type, x).Int("axis", 1).Run(1, StorageOf(type));
    };
    ExpectNumbers(run("Softmax", kFloat), 0, softmax);
    ExpectNumbers(run("LogSoftmax", kFloat), 0, log_softmax);
    ExpectNumbers(run("Softmax", kFloat16), 0, softmax, 1e-3);
    ExpectNumbers(run("LogSoftmax", kBfloat16), 0, log_softmax, 1e-2);
  }
}

TEST(Softmax, HardmaxIsOneAtTheFirstOfTheLargest) {
  const Numbers x{{2, 2, 2}, {1, 5, 5, 0, -1, -2, -1, -1}};
  ExpectNumbers(OneOperator("Hardmax", 11).Input(kFloat, x).Run(), 0, {{2, 2, 2}, {0, 1, 0, 0, 1, 0, 0, 0}});
  ExpectNumbers(OneOperator("Hardmax", 13).Input(kFloat, x).Int("axis", 1).Run(), 0,
                {{2, 2, 2}, {0, 1, 1, 0, 1, 0, 0, 1}});
}

TEST(Scan, EveryDirectionAndLength) {
  for (int64_t length = 1; length < 12; ++length) {
    const Numbers x = Numbers::Random({2, length, 2}, static_cast<uint64_t>(length));
    for (int form = 0; form < 8; ++form) {
      const bool is_exclusive = form & 1, is_reversed = form & 2, is_product = form & 4;
      Numbers expected = x;
      ForEachIndex(x.shape, [&](const std::vector<int64_t>& i) {
        double sum = is_product ? 1 : 0;
        for (int64_t k = 0; k < length; ++k) {
          const bool is_before = is_reversed ? k > i[1] : k < i[1];
          if (!is_before && (is_exclusive || k != i[1])) continue;
          const double element = x.At({i[0], k, i[2]});
          sum = is_product ? sum * element : sum + element;
        }
        expected.At(i) = sum;
      });
      for (const bool is_known : {false, true}) {
        OneOperator scan(is_product ? "CumProd" : "CumSum", is_product ? 26 : 14);
        scan.Input(kDouble, x).Int("exclusive", is_exclusive).Int("reverse", is_reversed);
        is_known ? scan.Constant(kInt64, {{}, {1}}) : scan.Input(kInt32, {{}, {-2}});
        ExpectNumbers(scan.Run(1, DType::kF64), 0, expected);
      }
    }
  }
}

}  // namespace
}  // namespace mycc::onnx
