// A character of a std::string.
// Shows: a race on memory whose address comes from library code that may not be instrumented.
// True:  both threads use the first character; nothing changes the string's length.
// expect: race 13 17 co-enabled
#include <cstdio>
#include <string>
#include <thread>

static std::string text = "a string that is too long for the buffer inside the object";
static char seen;

static void capitalise() {
    text[0] = 'A';
}

static void look() {
    seen = text[0];
}

int main() {
    std::thread a(capitalise);
    std::thread b(look);
    a.join();
    b.join();
    std::printf("%c %c\n", text[0], seen);
    return 0;
}
