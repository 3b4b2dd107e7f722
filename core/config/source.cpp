#include "core/config/source.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "kernels/base/error.h"

namespace pal::config {
namespace {

namespace fs = std::filesystem;
constexpr size_t kMaxFileBytes = 1 << 20;
constexpr int kMaxDepth = 8;         // an anchor may hold itself
constexpr int kMaxAliases = 100;     // of a file
constexpr size_t kMaxKeys = 10'000;  // of a file, with those that aliases repeat
constexpr int kMaxFiles = 64;        // of a config with its base files

std::string read_text(const std::string& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  PAL_CHECK(fs::exists(status), "this config file does not exist", printable(path),
            "give the path of a YAML file, such as configs/quickstart.yaml");
  PAL_CHECK(!fs::is_directory(status), "the config is a folder", printable(path), "give the path of a YAML file in it");
  PAL_CHECK(fs::is_regular_file(status), "the config is a pipe or a device", printable(path), "give a YAML file");
  std::ifstream in(path, std::ios::binary);
  std::string text;
  char block[4096];
  while (in.read(block, sizeof block) || in.gcount() > 0) {
    text.append(block, static_cast<size_t>(in.gcount()));
    PAL_CHECK(text.size() <= kMaxFileBytes, "the config file is larger than a megabyte", printable(path),
              "give a YAML file");
  }
  PAL_CHECK(in.eof() && !in.bad(), "the config cannot be read", printable(path), "check its permissions");
  return text;
}

// Replaces ${NAME} and ${NAME:-default}; adds the variables that gave something to `used`.
std::string expand_environment(const std::string& text, const std::string& where, std::string& used) {
  std::string out;
  size_t at = 0;
  for (size_t open; (open = text.find("${", at)) != std::string::npos;) {
    const size_t close = text.find('}', open);
    PAL_CHECK(close != std::string::npos, where + ": ${ has no matching }", printable(text),
              "write ${NAME} or ${NAME:-default}");
    const std::string body = text.substr(open + 2, close - open - 2);
    const size_t dash = body.find(":-");
    const std::string name = body.substr(0, dash);
    const bool is_name = !name.empty() && std::all_of(name.begin(), name.end(),
                                                      [](unsigned char c) { return std::isalnum(c) || c == '_'; });
    PAL_CHECK(is_name, where + ": this is not the name of an environment variable", printable("${" + body + "}"),
              "write ${NAME} or ${NAME:-default}");
    out.append(text, at, open - at);
    const char* set = std::getenv(name.c_str());
    if (set != nullptr && *set != '\0') {
      out += set;
      used += ", environment " + name;
    } else {
      PAL_CHECK(dash != std::string::npos, where + ": an environment variable is not set", name,
                "set it, or write ${" + name + ":-default}");
      out += body.substr(dash + 2);
    }
    at = close + 1;
  }
  return out.append(text, at, std::string::npos);
}

// A list may hold small maps of plain values (oracle.mix); they are kept as text, "{a: 1, b: 2}".
bool is_flat_map(const YAML::Node& node) {
  if (!node.IsMap()) return false;
  for (const auto& entry : node) {
    if (!entry.first.IsScalar() || !entry.second.IsScalar()) return false;
  }
  return true;
}

std::string flow_text(const YAML::Node& map) {
  YAML::Emitter out;
  out << YAML::Flow << map;
  return out.c_str();
}

// Counts the aliases of a document, so that a small file that stands for a huge one is refused.
struct AliasCount final : YAML::EventHandler {
  explicit AliasCount(const std::string& path) : path(path) {}
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    PAL_CHECK(++count <= kMaxAliases,
              printable(path) + ":" + std::to_string(mark.line + 1) + ": the file has more than {} aliases",
              kMaxAliases, "write the values");
  }
  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark&, YAML::anchor_t) override {}
  void OnScalar(const YAML::Mark&, const std::string&, YAML::anchor_t, const std::string&) override {}
  void OnSequenceStart(const YAML::Mark&, const std::string&, YAML::anchor_t, YAML::EmitterStyle::value) override {}
  void OnSequenceEnd() override {}
  void OnMapStart(const YAML::Mark&, const std::string&, YAML::anchor_t, YAML::EmitterStyle::value) override {}
  void OnMapEnd() override {}
  const std::string& path;
  int count = 0;
};

// The only document of the text. YAML::LoadAll never ends for a text such as `"a",b`: yaml-cpp makes further documents
// of it without reading on.
YAML::Node load_document(const std::string& text, const std::string& path) {
  std::istringstream in(text);
  YAML::Parser parser(in);
  AliasCount first(path), second(path);
  const bool two = parser.HandleNextDocument(first) && parser.HandleNextDocument(second);
  PAL_CHECK(!two, printable(path) + ": the file holds more than one YAML document", "",
            "keep one per file, without text after it");
  return YAML::Load(text);
}

class Reader {
 public:
  explicit Reader(Expand expand) : expand_(expand) {}

  void read(const std::string& path, const std::string& included_from) {
    std::error_code error;
    const fs::path real = fs::weakly_canonical(path, error);
    const auto again = std::find(open_.begin(), open_.end(), real);
    PAL_CHECK(again == open_.end(), included_from + ": this base file includes itself", printable(path),
              "remove one of the base: lines");
    PAL_CHECK(++files_ <= kMaxFiles, included_from + ": the config has more than {} base files", kMaxFiles,
              "remove some of the base: lines");
    open_.push_back(real);
    YAML::Node document;
    try {
      document = load_document(read_text(path), path);
    } catch (const YAML::Exception& e) {
      const std::string line = e.mark.is_null() ? "" : ":" + std::to_string(e.mark.line + 1);
      PAL_CHECK(false, printable(path) + line + ": this is not YAML", e.msg, "correct the line");
    } catch (const Error& e) {
      if (included_from.empty()) throw;
      throw Error(e.code(), included_from + ": " + e.what());
    }
    if (!document.IsNull()) {
      PAL_CHECK(document.IsMap(), printable(path) + " does not hold sections", "",
                "write sections such as `train:` with keys under them");
      std::map<std::string, int> lines;
      bases(document, path);
      walk(document, "", path, lines, 0);
    }
    open_.pop_back();
  }

  std::vector<Setting> settings;

 private:
  static std::string place(const std::string& path, const YAML::Node& node) {
    return printable(path) + ":" + std::to_string(node.Mark().line + 1);
  }

  void bases(const YAML::Node& top, const std::string& path) {
    if (expand_ == Expand::nothing) return;
    for (const auto& entry : top) {
      if (!entry.first.IsScalar() || entry.first.Scalar() != "base") continue;
      const std::string where = place(path, entry.first);
      std::vector<YAML::Node> files;
      if (entry.second.IsSequence()) {
        for (const YAML::Node& file : entry.second) files.push_back(file);
      } else {
        files.push_back(entry.second);
      }
      for (const YAML::Node& file : files) {
        PAL_CHECK(file.IsScalar() && !file.Scalar().empty(), where + ": base must be a file or a list of files", "",
                  "write base: other.yaml");
        std::string used;
        const fs::path base = expand_environment(file.Scalar(), where, used);
        read((fs::path(path).parent_path() / base).lexically_normal().string(), where);
      }
    }
  }

  void walk(const YAML::Node& map, const std::string& prefix, const std::string& path,
            std::map<std::string, int>& lines, int depth) {
    for (const auto& entry : map) {
      const std::string where = place(path, entry.first);
      PAL_CHECK(entry.first.IsScalar(), where + ": a key must be a word", "", "write key: value");
      const std::string key = prefix + entry.first.Scalar();
      const auto [first, is_new] = lines.emplace(key, entry.first.Mark().line + 1);
      PAL_CHECK(is_new, where + ": a key is set twice", printable(key),
                "remove one; the first is on line " + std::to_string(first->second));
      PAL_CHECK(lines.size() <= kMaxKeys, where + ": the file has more than {} keys", kMaxKeys, "remove its aliases");
      if (key == "base" && expand_ == Expand::everything) continue;
      if (entry.second.IsMap()) {
        PAL_CHECK(depth < kMaxDepth, where + ": sections are nested too deeply", printable(key),
                  "write section: and key: value under it");
        walk(entry.second, key + ".", path, lines, depth + 1);
        continue;
      }
      settings.push_back(setting(key, entry.second, where));
    }
  }

  Setting setting(const std::string& key, const YAML::Node& node, const std::string& where) {
    Setting out{key, {}, Setting::Shape::scalar, where};
    std::string used;
    const auto take = [&](const YAML::Node& scalar) {
      out.items.push_back(expand_ == Expand::everything ? expand_environment(scalar.Scalar(), where, used)
                                                        : scalar.Scalar());
    };
    if (node.IsSequence()) {
      out.shape = Setting::Shape::list;
      for (const YAML::Node& item : node) {
        PAL_CHECK(item.IsScalar() || is_flat_map(item), where + ": a list may hold plain values only", printable(key),
                  "write [a, b, c]");
        take(item.IsScalar() ? item : YAML::Node(flow_text(item)));
      }
    } else if (node.IsNull()) {
      out.shape = Setting::Shape::null;
    } else {
      take(node);
    }
    out.origin += used;
    return out;
  }

  Expand expand_;
  int files_ = 0;
  std::vector<fs::path> open_;  // the files whose base: is being read
};

}  // namespace

std::vector<Setting> read_settings(const std::string& path, Expand expand) {
  Reader reader(expand);
  reader.read(path, "");
  return std::move(reader.settings);
}

Setting parse_override(const std::string& text) {
  const size_t equals = text.find('=');
  PAL_CHECK(equals != std::string::npos && equals > 0, "this argument is not a setting", printable(text),
            "write section.key=value, such as train.seed=1");
  Setting out{text.substr(0, equals), {}, Setting::Shape::scalar, "command line"};
  const std::string value = text.substr(equals + 1);
  if (value.empty() || value == "null" || value == "~") {
    out.shape = Setting::Shape::null;
  } else {
    std::string used;
    out.items.push_back(expand_environment(value, "command line: " + printable(out.key), used));
    out.origin += used;
  }
  return out;
}

std::vector<std::string> split_list(const std::string& text, const std::string& where) {
  const std::string flow = text.starts_with('[') ? text : "[" + text + "]";
  std::vector<std::string> items;
  try {
    for (const YAML::Node& item : YAML::Load(flow)) {
      PAL_CHECK(item.IsScalar() || is_flat_map(item), where + ": a list may hold plain values only", printable(text),
                "write [a, b, c]");
      items.push_back(item.IsScalar() ? item.Scalar() : flow_text(item));
    }
  } catch (const YAML::Exception&) {
    PAL_CHECK(false, where + ": this is not a list", printable(text), "write [a, b, c]");
  }
  return items;
}

std::string printable(const std::string& text) {
  constexpr size_t kLongest = 200;
  std::string out = text.substr(0, kLongest);
  for (char& c : out) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  }
  return text.size() > kLongest ? out + "…" : out;
}

}  // namespace pal::config
