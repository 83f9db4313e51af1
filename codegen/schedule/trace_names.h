// Converts between current and stored names of primitives in traces. Some primitives have been renamed.
// Traces are printed with the current names, but stored in logs and sent to workers with the first name of
// each primitive. So a trace has the same text and hash in all logs, and older versions can read them. Pure
// functions of text; text that is not a trace is returned unchanged.
#pragma once

#include <string>
#include <string_view>

namespace mycc {

// The current name of a primitive: "stream_k" for "stream"; other words are returned unchanged.
std::string_view CurrentPrimitive(std::string_view name);

// The trace with each step under the current name of its primitive.
std::string CurrentTrace(const std::string& trace);
// The trace with each step under the first name of its primitive. StoredTrace(CurrentTrace(t)) ==
// StoredTrace(t).
std::string StoredTrace(const std::string& trace);

}  // namespace mycc
