#include "sample/sample_message.h"
#include "write/container.h"
#include "write/file_field.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace shf {

namespace {

// More than name and size of a field take beside the bytes of both.
constexpr uint64_t heads = 16;

class MessageContainer : public Container {
  public:
    uint64_t add(const NewMember& member, ShardOutput& output) override {
        const std::string_view key = member.name.substr(0, member.key_size);
        if (!begun_) message_.begin(key);
        begun_ = true;
        const std::string_view field =
            member.name.substr(std::min(member.name.size(), key.size() + 1));
        const std::span<uint8_t> room = message_.add(field, member.size());
        std::vector<uint8_t> contents;
        if (member.file) read_field(*member.file, contents);
        const std::span<const uint8_t> data = member.file ? contents : member.data;
        std::copy(data.begin(), data.end(), room.begin());
        ++count_;
        return output.position();
    }
    void end_sample(ShardOutput& output) override {
        if (std::exchange(begun_, false)) {
            output.write(message_.finish());
            output.flush();  // each message is one write to the sink
        }
    }
    [[nodiscard]] uint64_t room(const NewMember& member) const override {
        return member.name.size() + member.size() + heads;
    }
    [[nodiscard]] uint64_t end_room(uint64_t /*position*/) const override { return 0; }
    void forget(size_t count) override {
        begun_ = false;
        count_ = count;
    }
    [[nodiscard]] size_t count() const override { return count_; }
    // The sink sends the end mark when the shard is published.
    void finish(ShardOutput& /*output*/) override {}

  private:
    SampleMessageWriter message_;
    bool begun_ = false;
    size_t count_ = 0;
};

}  // namespace

std::unique_ptr<Container> message_container() {
    return std::make_unique<MessageContainer>();
}

}  // namespace shf
