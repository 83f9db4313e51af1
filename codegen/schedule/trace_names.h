// The names of primitives in traces that are kept. Several primitives have been renamed; a trace is printed
// under their current names, but stored in logs and sent to workers under the first name that each of them
// had. So a trace has one text and one hash in all logs, whichever version wrote it, and older versions read
// what this one writes. Pure functions of text; what is no trace comes back as it is.
#pragma once

#include <string>
#include <string_view>

namespace mycc {

// The current name of a primitive: "stream_k" for "stream", and any other word itself.
std::string_view CurrentPrimitive(std::string_view name);

// The trace with each step under the current name of its primitive.
std::string CurrentTrace(const std::string& trace);
// The trace with each step under the first name of its primitive. StoredTrace(CurrentTrace(t)) ==
// StoredTrace(t).
std::string StoredTrace(const std::string& trace);

}  // namespace mycc
