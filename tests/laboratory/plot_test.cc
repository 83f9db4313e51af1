// Pictures of curves: complete, in order, within their panels, and with other people's names made harmless.
#include "laboratory/plot.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace mycc {
namespace {

using ::testing::DoubleEq;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

int CountOf(const std::string& text, const std::string& part) {
  int count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

PlotPanel Panel(const std::string& title) {
  PlotPanel panel{title, "evaluations", "fraction", {}, 0.95};
  for (const char* name : {"a", "b"}) {
    PlotCurve curve{name, {}, false, name[0] == 'b'};
    for (int i = 1; i <= 10; ++i) {
      const double y = 1 - 0.5 / i;
      curve.points.push_back({static_cast<double>(i), y, y - 0.1, std::min(1.0, y + 0.1)});
    }
    panel.curves.push_back(std::move(curve));
  }
  return panel;
}

TEST(PlotTest, HoldsEveryCurveWithItsBand) {
  const std::string svg = DrawPlot("All", {Panel("one"), Panel("two"), Panel("three")}, 2);
  EXPECT_EQ(CountOf(svg, "<svg "), 1);
  EXPECT_EQ(CountOf(svg, "</svg>"), 1);
  EXPECT_EQ(CountOf(svg, "<polyline "), 6);
  EXPECT_EQ(CountOf(svg, "<polygon "), 6);
  EXPECT_EQ(CountOf(svg, "class=\"name\">"), 2);  // the legend has each name once
  EXPECT_EQ(CountOf(svg, "class=\"line\""), 3);
  EXPECT_EQ(CountOf(svg, "<g "), CountOf(svg, "</g>"));
  EXPECT_THAT(svg, HasSubstr("viewBox=\"0 0 1040 "));
  EXPECT_THAT(svg, HasSubstr(">three</text>"));
  EXPECT_THAT(svg, Not(HasSubstr("nan")));
  EXPECT_THAT(svg, Not(HasSubstr("<script")));
}

TEST(PlotTest, NamesAreText) {
  const std::string svg = DrawPlot("a < b & \"c\"", {Panel("<script>alert(1)</script>")}, 2);
  EXPECT_THAT(svg, Not(HasSubstr("<script")));
  EXPECT_THAT(svg, HasSubstr("&lt;script&gt;"));
  EXPECT_THAT(svg, HasSubstr("a &lt; b &amp; &quot;c&quot;"));
}

TEST(PlotTest, EmptyPanelsAreDrawn) {
  EXPECT_THAT(DrawPlot("none", {}, 2), HasSubstr("</svg>"));
  PlotPanel panel = Panel("bare");
  panel.curves[0].points.clear();
  EXPECT_EQ(CountOf(DrawPlot("one", {panel}, 3), "<polyline "), 1);
}

TEST(PlotTest, TicksAreRound) {
  EXPECT_THAT(RoundTicks(0, 200, 6),
              ElementsAre(DoubleEq(0), DoubleEq(50), DoubleEq(100), DoubleEq(150), DoubleEq(200)));
  EXPECT_THAT(RoundTicks(0.9, 1, 5), ElementsAre(DoubleEq(0.9), DoubleEq(0.92), DoubleEq(0.94),
                                                 DoubleEq(0.96), DoubleEq(0.98), DoubleEq(1)));
}

}  // namespace
}  // namespace mycc
