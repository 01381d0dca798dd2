// Warnings that only a search refutes: `parcel` is handed over under a lock, and accessed outside of it. A long time passes
// before. Each thread looks whether it has all that a thread has, in every execution; what is missing is said in a file.
//
// Usage: handed_over [receivers] [rounds before] [pipe | child | shared | timer | writes]
#include "common.hpp"
#include <cfenv>
#include <condition_variable>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <memory>
#include <pthread.h>
#include <stdexcept>
#include <string>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

static std::mutex door;
static std::condition_variable opened;
static int parcel, sent, taken;
static thread_local int own_number = -1;
static pthread_mutex_t checking;
static pthread_key_t key;

static void check(bool right, const char *what) {
    if (right) return;
    if (FILE *file = std::fopen("missing", "a")) {
        std::fprintf(file, "%s\n", what);
        std::fclose(file);
    }
    std::abort();
}

static void destroy(void *value) {
    check(*std::unique_ptr<int>(static_cast<int *>(value)) == own_number, "thread-local storage at the end"); }

static void on_signal(int) {}

// What a thread has of its own.
struct Possessions {
    std::vector<char> stack = std::vector<char>(SIGSTKSZ);
    explicit Possessions(int number) {
        own_number = number;
        pthread_setspecific(key, new int(number));
        stack_t alternate = {};
        alternate.ss_sp = stack.data();
        alternate.ss_size = stack.size();
        sigaltstack(&alternate, nullptr);
        sigset_t mask;
        sigemptyset(&mask);
        sigaddset(&mask, SIGRTMIN + number);
        pthread_sigmask(SIG_BLOCK, &mask, nullptr);
        std::fesetround(number % 2 ? FE_UPWARD : FE_TONEAREST);
    }
    void look(int number) const {
        check(own_number == number, "thread-local storage");
        stack_t alternate;
        sigaltstack(nullptr, &alternate);
        check(alternate.ss_sp == stack.data(), "alternate stack");
        sigset_t mask;
        pthread_sigmask(SIG_BLOCK, nullptr, &mask);
        check(sigismember(&mask, SIGRTMIN + number) == 1 && sigismember(&mask, SIGRTMIN + number + 1) == 0, "signal mask");
        check(std::fegetround() == (number % 2 ? FE_UPWARD : FE_TONEAREST), "rounding");
        check(pthread_equal(pthread_self(), pthread_self()), "itself");
    }
    ~Possessions() {
        stack_t none = {};
        none.ss_flags = SS_DISABLE;
        sigaltstack(&none, nullptr);
    }
};

static void receive(int number) {
    Possessions possessions(number);
    {
        std::unique_lock<std::mutex> guard(door);
        opened.wait(guard, [] { return sent > taken; });
        taken++;
    }
    check(parcel == 42, "the parcel");
    possessions.look(number);
    try {
        throw std::runtime_error(std::to_string(number));
    } catch (const std::runtime_error &error) {
        check(error.what() == std::to_string(number), "exceptions");
    }
}

int main(int count, char **words) {
    Arguments arguments(count, words, 100);
    std::string extra = count > 3 ? words[3] : "";
    pthread_key_create(&key, destroy);
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_ERRORCHECK);
    pthread_mutex_init(&checking, &attributes);
    pthread_mutex_lock(&checking);
    std::vector<std::uint32_t> own(1000);
    private_work(own, arguments.size);
    int file = open(words[0], O_RDONLY | O_CLOEXEC);
    char begin[4], next[4], again[4];
    check(read(file, begin, 4) == 4 && std::memcmp(begin, "\177ELF", 4) == 0, "the file");
    check(pread(file, next, 4, 4) == 4, "the file");
    int ends[2];
    if (extra == "pipe") check(pipe(ends) == 0, "a pipe");
    if (extra == "writes") check(open("written", O_CREAT | O_WRONLY, 0600) >= 0, "a file");
    if (extra == "folder") check(mkdir("made", 0700) == 0 && rmdir("made") == 0, "a folder");
    if (extra == "closed") check(close(open("written", O_CREAT | O_WRONLY, 0600)) == 0, "a file");
    if (extra == "shared")
        check(mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0) != MAP_FAILED, "memory");
    std::signal(SIGALRM, on_signal);
    itimerval timer = {};
    timer.it_value.tv_sec = 100;
    if (extra == "timer") check(setitimer(ITIMER_REAL, &timer, nullptr) == 0, "a timer");
    pid_t child = -1;
    int held[2];
    if (extra == "child") {
        check(pipe(held) == 0, "a pipe");
        child = fork();
        if (child == 0) {
            close(held[1]);
            char byte;
            _exit(read(held[0], &byte, 1) == 0 ? 0 : 1);
        }
    }
    std::vector<std::thread> threads;
    for (int number = 0; number < arguments.threads; number++) threads.emplace_back(receive, number);
    parcel = 42;
    {
        std::lock_guard<std::mutex> guard(door);
        sent = arguments.threads;
        opened.notify_all();
    }
    for (auto &thread : threads) thread.join();
    check(read(file, again, 4) == 4 && std::memcmp(next, again, 4) == 0, "the place in the file");
    check(pthread_mutex_lock(&checking) == EDEADLK && pthread_mutex_unlock(&checking) == 0, "the owner of a mutex");
    if (child > 0) {
        close(held[1]);
        int status;
        check(waitpid(child, &status, 0) == child && status == 0, "a child");
    }
    return 0;
}
