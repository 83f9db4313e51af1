// A thin layer over SQLite's C interface that turns each of its errors into a status with path and words.
#include "db/database.h"

#include <sqlite3.h>

#include <cctype>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/check.h"
#include "base/status.h"

namespace mycc {
namespace {

constexpr int kBusyTimeoutMillis = 10000;

absl::StatusCode CodeOf(int code) {
  switch (code & 0xff) {
    case SQLITE_FULL: return absl::StatusCode::kResourceExhausted;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB: return absl::StatusCode::kDataLoss;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_CANTOPEN: return absl::StatusCode::kUnavailable;
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_AUTH: return absl::StatusCode::kPermissionDenied;
    case SQLITE_TOOBIG: return absl::StatusCode::kInvalidArgument;
    default: return absl::StatusCode::kInternal;
  }
}

// A path as SQLite's URI, so that any character may stand in it.
std::string FileUri(const std::string& path, const std::string& query) {
  std::string uri = "file:";
  for (unsigned char c : path) {
    const bool plain = std::isalnum(c) || std::strchr("/._-", c) != nullptr;
    if (plain) {
      uri.push_back(static_cast<char>(c));
    } else {
      absl::StrAppendFormat(&uri, "%%%02X", c);
    }
  }
  return uri + query;
}

int BindValue(sqlite3_stmt* statement, int index, const SqlValue& value) {
  struct Binder {
    sqlite3_stmt* statement;
    int index;
    int operator()(std::monostate) const { return sqlite3_bind_null(statement, index); }
    int operator()(int64_t number) const { return sqlite3_bind_int64(statement, index, number); }
    int operator()(double number) const { return sqlite3_bind_double(statement, index, number); }
    int operator()(const std::string& text) const {
      return sqlite3_bind_text64(statement, index, text.data(), text.size(), SQLITE_TRANSIENT, SQLITE_UTF8);
    }
    int operator()(const Blob& blob) const {
      return sqlite3_bind_blob64(statement, index, blob.bytes.data(), blob.bytes.size(), SQLITE_TRANSIENT);
    }
  };
  return std::visit(Binder{statement, index}, value);
}

}  // namespace

Query::Query(Query&& other) noexcept
    : database_(other.database_), idle_(other.idle_), statement_(std::exchange(other.statement_, nullptr)) {}

Query::~Query() {
  if (statement_ == nullptr) return;
  sqlite3_reset(statement_);
  sqlite3_clear_bindings(statement_);
  idle_->push_back(statement_);
}

absl::StatusOr<bool> Query::Next() {
  const int code = sqlite3_step(statement_);
  if (code == SQLITE_ROW) return true;
  if (code == SQLITE_DONE) return false;
  return database_->Error(code, "cannot run a statement");
}

absl::Status Query::Run() { return Next().status(); }

bool Query::IsNull(int column) const { return sqlite3_column_type(statement_, column) == SQLITE_NULL; }
int64_t Query::Int(int column) const { return sqlite3_column_int64(statement_, column); }
double Query::Real(int column) const { return sqlite3_column_double(statement_, column); }

std::string Query::Text(int column) const {
  const void* bytes = sqlite3_column_blob(statement_, column);
  const int size = sqlite3_column_bytes(statement_, column);
  return bytes == nullptr ? std::string() : std::string(static_cast<const char*>(bytes), size);
}

absl::StatusOr<std::unique_ptr<Database>> Database::Open(const std::string& path, Access access) {
  int flags = SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
  switch (access) {
    case Access::kRead:
    case Access::kReadImmutable: flags |= SQLITE_OPEN_READONLY; break;
    case Access::kReadWrite: flags |= SQLITE_OPEN_READWRITE; break;
  }
  const std::string uri = FileUri(path, access == Access::kReadImmutable ? "?immutable=1" : "");
  sqlite3* connection = nullptr;
  const int code = sqlite3_open_v2(uri.c_str(), &connection, flags, nullptr);
  std::unique_ptr<Database> database(new Database(path, access, connection));
  if (code != SQLITE_OK) {
    const int system_error = connection == nullptr ? 0 : sqlite3_system_errno(connection);
    if (system_error == 0) return database->Error(code, "cannot open");
    const auto status_code = system_error == EACCES || system_error == EPERM || system_error == EROFS
                                 ? absl::StatusCode::kPermissionDenied
                                 : absl::StatusCode::kFailedPrecondition;  // it will not pass by itself
    return absl::Status(status_code, absl::StrCat(path, ": cannot open: ", std::strerror(system_error)));
  }
  sqlite3_busy_timeout(connection, kBusyTimeoutMillis);
  // SQLite opens read-only what it may not write; a caller that asked to write is told at once.
  if (!database->read_only() && sqlite3_db_readonly(connection, "main") == 1) {
    return absl::PermissionDeniedError(absl::StrCat(path, ": cannot open for writing: permission denied"));
  }
  return database;
}

Database::~Database() { Close().IgnoreError(); }

absl::Status Database::Close() {
  if (connection_ == nullptr) return absl::OkStatus();
  for (auto& [sql, statements] : idle_statements_) {
    for (sqlite3_stmt* statement : statements) sqlite3_finalize(statement);
  }
  idle_statements_.clear();
  const int code = sqlite3_close(connection_);
  MYCC_CHECK(code != SQLITE_BUSY) << "a Query outlives its Database";
  connection_ = nullptr;
  return code == SQLITE_OK ? absl::OkStatus() : absl::InternalError(absl::StrCat(path_, ": cannot close"));
}

absl::Status Database::Error(int code, const std::string& what) const {
  std::string words = sqlite3_errstr(code);
  absl::StatusCode status_code = CodeOf(code);
  if (connection_ != nullptr && sqlite3_extended_errcode(connection_) == code)
    words = sqlite3_errmsg(connection_);
  if (code == SQLITE_IOERR_WRITE) {
    status_code = absl::StatusCode::kResourceExhausted;
    words = "cannot write: a limit on space or file size is reached, or the disk fails";
  }
  if (status_code == absl::StatusCode::kDataLoss) words += "; restore it from a backup";
  const absl::Status status(status_code, absl::StrCat(path_, ": ", what, ": ", words));
  if (absl::IsResourceExhausted(status)) write_trouble_ = status;
  return status;
}

absl::Status Database::Execute(const std::string& sql) {
  const int code = sqlite3_exec(connection_, sql.c_str(), nullptr, nullptr, nullptr);
  return code == SQLITE_OK ? absl::OkStatus() : Error(code, "cannot run a statement");
}

absl::StatusOr<Query> Database::Prepare(std::string_view sql, std::vector<SqlValue> values) {
  sqlite3_stmt* statement = nullptr;
  auto known = idle_statements_.find(sql);
  if (known == idle_statements_.end()) known = idle_statements_.try_emplace(std::string(sql)).first;
  std::vector<sqlite3_stmt*>& idle = known->second;
  if (!idle.empty()) {
    statement = idle.back();
    idle.pop_back();
  } else {
    const int code = sqlite3_prepare_v3(connection_, sql.data(), static_cast<int>(sql.size()),
                                        SQLITE_PREPARE_PERSISTENT, &statement, nullptr);
    if (code != SQLITE_OK) return Error(code, "cannot prepare a statement");
  }
  Query query(this, &idle, statement);
  for (size_t i = 0; i < values.size(); ++i) {
    const int code = BindValue(statement, static_cast<int>(i) + 1, values[i]);
    if (code != SQLITE_OK) return Error(code, "cannot bind a parameter");
  }
  return query;
}

absl::Status Database::Run(std::string_view sql, std::vector<SqlValue> values) {
  MYCC_ASSIGN_OR_RETURN(Query query, Prepare(sql, std::move(values)));
  return query.Run();
}

absl::StatusOr<int64_t> Database::ReadInt(std::string_view sql, std::vector<SqlValue> values) {
  MYCC_ASSIGN_OR_RETURN(Query query, Prepare(sql, std::move(values)));
  MYCC_ASSIGN_OR_RETURN(const bool row, query.Next());
  if (!row) return absl::NotFoundError(absl::StrCat(path_, ": no row"));
  return query.Int(0);
}

absl::StatusOr<std::string> Database::ReadText(std::string_view sql, std::vector<SqlValue> values) {
  MYCC_ASSIGN_OR_RETURN(Query query, Prepare(sql, std::move(values)));
  MYCC_ASSIGN_OR_RETURN(const bool row, query.Next());
  if (!row) return absl::NotFoundError(absl::StrCat(path_, ": no row"));
  return query.Text(0);
}

int64_t Database::last_insert_id() const { return sqlite3_last_insert_rowid(connection_); }
int64_t Database::changes() const { return sqlite3_changes64(connection_); }

absl::StatusOr<std::string> Database::ReadHeader(int bytes) {
  sqlite3_file* file = nullptr;
  int code = sqlite3_file_control(connection_, "main", SQLITE_FCNTL_FILE_POINTER, &file);
  if (code != SQLITE_OK) return Error(code, "cannot read");
  sqlite3_int64 size = 0;
  code = file->pMethods->xFileSize(file, &size);
  if (code != SQLITE_OK) return Error(code, "cannot read");
  std::string header(size < bytes ? static_cast<size_t>(size) : static_cast<size_t>(bytes), '\0');
  code = header.empty() ? SQLITE_OK
                        : file->pMethods->xRead(file, header.data(), static_cast<int>(header.size()), 0);
  if (code != SQLITE_OK) return Error(code, "cannot read");
  return header;
}

absl::StatusOr<std::vector<std::string>> Database::QueryPlans() {
  std::vector<std::string> statements;
  for (const auto& [sql, idle] : idle_statements_) statements.push_back(sql);
  std::vector<std::string> plans;
  for (const std::string& sql : statements) {
    MYCC_ASSIGN_OR_RETURN(Query step, Prepare("EXPLAIN QUERY PLAN " + sql));
    std::string plan = sql + ":";
    while (true) {
      MYCC_ASSIGN_OR_RETURN(const bool found, step.Next());
      if (!found) break;
      absl::StrAppend(&plan, " ", step.Text(3), ";");
    }
    plans.push_back(std::move(plan));
  }
  return plans;
}

// SQLite's savepoints nest under one name.
absl::StatusOr<Transaction> Transaction::Begin(Database* database) {
  const bool is_part = sqlite3_get_autocommit(database->connection_) == 0;
  MYCC_RETURN_IF_ERROR(database->Run(is_part ? "SAVEPOINT part" : "BEGIN IMMEDIATE"));
  return Transaction(database, is_part);
}

absl::Status Transaction::Commit() {
  MYCC_RETURN_IF_ERROR(database_->Run(is_part_ ? "RELEASE part" : "COMMIT"));
  if (!is_part_) database_->write_trouble_ = absl::OkStatus();
  database_ = nullptr;
  return absl::OkStatus();
}

bool Transaction::is_open() const {
  return database_ != nullptr && sqlite3_get_autocommit(database_->connection_) == 0;
}

Transaction::~Transaction() {
  // Some errors roll back by themselves; then there is nothing left to end.
  if (!is_open()) return;
  if (is_part_) database_->Run("ROLLBACK TO part").IgnoreError();
  database_->Run(is_part_ ? "RELEASE part" : "ROLLBACK").IgnoreError();
}

}  // namespace mycc
