// questions: the last questions of a run's ledger with their answers and pictures.
#include <fmt/format.h>
#include <sqlite3.h>

#include <filesystem>
#include <memory>

#include "core/data/dataset.h"
#include "core/io/file_handle.h"
#include "core/oracle/ledger/sqlite.h"
#include "kernels/base/error.h"
#include "launch/report/html.h"
#include "launch/report/parts.h"
#include "launch/run/montage.h"

namespace pal::launch {
namespace {

struct Asked {
  std::string kind, answer, annotator;
  int64_t i = 0, j = 0, step = 0;
  double cost = 0;
};

// Opens the ledger read-only, so that a running job is not disturbed; while a job writes, SQLite refuses and the page
// shows the reason.
class LedgerReader {
 public:
  explicit LedgerReader(const std::string& path) : path_(path) {
    io::FileHandle::open_for_reading(path);  // refuses a pipe, at which SQLite would wait
    check(sqlite3_open_v2(path.c_str(), &db_, SQLITE_OPEN_READONLY, nullptr));
    oracle::distrust_schema(db_);
  }
  ~LedgerReader() {
    sqlite3_finalize(rows_);
    sqlite3_close(db_);
  }
  LedgerReader(const LedgerReader&) = delete;
  LedgerReader& operator=(const LedgerReader&) = delete;

  std::vector<Asked> last(int64_t count, int64_t* all) {
    std::vector<Asked> found;
    query("SELECT count(*) FROM answers");
    *all = next() ? sqlite3_column_int64(rows_, 0) : 0;
    query(
        "SELECT q.kind, a.i, a.j, a.answer, a.cost, a.annotator, q.model_step FROM answers a JOIN queries q ON q.id = "
        "a.query ORDER BY a.id DESC LIMIT " +
        std::to_string(count));
    while (next()) {
      found.push_back({text(0), text(3), text(5), sqlite3_column_int64(rows_, 1), sqlite3_column_int64(rows_, 2),
                       sqlite3_column_int64(rows_, 6), sqlite3_column_double(rows_, 4)});
    }
    return found;
  }

 private:
  void check(int code) const {
    const bool busy = code == SQLITE_BUSY || code == SQLITE_LOCKED;
    PAL_DATA_CHECK(code == SQLITE_OK || code == SQLITE_ROW || code == SQLITE_DONE,
                   "the ledger " + path_ + " cannot be read", sqlite3_errmsg(db_),
                   busy ? "the run is writing to it: make the report again when the run has ended"
                        : "make the report with the pal that trained the run");
  }
  void query(const std::string& sql) {
    sqlite3_finalize(rows_);
    rows_ = nullptr;
    check(sqlite3_prepare_v2(db_, sql.c_str(), -1, &rows_, nullptr));
  }
  bool next() {
    const int code = sqlite3_step(rows_);
    check(code);
    return code == SQLITE_ROW;
  }
  std::string text(int column) const {
    const auto* bytes = sqlite3_column_text(rows_, column);
    return bytes == nullptr ? "" : reinterpret_cast<const char*>(bytes);
  }

  const std::string path_;
  sqlite3* db_ = nullptr;
  sqlite3_stmt* rows_ = nullptr;
};

std::string sample_cell(const data::Dataset* data, int64_t sample) {
  if (sample < 0) return "-";  // a question about a class
  if (data == nullptr || sample >= data->size()) return std::to_string(sample);
  const int64_t label = data->labels().empty() ? -1 : data->labels()[static_cast<size_t>(sample)];
  const std::string name = label < 0 ? data->id(sample) : data->classes()[static_cast<size_t>(label)];
  return html_picture(sample_picture(*data, sample), 44, name) + " " +
         html_escaped(fmt::format("{} ({})", sample, name));
}

}  // namespace

std::string question_table(const RunSummary& run, const SampleOptions& options) {
  const std::string path = run.path + "/ledger.sqlite";
  if (!std::filesystem::exists(path)) return "";
  try {
    int64_t all = 0;
    const std::vector<Asked> asked = LedgerReader(path).last(options.questions, &all);
    std::shared_ptr<data::Dataset> data;
    try {
      if (run.spec) data = data::Dataset::open(run.spec->data.train);
    } catch (const Error&) {  // shows numbers without pictures
    }
    std::string out = fmt::format(
        "<p>The last {} of {} answers. <code>sqlite3 {} 'select * from answers'</code></p>\n<div "
        "class=\"scroll\"><table>\n"
        "<tr><th>question</th><th>sample</th><th>and sample</th><th>answer</th><th>by</th><th class=\"n\">cost</th><th "
        "class=\"n\">asked at step</th></tr>\n",
        asked.size(), all, html_escaped(path));
    for (const Asked& a : asked) {
      out += fmt::format(
          "<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td class=\"n\">{:g}</td><td "
          "class=\"n\">{}</td></tr>\n",
          html_escaped(a.kind), sample_cell(data.get(), a.i), sample_cell(data.get(), a.j), html_escaped(a.answer),
          html_escaped(a.annotator), a.cost, a.step);
    }
    return out + "</table></div>\n";
  } catch (const Error& e) {
    return "<p class=\"note\">" + html_escaped(e.what()) + "</p>\n";
  }
}

}  // namespace pal::launch
