#include "bench/server/http_front.h"

#include "engine/base/status.h"

#ifdef RANKINE_HAS_HTTPLIB

#include <httplib.h>
#include <sys/socket.h>

#include <nlohmann/json.hpp>
#include <string>
#include <thread>

namespace rankine::server {
namespace {

using Json = nlohmann::json;

constexpr const char* kPath = "/v1/completions";
constexpr const char* kJson = "application/json";
constexpr const char* kHost = "127.0.0.1";

std::string error_text(const std::string& why) { return Json{{"error", why}}.dump(); }

// Throws std::invalid_argument with the reason.
Request request_of(const std::string& body, int vocabulary) {
  const Json json = Json::parse(body, nullptr, false);
  const auto whole = [](const Json& value, const std::string& name, int least, int most) {
    if (value.is_number_integer() && value >= least && value <= most) return value.get<int>();
    throw std::invalid_argument(name + " is " + value.dump() + "; allowed are whole numbers from " +
                                std::to_string(least) + " to " + std::to_string(most));
  };
  if (!json.is_object() || !json.contains("prompt") || !json["prompt"].is_array()) {
    throw std::invalid_argument("a request is {\"prompt\": [tokens], \"max_tokens\": N}");
  }
  Request request;
  const Json& prompt = json["prompt"];
  request.prompt_tokens =
      whole(static_cast<std::int64_t>(prompt.size()), "the prompt's length", 1, kMostPrompt);
  for (std::size_t i = 0; i < prompt.size(); ++i) {
    request.prompt[i] = whole(prompt[i], "a token", 0, vocabulary - 1);
  }
  request.wanted = whole(json.value("max_tokens", Json(16)), "max_tokens", 1, kMostWanted);
  return request;
}

}  // namespace

bool has_http() { return true; }

struct HttpFront::State {
  httplib::Server server;
  int socket = -1;
  int port = 0;
  std::thread listener;
};

HttpFront::HttpFront(Desk& desk, int vocabulary, int port) : state_(std::make_unique<State>()) {
  State& s = *state_;
  constexpr int kWaiting = 32;  // concurrent requests, each with a thread
  s.server.new_task_queue = [] { return new httplib::ThreadPool(kWaiting); };
  // The default options would let a second server use the same port.
  s.server.set_socket_options([&s](int socket) {
    s.socket = socket;
    const int yes = 1;
    setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  });
  s.server.Post(kPath,
                [&desk, vocabulary](const httplib::Request& asked, httplib::Response& answer) {
                  try {
                    const std::vector<int> tokens = desk.answer(request_of(asked.body, vocabulary));
                    answer.set_content(Json{{"tokens", tokens}}.dump(), kJson);
                  } catch (const std::invalid_argument& error) {
                    answer.status = 400;
                    answer.set_content(error_text(error.what()), kJson);
                  } catch (const Error& error) {
                    answer.status = 503;
                    answer.set_content(error_text(error.what()), kJson);
                  }
                });
  const bool is_bound = port == 0 ? (s.port = s.server.bind_to_any_port(kHost)) > 0
                                  : s.server.bind_to_port(kHost, s.port = port);
  if (!is_bound) {
    throw Error(Code::system, "port " + std::to_string(port) + " of 127.0.0.1 is not available");
  }
  // By default the queue has room for five connections; the system rejects some of the others.
  listen(s.socket, SOMAXCONN);
  s.listener = std::thread([&s] { s.server.listen_after_bind(); });
  // Earlier, stop() would have no effect.
  while (!s.server.is_running()) std::this_thread::yield();
}

HttpFront::~HttpFront() {
  state_->server.stop();
  state_->listener.join();
}

int HttpFront::port() const { return state_->port; }

std::vector<int> ask_over_http(int port, const Request& request) {
  httplib::Client client(kHost, port);
  client.set_read_timeout(600);
  const Json asked = {{"prompt", request.tokens()}, {"max_tokens", request.wanted}};
  const auto answer = client.Post(kPath, asked.dump(), kJson);
  if (!answer) throw Error(Code::system, "no answer: " + httplib::to_string(answer.error()));
  const Json json = Json::parse(answer->body, nullptr, false);
  if (answer->status == 200) return json.at("tokens").get<std::vector<int>>();
  throw Error(answer->status == 400 ? Code::invalid_argument : Code::rank_lost,
              json.is_object() ? json.value("error", answer->body) : answer->body);
}

}  // namespace rankine::server

#else

namespace rankine::server {
namespace {

[[noreturn]] void refuse() {
  throw Error(Code::system, "built without cpp-httplib; third_party/bazel --with-http installs it");
}

}  // namespace

bool has_http() { return false; }
struct HttpFront::State {};
HttpFront::HttpFront(Desk&, int, int) { refuse(); }
HttpFront::~HttpFront() = default;
int HttpFront::port() const { return 0; }
std::vector<int> ask_over_http(int, const Request&) { refuse(); }

}  // namespace rankine::server

#endif
