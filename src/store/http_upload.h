// What all stores have in common when they take a new object: it carries the number of its upload,
// by which it is known to be ours.
#pragma once

#include "core/error.h"
#include "http/http_fetch.h"
#include "store/upload.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace shf {

class HttpUpload : public Upload {
  public:
    void check(uint64_t size, const SourceContext& context) override;
    void describe(PreparedFile& file) const override { file.upload = id_; }
    // Throws Error(USAGE) for what is no number of an upload: it goes into headers.
    void resume(const PreparedFile& file) override;
    // Throws target_exists() when the object is there and overwrite=false, so that nobody writes a
    // shard in vain. Who may write may not be allowed to look: the request that writes tells why.
    void require_none(const SourceContext& context) const;

  protected:
    // `id_header`: what keeps a text of ours, in lower case.
    HttpUpload(std::shared_ptr<HttpStore> store, std::string target, const char* id_header,
               const SourceContext& context);

    // For its target, without "?" where `query` is empty.
    [[nodiscard]] HttpRequest asking(const char* method, const std::string& query = {}) const;
    [[nodiscard]] std::string id_line() const { return std::string(id_header_) + ": " + id_; }
    // Makes the object. When its answer was lost, the next attempt finds an object that is there:
    // it may be ours.
    template <typename Make>
    void make(const SourceContext& context, std::optional<uint64_t> size, Make body) const {
        try {
            body();
        } catch (const Error& error) {
            if (error.code() == SHF_E_CANCELLED || !is_ours(size, context)) throw;
        }
    }

    const std::shared_ptr<HttpStore> store_;
    const std::string target_;
    const bool overwrite_;
    std::string id_ = upload_id();

  private:
    [[nodiscard]] bool is_ours(std::optional<uint64_t> size, const SourceContext& context) const;

    const char* const id_header_;
};

// The error of a token that no writer has made.
Error not_prepared();

inline constexpr const char* octets = "Content-Type: application/octet-stream";

}  // namespace shf
