#include "core/error.h"
#include "tar/tar_header.h"
#include "write/container.h"
#include "write/file_field.h"

#include <ctime>

namespace shf {

namespace {

class TarContainer : public Container {
  public:
    explicit TarContainer(TarHeaders kind) : kind_(kind) {}

    uint64_t add(const NewMember& member, ShardOutput& output) override {
        headers_.clear();
        append_tar_header(headers_, member.name, member.size(), owner());
        output.write(headers_);
        const uint64_t start = output.position();
        if (member.file)
            (void)copy_file(*member.file, output);
        else
            output.write(member.data);
        output.fill(tar_padding(member.size()));
        ++count_;
        return start;
    }
    [[nodiscard]] uint64_t room(const NewMember& member) const override {
        return tar_header_size(member.name, member.size()) + member.size() +
               tar_padding(member.size());
    }
    [[nodiscard]] uint64_t end_room(uint64_t position) const override {
        return tar_end_size(position);
    }
    void forget(size_t count) override { count_ = count; }
    [[nodiscard]] size_t count() const override { return count_; }
    void finish(ShardOutput& output) override { output.fill(tar_end_size(output.position())); }

  private:
    [[nodiscard]] TarOwner owner() const {
        if (kind_ == TarHeaders::same) return {};
        return tarp_owner(static_cast<uint64_t>(std::time(nullptr)));
    }

    const TarHeaders kind_;
    std::string headers_;
    size_t count_ = 0;
};

}  // namespace

std::unique_ptr<Container> tar_container(TarHeaders headers) {
    return std::make_unique<TarContainer>(headers);
}

}  // namespace shf
