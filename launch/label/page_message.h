// page_message: a request to the labeling page and its answer, as far as the page looks at them. Without a socket.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace pal::launch {

struct PageRequest {
  std::string method = "GET", path = "/";
  std::map<std::string, std::string> parameters = {};
  std::string host = {}, origin = {}, cookie = {}, content_type = {};  // headers; "" when missing
  std::string body = {};
  std::string address = {};  // of the client
};

struct PageResponse {
  int status = 200;
  std::string type = "text/plain; charset=utf-8", body = {};
  std::vector<std::pair<std::string, std::string>> headers = {};
};

}  // namespace pal::launch
