// Sources of the program: a table of functions serves the URLs of a scheme.
#include "core/fork.h"
#include "temp_shards.h"

#include <gtest/gtest.h>
#include <shardfeed.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <vector>

using namespace shf::test;

namespace {

// A store in memory, as a program may have one, and what was asked of it.
struct Store {
    std::map<std::string, std::string> files;
    std::string version = "1";
    uint32_t flags = 0;
    bool size_known = true;
    uint64_t size_says = 0;  // more than it has
    size_t most = SIZE_MAX;  // of one read
    int32_t fails = 0;       // what read_at returns,
    uint64_t fails_at = 0;   // from this offset on
    std::string says;        // and its message
    int os_error = 0;
    std::chrono::milliseconds pause{0};  // in each read
    std::atomic<int> opened{0}, closed{0}, released{0}, most_inside{0};
    std::atomic<bool> disordered{false};
};

struct Object {
    Store* store;
    std::string bytes;
    std::atomic<uint64_t> at{0};
    std::atomic<int> inside{0};
};

Store& store_of(void* ctx) {
    return *static_cast<Store*>(ctx);
}

int32_t open_object(void* ctx, const char* url, void** object, uint32_t* flags, shf_error* error) {
    Store& store = store_of(ctx);
    const auto found = store.files.find(url);
    if (found == store.files.end()) {
        std::snprintf(error->message, sizeof error->message, "no key %s, says http://u:p@h/a?k=s",
                      std::strchr(url, 'h'));
        error->os_error = ENOENT;
        return SHF_E_IO;
    }
    *flags = store.flags;
    auto made = std::make_unique<Object>();
    made->store = &store;
    made->bytes = found->second;
    *object = made.release();
    ++store.opened;
    return SHF_OK;
}

int32_t size_of(void* object, uint64_t* size, shf_error* /*error*/) {
    const auto* from = static_cast<Object*>(object);
    if (from->store->size_known) *size = from->bytes.size() + from->store->size_says;
    return SHF_OK;
}

int32_t version_of(void* object, char* text, size_t room, shf_error* /*error*/) {
    std::snprintf(text, room, "%s", static_cast<Object*>(object)->store->version.c_str());
    return SHF_OK;
}

int64_t read_object(void* object, uint64_t offset, uint8_t* out, size_t size, shf_error* error) {
    auto* from = static_cast<Object*>(object);
    Store& store = *from->store;
    const int inside = ++from->inside;
    for (int seen = store.most_inside; seen < inside;)
        if (store.most_inside.compare_exchange_weak(seen, inside)) break;
    if (store.pause.count() > 0) std::this_thread::sleep_for(store.pause);
    if (from->at != offset) store.disordered = true;
    int64_t result = 0;
    if (store.fails != 0 && offset + size > store.fails_at) {
        std::snprintf(error->message, sizeof error->message, "%s", store.says.c_str());
        error->os_error = store.os_error;
        result = store.fails;
    } else if (offset < from->bytes.size()) {
        const size_t count =
            std::min({size, store.most, from->bytes.size() - static_cast<size_t>(offset)});
        std::memcpy(out, from->bytes.data() + offset, count);
        from->at = offset + count;
        result = static_cast<int64_t>(count);
    }
    --from->inside;
    return result;
}

void close_object(void* object) {
    auto* from = static_cast<Object*>(object);
    ++from->store->closed;
    delete from;
}

void release_store(void* ctx) {
    ++store_of(ctx).released;
}

shf_source table() {
    return {sizeof(shf_source), open_object,  size_of,      version_of,
            read_object,        close_object, release_store};
}

class CallbackSource : public testing::Test {
  protected:
    CallbackSource() {
        for (uint64_t s = 0; s < 3; ++s)
            store.files["db://" + std::to_string(s)] = shard_bytes(s, 100, 3000);
    }
    // All that was opened was closed, and the store was let go of.
    ~CallbackSource() override {
        EXPECT_EQ(store.opened, store.closed);
        EXPECT_EQ(store.released, set);
    }
    void use(shf_options* options, const char* scheme = "db") {
        const shf_source source = table();
        ++set;
        ASSERT_EQ(shf_options_set_source(options, scheme, &source, &store, nullptr), SHF_OK);
    }
    std::function<void(shf_options*)> used() {
        return [this](shf_options* options) { use(options); };
    }

    const std::vector<std::string> urls = {"db://0", "db://1", "db://2"};
    Store store;
    int set = 0;
};

std::set<std::string> unique(const std::vector<std::string>& keys) {
    return {keys.begin(), keys.end()};
}

}  // namespace

TEST_F(CallbackSource, a_stream_reads_each_shard_once) {
    Client client(urls, {{"shuffle", "50"}}, used());
    EXPECT_EQ(unique(client.keys()).size(), 300U);
    EXPECT_EQ(client.code, SHF_END) << client.message();
    EXPECT_EQ(store.opened, 3);
    EXPECT_EQ(store.released, 0);
}

TEST_F(CallbackSource, short_reads_change_nothing) {
    store.most = 1000;
    Client client(urls, {}, used());
    EXPECT_EQ(client.keys().size(), 300U);
    EXPECT_EQ(client.code, SHF_END) << client.message();
}

TEST_F(CallbackSource, a_sequential_object_is_read_in_order) {
    for (const bool known : {true, false}) {
        store.size_known = known;
        store.flags = SHF_SOURCE_SEQUENTIAL;
        Client client(urls, {{"fields", "cls"}, {"missing", "skip"}}, used());
        client.keys();
        EXPECT_EQ(client.code, SHF_END) << client.message();
        Client all(urls, {}, used());
        EXPECT_EQ(all.keys().size(), 300U);
        EXPECT_FALSE(store.disordered);

        shf_options* options = shf_options_new();
        use(options);
        shf_archive* archive = nullptr;  // takes it into memory
        EXPECT_EQ(shf_archive_open(&archive, "db://1", options, nullptr), SHF_OK);
        EXPECT_EQ(shf_archive_member_count(archive), 100U);
        shf_archive_close(archive);
        shf_dataset* dataset = nullptr;
        shf_error error;
        const char* url = "db://1";
        EXPECT_EQ(shf_dataset_open(&dataset, &url, 1, options, &error), SHF_E_USAGE)
            << error.message;
        shf_options_free(options);
    }
}

TEST_F(CallbackSource, an_object_without_a_size_is_read_in_order) {
    store.size_known = false;
    Client client(urls, {}, used());
    EXPECT_EQ(client.keys().size(), 300U);
    EXPECT_FALSE(store.disordered);
}

TEST_F(CallbackSource, a_size_that_is_wrong_is_an_error) {
    store.size_says = 1 << 20;
    store.files["db://0"].resize(50 * 512);
    Client more("db://0", {});
    EXPECT_FALSE(more.next());
    EXPECT_EQ(more.code, SHF_E_UNSUPPORTED);  // nothing was set
    Client longer(std::vector<std::string>{"db://0"}, {}, used());
    longer.keys();
    EXPECT_EQ(longer.code, SHF_E_TRUNCATED);
    EXPECT_NE(longer.message().find("said that its size is"), std::string::npos)
        << longer.message();
    store.flags = SHF_SOURCE_SEQUENTIAL;
    store.size_says = 0 - uint64_t{1000};
    Client shorter(std::vector<std::string>{"db://1"}, {}, used());
    shorter.keys();
    EXPECT_EQ(shorter.code, SHF_E_CHANGED) << shorter.message();
}

TEST_F(CallbackSource, errors_keep_their_class_number_and_text_without_secrets) {
    Client missing(std::vector<std::string>{"db://u:secret@h/9?k=secret"}, {}, used());
    EXPECT_FALSE(missing.next());
    EXPECT_EQ(missing.code, SHF_E_IO);
    EXPECT_EQ(missing.error.os_error, ENOENT);
    EXPECT_EQ(missing.message(), "db://h/9: no key h/9?***, says http://h/a");

    store.fails = SHF_E_THROTTLED;
    store.fails_at = 100'000;
    store.says = "slow\033 down";
    store.os_error = 12345678;
    // Streams read ahead: they are closed before the store changes.
    {
        Client client(urls, {{"shuffle_shards", "false"}, {"threads", "1"}}, used());
        EXPECT_LT(client.keys().size(), 100U);
        EXPECT_EQ(client.code, SHF_E_THROTTLED);
        EXPECT_EQ(client.error.os_error, 12345678);
        EXPECT_EQ(client.message(), "db://0: slow\\x1b down");
        // It repeats, and can be skipped.
        EXPECT_FALSE(client.next());
        EXPECT_EQ(client.code, SHF_E_THROTTLED);
        Client skips(urls, {{"on_error", "skip_shard"}}, used());
        skips.keys();
        EXPECT_EQ(skips.code, SHF_END) << skips.message();
        EXPECT_EQ(shf_stream_stat(skips.stream, SHF_STAT_SKIPPED_SHARDS), 3U);
    }

    const std::vector<std::pair<int32_t, int32_t>> codes = {
        {SHF_E_TIMEOUT, SHF_E_IO}, {SHF_E_CANCELLED, SHF_E_CANCELLED}, {-4000, SHF_E_USAGE}};
    for (const auto& [given, wanted] : codes) {
        store.fails = given;
        store.says = "";
        Client other(urls, {}, used());
        other.keys();
        EXPECT_EQ(other.code, wanted) << given << other.message();
        EXPECT_NE(other.message().find("read_at"), std::string::npos) << other.message();
    }
}

TEST_F(CallbackSource, one_thread_at_a_time_reads_an_object_that_says_so) {
    store.pause = std::chrono::milliseconds(1);
    for (const uint32_t flags : {uint32_t{SHF_SOURCE_ONE_THREAD}, uint32_t{0}}) {
        store.flags = flags;
        store.most_inside = 0;
        shf_options* options = shf_options_new();
        use(options);
        shf_archive* archive = nullptr;
        ASSERT_EQ(shf_archive_open(&archive, "db://1", options, nullptr), SHF_OK);
        shf_options_free(options);
        std::vector<std::thread> threads;
        for (uint64_t t = 0; t < 4; ++t)
            threads.emplace_back([archive, t] {
                std::vector<uint8_t> data(3000);
                for (uint64_t i = t; i < 40; i += 4) {
                    EXPECT_EQ(shf_archive_read(archive, i, data.data(), data.size(), nullptr),
                              SHF_OK);
                    EXPECT_TRUE(
                        std::string(data.begin(), data.end()).starts_with(sample_key(1, i)));
                }
            });
        for (std::thread& thread : threads) thread.join();
        shf_archive_close(archive);
        if (flags != 0)
            EXPECT_EQ(store.most_inside, 1);
        else
            EXPECT_GT(store.most_inside, 1);
    }
}

TEST_F(CallbackSource, serves_before_the_library_and_where_it_has_nothing) {
    store.files["http://host/a"] = shard_bytes(0, 5);
    store.files["x+y://b*/"] = shard_bytes(1, 6);  // nobody lists what the program serves
    const TempDirectory directory;
    const std::string path = write_shards(directory, {7})[0];
    store.files["DB://0"] = store.files["db://0"];
    Client client(std::vector<std::string>{"http://host/a", "x+y://b*/", path, "DB://0"}, {},
                  [this](shf_options* options) { use(options, "*"); });
    EXPECT_EQ(client.keys().size(), 5U + 6U + 7U + 100U);
    EXPECT_EQ(client.code, SHF_END) << client.message();

    Store other;
    other.files["db://0"] = shard_bytes(8, 1);
    const shf_source source = table();
    Client named(std::vector<std::string>{"db://0"}, {}, [&](shf_options* options) {
        EXPECT_EQ(shf_options_set_source(options, "db", &source, &other, nullptr), SHF_OK);
        use(options, "*");
        use(options, "*");  // the first one is let go of
        EXPECT_EQ(store.released, 1);
        use(options, "x");
        EXPECT_EQ(shf_options_set_source(options, "x", nullptr, nullptr, nullptr), SHF_OK);
        EXPECT_EQ(store.released, 2);
    });
    EXPECT_EQ(named.keys(), std::vector<std::string>{sample_key(8, 0)});
}

TEST_F(CallbackSource, refuses_what_is_no_table_or_no_scheme) {
    shf_options* options = shf_options_new();
    shf_error error;
    const auto refused = [&](const char* scheme, const shf_source& source) {
        return shf_options_set_source(options, scheme, &source, &store, &error);
    };
    for (const char* scheme : {"", "-", "pipe", "file", "DB", "a b", "1x", "db:", "db://", "**"})
        EXPECT_EQ(refused(scheme, table()), SHF_E_USAGE) << scheme;
    shf_source bad = table();
    bad.struct_size = 8;
    EXPECT_EQ(refused("db", bad), SHF_E_USAGE);
    EXPECT_NE(std::string(error.message).find("sizeof"), std::string::npos) << error.message;
    bad = table();
    bad.open = nullptr;
    EXPECT_EQ(refused("db", bad), SHF_E_USAGE);
    bad = table();
    bad.read_at = nullptr;
    EXPECT_EQ(refused("db", bad), SHF_E_USAGE);
    bad = table();
    EXPECT_EQ(shf_options_set_source(nullptr, "db", &bad, &store, &error), SHF_E_USAGE);
    EXPECT_EQ(shf_options_set_source(options, nullptr, &bad, &store, &error), SHF_E_USAGE);
    bad.struct_size += 64;  // of a later version
    ++set;
    EXPECT_EQ(refused("db", bad), SHF_OK);
    shf_options_free(options);
}

TEST_F(CallbackSource, functions_that_are_not_needed_may_be_null) {
    static const std::string bytes = shard_bytes(3, 4);
    shf_source source{};
    source.struct_size = sizeof source;
    source.open = [](void*, const char*, void**, uint32_t*, shf_error*) { return int32_t{SHF_OK}; };
    source.read_at = [](void*, uint64_t offset, uint8_t* out, size_t size, shf_error*) -> int64_t {
        const size_t count = std::min(size, bytes.size() - static_cast<size_t>(offset));
        std::memcpy(out, bytes.data() + offset, count);
        return static_cast<int64_t>(count);
    };
    const auto more = [&](shf_options* options) {
        ASSERT_EQ(shf_options_set_source(options, "db", &source, nullptr, nullptr), SHF_OK);
    };
    Client client(std::vector<std::string>{"db://"}, {}, more);
    EXPECT_EQ(client.keys().size(), 4U);
    EXPECT_EQ(client.code, SHF_END) << client.message();

    source.read_at = [](void*, uint64_t, uint8_t*, size_t size, shf_error*) {
        return static_cast<int64_t>(size) + 1;
    };
    Client liar(std::vector<std::string>{"db://"}, {}, more);
    EXPECT_FALSE(liar.next());
    EXPECT_EQ(liar.code, SHF_E_USAGE) << liar.message();
}

TEST_F(CallbackSource, a_state_knows_the_version) {
    const Settings settings = {{"shuffle_shards", "false"}, {"index", "memory"}};
    Client first(urls, settings, used());
    std::vector<std::string> keys = first.keys(150);
    shf_state* state = nullptr;
    ASSERT_EQ(shf_stream_save(first.stream, 0, &state, &first.error), SHF_OK);
    shf_bytes blob;
    shf_state_bytes(state, &blob);
    Client second(urls, settings, used());
    ASSERT_EQ(shf_stream_restore(second.stream, blob.data, blob.size, nullptr), SHF_OK);
    for (const std::string& key : second.keys()) keys.push_back(key);
    EXPECT_EQ(keys.size(), 300U);
    EXPECT_EQ(unique(keys).size(), 300U);
    store.version = "2";
    Client third(urls, settings, used());
    ASSERT_EQ(shf_stream_restore(third.stream, blob.data, blob.size, nullptr), SHF_OK);
    EXPECT_FALSE(third.next());
    EXPECT_EQ(third.code, SHF_E_CHANGED) << third.message();
    shf_state_free(state);
}

TEST_F(CallbackSource, a_cancel_is_seen_when_the_function_returns) {
    store.pause = std::chrono::milliseconds(300);
    Client client(urls, {{"timeout", "20ms"}}, used());
    EXPECT_FALSE(client.next());
    EXPECT_EQ(client.code, SHF_E_TIMEOUT);
    shf_stream_cancel(client.stream);
    const auto start = std::chrono::steady_clock::now();
    EXPECT_FALSE(client.next());
    EXPECT_EQ(client.code, SHF_E_CANCELLED);
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(200));
}

TEST_F(CallbackSource, a_forked_child_opens_an_archive_again) {
    shf_options* options = shf_options_new();
    use(options);
    shf_archive* archive = nullptr;
    ASSERT_EQ(shf_archive_open(&archive, "db://1", options, nullptr), SHF_OK);
    shf_options_free(options);
    const auto child = [&](const char* version) {
        const pid_t pid = ::fork();
        if (pid == 0) {
            store.version = version;
            std::vector<uint8_t> data(3000);
            const int opened = store.opened;
            const int32_t code = shf_archive_read(archive, 7, data.data(), data.size(), nullptr);
            const bool good = std::string(data.begin(), data.end()).starts_with(sample_key(1, 7));
            shf_archive_close(archive);
            // It closes its own object, and lets go of its copy of the store.
            const bool clean = store.opened == opened + 1 && store.closed == 1;
            ::_exit(code == SHF_OK && good && clean && store.released == 1 ? 0 : -code);
        }
        int status = 0;
        ::waitpid(pid, &status, 0);
        return WIFEXITED(status) ? WEXITSTATUS(status) : 255;
    };
    EXPECT_EQ(child("1"), 0);
    EXPECT_EQ(child("2"), -SHF_E_CHANGED);
    std::vector<uint8_t> data(3000);
    EXPECT_EQ(shf_archive_read(archive, 7, data.data(), data.size(), nullptr), SHF_OK);
    shf_archive_close(archive);
}
