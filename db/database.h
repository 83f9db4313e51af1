// A connection to one SQLite file, with its prepared statements and transactions. Only db/ knows
// SQLite. log_file.h says which file is a tuning log and when it may be opened. Thread rule:
// thread-compatible. Threads that share a Database lock mutex() around each use, from Prepare to the
// Query's end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/mutex.h"

struct sqlite3;
struct sqlite3_stmt;

namespace mycc {

struct Blob {
  std::string bytes;
};
// A parameter of a statement; std::monostate is NULL.
using SqlValue = std::variant<std::monostate, int64_t, double, std::string, Blob>;

class Database;

// One execution of a prepared statement. Its destructor returns the statement to the database, and ends its
// read.
class Query {
 public:
  Query(Query&& other) noexcept;
  Query& operator=(Query&&) = delete;
  ~Query();

  // Steps: true when there is a row to read, false at the end.
  absl::StatusOr<bool> Next();
  // Steps a statement that has no rows.
  absl::Status Run();

  // Columns count from 0. REQUIRES: Next() returned true.
  bool IsNull(int column) const;
  int64_t Int(int column) const;
  double Real(int column) const;
  std::string Text(int column) const;  // text or blob, byte for byte

 private:
  friend class Database;
  Query(Database* database, std::vector<sqlite3_stmt*>* idle, sqlite3_stmt* statement)
      : database_(database), idle_(idle), statement_(statement) {}

  Database* database_;
  std::vector<sqlite3_stmt*>* idle_;  // the database's, where the statement goes back to
  sqlite3_stmt* statement_;
};

class Database {
 public:
  enum class Access {
    kRead,           // shares locks with a writer
    kReadImmutable,  // no locks and no side files: for a file that nobody writes
    kReadWrite,      // the file must exist, empty or not
  };
  // Opens without reading. The error names the path and what the system said.
  static absl::StatusOr<std::unique_ptr<Database>> Open(const std::string& path, Access access);
  ~Database();
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  const std::string& path() const { return path_; }
  Mutex* mutex() { return &mutex_; }
  bool read_only() const { return access_ == Access::kRead || access_ == Access::kReadImmutable; }

  // Runs statements without parameters or results, e.g. a schema.
  absl::Status Execute(const std::string& sql);
  // The first column of a statement's only row.
  absl::StatusOr<int64_t> ReadInt(std::string_view sql, std::vector<SqlValue> values = {});
  absl::StatusOr<std::string> ReadText(std::string_view sql, std::vector<SqlValue> values = {});
  // A statement, from the cache or compiled, with its parameters ?1, ?2, ... bound.
  absl::StatusOr<Query> Prepare(std::string_view sql, std::vector<SqlValue> values = {});
  // Prepares and runs a statement that has no rows.
  absl::Status Run(std::string_view sql, std::vector<SqlValue> values = {});

  int64_t last_insert_id() const;
  int64_t changes() const;  // rows changed by the last statement that changes rows

  // The file's first bytes, read without a lock and before SQLite judges them; shorter when the file is.
  absl::StatusOr<std::string> ReadHeader(int bytes);

  // How SQLite executes each statement prepared so far: "STATEMENT: STEP; STEP; ...", for tests and for
  // tuning queries.
  absl::StatusOr<std::vector<std::string>> QueryPlans();

  // The status of a failed SQLite call: a canonical code, the path, what was done, and SQLite's words.
  absl::Status Error(int code, const std::string& what) const;

  // Why nothing can be written now, when the last attempt found no space; OK after a transaction was
  // committed.
  const absl::Status& write_trouble() const { return write_trouble_; }

  // Gives up the connection. REQUIRES: no Query lives.
  absl::Status Close();

 private:
  friend class Transaction;
  // Finds a text without a copy of it.
  struct TextHash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };

  Database(std::string path, Access access, sqlite3* connection)
      : path_(std::move(path)), access_(access), connection_(connection) {}

  const std::string path_;
  const Access access_;
  sqlite3* connection_;
  mutable absl::Status write_trouble_;
  Mutex mutex_;
  // Compiled and not in use, by their texts.
  std::unordered_map<std::string, std::vector<sqlite3_stmt*>, TextHash, std::equal_to<>> idle_statements_;
};

// BEGIN IMMEDIATE ... COMMIT; rolls back when it ends without Commit(). A transaction that begins within
// another is a part of it: undone alone when it is not committed, and durable when the outermost is.
class Transaction {
 public:
  static absl::StatusOr<Transaction> Begin(Database* database);
  Transaction(Transaction&& other) noexcept
      : database_(std::exchange(other.database_, nullptr)), is_part_(other.is_part_) {}
  Transaction& operator=(Transaction&&) = delete;
  ~Transaction();

  // After an OK Commit of the outermost transaction, what was written survives a crash of the machine.
  absl::Status Commit();

  // False when SQLite has rolled back by itself, as it does where the disk is full.
  bool is_open() const;

 private:
  Transaction(Database* database, bool is_part) : database_(database), is_part_(is_part) {}

  Database* database_;
  const bool is_part_;
};

}  // namespace mycc
