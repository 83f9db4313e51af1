#include "laboratory/plot.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"

namespace mycc {
namespace {

constexpr double kWidth = 520, kHeight = 340;  // of a panel, in pixels, with its margins
constexpr double kLeft = 56, kRight = 14, kTop = 34, kBottom = 46;
constexpr double kTitle = 36, kLegendLine = 18, kLegendColumn = 260;
// Told apart by eyes that see fewer colours as well (Okabe and Ito).
constexpr const char* kColours[] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                    "#e69f00", "#56b4e9", "#8c6bb1", "#777777"};

const char* ColourOf(const PlotCurve& curve) {
  return kColours[static_cast<size_t>(curve.colour) % std::size(kColours)];
}

std::string Escaped(const std::string& text) {
  return absl::StrReplaceAll(text, {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}, {"\"", "&quot;"}});
}

// From the numbers of a panel to its pixels.
struct Axes {
  double most_x = 1, least_y = 0;

  double X(double x) const { return kLeft + (kWidth - kLeft - kRight) * x / most_x; }
  double Y(double y) const {
    const double share = (std::clamp(y, least_y, 1.0) - least_y) / (1 - least_y);
    return kHeight - kBottom - (kHeight - kTop - kBottom) * share;
  }
};

// y begins where the middle of the curves is no longer squeezed at the top: below the least band at a fifth
// of the way.
Axes AxesOf(const PlotPanel& panel) {
  Axes axes;
  double least = panel.line > 0 ? panel.line : 1;
  for (const PlotCurve& curve : panel.curves) {
    if (curve.points.empty()) continue;
    axes.most_x = std::max(axes.most_x, curve.points.back().x);
    least = std::min(least, curve.points[curve.points.size() / 5].low);
  }
  axes.least_y = std::clamp(std::floor(least * 10) / 10, 0.0, 0.9);
  return axes;
}

std::string Text(double x, double y, const char* anchor, const char* kind, const std::string& text) {
  return absl::StrFormat("<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\" class=\"%s\">%s</text>\n", x, y,
                         anchor, kind, Escaped(text));
}

std::string Frame(const PlotPanel& panel, const Axes& axes) {
  std::string svg = Text(kWidth / 2, kTop - 12, "middle", "head", panel.title);
  for (const double y : RoundTicks(axes.least_y, 1, 5)) {
    absl::StrAppendFormat(&svg, "<line class=\"grid\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\"/>\n",
                          kLeft, kWidth - kRight, axes.Y(y), axes.Y(y));
    svg += Text(kLeft - 6, axes.Y(y) + 4, "end", "tick", absl::StrFormat("%.6g", y));
  }
  for (const double x : RoundTicks(0, axes.most_x, 6)) {
    absl::StrAppendFormat(&svg, "<line class=\"grid\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\"/>\n",
                          axes.X(x), axes.X(x), kTop, kHeight - kBottom);
    svg += Text(axes.X(x), kHeight - kBottom + 16, "middle", "tick", absl::StrFormat("%.6g", x));
  }
  if (panel.line > 0) {
    absl::StrAppendFormat(&svg, "<line class=\"line\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\"/>\n",
                          kLeft, kWidth - kRight, axes.Y(panel.line), axes.Y(panel.line));
  }
  svg += Text(kWidth / 2, kHeight - 10, "middle", "tick", panel.x_name);
  absl::StrAppendFormat(
      &svg,
      "<text transform=\"translate(14 %.1f) rotate(-90)\" text-anchor=\"middle\" class=\"tick\">%s</text>\n",
      kHeight / 2, Escaped(panel.y_name));
  return svg;
}

std::string Curve(const PlotCurve& curve, const Axes& axes) {
  if (curve.points.empty()) return "";
  std::string line, band;
  for (const PlotPoint& point : curve.points) {
    absl::StrAppendFormat(&line, "%.1f,%.1f ", axes.X(point.x), axes.Y(point.y));
    absl::StrAppendFormat(&band, "%.1f,%.1f ", axes.X(point.x), axes.Y(point.high));
  }
  for (auto point = curve.points.rbegin(); point != curve.points.rend(); ++point)
    absl::StrAppendFormat(&band, "%.1f,%.1f ", axes.X(point->x), axes.Y(point->low));
  std::string svg;
  absl::StrAppendFormat(&svg, "<polygon points=\"%s\" fill=\"%s\" fill-opacity=\"0.14\"/>\n", band,
                        ColourOf(curve));
  absl::StrAppendFormat(&svg,
                        "<polyline points=\"%s\" fill=\"none\" stroke=\"%s\" stroke-width=\"1.8\"%s>"
                        "<title>%s</title></polyline>\n",
                        line, ColourOf(curve), curve.dashed ? " stroke-dasharray=\"6 4\"" : "",
                        Escaped(curve.name));
  return svg;
}

// The curves' names, each once, in lines below the panels.
std::string Legend(const std::vector<PlotPanel>& panels, double top, double width, double* height) {
  std::vector<const PlotCurve*> shown;
  for (const PlotPanel& panel : panels) {
    for (const PlotCurve& curve : panel.curves) {
      const bool known =
          std::ranges::any_of(shown, [&](const PlotCurve* other) { return other->name == curve.name; });
      if (!known) shown.push_back(&curve);
    }
  }
  const int columns = std::max(1, static_cast<int>((width - kLeft) / kLegendColumn));
  std::string svg;
  for (size_t i = 0; i < shown.size(); ++i) {
    const double x = kLeft + kLegendColumn * static_cast<double>(static_cast<int>(i) % columns);
    const double y = top + kLegendLine * (static_cast<int>(i) / columns + 1);
    absl::StrAppendFormat(&svg,
                          "<line x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"%s\" "
                          "stroke-width=\"3\"%s/>\n",
                          x, x + 26, y - 4, y - 4, ColourOf(*shown[i]),
                          shown[i]->dashed ? " stroke-dasharray=\"6 4\"" : "");
    svg += Text(x + 34, y, "start", "name", shown[i]->name);
  }
  *height = kLegendLine * (std::ceil(static_cast<double>(shown.size()) / columns) + 1);
  return svg;
}

}  // namespace

std::vector<double> RoundTicks(double low, double high, int count) {
  const double rough = (high - low) / count;
  const double power = std::pow(10, std::floor(std::log10(rough)));
  double step = 10 * power;
  for (const double factor : {5.0, 2.0, 1.0}) {
    if (factor * power >= rough) step = factor * power;
  }
  std::vector<double> ticks;
  // Numbered from the first multiple, so that no error adds up.
  for (int64_t i = static_cast<int64_t>(std::ceil(low / step - 1e-9)); i * step <= high + 1e-9 * step; ++i)
    ticks.push_back(static_cast<double>(i) * step);
  return ticks;
}

std::string DrawPlot(const std::string& title, const std::vector<PlotPanel>& panels, int columns) {
  const int shown_columns = std::max(1, std::min(columns, static_cast<int>(panels.size())));
  const int rows = (static_cast<int>(panels.size()) + shown_columns - 1) / shown_columns;
  const double width = kWidth * shown_columns;
  double legend_height = 0;
  const std::string legend = Legend(panels, kTitle + rows * kHeight, width, &legend_height);
  const double height = kTitle + rows * kHeight + legend_height;
  std::string svg = absl::StrFormat(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" width=\"%.0f\" height=\"%.0f\" "
      "role=\"img\">\n<title>%s</title>\n",
      width, height, width, height, Escaped(title));
  absl::StrAppend(&svg,
                  "<style>text{font-family:sans-serif;fill:#222}.title{font-size:16px;font-weight:bold}"
                  ".head{font-size:13px;font-weight:bold}.tick{font-size:11px}.name{font-size:12px}"
                  ".grid{stroke:#8884;stroke-width:1}.line{stroke:#888;stroke-dasharray:2 3}.paper{fill:#fff}"
                  "@media(prefers-color-scheme:dark){text{fill:#ddd}.paper{fill:#1b1b1b}}</style>\n");
  absl::StrAppendFormat(&svg, "<rect class=\"paper\" width=\"%.0f\" height=\"%.0f\"/>\n", width, height);
  svg += Text(width / 2, 24, "middle", "title", title);
  for (size_t p = 0; p < panels.size(); ++p) {
    const int column = static_cast<int>(p) % shown_columns, row = static_cast<int>(p) / shown_columns;
    const Axes axes = AxesOf(panels[p]);
    absl::StrAppendFormat(&svg, "<g transform=\"translate(%.0f %.0f)\">\n", column * kWidth,
                          kTitle + row * kHeight);
    svg += Frame(panels[p], axes);
    for (const PlotCurve& curve : panels[p].curves) svg += Curve(curve, axes);
    svg += "</g>\n";
  }
  return absl::StrCat(svg, legend, "</svg>\n");
}

}  // namespace mycc
