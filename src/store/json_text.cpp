#include "store/json_text.h"

#include <cstddef>
#include <cstdint>
#include <string>

namespace shf {

namespace {

constexpr size_t most_values = 500'000, deepest = 64;

// Only counts: nothing of the text is kept.
class JsonSize final : public nlohmann::json_sax<nlohmann::json> {
  public:
    bool null() override { return one_more(); }
    bool boolean(bool /*value*/) override { return one_more(); }
    bool number_integer(int64_t /*value*/) override { return one_more(); }
    bool number_unsigned(uint64_t /*value*/) override { return one_more(); }
    bool number_float(double /*value*/, const std::string& /*text*/) override { return one_more(); }
    bool string(std::string& /*value*/) override { return one_more(); }
    bool binary(nlohmann::json::binary_t& /*value*/) override { return one_more(); }
    bool key(std::string& /*name*/) override { return true; }
    bool start_object(size_t /*size*/) override { return deeper(); }
    bool start_array(size_t /*size*/) override { return deeper(); }
    bool end_object() override { return --depth_, true; }
    bool end_array() override { return --depth_, true; }
    bool parse_error(size_t /*at*/, const std::string& /*token*/,
                     const nlohmann::detail::exception& /*error*/) override {
        return false;
    }

  private:
    bool one_more() { return ++values_ <= most_values; }
    bool deeper() { return ++depth_ <= deepest && one_more(); }

    size_t values_ = 0, depth_ = 0;
};

}  // namespace

nlohmann::json parse_json(std::string_view text) {
    JsonSize size;
    if (!nlohmann::json::sax_parse(text.begin(), text.end(), &size))
        return nlohmann::json(nlohmann::json::value_t::discarded);
    return nlohmann::json::parse(text.begin(), text.end(), nullptr, false);
}

}  // namespace shf
