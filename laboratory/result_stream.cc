#include "laboratory/result_stream.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace mycc {
namespace {

using nlohmann::json;

constexpr size_t kDeepestResult = 64;

// Writes an empty text and spaces over NaN, Infinity and -Infinity outside of texts, which keeps the places.
void BlankPythonNumbers(std::string* text) {
  constexpr std::string_view kWords[] = {"NaN", "-Infinity", "Infinity"};
  bool in_text = false;
  for (size_t i = 0; i < text->size(); ++i) {
    const char c = (*text)[i];
    if (in_text && c == '\\') {
      ++i;
    } else if (c == '"') {
      in_text = !in_text;
    } else if (!in_text && (c == 'N' || c == 'I' || c == '-')) {
      for (const std::string_view word : kWords) {
        if (text->compare(i, word.size(), word) != 0) continue;
        text->replace(i, word.size(), std::string("\"\"") + std::string(word.size() - 2, ' '));
        i += word.size() - 1;
        break;
      }
    }
  }
}

std::string LineAndColumn(const std::string& text, size_t at) {
  at = std::min(at, text.size());
  const auto line = std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n') + 1;
  const size_t start = at == 0 ? std::string::npos : text.rfind('\n', at - 1);
  return absl::StrCat(line, ":", at - (start == std::string::npos ? 0 : start + 1) + 1);
}

// Follows the parser through the document: the members of the object at its root, and the entries of two of
// them.
class ResultHandler : public json::json_sax_t {
 public:
  ResultHandler(const std::string& text, const ResultVisitor& visit) : text_(text), visit_(visit) {}

  bool null() override { return Value(nullptr); }
  bool boolean(bool value) override { return Value(value); }
  bool number_integer(number_integer_t value) override { return Value(value); }
  bool number_unsigned(number_unsigned_t value) override { return Value(value); }
  bool number_float(number_float_t value, const string_t&) override { return Value(value); }
  bool string(string_t& value) override { return Value(std::move(value)); }
  bool binary(binary_t&) override { return false; }
  bool start_object(std::size_t) override { return Open(json::object()); }
  bool start_array(std::size_t) override { return Open(json::array()); }
  bool end_object() override { return Close(); }
  bool end_array() override { return Close(); }

  bool key(string_t& name) override {
    if (!open_.empty()) {
      keys_.back() = std::move(name);
    } else {
      (in_entries_ ? entry_ : member_) = std::move(name);
    }
    return true;
  }

  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::detail::exception& error) override {
    // The position is behind the character that does not fit; at the end there is none.
    const bool has_entries = header_.has_cache || header_.has_results;
    header_.is_cut = has_entries && (in_entries_ || open_.empty()) && position > text_.size();
    if (header_.is_cut) return false;
    const std::string what = error.what();
    const size_t reason = what.find("syntax error");
    const bool says_expected = what.find("expected") != std::string::npos;
    return Fail(position == 0 ? 0 : position - 1,
                absl::StrCat(what.substr(reason == std::string::npos ? 0 : reason),
                             says_expected ? "" : "; expected JSON"));
  }

  const absl::Status& status() const { return status_; }
  ResultHeader& header() { return header_; }

 private:
  bool Fail(size_t at, const std::string& what) {
    status_ = absl::InvalidArgumentError(absl::StrCat(LineAndColumn(text_, at), ": ", what));
    return false;
  }

  bool Value(json value) {
    if (!is_root_open_) return Fail(0, "a value; expected an object");
    return open_.empty() ? Complete(std::move(value)) : Attach(std::move(value));
  }

  // Puts a value into the innermost open container.
  bool Attach(json value) {
    json& parent = open_.back();
    if (parent.is_array()) {
      parent.push_back(std::move(value));
    } else {
      parent[keys_.back()] = std::move(value);
    }
    return true;
  }

  bool Open(json container) {
    if (!is_root_open_) {
      is_root_open_ = container.is_object();
      return is_root_open_ || Fail(0, "an array; expected an object");
    }
    if (open_.empty() && !in_entries_ && BeginsEntries(container)) return true;
    if (open_.size() == kDeepestResult)
      return Fail(0, absl::StrCat("member \"", member_, "\" is nested too deeply; expected at most ",
                                  kDeepestResult, " levels"));
    open_.push_back(std::move(container));
    keys_.emplace_back();
    return true;
  }

  bool BeginsEntries(const json& container) {
    header_.has_cache |= member_ == "cache" && container.is_object();
    header_.has_results |= member_ == "results" && container.is_array();
    in_entries_ =
        (member_ == "cache" && container.is_object()) || (member_ == "results" && container.is_array());
    number_ = 0;
    return in_entries_;
  }

  bool Close() {
    if (open_.empty()) {
      in_entries_ = false;  // or the root's end
      return true;
    }
    json value = std::move(open_.back());
    open_.pop_back();
    keys_.pop_back();
    return open_.empty() ? Complete(std::move(value)) : Attach(std::move(value));
  }

  bool Complete(json value) {
    if (!in_entries_) {
      header_.members[member_] = std::move(value);
      return true;
    }
    status_ = visit_(header_, member_ == "cache" ? entry_ : absl::StrCat(number_++), value);
    return status_.ok();
  }

  const std::string& text_;
  const ResultVisitor& visit_;
  ResultHeader header_;
  absl::Status status_;
  bool is_root_open_ = false, in_entries_ = false;
  std::string member_, entry_;
  int64_t number_ = 0;
  std::vector<json> open_;         // containers of the value that is read, outermost first
  std::vector<std::string> keys_;  // the last key in each
};

}  // namespace

absl::StatusOr<ResultHeader> ReadResults(std::string text, const ResultVisitor& visit) {
  BlankPythonNumbers(&text);
  ResultHandler handler(text, visit);
  const bool is_whole = json::sax_parse(text, &handler);
  if (!is_whole && !handler.header().is_cut) {
    if (!handler.status().ok()) return handler.status();
    return absl::InvalidArgumentError("1:1: no JSON; expected an object");
  }
  return std::move(handler.header());
}

}  // namespace mycc
