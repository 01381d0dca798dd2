// std::shared_ptr, one copy a thread.
// Shows: destruction by whichever thread drops the last owner.
// True:  each thread has its own pointer; the counts are atomic, and the last drop is ordered behind the others.
// expect: none
#include <atomic>
#include <memory>
#include <thread>

static std::atomic<int> destroyed;

struct Payload {
    int numbers[4] = {1, 2, 3, 4};
    ~Payload() {
        int sum = 0;
        for (int &number : numbers) {
            sum += number;
            number = 0;
        }
        destroyed += sum;
    }
};

static void use(std::shared_ptr<Payload> mine, int *result) {
    for (int number : mine->numbers)
        *result += number;
}

int main() {
    int results[3] = {0, 0, 0};
    auto payload = std::make_shared<Payload>();
    std::thread a(use, payload, &results[0]);
    std::thread b(use, payload, &results[1]);
    std::thread c(use, std::move(payload), &results[2]);
    a.join();
    b.join();
    c.join();
    return destroyed == 10 && results[0] + results[1] + results[2] == 30 ? 0 : 1;
}
