/* Versions, error texts, features, options and URL lists. */
#include "harness.h"

#include "tar_shards.h"

#include <stdarg.h>

static void test_version(void) {
    char text[32];
    CHECK(shf_version() == SHF_VERSION_MAJOR * 65536 + SHF_VERSION_MINOR * 256 + SHF_VERSION_PATCH);
    snprintf(text, sizeof text, "%d.%d.%d", SHF_VERSION_MAJOR, SHF_VERSION_MINOR,
             SHF_VERSION_PATCH);
    CHECK(strcmp(shf_version_string(), text) == 0);
}

static void test_error_texts(void) {
    static const struct {
        int32_t code;
        const char* name;
    } codes[] = {{SHF_OK, "OK"},
                 {SHF_END, "END"},
                 {SHF_E_FORMAT, "FORMAT"},
                 {SHF_E_TRUNCATED, "TRUNCATED"},
                 {SHF_E_INTEGRITY, "INTEGRITY"},
                 {SHF_E_LIMIT, "LIMIT"},
                 {SHF_E_UNSUPPORTED, "UNSUPPORTED"},
                 {SHF_E_AMBIGUOUS, "AMBIGUOUS"},
                 {SHF_E_CHANGED, "CHANGED"},
                 {SHF_E_NET_TRANSIENT, "NET_TRANSIENT"},
                 {SHF_E_NET_PERMANENT, "NET_PERMANENT"},
                 {SHF_E_THROTTLED, "THROTTLED"},
                 {SHF_E_AUTH, "AUTH"},
                 {SHF_E_TLS, "TLS"},
                 {SHF_E_IO, "IO"},
                 {SHF_E_NOSPACE, "NOSPACE"},
                 {SHF_E_NOMEM, "NOMEM"},
                 {SHF_E_CANCELLED, "CANCELLED"},
                 {SHF_E_TIMEOUT, "TIMEOUT"},
                 {SHF_E_CHILD, "CHILD"},
                 {SHF_E_USAGE, "USAGE"},
                 {SHF_E_FORKED, "FORKED"},
                 {SHF_E_NOT_FOUND, "NOT_FOUND"},
                 {SHF_E_INTERNAL, "INTERNAL"}};
    const size_t count = sizeof codes / sizeof codes[0];
    for (size_t i = 0; i < count; ++i) {
        CHECK(strcmp(shf_error_name(codes[i].code), codes[i].name) == 0);
        CHECK(strlen(shf_strerror(codes[i].code)) > 0);
        for (size_t j = 0; j < i; ++j) {
            CHECK(codes[i].code != codes[j].code);
            CHECK(strcmp(shf_strerror(codes[i].code), shf_strerror(codes[j].code)) != 0);
        }
    }
    CHECK(strcmp(shf_strerror(SHF_E_TRUNCATED), "input ended before its end was proven") == 0);
    static const int32_t unknown[] = {2, -23, 4711, INT32_MIN, INT32_MAX};
    for (size_t i = 0; i < sizeof unknown / sizeof unknown[0]; ++i) {
        CHECK(strcmp(shf_error_name(unknown[i]), "UNKNOWN") == 0);
        CHECK(strlen(shf_strerror(unknown[i])) > 0);
    }
}

static void test_error_layout(void) {
    CHECK(sizeof(shf_error) == 1024);
    CHECK(offsetof(shf_error, code) == 0);
    CHECK(offsetof(shf_error, os_error) == 4);
    CHECK(offsetof(shf_error, offset) == 8);
    CHECK(offsetof(shf_error, message) == 16);
    CHECK(sizeof(shf_bytes) == 2 * sizeof(void*));
    CHECK(offsetof(shf_bytes, size) == sizeof(void*));
}

static void test_features(void) {
    static const char* const names[] = {"gzip", "bzip2",    "xz",   "zstd", "lz4",
                                        "lzip", "compress", "pipe", "jpeg", "png"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; ++i) {
        const char* version = shf_feature(names[i]);
        CHECK(version != NULL && strlen(version) > 0);
    }
    CHECK(shf_feature("telepathy") == NULL);
    CHECK(shf_feature("") == NULL);
    CHECK(shf_feature("GZIP") == NULL);
    CHECK(shf_feature(NULL) == NULL);
}

static void test_described_options(void) {
    static const char* const types[] = {"bool",   "count", "bytes", "duration",
                                        "choice", "text",  "secret"};
    shf_options* options = shf_options_new();
    shf_error error;
    size_t count = 0;
    CHECK(options != NULL);
    for (; shf_option_describe(count, SHF_OPTION_NAME) != NULL; ++count) {
        const char* name = shf_option_describe(count, SHF_OPTION_NAME);
        const char* type = shf_option_describe(count, SHF_OPTION_TYPE);
        const char* fallback = shf_option_describe(count, SHF_OPTION_DEFAULT);
        const char* range = shf_option_describe(count, SHF_OPTION_RANGE);
        bool known = false;
        CHECK(strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_") == strlen(name));
        for (size_t i = 0; i < sizeof types / sizeof types[0]; ++i)
            known = known || strcmp(type, types[i]) == 0;
        CHECK(known);
        const bool is_text = strcmp(type, "text") == 0 || strcmp(type, "secret") == 0;
        const bool is_choice = strcmp(type, "bool") == 0 || strcmp(type, "choice") == 0;
        CHECK_TEXT(range, is_text ? "" : is_choice ? "|" : "..");
        const char* openers = shf_option_describe(count, SHF_OPTION_OPENERS);
        CHECK(strstr(openers, "stream") || strstr(openers, "dataset") ||
              strcmp(openers, "mix") == 0 || strcmp(openers, "writer") == 0 ||
              strcmp(openers, "archive") == 0);
        const char* help = shf_option_describe(count, SHF_OPTION_HELP);
        CHECK(strlen(help) > 0 && strchr(help, '\n') == NULL);
        CHECK_OK(shf_options_set(options, name, fallback, &error), &error);
        /* Whatever the type, these are not values of it. */
        static const char* const bad[] = {"",   "nonsense", "-1",   "1e3",
                                          " 1", "1 ",       "0x10", "\x1b[31m"};
        for (size_t i = 0; !is_text && i < sizeof bad / sizeof bad[0]; ++i) {
            CHECK_CODE(shf_options_set(options, name, bad[i], &error), SHF_E_USAGE, &error);
            CHECK_TEXT(error.message, name);
            CHECK_TEXT(error.message, "help: give ");
            CHECK(strchr(error.message, '\x1b') == NULL);
        }
        for (size_t i = 0; i < count; ++i)
            CHECK(strcmp(name, shf_option_describe(i, SHF_OPTION_NAME)) != 0);
        CHECK(shf_option_describe(count, -1) == NULL);
        CHECK(shf_option_describe(count, SHF_OPTION_GROUP + 1) == NULL);
        CHECK_TEXT(
            " reading order consumer selection errors leniency limits batches index writing "
            "network "
            "s3 gs az hf ais feed ",
            shf_option_describe(count, SHF_OPTION_GROUP));
        /* What get gives is a value for set, and stays what it is. */
        shf_bytes now;
        char first[64];
        CHECK_OK(shf_options_get(options, name, &now, &error), &error);
        snprintf(first, sizeof first, "%s", (const char*)now.data);
        CHECK(strlen(first) == now.size);
        CHECK_OK(shf_options_set(options, name, first, &error), &error);
        CHECK_OK(shf_options_get(options, name, &now, &error), &error);
        CHECK(strcmp((const char*)now.data, first) == 0);
    }
    CHECK(count > 20);
    CHECK(shf_option_describe(count, SHF_OPTION_HELP) == NULL);
    CHECK(shf_option_describe(SIZE_MAX, SHF_OPTION_NAME) == NULL);
    shf_options_free(options);
}

static void test_option_values(void) {
    static const struct {
        const char *name, *value;
        int32_t code;
    } cases[] = {{"threads", "4096", SHF_OK},
                 {"threads", "4097", SHF_E_USAGE},
                 {"memory", "1MiB", SHF_OK},
                 {"memory", "1048575", SHF_E_USAGE},
                 {"memory", "1.5 GiB", SHF_OK},
                 {"memory", "17TiB", SHF_E_USAGE},
                 {"memory", "1mib", SHF_E_USAGE},
                 {"max_member", "1EiB", SHF_OK},
                 {"max_member", "16EiB", SHF_E_USAGE},
                 {"seed", "18446744073709551615", SHF_OK},
                 {"seed", "18446744073709551616", SHF_E_USAGE},
                 {"seed", "1.5", SHF_E_USAGE},
                 {"shuffle_shards", "yes", SHF_OK},
                 {"shuffle_shards", "0", SHF_OK},
                 {"shuffle_shards", "True", SHF_E_USAGE},
                 {"timeout", "200ms", SHF_OK},
                 {"timeout", "2min", SHF_OK},
                 {"timeout", "1000001s", SHF_E_USAGE},
                 {"timeout", "200 parsecs", SHF_E_USAGE},
                 {"on_error", "skip_shard", SHF_OK},
                 {"on_error", "skip", SHF_E_USAGE},
                 {"on_error", "raise|skip_sample", SHF_E_USAGE}};
    shf_options* options = shf_options_new();
    shf_error error;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
        memset(&error, 0x55, sizeof error);
        const int32_t code = shf_options_set(options, cases[i].name, cases[i].value, &error);
        if (code != cases[i].code) fail_check(__FILE__, __LINE__, cases[i].name, cases[i].value);
        if (code == SHF_OK) CHECK(error.code == 0x55555555); /* written only on failure */
    }
    CHECK_CODE(shf_options_set(options, "memory", "lots", NULL), SHF_E_USAGE, NULL);
    CHECK_CODE(shf_options_set(options, "memory", "12", &error), SHF_E_USAGE, &error);
    CHECK_TEXT(error.message, "memory");
    CHECK_TEXT(error.message, "\"12\"");
    CHECK_TEXT(error.message, "1MiB..16TiB");
    CHECK(error.os_error == 0 && error.offset == UINT64_MAX);
    shf_options_free(options);
}

static void test_values_are_read_back(void) {
    static const struct {
        const char *name, *value, *canonical;
    } cases[] = {{"memory", "1.5 GiB", "1610612736"},
                 {"timeout", "1.5s", "1500000000ns"},
                 {"timeout", "2min", "120000000000ns"},
                 {"timeout", "0", "0ns"},
                 {"shuffle_shards", "yes", "true"},
                 {"shuffle_shards", "off", "false"},
                 {"seed", "18446744073709551615", "18446744073709551615"},
                 {"on_error", "skip_shard", "skip_shard"},
                 {"fields", "a,\xc3\xa4\n", "a,\xc3\xa4\n"},
                 {"index_dir", "", ""}};
    shf_options* options = shf_options_new();
    shf_error error;
    shf_bytes now;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
        CHECK_OK(shf_options_set(options, cases[i].name, cases[i].value, &error), &error);
        CHECK_OK(shf_options_get(options, cases[i].name, &now, &error), &error);
        CHECK(strcmp((const char*)now.data, cases[i].canonical) == 0);
        CHECK(now.size == strlen(cases[i].canonical));
    }
    CHECK_CODE(shf_options_get(options, "shufle", &now, &error), SHF_E_USAGE, &error);
    CHECK(now.data == NULL && now.size == 0);
    CHECK_TEXT(error.message, "did you mean \"shuffle\"?");
    CHECK_CODE(shf_options_get(options, "shuffle", NULL, &error), SHF_E_USAGE, &error);
    CHECK_CODE(shf_options_get(options, NULL, &now, &error), SHF_E_USAGE, &error);
    CHECK_CODE(shf_options_get(NULL, "shuffle", &now, NULL), SHF_E_USAGE, NULL);
    shf_options_free(options);
}

static void test_nearest_option(void) {
    static const char* const pairs[][2] = {{"shufle", "\"shuffle\""},
                                           {"seeds", "\"seed\""},
                                           {"max-skips", "\"max_skips\""},
                                           {"timout", "\"timeout\""},
                                           {"wordl_size", "\"world_size\""},
                                           /* names of other loaders */
                                           {"shardshuffle", "\"shuffle_shards\""},
                                           {"handler", "\"on_error\""},
                                           {"repeat", "\"epochs\""},
                                           {"batch_size", "\"batch\""},
                                           {"nworkers", "\"threads\""},
                                           {"resampled", "\"resample\""},
                                           {"nodesplitter", "\"world_size\""},
                                           {"buffer_size", "\"shuffle\""}};
    shf_options* options = shf_options_new();
    shf_error error;
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; ++i) {
        CHECK_CODE(shf_options_set(options, pairs[i][0], "1", &error), SHF_E_USAGE, &error);
        CHECK_TEXT(error.message, pairs[i][0]);
        CHECK_TEXT(error.message, pairs[i][1]);
    }
    char* name = malloc(100001);
    memset(name, 'x', 100000);
    name[100000] = '\0';
    CHECK_CODE(shf_options_set(options, name, "1", &error), SHF_E_USAGE, &error);
    CHECK(memchr(error.message, '\0', sizeof error.message) != NULL);
    free(name);
    shf_options_free(options);
}

/* What options hold is seen through what a stream does: 4 consumers need 4 shards, 3 do not. */
static void test_failed_set_changes_nothing(void) {
    const char* url = "{0..2}.tar";
    shf_options* options = OPTIONS("world_size", "3", "rank", "0");
    shf_stream* stream = NULL;
    shf_error error;
    CHECK_CODE(shf_options_set(options, "world_size", "0", &error), SHF_E_USAGE, &error);
    CHECK_CODE(shf_options_set(options, "world_size", "4x", &error), SHF_E_USAGE, &error);
    CHECK_OK(shf_stream_open(&stream, &url, 1, options, &error), &error);
    shf_stream_close(stream);
    CHECK_OK(shf_options_set(options, "world_size", "4", &error), &error);
    CHECK_CODE(shf_stream_open(&stream, &url, 1, options, &error), SHF_E_USAGE, &error);
    CHECK(stream == NULL);
    CHECK_TEXT(error.message, "3 shards for 4 consumers");
    CHECK_TEXT(error.message, "help: ");
    shf_options_free(options);
}

/* How many URLs options let through tells what max_shards they hold. */
static int32_t count_url(void* ctx, const char* url, size_t size) {
    (void)url, (void)size;
    ++*(int*)ctx;
    return 0;
}

static int urls_of(const shf_options* options, const char* url) {
    int count = 0;
    return shf_expand_urls(&url, 1, options, count_url, &count, NULL) == SHF_OK ? count : -1;
}

static void test_set_all(void) {
    shf_options* options = shf_options_new();
    shf_error error;
    static const char* const good[] = {
        "max_shards=3",
        " max_shards = 3 ",
        "max_shards=1,max_shards=3",
        "max_shards='3'",
        "\tmax_shards=\"3\" , decode='jpg:image/rgb8, cls:int', seed=1\n",
        "decode=jpg:image/resize=8x8,max_shards=3",
        "index_dir='it''s, a \"folder\"',max_shards=3,index_dir=",
        "fields=\"a,b\",max_shards=3"};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; ++i) {
        CHECK_OK(shf_options_set(options, "max_shards", "9", &error), &error);
        CHECK_OK(shf_options_set_all(options, good[i], &error), &error);
        if (urls_of(options, "{1..3}") != 3 || urls_of(options, "{1..4}") != -1)
            fail_check(__FILE__, __LINE__, good[i], "max_shards is not 3");
    }
    /* All or nothing: what stands before the mistake is not set either. */
    static const char* const bad[][2] = {
        {"max_shards=9,shufle=1", "did you mean \"shuffle\""},
        {"max_shards=9,seed=many", "option seed: bad value \"many\""},
        {"max_shards=9,seed", "character 18: no \"=\" after \"seed\""},
        {"max_shards=9,", "character 14: the name of an option is missing"},
        {"max_shards=9,,seed=1", "character 14: "},
        {",max_shards=9", "character 1: "},
        {"max_shards=9,=1", "character 14: "},
        {"max_shards=9,decode='jpg, cls", "character 21: the quote is not closed"},
        {"max_shards=9,decode='jpg'cls", "character 26: no comma after a quoted value"},
        {"max_shards=9,decode=jpg, cls:int", "no \"=\" after \"cls:int\""}};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; ++i) {
        CHECK_CODE(shf_options_set_all(options, bad[i][0], &error), SHF_E_USAGE, &error);
        CHECK_TEXT(error.message, bad[i][1]);
        CHECK_TEXT(error.message, "help: ");
        if (urls_of(options, "{1..4}") != -1)
            fail_check(__FILE__, __LINE__, bad[i][0], "set in spite of the mistake");
    }
    CHECK_OK(shf_options_set_all(options, "", &error), &error);
    CHECK_OK(shf_options_set_all(options, " \n", &error), &error);
    CHECK_CODE(shf_options_set_all(options, NULL, &error), SHF_E_USAGE, &error);
    CHECK_CODE(shf_options_set_all(NULL, "seed=1", &error), SHF_E_USAGE, &error);
    /* What is in quotes comes out as it is: the message of what refuses it has it. */
    CHECK_OK(shf_options_set_all(options, "slice=':::it''s \"'", &error), &error);
    shf_stream* stream = NULL;
    const char* url = "a.tar";
    CHECK_CODE(shf_stream_open(&stream, &url, 1, options, &error), SHF_E_USAGE, &error);
    CHECK_TEXT(error.message, "it");
    CHECK_TEXT(error.message, "s ");
    shf_options_free(options);
}

struct urls {
    char text[4096];
    size_t count, stop_after;
};

static int32_t take_url(void* ctx, const char* url, size_t size) {
    struct urls* urls = ctx;
    CHECK(strlen(url) == size);
    strncat(urls->text, url, sizeof urls->text - strlen(urls->text) - 1);
    strncat(urls->text, " ", sizeof urls->text - strlen(urls->text) - 1);
    return ++urls->count == urls->stop_after ? -7 : 0;
}

static void test_expand_urls(void) {
    static const char* const given[] = {"a-{08..10}.tar::b.tar", "{x,y}{0..1}"};
    struct urls urls = {.count = 0};
    shf_error error;
    CHECK_OK(shf_expand_urls(given, 2, NULL, take_url, &urls, &error), &error);
    CHECK(strcmp(urls.text, "a-08.tar a-09.tar a-10.tar b.tar x0 x1 y0 y1 ") == 0);

    struct urls some = {.stop_after = 3};
    CHECK_CODE(shf_expand_urls(given, 2, NULL, take_url, &some, &error), SHF_E_CANCELLED, &error);
    CHECK(some.count == 3);

    struct urls raw = {.count = 0};
    shf_options* options = OPTIONS("expand", "false");
    CHECK_OK(shf_expand_urls(given, 2, options, take_url, &raw, &error), &error);
    CHECK(strcmp(raw.text, "a-{08..10}.tar::b.tar {x,y}{0..1} ") == 0);
    shf_options_free(options);

    /* Stopping early does not build what comes after: a hundred million URLs take no time. */
    const char* many = "{00000000..99999999}";
    struct urls first = {.stop_after = 2};
    const double start = seconds();
    CHECK_CODE(shf_expand_urls(&many, 1, NULL, take_url, &first, &error), SHF_E_CANCELLED, &error);
    CHECK(seconds() - start < 1 * SLOWNESS);
    CHECK(strcmp(first.text, "00000000 00000001 ") == 0);

    const char* bad = "a-{1..2";
    struct urls none = {.count = 0};
    CHECK_CODE(shf_expand_urls(&bad, 1, NULL, take_url, &none, &error), SHF_E_USAGE, &error);
    const char* absent = "@/nonexistent/list";
    CHECK_CODE(shf_expand_urls(&absent, 1, NULL, take_url, &none, &error), SHF_E_IO, &error);
    options = OPTIONS("max_shards", "5");
    CHECK_CODE(shf_expand_urls(given, 2, options, take_url, &none, &error), SHF_E_LIMIT, &error);
    CHECK_TEXT(error.message, "max_shards");
    shf_options_free(options);
    CHECK_CODE(shf_expand_urls(given, 2, NULL, NULL, NULL, &error), SHF_E_USAGE, &error);
    CHECK_CODE(shf_expand_urls(NULL, 2, NULL, take_url, &none, &error), SHF_E_USAGE, &error);
    const char* const hole[] = {"a", NULL};
    CHECK_CODE(shf_expand_urls(hole, 2, NULL, take_url, &none, &error), SHF_E_USAGE, &error);
    CHECK(none.count == 0);
    CHECK_OK(shf_expand_urls(NULL, 0, NULL, take_url, &none, NULL), NULL);
}

/* The name of a counter, which has all that a counter needs. */
static const char* counter(int32_t stat) {
    const char* name = shf_stat_describe(stat, SHF_COUNTER_NAME);
    if (name == NULL) return NULL;
    CHECK_TEXT(" counter gauge ", shf_stat_describe(stat, SHF_COUNTER_KIND));
    CHECK_TEXT(" samples bytes shards members skips requests blocks ns ",
               shf_stat_describe(stat, SHF_COUNTER_UNIT));
    CHECK(strlen(shf_stat_describe(stat, SHF_COUNTER_HELP)) > 5);
    CHECK(shf_stat_describe(stat, -1) == NULL);
    CHECK(shf_stat_describe(stat, SHF_COUNTER_HELP + 1) == NULL);
    return name;
}

static void test_stats_are_described(void) {
    CHECK(strcmp(counter(SHF_STAT_SAMPLES), "samples") == 0);
    CHECK(strcmp(counter(SHF_STAT_EPOCH_SAMPLES), "epoch_samples") == 0);
    CHECK(strcmp(counter(SHF_STAT_UNVERIFIED_SAMPLES), "unverified_samples") == 0);
    CHECK(strcmp(shf_stat_describe(SHF_STAT_MEMORY, SHF_COUNTER_KIND), "gauge") == 0);
    CHECK(strcmp(shf_stat_describe(SHF_STAT_READER_WAIT_NS, SHF_COUNTER_UNIT), "ns") == 0);
    for (int32_t stat = -300; stat < 300; ++stat) (void)counter(stat);
    const int32_t none[] = {-1, SHF_STAT_VERIFIED_SHARDS + 1, SHF_STAT_SKIPS_BY_CLASS, INT32_MAX,
                            INT32_MIN};
    for (size_t i = 0; i < sizeof none / sizeof *none; ++i) CHECK(counter(none[i]) == NULL);
    /* Every error class that a stream may skip has its counter under its own name. */
    for (int32_t code = SHF_E_FORMAT; code >= SHF_E_CHILD; --code) {
        char name[64] = "skips_";
        strcat(name, shf_error_name(code));
        for (char* c = name; *c != '\0'; ++c)
            if (*c >= 'A' && *c <= 'Z') *c = (char)(*c + 32);
        CHECK(strcmp(shf_stat_describe(SHF_STAT_SKIPS_BY_CLASS - code, SHF_COUNTER_NAME), name) ==
              0);
    }
}

int main(void) {
    RUN(test_version);
    RUN(test_error_texts);
    RUN(test_error_layout);
    RUN(test_features);
    RUN(test_described_options);
    RUN(test_option_values);
    RUN(test_set_all);
    RUN(test_values_are_read_back);
    RUN(test_nearest_option);
    RUN(test_failed_set_changes_nothing);
    RUN(test_expand_urls);
    RUN(test_stats_are_described);
    return finish();
}
