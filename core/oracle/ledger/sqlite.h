// sqlite: a connection, a statement and a transaction with the lifetimes of scopes; errors are sentences with the path.
#pragma once

#include <cstdint>
#include <string>

#include "kernels/base/error.h"

struct sqlite3;
struct sqlite3_stmt;

namespace pal::oracle {

// The disk failed or is full: the transaction is rolled back, and the same call may succeed later.
class DiskError : public Error {
 public:
  using Error::Error;
};

// For a database of a stranger: the statements that its file holds (triggers, views, checks that call functions with
// side effects) do not run on this connection.
void distrust_schema(sqlite3* db);

class Sqlite {
 public:
  // Opens for writing or creates; read-only files are refused.
  explicit Sqlite(const std::string& path);
  ~Sqlite();
  Sqlite(const Sqlite&) = delete;
  Sqlite& operator=(const Sqlite&) = delete;

  const std::string& path() const { return path_; }
  sqlite3* handle() const { return db_; }
  void run(const char* sql) const;        // one or more statements without results
  int64_t number(const char* sql) const;  // the first column of the first row
  // Throws Error (data) with SQLite's message, unless code is OK, ROW or DONE; a DiskError names the system's error.
  void check(int code) const;

 private:
  std::string path_;
  sqlite3* db_ = nullptr;
};

// A prepared statement. Columns and parameters are those of SQLite: columns from 0, parameters in order.
class Statement {
 public:
  Statement(const Sqlite& db, const char* sql);
  ~Statement();
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  template <class... Values>
  Statement& bind(const Values&... values) {  // resets the statement and binds these parameters
    reset();
    int at = 0;
    (bind_one(++at, values), ...);
    return *this;
  }
  bool next();  // true: there is a row
  int code();   // the same step, its result code unchecked
  int64_t integer(int column) const;
  double real(int column) const;
  std::string text(int column) const;

 private:
  void reset();
  void bind_one(int at, int64_t value);
  void bind_one(int at, double value);
  void bind_one(int at, const std::string& value);

  const Sqlite& db_;
  sqlite3_stmt* statement_ = nullptr;
};

// All or nothing: without commit() the destructor rolls back.
class Transaction {
 public:
  explicit Transaction(const Sqlite& db);  // takes the lock for writing
  ~Transaction();
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;
  void commit();  // on disk when it returns

 private:
  const Sqlite& db_;
  bool open_ = true;
};

}  // namespace pal::oracle
