// A mix of streams as a program in C sees it.
#pragma once

#include "resume_client.h"

#include <memory>
#include <string>
#include <vector>

namespace shf::test {

using Parts = std::vector<std::unique_ptr<Client>>;

class MixClient : public BatchClient {
  public:
    // Takes the streams of the parts over when it succeeds. No weights: all are equal.
    MixClient(Parts& parts, const std::vector<double>& weights, const Settings& settings) {
        shf_options* options = shf_options_new();
        for (const auto& [name, value] : settings)
            EXPECT_EQ(shf_options_set(options, name.c_str(), value.c_str(), &error), SHF_OK)
                << error.message;
        std::vector<shf_stream*> streams;
        for (const auto& part : parts) streams.push_back(part->stream);
        code = shf_stream_mix(&stream, streams.data(), weights.empty() ? nullptr : weights.data(),
                              streams.size(), options, &error);
        shf_options_free(options);
        if (code == SHF_OK)
            for (const auto& part : parts) part->stream = nullptr;
    }
    MixClient(Parts&& parts, const std::vector<double>& weights, const Settings& settings)
        : MixClient(parts, weights, settings) {}
};

template <typename... Clients>
Parts parts_of(Clients... clients) {
    Parts parts;
    (parts.push_back(std::move(clients)), ...);
    return parts;
}

inline std::unique_ptr<Client> part(const std::string& url, const Settings& settings = {}) {
    auto client = std::make_unique<Client>(url, settings);
    EXPECT_EQ(client->code, SHF_OK) << client->message();
    return client;
}

}  // namespace shf::test
