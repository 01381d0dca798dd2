// The variables of tasks are destroyed with them.
#include <atomic>
#include <cstdio>

static std::atomic<int> living{0}, wrong{0};

struct Counted {
    int value;
    explicit Counted(int value) : value(value) { living++; }
    Counted(const Counted &other) : value(other.value) { living++; }
    ~Counted() { living--; }
};

int main() {
#pragma omp parallel num_threads(2)
#pragma omp single
    {
        Counted counted(3);
        for (int i = 0; i < 6; i++) {
#pragma omp task firstprivate(counted) if (i % 3)
            if (counted.value != 3) wrong++;
        }
#pragma omp taskwait
#pragma omp taskloop firstprivate(counted) num_tasks(3)
        for (int i = 0; i < 6; i++)
            if (counted.value != 3) wrong++;
    }
    std::printf("%d %d\n", living.load(), wrong.load());
    return 0;
}
