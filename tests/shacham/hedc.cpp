// hedc: the kernel of a crawler of archives. Tasks are taken from a pool; who waits for too long cancels a task by looking at
// the worker that has it, without the task's lock under which the worker puts itself there and takes itself away.
#include "common.hpp"

struct Task {
    std::mutex lock;
    int worker = -1;
    bool valid = true;
    std::uint32_t result = 0;
};
static std::vector<Task> tasks;
static std::mutex pool_lock;
static std::size_t next_task;
int cancelled;

static void work(int number) {
    std::vector<std::uint32_t> page(256, static_cast<std::uint32_t>(number));
    for (;;) {
        std::size_t at;
        {
            std::lock_guard<std::mutex> guard(pool_lock);
            at = next_task++;
        }
        if (at >= tasks.size()) return;
        Task &task = tasks[at];
        {
            std::lock_guard<std::mutex> guard(task.lock);
            task.worker = number;
        }
        task.result = private_work(page, 8);
        {
            std::lock_guard<std::mutex> guard(task.lock);
            task.worker = -1;
        }
        if (at % 5 == 0) { // a meta search gives up on the task before
            Task &other = tasks[at ? at - 1 : 0];
            if (other.worker >= 0) { // without its lock
                std::lock_guard<std::mutex> guard(pool_lock);
                other.valid = false;
                cancelled++;
            }
        }
    }
}

int main(int count, char **words) {
    Arguments arguments(count, words, 300);
    tasks = std::vector<Task>(static_cast<std::size_t>(arguments.size));
    run_threads(arguments.threads, work);
    return cancelled >= 0 ? 0 : 1;
}
