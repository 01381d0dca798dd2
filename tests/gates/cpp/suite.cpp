// The tests as one program: `suite NAME` executes one.
#include "parts.h"
#include <cstdio>
#include <cstdlib>

#define HOLDS(condition)                                      \
    do {                                                      \
        if (!(condition)) {                                   \
            std::fprintf(stderr, "failed: %s\n", #condition); \
            std::exit(1);                                     \
        }                                                     \
    } while (0)
#define CASE(name)                                    \
    static void name();                               \
    static const Entry entry_of_##name(#name, name);  \
    static void name()

struct Entry {
    static std::map<std::string, void (*)()> &all() {
        static std::map<std::string, void (*)()> entries;
        return entries;
    }
    Entry(const char *name, void (*test)()) { all()[name] = test; }
};

#include "cases.inc"

int main(int count, char **arguments) {
    auto found = Entry::all().find(count > 1 ? arguments[1] : "");
    if (found == Entry::all().end())
        return 2;
    found->second();
}
