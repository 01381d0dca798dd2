// ElevSim: elevators serve calls of floors; each floor has a lock, and so has the control. Which floor was served last is
// looked at by an elevator that begins its evening shift, under the shift's lock. An elevator that gets two calls of the
// evening notes its floor under the log's lock. Elevators and control share the lock of the calls, which orders both
// accesses unless an elevator gets its calls while another one stands before its look.
#include "gate.hpp"

constexpr int FLOORS = 12;
struct Floor {
    std::mutex lock;
    int waiting = 0;
};
static Floor floors[FLOORS];
static std::mutex control_lock, shift_lock, log_lock;
static Gate calls;
int carried, shifts, last_floor, evenings;

static int serve(Random &random, std::vector<std::uint32_t> &doors, int trips) {
    int at = 0;
    for (int trip = 0; trip < trips; trip++) {
        int target;
        {
            std::lock_guard<std::mutex> guard(control_lock);
            target = random.below(FLOORS);
            carried++;
        }
        private_work(doors, 8 + (target > at ? target - at : at - target));
        std::lock_guard<std::mutex> guard(floors[target].lock);
        floors[target].waiting = random.below(5);
        at = target;
    }
    return at;
}

static void elevator(int number, int share) {
    Random random(static_cast<std::uint64_t>(number) + 5);
    std::vector<std::uint32_t> doors(48, 1);
    int at = serve(random, doors, share);
    calls.arrive();
    {
        std::lock_guard<std::mutex> guard(shift_lock);
        if (last_floor == FLOORS - 1) evenings++;
    }
    if (calls.pass(2)) {
        std::lock_guard<std::mutex> guard(log_lock);
        last_floor = at;
    }
    std::lock_guard<std::mutex> guard(control_lock);
    shifts++;
}

int main(int count, char **words) {
    Arguments arguments(count, words, 1000);
    int share = arguments.size / arguments.threads;
    run_with(calls, 6, arguments.threads, [share](int number) { elevator(number, share); });
    return shifts == arguments.threads ? 0 : 1;
}
