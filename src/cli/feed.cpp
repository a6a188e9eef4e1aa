// feed: a server that reads, shuffles and decodes shards for streams on other machines.
#include "cli/interrupts.h"
#include "cli/library.h"
#include "cli/terminal.h"
#include "cli/verb_list.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <memory>
#include <string>

namespace cli {

namespace {

using Feed = std::unique_ptr<shf_feed, Releaser<shf_feed_close>>;

// The first line of a file, for secrets that belong on no command line.
std::string line_of_file(const std::string& path) {
    std::ifstream file(path);
    std::string line;
    if (!std::getline(file, line) || line.empty())
        throw Failure(failed,
                      path + ": no secret in the first line of this file; help: write it there");
    return line;
}

class FeedVerb final : public Verb {
  public:
    void declare(Arguments& arguments) override {
        arguments.describe(
            "Reads shards for streams on other machines, which are opened with feed://HOST:PORT. "
            "With --decode the server sends rows of batches that are decoded, else samples as they "
            "are. Which samples come when is for the streams to say: they give lanes, shuffle, "
            "seed and the like. A stream may have several servers, which have the same shards and "
            "columns; it gives the same samples in the same order whichever of them end, and when "
            "others join. SIGTERM and Ctrl-C let the streams go to other servers first.");
        arguments.add_option("URL", urls_, "shards: paths, URLs");
        arguments
            .add_option("--bind", address_, "where it listens; port 0: any; * for all addresses")
            .type_name("tcp://HOST:PORT");
        arguments
            .add_option(
                "--http", http_,
                "answer GET of /metrics (Prometheus) and /healthz there; :PORT is loopback, "
                "port 0 any")
            .type_name("HOST:PORT");
        arguments
            .add_option("--token-file", token_file_,
                        "a file with the secret (feed_token) that streams must give")
            .type_name("FILE");
        arguments
            .add_option("--key-file", key_file_,
                        "a file with the secret key (feed_secret_key) with which all is encrypted")
            .type_name("FILE");
        arguments
            .add_option("--make-keys", make_keys_,
                        "write a new secret key to this file, print the public one "
                        "(feed_server_key), and end")
            .type_name("FILE");
    }
    const char* openers() const override { return "stream"; }
    std::vector<Example> examples() const override {
        return {{"shardfeed feed 'train-{0000..0999}.tar' --bind 'tcp://*:7880' --decode "
                 "'jpg:image/rgb8/chw/resize=256/crop=224x224, cls:int'",
                 "Decodes images for trainers that open feed://THIS-HOST:7880."},
                {"shardfeed feed s3://bucket/train/ --bind tcp://10.0.0.7:7880 --token-file token",
                 "Sends samples as they are to whoever knows the secret."},
                {"shardfeed feed 'train-{0000..0999}.tar' --bind 'tcp://*:7880' --http :9100",
                 "The same without one; monitors on this machine read "
                 "http://127.0.0.1:9100/metrics."}};
    }

    int run(const LibraryOptions& options) override {
        if (!make_keys_.empty()) return make_keys();
        if (urls_.empty())
            throw Failure(wrong_command_line,
                          "a feed needs at least one URL; help: shardfeed feed "
                          "URL... --bind tcp://HOST:PORT");
        if (options.given("decode")) options.set("batch", "1");
        if (!token_file_.empty()) options.set("feed_token", line_of_file(token_file_));
        if (!key_file_.empty()) options.set("feed_secret_key", line_of_file(key_file_));
        std::vector<const char*> urls;
        for (const std::string& url : urls_) urls.push_back(url.c_str());
        shf_feed* opened = nullptr;
        call(shf_feed_open, &opened, urls.data(), urls.size(), address_.c_str(), options.handle());
        const Feed feed(opened);
        Output out;
        out.write(std::string(shf_feed_address(feed.get())) + "\n");
        if (!http_.empty()) {
            call(shf_feed_http, feed.get(), http_.c_str());
            out.write(std::string(shf_feed_http_address(feed.get())) + "\n");
        }
        out.flush();
        const Cancellable drained(
            feed.get(), [](void* handle) { shf_feed_drain(static_cast<shf_feed*>(handle)); });
        call(shf_feed_run, feed.get());
        return done;
    }

  private:
    // A file that only this user can read, and that is not there yet.
    [[nodiscard]] int make_keys() const {
        std::array<char, 41> public_key = {}, secret_key = {};
        call(shf_feed_make_keys, public_key.data(), secret_key.data());
        const int file = ::open(make_keys_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        const std::string line = std::string(secret_key.data()) + '\n';
        const bool written = file >= 0 && ::write(file, line.data(), line.size()) ==
                                              static_cast<ssize_t>(line.size());
        const int number = errno;
        if (file >= 0) ::close(file);
        if (!written)
            throw Failure(failed, make_keys_ + ": " + std::strerror(number) +
                                      "; help: name a file that is not there yet");
        Output out;
        out.write(std::string(public_key.data()) + '\n');
        out.flush();
        return done;
    }

    std::vector<std::string> urls_;
    std::string address_ = "tcp://127.0.0.1:7880", http_, token_file_, key_file_, make_keys_;
};

}  // namespace

std::unique_ptr<Verb> make_feed() {
    return std::make_unique<FeedVerb>();
}

}  // namespace cli
