// A static local variable.
// Shows: initialisation that the compiler guards (__cxa_guard_acquire and an acquire load).
// True:  C++ [stmt.dcl] makes concurrent callers wait for the initialisation.
// expect: none
#include <thread>

struct Table {
    int squares[8];
    Table() {
        for (int i = 0; i < 8; i++)
            squares[i] = i * i;
    }
};

static const Table &table() {
    static Table instance;
    return instance;
}

static void use(int *sum) {
    for (int square : table().squares)
        *sum += square;
}

int main() {
    int sums[3] = {0, 0, 0};
    std::thread a(use, &sums[0]);
    std::thread b(use, &sums[1]);
    std::thread c(use, &sums[2]);
    a.join();
    b.join();
    c.join();
    return sums[0] == 140 && sums[1] == 140 && sums[2] == 140 ? 0 : 1;
}
