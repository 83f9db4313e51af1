// A best time stays until the next one: lines that are steps.
import uPlot from "uplot";

const { stepped } = uPlot.paths;
if (!stepped) throw new Error("uPlot has no stepped lines");
export const steppedPaths = stepped({ align: 1 });
