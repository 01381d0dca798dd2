// C++: blocks of bytes pass through a chain of stages, one thread each, connected by bounded channels (std::mutex,
// std::condition_variable, std::deque). A block is a std::unique_ptr that changes hands.
// Usage: pipeline [BLOCKS [STAGES]]
// Check: what arrives is what a serial application of all stages gives, in order.
// Race-free: a block belongs to whoever took it out of a channel.
#include <array>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace {

struct Block {
    std::size_t number = 0;
    std::array<std::uint8_t, 512> bytes{};
};

class Channel {
public:
    void send(std::unique_ptr<Block> block) {
        std::unique_lock<std::mutex> guard(lock_);
        not_full_.wait(guard, [this] { return blocks_.size() < 16; });
        blocks_.push_back(std::move(block));
        not_empty_.notify_one();
    }

    // Nothing: the end.
    std::unique_ptr<Block> receive() {
        std::unique_lock<std::mutex> guard(lock_);
        not_empty_.wait(guard, [this] { return !blocks_.empty(); });
        auto block = std::move(blocks_.front());
        blocks_.pop_front();
        not_full_.notify_one();
        return block;
    }

private:
    std::mutex lock_;
    std::condition_variable not_empty_, not_full_;
    std::deque<std::unique_ptr<Block>> blocks_;
};

std::unique_ptr<Block> block_of(std::size_t number) {
    auto block = std::make_unique<Block>();
    block->number = number;
    for (std::size_t i = 0; i < block->bytes.size(); i++)
        block->bytes[i] = static_cast<std::uint8_t>(number * 31 + i * 7);
    return block;
}

void work_on(Block &block, std::size_t stage) {
    std::uint8_t carry = static_cast<std::uint8_t>(stage + 1);
    for (auto &byte : block.bytes) {
        byte = static_cast<std::uint8_t>((byte ^ carry) + stage);
        carry = static_cast<std::uint8_t>(carry * 5 + byte);
    }
}

std::uint64_t digest_of(const Block &block) {
    std::uint64_t digest = block.number;
    for (const auto byte : block.bytes)
        digest = digest * 1099511628211u + byte;
    return digest;
}

} // namespace

int main(int count, char **arguments) {
    const std::size_t blocks = count > 1 ? std::strtoul(arguments[1], nullptr, 10) : 12000;
    const std::size_t stages = count > 2 ? std::strtoul(arguments[2], nullptr, 10) : 4;
    if (stages == 0 || stages > 64)
        return 2;
    std::vector<Channel> channels(stages + 1);
    std::vector<std::thread> workers;
    for (std::size_t stage = 0; stage < stages; stage++)
        workers.emplace_back([&channels, stage] {
            while (auto block = channels[stage].receive()) {
                work_on(*block, stage);
                channels[stage + 1].send(std::move(block));
            }
            channels[stage + 1].send(nullptr);
        });
    std::thread source([&channels, blocks] {
        for (std::size_t number = 0; number < blocks; number++)
            channels[0].send(block_of(number));
        channels[0].send(nullptr);
    });
    bool right = true;
    std::uint64_t total = 0;
    std::size_t arrived = 0;
    while (auto block = channels[stages].receive()) {
        right &= block->number == arrived++;
        const auto digest = digest_of(*block);
        total += digest;
        if (block->number % 64 == 0) {
            auto again = block_of(block->number);
            for (std::size_t stage = 0; stage < stages; stage++)
                work_on(*again, stage);
            right &= digest_of(*again) == digest;
        }
    }
    source.join();
    for (auto &worker : workers)
        worker.join();
    right &= arrived == blocks;
    std::printf("pipeline of %zu blocks through %zu stages, sum %llx: %s\n", blocks, stages,
                static_cast<unsigned long long>(total), right ? "right" : "WRONG");
    return right ? 0 : 1;
}
