#include "stream/block_maker.h"

#include <utility>
#include <vector>

namespace shf {

BlockMaker::BlockMaker(SampleSequence& sequence)
    : sequence_(sequence),
      builder_(*sequence.context().pool, sequence.context().cancel, false,
               [this](BlockRef block) { full_ = std::move(block); }) {}

BlockRef BlockMaker::next(uint64_t most, const Wait& wait) {
    std::vector<LooseField> fields;
    while (!full_ && builder_.count() < most) {
        Delivery delivery = std::move(pending_);
        if (!delivery.block) {
            Wait first_alone = wait;
            first_alone.at_all = builder_.count() == 0;
            try {
                if (sequence_.pull(delivery, first_alone) != Pull::sample) break;
            } catch (const Error& error) {
                if (builder_.count() == 0) throw;
                fault_ = error.fault();
                break;
            }
        }
        lost_ = true;  // until there is a block with it
        const Block& block = *delivery.block;
        const uint32_t i = delivery.index;
        fields.clear();
        for (uint64_t row = block.first_field[i]; row < block.first_field[i + 1]; ++row)
            fields.push_back({block.buffers[block.buffer[row]].data() + block.start[row],
                              block.stop[row] - block.start[row],
                              &block.storages[block.buffer[row]]});
        const LooseSample sample{block.key_of(i), block.offset[i], block.origins[block.origin[i]],
                                 block.schemas[block.schema[i]], fields};
        if (!builder_.accepts(sample)) {
            pending_ = std::move(delivery);
            break;
        }
        builder_.add(sample);
    }
    if (!full_) builder_.flush();
    BlockRef block = std::move(full_);
    lost_ = false;
    if (block)
        for (const StorageRef& storage : block->storages) storage.hand_out();
    return block;
}

}  // namespace shf
