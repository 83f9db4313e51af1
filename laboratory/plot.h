// Draws curves with bands as an SVG picture that stands for itself: no script, no font file, light and dark.
// Pure functions.
#pragma once

#include <string>
#include <vector>

namespace mycc {

struct PlotPoint {
  double x = 0, y = 0, low = 0, high = 0;
};
struct PlotCurve {
  std::string name;
  std::vector<PlotPoint> points;  // ascending x
  bool dashed = false;
  int colour = 0;  // curves of one number have one colour
};
// One pair of axes; y is a fraction of 0 to 1.
struct PlotPanel {
  std::string title, x_name, y_name;
  std::vector<PlotCurve> curves;
  double line = 0;  // a horizontal line to compare with; 0: none
};

// Panels side by side, `columns` in a row, each with its own axes. REQUIRES: columns >= 1.
std::string DrawPlot(const std::string& title, const std::vector<PlotPanel>& panels, int columns);

// Round numbers that divide [low, high] into about `count` parts, all within it. REQUIRES: low < high.
std::vector<double> RoundTicks(double low, double high, int count);

}  // namespace mycc
