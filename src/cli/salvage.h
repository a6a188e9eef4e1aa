// What of a damaged archive is provably whole.
#pragma once

#include "cli/library.h"
#include "cli/library_options.h"
#include "cli/owned_sample.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cli {

// Told in the order of the archive.
class SalvageClient {
  public:
    virtual ~SalvageClient() = default;
    // A sample with all its fields, or with those that are whole (`wanted.fields`).
    virtual void sample(const OwnedSample& sample) = 0;
    // No member is known to lie there. `to` is missing when nothing was found behind them.
    virtual void lost_bytes(uint64_t from, std::optional<uint64_t> to,
                            const std::string& message) = 0;
    // A member whose data is not whole, or that is in no sample.
    virtual void lost_member(std::string_view name, uint64_t offset,
                             const std::string& message) = 0;
    // A sample that is not written as it was. `whole` are the fields that are; `kept`: they are
    // written.
    virtual void lost_sample(std::string_view key, const std::vector<std::string>& whole, bool kept,
                             const std::string& reason) = 0;
    // A directory, link or device: it is in no sample and has no bytes.
    virtual void left_out() = 0;
};

// Reads an archive past its damage. A sample is whole when the headers of all its members hold,
// their data is complete and has the checksums that the archive has for it, and when sound headers
// or the proven start and end of the archive stand on both sides of it: else a member may be
// missing, or the last one may have lost bytes. Of a compressed tar only what lies before the last
// checksum that held is whole. Memory does not grow with the archive.
class Salvage {
  public:
    struct Wanted {
        bool fields = false;  // whole fields of samples that are not
        bool unverified =
            false;  // what lies behind the last checksum of a compressed tar that held
    };
    Salvage(const std::string& url, const LibraryOptions& options, Wanted wanted,
            SalvageClient& client);

    // Throws Failure for what is no damage: the file cannot be read.
    void run();

  private:
    struct Gap {  // bytes that are no members
        uint64_t from;
        std::string message;
    };

    [[nodiscard]] Members open() const;
    uint64_t verified_bytes() const;
    void take_gap(const shf_error& error);
    void close_gap(std::optional<uint64_t> next_member);
    void take_member(std::string_view name);
    void take_field(const std::string& name, const std::string& field, uint64_t offset,
                    bool is_uncertain);
    bool read_data(std::string_view name, uint64_t offset, std::string& data);
    void begin_sample(const std::string& key, std::string_view name);
    void end_sample();
    void spoil(const std::string& reason);

    const std::string url_;
    const Options options_;
    const uint64_t memory_;
    const Wanted wanted_;
    SalvageClient& client_;
    Members members_;
    std::optional<uint64_t> verified_;  // bytes; of what is not compressed all
    std::optional<Gap> gap_;
    shf_error last_error_ = {};  // since the last member

    bool in_sample_ = false;
    OwnedSample sample_;
    std::vector<std::string> lowered_;  // names of its fields
    uint64_t bytes_ = 0;
    std::string why_not_whole_;
    bool behind_gap_ = false;       // the next sample may have lost members
    bool name_uncertain_ = false;   // of the next member: its long name may be lost
    bool after_uncertain_ = false;  // such a member is the last one
};

}  // namespace cli
