// bug: the length of a list and its elements are asked for in two critical sections; a removal between them makes the index wrong
// shows: atomicity-violation
#include <mutex>
#include <string>
#include <thread>
#include <vector>

class Playlist {
public:
    std::size_t size() {
        std::lock_guard<std::recursive_mutex> held(mutex);
        return songs.size();
    }
    std::string at(std::size_t place) {
        std::lock_guard<std::recursive_mutex> held(mutex);
        return songs.at(place);
    }
    void drop_last() {
        std::lock_guard<std::recursive_mutex> held(mutex);
        if (!songs.empty()) songs.pop_back();
    }
    std::recursive_mutex &whole() { return mutex; }

private:
    std::recursive_mutex mutex;
    std::vector<std::string> songs = {"intro", "theme"};
};

static Playlist playlist;

static std::string last_song() {
#ifdef FIXED
    std::lock_guard<std::recursive_mutex> whole(playlist.whole());
#endif
    std::size_t songs = playlist.size();
    return songs == 0 ? "" : playlist.at(songs - 1);
}

int main() {
    std::thread player([] { last_song(); }), editor([] { playlist.drop_last(); });
    player.join();
    editor.join();
    return 0;
}
