// ElevSim: elevators serve calls of floors; each floor has a lock, and so has the control. Which floor was served last is looked at by an elevator that begins its evening
// shift, under the shift's lock, and written at the end of the shift under the log's. Right before and right after both, the elevator speaks with the control, whose lock thus orders
// them, unless one stands between the two while another one does.
#include "common.hpp"

constexpr int FLOORS = 12;
struct Floor {
    std::mutex lock;
    int waiting = 0;
};
static Floor floors[FLOORS];
static std::mutex control_lock, shift_lock, log_lock;
int carried, standing, shifts, last_floor, evenings;

static void stand(int change) {
    std::lock_guard<std::mutex> guard(control_lock);
    standing += change;
}

static int serve(Random &random, std::vector<std::uint32_t> &doors, int trips, int ride) {
    int at = 0;
    for (int trip = 0; trip < trips; trip++) {
        int target;
        {
            std::lock_guard<std::mutex> guard(control_lock);
            target = random.below(FLOORS);
            carried++;
        }
        private_work(doors, 8 + (target > at ? target - at : at - target));
        calculate(ride);
        std::lock_guard<std::mutex> guard(floors[target].lock);
        floors[target].waiting = random.below(5);
        at = target;
    }
    stand(1);
    return at;
}

static void elevator(int number, int share) {
    Random random(static_cast<std::uint64_t>(number) + 5);
    std::vector<std::uint32_t> doors(48, 1);
    serve(random, doors, share, 0);
    {
        std::lock_guard<std::mutex> guard(shift_lock);
        if (last_floor == FLOORS - 1) evenings++;
    }
    stand(-1);
    int at = serve(random, doors, 60, 400000);
    {
        std::lock_guard<std::mutex> guard(log_lock);
        last_floor = at;
        shifts++;
    }
    stand(-1);
}

int main(int count, char **words) {
    Arguments arguments(count, words, 500);
    int share = arguments.size;
    run_threads(arguments.threads, [share](int number) { elevator(number, share); });
    return shifts == arguments.threads ? 0 : 1;
}
