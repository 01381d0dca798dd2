// Shacham et al. 2007, Fig. 6: lockset warns of X and of Y, and no schedule has a race.
#include "common.hpp"
static std::mutex lock_x, lock_y;
int X, Y;

int main() {
    std::thread one([] {
        std::lock_guard<std::mutex> x(lock_x);
        std::lock_guard<std::mutex> y(lock_y);
        X = Y;
    });
    std::thread two([] {
        {
            std::lock_guard<std::mutex> x(lock_x);
            X = 7;
        }
        std::lock_guard<std::mutex> y(lock_y);
        Y = X;
    });
    one.join();
    two.join();
    return 0;
}
