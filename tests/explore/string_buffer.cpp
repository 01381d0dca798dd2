// Atomicity violation: the length of a buffer is taken before its characters (as in java.lang.StringBuffer.append).
#include <cassert>
#include <mutex>
#include <string>
#include <thread>
struct Buffer {
    std::mutex m;
    std::string text{"abcdef"};
    std::size_t length() { std::lock_guard<std::mutex> g(m); return text.size(); }
    bool copy(std::size_t end) { std::lock_guard<std::mutex> g(m); return end <= text.size(); }
    void shrink() { std::lock_guard<std::mutex> g(m); text.clear(); }
};
Buffer buffer;
int main() {
    bool right = true;
    std::thread a([&] { std::size_t length = buffer.length(); right = buffer.copy(length); }), b([] { buffer.shrink(); });
    a.join(); b.join();
    assert(right);
}
