// Shacham et al. 2007, Fig. 7: the second thread's last `Y = X`, under lock_y only, races with the first's `X = 7`, under lock_x.
#include "common.hpp"
static std::mutex lock_x, lock_y;
int X, Y;

static void both() {
    std::lock_guard<std::mutex> x(lock_x);
    std::lock_guard<std::mutex> y(lock_y);
    Y = X;
}
static void assign() {
    std::lock_guard<std::mutex> x(lock_x);
    X = 7;
}

int main() {
    std::thread two([] {
        both();
        assign();
        std::lock_guard<std::mutex> y(lock_y);
        Y = X;
    });
    std::thread one([] {
        both();
        assign();
    });
    one.join();
    two.join();
    return 0;
}
